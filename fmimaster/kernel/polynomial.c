/* Polynomials of continuous inputs: fmimaster/inputs/polynomial.py and fmimaster/run/inputs.py, operation by operation. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "status.h"

#include <math.h>
#include <string.h>

/* Coefficients of the Hermite polynomial of one signal: fmimaster/inputs/polynomial.py. `nodes` are its times, each as
 * often as it has samples; samples[i] at the start of a point is its value, and its derivatives follow. */
static void hermite(const double *nodes, const double *samples, int n, double centre, double *work, double *coefficients)
{
    double *column = work, *newton = work + n;
    int begin[FM_MOST_NODES]; /* of the point that a node belongs to */
    for (int i = 0; i < n; i++) {
        begin[i] = i > 0 && nodes[i] == nodes[i - 1] ? begin[i - 1] : i;
        column[i] = samples[begin[i]];
    }
    newton[0] = column[0];
    double factorial = 1.0;
    for (int m = 1; m < n; m++) {
        factorial *= m;
        for (int i = 0; i < n - m; i++) {
            if (nodes[i + m] == nodes[i]) /* a division by 1 would change nothing */
                column[i] = m == 1 ? samples[begin[i] + m] : samples[begin[i] + m] / factorial;
            else
                column[i] = (column[i + 1] - column[i]) / (nodes[i + m] - nodes[i]);
        }
        newton[m] = column[0];
    }
    for (int i = 0; i < n; i++)
        coefficients[i] = 0.0;
    for (int m = n - 1; m >= 0; m--) {
        double shift = centre - nodes[m];
        for (int i = n - 1 - m; i > 0; i--) /* those of higher powers are still 0 */
            coefficients[i] = coefficients[i] * shift + coefficients[i - 1];
        coefficients[0] = coefficients[0] * shift + newton[m];
    }
}

/* Points of time that are nearer to each other, in intervals, are too near for a polynomial: polynomial.py. */
static const double NEAREST = 0.02;

/* A derivative of the output that feeds an input, as it is among these outputs. */
static double output_of(const fm_route *route, int derivative, void *const *outputs)
{
    if (derivative > 0)
        return ((const double *)outputs[FM_FLOAT64])[route->derivatives[derivative - 1]];
    return fm_as_double(route->source_type,
                     (const char *)outputs[route->source_type] + route->source * fm_size[route->source_type]);
}

/* Values of all continuous inputs at a time, by Horner's rule as in polynomial.py. */
void fm_evaluate(const double *coefficients, int degree, int n, double s, double *result)
{
    for (int w = 0; w < n; w++) {
        double value = 0.0;
        for (int p = degree; p >= 0; p--)
            value = value * s + coefficients[p * n + w];
        result[w] = value;
    }
}

/* Their derivatives of order 1 to the degree, order by order. A coefficient has in each order the weight that it had in the
 * one before, times the power that is left. */
static void derive(const double *coefficients, int degree, int n, double s, double *result)
{
    double weights[FM_MOST_NODES];
    for (int p = 0; p <= degree; p++)
        weights[p] = 1.0;
    for (int order = 1; order <= degree; order++) {
        for (int p = order; p <= degree; p++)
            weights[p] *= p - (order - 1);
        for (int w = 0; w < n; w++) {
            double value = 0.0;
            for (int p = degree; p >= order; p--)
                value = value * s + weights[p] * coefficients[p * n + w];
            *result++ = value;
        }
    }
}

/* Means of all continuous inputs from the centre of their polynomials over a length in s. */
static void mean(const double *coefficients, int degree, int n, double length, double *result)
{
    for (int w = 0; w < n; w++)
        result[w] = 0.0;
    for (int p = degree; p >= 0; p--)
        for (int w = 0; w < n; w++)
            result[w] = result[w] * length + coefficients[p * n + w] / (p + 1);
}

/* The copies of the outputs that a polynomial may go through: buffers, then the history. */
static const fm_copy *earlier(const fm_kernel *k, const fm_fit *f, int b)
{
    return b < f->n_buffers ? &k->buffers[f->buffers[b]] : &k->history[b - f->n_buffers];
}

