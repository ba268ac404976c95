/* Polynomials of continuous inputs: which points they go through, as fmimaster/run/inputs.py. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "portable.h"
#include "numerics.h"
#include "status.h"

#include <math.h>
#include <string.h>

/* A derivative of the output that feeds an input, as it is among these outputs. */
static inline double output_of(const fm_route *route, int derivative, void *const *outputs)
{
    if (derivative > 0)
        return ((const double *)outputs[FM_FLOAT64])[route->derivatives[derivative - 1]];
    if (route->source_type == FM_FLOAT64)
        return ((const double *)outputs[FM_FLOAT64])[route->source];
    return fm_as_double(route->source_type,
                     (const char *)outputs[route->source_type] + route->source * fm_size[route->source_type]);
}

/* Values of all continuous inputs at a time. */
void fm_evaluate(const double *coefficients, int degree, int n, double s, double *result)
{
    for (int w = 0; w < n; w++)
        result[w] = fm_horner(coefficients + w, n, degree, s);
}

/* The points that a polynomial of one route can go through: _Points of inputs.py. */
struct points {
    const fm_route *route;
    const fm_fitted *wanted;
    int n;    /* of them, the newest first */
    int is_ahead; /* whether the newest is after the centre */
    int near; /* number of the first copy that is too near to the newest point; NONE for none */
    double times[FM_MOST_POINTS + 1];
    void *const *outputs[FM_MOST_POINTS + 1];
};

enum { NONE = -1 };

static void find_points(const fm_kernel *k, const fm_fit *f, double nearest, double centre, struct points *p)
{
    const fm_fitted *wanted = p->wanted;
    int j = p->route->source_instance, most = wanted->points + wanted->adaptive;
    if (wanted->compensation != 0.0 && most < 2)
        most = 2;
    if (!isnan(wanted->late))
        nearest = 0.0; /* its points are put elsewhere */
    p->times[0] = k->read[j];
    p->outputs[0] = k->outputs;
    p->is_ahead = p->times[0] > centre;
    p->n = 1;
    p->near = NONE;
    for (int b = 0; b < wanted->n_copies && p->n + (p->near != NONE) < most; b++) {
        const fm_copy *copy = f->copies[b];
        double time = copy->read[j], distance = INFINITY;
        if (!isfinite(time))
            continue;
        for (int q = 0; q < p->n; q++) {
            double apart = fabs(time - p->times[q]);
            distance = apart < distance ? apart : distance;
        }
        if (distance > nearest) {
            p->outputs[p->n] = copy->outputs;
            p->times[p->n++] = time;
        } else if (p->n == 1 && p->near == NONE && distance > 0.0) {
            p->near = b;
        }
    }
}

/* A derivative of the output at a point: _Points.sample of inputs.py. */
static double sample(const struct points *p, int point, int derivative)
{
    if (point == 0 && derivative == 0 && p->is_ahead && p->route->left != p->route->source)
        return ((const double *)p->outputs[0][FM_FLOAT64])[p->route->left];
    return output_of(p->route, derivative, p->outputs[point]);
}

/* Coefficients of the polynomial through so many points from the first on; returns how many there are. */
static int through(const fm_kernel *k, const fm_fit *f, const struct points *p, int points, int derivatives, int first,
                   double centre, double **part)
{
    double *nodes = k->scratch, *samples = nodes + f->rows, *work = samples + f->rows;
    int is_whole = first == 0 && points > 1 && points == p->wanted->points && derivatives == p->wanted->derivatives;
    int is_near = p->near != NONE && is_whole, at = 0;
    *part = work + 3 * f->rows;
    points -= is_near;
    if (p->route->n_derivatives < derivatives) {
        points = 1;
        is_near = derivatives = 0;
    }
    for (int q = first; q < first + points && q < p->n; q++) {
        for (int d = 0; d <= derivatives; d++) {
            nodes[at] = p->times[q];
            samples[at++] = sample(p, q, d);
        }
        if (q == 0 && is_near) {
            const fm_copy *copy = f->copies[p->near];
            double before = output_of(p->route, derivatives, copy->outputs);
            nodes[at] = p->times[0];
            samples[at] = (samples[at - 1] - before) / (p->times[0] - copy->read[p->route->source_instance]);
            at++;
        }
    }
    if (!isnan(p->wanted->late) && at > 1) {
        nodes[0] = k->begin + p->wanted->late * (k->end - k->begin);
        nodes[1] = centre;
    }
    fm_hermite(nodes, samples, at, centre, work, *part);
    return at;
}

