/* Polynomials of continuous inputs: fmimaster/program/polynomial.py and fmimaster/run/inputs.py, operation by operation. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "status.h"

#include <math.h>
#include <string.h>

/* Coefficients of the Hermite polynomial of one signal: fmimaster/program/polynomial.py. `nodes` are its times, each as
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
            if (nodes[i + m] == nodes[i])
                column[i] = samples[begin[i] + m] / factorial;
            else
                column[i] = (column[i + 1] - column[i]) / (nodes[i + m] - nodes[i]);
        }
        newton[m] = column[0];
    }
    for (int i = 0; i < n; i++)
        coefficients[i] = 0.0;
    for (int m = n - 1; m >= 0; m--) {
        double shift = centre - nodes[m];
        for (int i = n - 1; i > 0; i--)
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

/* Derivatives of order 0 and up of all continuous inputs at a time, by Horner's rule as in polynomial.py. */
static void evaluate(const double *coefficients, int degree, int n, double s, int derivative, double *result)
{
    for (int w = 0; w < n; w++)
        result[w] = 0.0;
    for (int p = degree; p >= derivative; p--) {
        double weight = 1.0;
        for (int j = 0; j < derivative; j++)
            weight *= p - j;
        for (int w = 0; w < n; w++)
            result[w] = result[w] * s + weight * coefficients[p * n + w];
    }
}

/* The copies of the outputs that a polynomial may go through: buffers, then the history. */
static const fm_copy *earlier(const fm_kernel *k, const fm_fit *f, int b)
{
    return b < f->n_buffers ? &k->buffers[f->buffers[b]] : &k->history[b - f->n_buffers];
}

void fm_fit_inputs(fm_kernel *k, const fm_instruction *c)
{
    const fm_fit *f = c->fit;
    int i = c->instance, most = f->rows;
    int first = k->route_begin[i], n = k->route_begin[i + 1] - first;
    double centre = k->begin + c->at * (k->end - k->begin), nearest = NEAREST * (k->end - k->begin);
    double *nodes = k->scratch, *samples = nodes + most, *work = samples + most, *part = work + 2 * most;
    memset(k->coefficients[i], 0, sizeof(double) * (size_t)(most * n));
    for (int w = 0; w < n; w++) {
        const fm_route *route = &k->routes[first + w];
        int is_held = route->n_derivatives < f->derivatives[w];
        int j = route->source_instance, used = is_held ? 1 : f->derivatives[w] + 1;
        int wanted = is_held ? 1 : f->points[w], points = 0, near = -2;
        double times[FM_MOST_POINTS];
        void *const *chosen[FM_MOST_POINTS];
        for (int b = -1; b < f->n_copies && points + (near != -2) < wanted; b++) {
            double time = b < 0 ? k->read[j] : earlier(k, f, b)->read[j];
            double distance = INFINITY;
            if (b >= 0 && !isfinite(time))
                continue;
            for (int p = 0; p < points; p++)
                distance = fmin(distance, fabs(time - times[p]));
            if (distance > nearest) {
                chosen[points] = b < 0 ? k->outputs : earlier(k, f, b)->outputs;
                times[points++] = time;
            } else if (points == 1 && near == -2 && distance > 0.0) {
                near = b;
            }
        }
        int at = 0;
        for (int p = 0; p < points; p++) {
            for (int d = 0; d < used; d++) {
                nodes[at] = times[p];
                samples[at++] = output_of(route, d, chosen[p]);
            }
            if (p == 0 && near >= 0) {
                const fm_copy *copy = earlier(k, f, near);
                double before = output_of(route, used - 1, copy->outputs);
                nodes[at] = times[0];
                samples[at] = (samples[at - 1] - before) / (times[0] - copy->read[j]);
                at++;
            }
        }
        hermite(nodes, samples, at, centre, work, part);
        for (int p = 0; p < at; p++)
            k->coefficients[i][p * n + w] = part[p] * route->factor;
        k->coefficients[i][w] += route->offset;
    }
    k->centre[i] = centre;
    k->degree[i] = most - 1;
    if (!isnan(f->held)) {
        double middle = k->begin + f->held * (k->end - k->begin);
        evaluate(k->coefficients[i], most - 1, n, middle - centre, 0, nodes);
        memcpy(k->coefficients[i], nodes, sizeof(double) * (size_t)n);
        k->degree[i] = 0;
    }
}

int fm_set_polynomials(fm_kernel *k, int i, const fm_segment *segment, const char **function)
{
    const fm_instance *instance = &k->instances[i];
    int n = (int)segment->size, degree = k->degree[i];
    double *values = segment->values, *derivatives = k->scratch;
    k->follows[i] = 1; /* it is given a polynomial each time from now on, also when the value is held again */
    if (degree >= 0)
        evaluate(k->coefficients[i], degree, n, k->at[i] - k->centre[i], 0, values);
    int status = segment->transfer(segment);
    *function = segment->function;
    if (fm_failed(status))
        return status;
    memcpy(derivatives, values, sizeof(double) * (size_t)n);
    for (int d = 1; d <= degree; d++)
        evaluate(k->coefficients[i], degree, n, k->at[i] - k->centre[i], d, &derivatives[d * n]);
    return instance->set_polynomials(instance->self, segment->references, segment->n, degree < 0 ? 0 : degree, derivatives,
                                 k->at[i], function);
}