/* The points that a polynomial of one route can go through: _Points of inputs.py. */
struct points {
    const fm_route *route;
    const fm_fitted *wanted;
    int n;    /* of them, the newest first */
    int near; /* number of the first copy that is too near to the newest point; NONE for none */
    double times[FM_MOST_POINTS + 1];
    void *const *outputs[FM_MOST_POINTS + 1];
};

enum { NONE = -1 };

static void find_points(const fm_kernel *k, const fm_fit *f, double nearest, struct points *p)
{
    const fm_fitted *wanted = p->wanted;
    int j = p->route->source_instance, most = wanted->points + wanted->adaptive;
    if (wanted->compensation != 0.0 && most < 2)
        most = 2;
    if (!isnan(wanted->late))
        nearest = 0.0; /* its points are put elsewhere */
    p->times[0] = k->read[j];
    p->outputs[0] = k->outputs;
    p->n = 1;
    p->near = NONE;
    for (int b = 0; b < wanted->n_copies && p->n + (p->near != NONE) < most; b++) {
        const fm_copy *copy = earlier(k, f, b);
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

/* Coefficients of the polynomial through so many points from the first on; returns how many there are. */
static int through(const fm_kernel *k, const fm_fit *f, const struct points *p, int points, int derivatives, int first,
                   double centre, double **part)
{
    double *nodes = k->scratch, *samples = nodes + f->rows, *work = samples + f->rows;
    int is_whole = first == 0 && points > 1 && points == p->wanted->points && derivatives == p->wanted->derivatives;
    int is_near = p->near != NONE && is_whole, at = 0;
    *part = work + 2 * f->rows;
    points -= is_near;
    if (p->route->n_derivatives < derivatives) {
        points = 1;
        is_near = derivatives = 0;
    }
    for (int q = first; q < first + points && q < p->n; q++) {
        for (int d = 0; d <= derivatives; d++) {
            nodes[at] = p->times[q];
            samples[at++] = output_of(p->route, d, p->outputs[q]);
        }
        if (q == 0 && is_near) {
            const fm_copy *copy = earlier(k, f, p->near);
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
    hermite(nodes, samples, at, centre, work, *part);
    return at;
}

/* FADING, STEADY and ROUNDING of polynomial.py. */
static const double FADING = 0.9, STEADY = 0.8, ROUNDING = 1e-13;

/* Points and derivatives of the candidate that would have predicted the newest point best: _measured_best of inputs.py. */
static void measured_best(const fm_kernel *k, const fm_fit *f, const struct points *p, double *errors, double *measured,
                          double length, int *points, int *derivatives)
{
    int lower = p->wanted->derivatives > 1, n = 2 + 2 * lower, best = 0, older = p->n - 1;
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
        double *part, predicted;
        int size = through(k, f, p, tried_points[c], tried_derivatives[c], 1, now, &part);
        fm_evaluate(part, size - 1, 1, 0.0, &predicted);
        double error = fabs(predicted - actual), faded = FADING * errors[c];
        errors[c] = faded > error ? faded : error;
    }
    *measured = now;
    if (isnan(errors[0]) || !(STEADY * last <= length && length <= last / STEADY))
        return;
    double floor = ROUNDING * largest;
    for (int c = 1; c < n; c++)
        if ((errors[c] > floor ? errors[c] : floor) < errors[best])
            best = c;
    *points = tried_points[best];
    *derivatives = tried_derivatives[best];
}

/* A held value, and what the input lacked over the last interval in addition: _compensated of inputs.py. */
static double compensated(const struct points *p, double value, double length, double *lacking, double *given_from)
{
    int place = 0, last = NONE;
    double now = p->times[0];
    double half = (p->route->factor * output_of(p->route, 0, p->outputs[0]) + p->route->offset) / 2.0;
    for (int m = 0; m < FM_MOST_GIVEN; m++) {
        if (given_from[m] >= now)
            given_from[m] = NAN;
        else if (!isnan(given_from[m]) && (last == NONE || given_from[m] > given_from[last]))
            last = m;
    }
    for (int m = 0; m < FM_MOST_GIVEN; m++) {
        if (isnan(given_from[m])) {
            place = m;
            break;
        }
        if (given_from[m] < given_from[place])
            place = m;
    }
    if (last != NONE && p->n + (p->near != NONE) > 1) {
        double lacked = half + lacking[last];
        if (isfinite(lacked))
            value = value + p->wanted->compensation * lacked * (now - given_from[last]) / length;
    }
    lacking[place] = half - value;
    given_from[place] = now;
    return value;
}

/* The value at which an input is held. */
static double constant(const fm_kernel *k, const fm_fitted *wanted, const double *part, int size, double centre)
{
    double value, length = k->end - k->begin;
    if (!isnan(wanted->held))
        fm_evaluate(part, size - 1, 1, (k->begin + wanted->held * length) - centre, &value);
    else
        mean(part, size - 1, 1, (k->begin + wanted->mean * length) - centre, &value);
    return value;
}

void fm_fit_inputs(fm_kernel *k, const fm_instruction *c)
{
    const fm_fit *f = c->fit;
    int i = c->instance, rows = f->is_constant ? 1 : f->rows;
    int first = k->route_begin[i], n = k->route_begin[i + 1] - first;
    double length = k->end - k->begin, centre = k->begin + c->at * length;
    memset(k->coefficients[i], 0, sizeof(double) * (size_t)(rows * n));
    for (int w = 0; w < n; w++) {
        const fm_fitted *wanted = &f->inputs[w];
        struct points p = {.route = &k->routes[first + w], .wanted = wanted};
        int points = wanted->points, derivatives = wanted->derivatives;
        double *part;
        find_points(k, f, NEAREST * length, &p);
        int is_ahead = p.times[0] > centre;
        if (wanted->adaptive && !is_ahead)
            measured_best(k, f, &p, k->errors[i] + FM_CANDIDATES * w, k->measured[i] + w, k->end - centre, &points,
                          &derivatives);
        int size = through(k, f, &p, points, derivatives, 0, centre, &part);
        for (int d = 0; d < size; d++)
            part[d] *= p.route->factor;
        part[0] += p.route->offset;
        if (!isnan(wanted->held) || !isnan(wanted->mean)) {
            part[0] = constant(k, wanted, part, size, centre);
            size = 1;
        }
        if (wanted->compensation != 0.0 && !is_ahead)
            part[0] = compensated(&p, part[0], (k->begin + wanted->mean * length) - centre,
                                  k->lacking[i] + FM_MOST_GIVEN * w, k->given_from[i] + FM_MOST_GIVEN * w);
        for (int d = 0; d < size; d++)
            k->coefficients[i][d * n + w] = part[d];
    }
    k->centre[i] = centre;
    k->degree[i] = rows - 1;
    if (f->is_constant) {
        memcpy(c->segments->values, k->coefficients[i], sizeof(double) * c->segments->size);
        k->degree[i] = -1;
    }
}

int fm_set_polynomials(fm_kernel *k, int i, const fm_segment *segment, const char **function)
{
    const fm_instance *instance = &k->instances[i];
    int n = (int)segment->size, degree = k->degree[i];
    double *values = segment->values, *derivatives = k->scratch;
    k->follows[i] = 1; /* it is given a polynomial each time from now on, also when the value is held again */
    if (degree >= 0)
        fm_evaluate(k->coefficients[i], degree, n, k->at[i] - k->centre[i], values);
    int status = segment->transfer(segment);
    *function = segment->function;
    if (fm_failed(status))
        return status;
    memcpy(derivatives, values, sizeof(double) * (size_t)n);
    derive(k->coefficients[i], degree, n, k->at[i] - k->centre[i], derivatives + n);
    return instance->set_polynomials(instance->self, segment->references, segment->n, degree < 0 ? 0 : degree, derivatives,
                                 k->at[i], function);
}