/* Points and derivatives of the candidate that would have predicted the newest point best: _measured_best of inputs.py. */
static void measured_best(const fm_kernel *k, const fm_fit *f, const struct points *p, double *errors, double *measured,
                          double length, int *points, int *derivatives)
{
    int lower = p->wanted->derivatives > 1, n = 2 + 2 * lower, older = p->n - 1;
    int tried_points[FM_CANDIDATES], tried_derivatives[FM_CANDIDATES];
    for (int c = 0; c < n; c++) {
        tried_points[c] = p->wanted->points - c / (1 + lower);
        tried_derivatives[c] = p->wanted->derivatives - (lower ? c % 2 : 0);
    }
    *points = tried_points[0];
    *derivatives = tried_derivatives[0];
    if (older == 0) {
        for (int c = 0; c < FM_CANDIDATES; c++)
            errors[c] = NAN;
        *measured = NAN;
        return;
    }
    double now = p->times[0], last = now - p->times[1], largest = 0.0;
    double actual = output_of(p->route, 0, p->outputs[0]);
    for (int q = 0; q <= older; q++)
        largest = fmax(largest, fabs(output_of(p->route, 0, p->outputs[q])));
    for (int c = 0; c < n && *measured != now; c++) {
        if (tried_points[c] > older)
            continue;
        double *part;
        int size = through(k, f, p, tried_points[c], tried_derivatives[c], 1, now, &part);
        errors[c] = fm_faded(errors[c], fabs(fm_horner(part, 1, size - 1, 0.0) - actual));
    }
    *measured = now;
    int best = fm_best_candidate(errors, n, largest, last, length);
    *points = tried_points[best];
    *derivatives = tried_derivatives[best];
}

/* The value at which an input is held. */
FM_INLINE double constant(const fm_kernel *k, const fm_fitted *wanted, const double *part, int size, double centre, double length)
{
    if (!isnan(wanted->held))
        return fm_horner(part, 1, size - 1, (k->begin + wanted->held * length) - centre);
    double until_end = (k->begin + wanted->mean * length) - centre;
    if (wanted->half != 0)
        return fm_half_mean(part, 1, size - 1, until_end, wanted->half);
    return fm_mean(part, 1, size - 1, until_end);
}

/* What an input gets of the polynomial of its source; returns how many coefficients there are. For lines, the size is constant
 * after inlining. */
FM_INLINE int given(const fm_kernel *k, int i, int w, const fm_fitted *wanted, const fm_route *route, double *part, int size,
                    double centre, double length)
{
    for (int d = 0; d < size; d++)
        part[d] *= route->factor;
    part[0] += route->offset;
    if (isnan(wanted->held) && isnan(wanted->mean))
        return size;
    if (wanted->half == 2)
        k->foreseen[i][w] = fm_horner(part, 1, size - 1, (k->begin + wanted->mean * length) - centre);
    part[0] = constant(k, wanted, part, size, centre, length);
    return 1;
}

/* The line through the two newest points of a route, by the same operations as fm_hermite; 0 if there are no two, or if the
 * second one is too near. */
FM_INLINE int line(const fm_kernel *k, const fm_fit *f, const fm_route *route, int n_copies, double nearest, double centre,
                double *part)
{
    int j = route->source_instance;
    double newest = k->read[j];
    for (int b = 0; b < n_copies; b++) {
        const fm_copy *copy = f->copies[b];
        double time = copy->read[j], apart = fabs(time - newest);
        if (!(apart > nearest && apart < INFINITY)) {
            if (isfinite(time) && apart != 0.0)
                return 0;
            continue;
        }
        double value = output_of(route, 0, k->outputs);
        double slope = (output_of(route, 0, copy->outputs) - value) / (time - newest);
        double at = 0.0 * (centre - time) + slope;
        part[1] = 0.0 * (centre - newest) + at;
        part[0] = at * (centre - newest) + value;
        return 1;
    }
    return 0;
}

/* The polynomial of an input that is no line; returns how many coefficients there are. */
FM_NOT_INLINE int general(const fm_kernel *k, const fm_instruction *c, int w, double nearest, double centre, struct points *p,
                                 double **part)
{
    const fm_fit *f = c->fit.fitted;
    const fm_fitted *wanted = p->wanted;
    int i = c->instance, points = wanted->points, derivatives = wanted->derivatives;
    find_points(k, f, nearest, centre, p);
    if (wanted->adaptive && !p->is_ahead)
        measured_best(k, f, p, k->errors[i] + FM_CANDIDATES * w, k->measured[i] + w,
                      wanted->half ? k->end - k->begin : k->end - centre, &points, &derivatives);
    return through(k, f, p, points, derivatives, 0, centre, part);
}

void fm_fit_inputs(fm_kernel *k, const fm_instruction *c)
{
    const fm_fit *f = c->fit.fitted;
    int i = c->instance, rows = f->is_constant ? 1 : f->rows;
    int first = k->route_begin[i], n = k->route_begin[i + 1] - first;
    double length = k->end - k->begin, centre = k->begin + c->fit.at * length, nearest = FM_NEAREST * length;
    double *coefficients = k->coefficients[i];
    for (int w = 0; w < n; w++) {
        const fm_fitted *wanted = &f->inputs[w];
        const fm_route *route = &k->routes[first + w];
        struct points p;
        p.route = route, p.wanted = wanted;
        double ends[2], *part = ends;
        int size;
        if (wanted->is_line && line(k, f, route, wanted->n_copies, nearest, centre, ends)) {
            size = given(k, i, w, wanted, route, ends, 2, centre, length);
        } else {
            size = general(k, c, w, nearest, centre, &p, &part);
            size = given(k, i, w, wanted, route, part, size, centre, length);
        }
        if (wanted->compensation != 0.0 && !p.is_ahead)
            part[0] = fm_compensated(part[0], (route->factor * output_of(route, 0, p.outputs[0]) + route->offset) / 2.0,
                                     wanted->compensation, p.times[0], (k->begin + wanted->mean * length) - centre,
                                     p.n + (p.near != NONE) > 1, k->lacking[i] + FM_MOST_GIVEN * w,
                                     k->given_from[i] + FM_MOST_GIVEN * w, FM_MOST_GIVEN);
        coefficients[w] = part[0];
        for (int d = 1; d < rows; d++)
            coefficients[d * n + w] = d < size ? part[d] : 0.0;
    }
    k->centre[i] = centre;
    k->degree[i] = rows - 1;
    if (f->is_constant) {
        copy_doubles(c->fit.inputs->values, coefficients, (int)c->fit.inputs->size);
        k->degree[i] = -1;
    }
}

/* The derivatives of the polynomials at a time, from the first one on; n of each order. */
static void differentiate(const double *coefficients, int n, int degree, double s, double *derivatives)
{
    double weights[FM_MOST_NODES];
    for (int p = 0; p <= degree; p++)
        weights[p] = 1.0;
    for (int order = 1; order <= degree; order++) {
        fm_next_weights(weights, degree, order);
        for (int w = 0; w < n; w++)
            derivatives[(order - 1) * n + w] = fm_derivative_at(coefficients + w, weights, n, degree, order, s);
    }
}

int fm_set_polynomials(fm_kernel *k, int i, const fm_segment *segment, const char **function)
{
    const fm_instance *instance = &k->instances[i];
    int n = (int)segment->size, degree = k->degree[i];
    const double *coefficients = k->coefficients[i];
    double *values = segment->values, *derivatives = k->scratch, s = k->at[i] - k->centre[i];
    k->follows[i] = 1; /* it is given a polynomial each time from now on, also when the value is held again */
    if (degree == 1) { /* a line, by the same operations */
        for (int w = 0; w < n; w++) {
            derivatives[n + w] = 0.0 * s + coefficients[n + w];
            derivatives[w] = values[w] = derivatives[n + w] * s + coefficients[w];
        }
    } else {
        if (degree >= 0)
            fm_evaluate(coefficients, degree, n, s, values);
        copy_doubles(derivatives, values, n);
        differentiate(coefficients, n, degree, s, derivatives + n);
    }
    int status = segment->transfer(segment);
    *function = segment->function;
    if (fm_failed(status))
        return status;
    return instance->set_polynomials(instance->self, segment->references, segment->n, degree < 0 ? 0 : degree, derivatives,
                                     k->at[i], function);
}
