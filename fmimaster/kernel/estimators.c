/* Twins of the hooks of step-size control, with the same operations in the same order. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "doubles.h"
#include "numerics.h"

#include <math.h>

/* fmimaster/steps/estimator.py */
int fm_step_size(void *self, fm_kernel *k)
{
    const fm_step_size_data *d = self;
    double *outputs = k->outputs[FM_FLOAT64];
    outputs[d->target] = (d->instance < 0 ? k->end : k->read[d->instance]) - k->begin;
    return FM_OK;
}

/* The newest known points of an output, at most most, and one of those between which its instance stood still; returns how
 * many of all are known. */
static int known_points(const fm_kernel *k, int64_t instance, int64_t slot, int most, double *values, double *times)
{
    int n = 0;
    double last = NAN;
    for (int b = 0; b < k->n_history; b++) {
        double time = k->history[b].read[instance];
        if (isnan(time) || time == last)
            continue;
        last = time;
        if (n < most) {
            values[n] = ((const double *)k->history[b].outputs[FM_FLOAT64])[slot];
            times[n] = time;
        }
        n++;
    }
    return n;
}

/* fmimaster/steps/prediction_errors.py */
int fm_prediction_error(void *self, fm_kernel *k)
{
    const fm_prediction_error_data *d = self;
    double *now = k->outputs[FM_FLOAT64], sums[2] = {0.0, 0.0}, found[3];
    double values[FM_MOST_DEGREE + 1], times[FM_MOST_DEGREE + 1];
    int worst = 0;
    for (int i = 0; i < d->n; i++) {
        int most = d->degree + 1, known = known_points(k, d->instances[i], d->slots[i], most, values, times);
        if (known < d->least) {
            now[d->error] = 1.0;
            now[d->worst] = 0.0;
            return FM_OK;
        }
        double y = now[d->slots[i]];
        fm_newton(values, times, known < most ? known : most, k->read[d->instances[i]], found);
        double part = fm_distance(y, found[0], d->absolute * d->nominals[i], d->relative);
        fm_add_part(part, part, i, sums, &worst);
    }
    now[d->error] = d->is_maximum ? sums[1] : sqrt(sums[0] / d->n);
    now[d->worst] = worst;
    return FM_OK;
}

/* fmimaster/steps/doubling_errors.py */
int fm_energy_difference(void *self, fm_kernel *k)
{
    const fm_energy_difference_data *d = self;
    double *now = k->outputs[FM_FLOAT64], sums[2] = {0.0, 0.0};
    const double *then = k->buffers[d->buffer].outputs[FM_FLOAT64];
    int worst = 0;
    for (int i = 0; i < d->n; i++) {
        int64_t slot = d->powers[i];
        double length = k->read[d->instances[i]] - k->begin;
        double energy = now[slot] * length, change = (now[slot] - then[slot]) * length;
        double part = fabs(change) / (d->tolerances[i] * (d->scales[i] + fabs(energy)));
        fm_add_part(part, part, i, sums, &worst);
    }
    now[d->error] = sqrt(sums[0] / d->n);
    now[d->worst] = worst;
    return FM_OK;
}

/* fmimaster/program/input_errors.py: what an input is over a step. */
enum { FM_POLYNOMIAL, FM_HALVES, FM_HELD };

/* The difference at the end of a step, which counts less if the step is short. */
static double input_error(const fm_input_errors_data *d, const fm_kernel *k, int m, double begin)
{
    int64_t i = d->instances[m], way = d->ways[m];
    double time = k->read[i], now = ((const double *)k->outputs[FM_FLOAT64])[d->slots[m]], difference;
    if ((way == FM_POLYNOMIAL && k->degree[i] < 0) || !(time == k->read[d->sources[m]]))
        return 0.0;
    if (way == FM_HELD) {
        difference = now - ((const double *)k->history->outputs[FM_FLOAT64])[d->slots[m]];
    } else {
        double given;
        if (way == FM_HALVES) {
            given = k->foreseen[i][d->columns[m]];
        } else {
            int n = k->route_begin[i + 1] - k->route_begin[i];
            int degree = k->degree[i] < d->taken[m] ? k->degree[i] : (int)d->taken[m];
            given = fm_horner(k->coefficients[i] + d->columns[m], n, degree, time - k->centre[i]);
        }
        difference = (given - (d->factors[m] * now + d->offsets[m])) / d->factors[m];
    }
    double part = (time - begin) / d->step;
    return fabs(difference) * (part < 1.0 ? part : 1.0);
}

/* Whether a step ends where an input of the system jumps. */
static int is_jump(const fm_input_errors_data *d, const fm_kernel *k)
{
    double now = k->read[d->sources[0]], near = larger(FM_SLIVER * d->step, fm_same(now, d->step));
    int first = 0, last = d->n_jumps;
    while (first < last) {
        int middle = first + (last - first) / 2;
        if (d->jumps[middle] < now - near)
            first = middle + 1;
        else
            last = middle;
    }
    return first < d->n_jumps && d->jumps[first] <= now + near;
}

int fm_input_errors(void *self, fm_kernel *k)
{
    const fm_input_errors_data *d = self;
    const double *now = k->outputs[FM_FLOAT64], *then = k->history->outputs[FM_FLOAT64];
    int at_jump = is_jump(d, k);
    d->steps[0] += 1.0;
    for (int m = 0; m < d->n; m++) {
        int64_t slot = d->slots[m];
        d->low[m] = smaller(smaller(d->low[m], then[slot]), now[slot]);
        d->high[m] = larger(larger(d->high[m], then[slot]), now[slot]);
        double error = at_jump ? 0.0 : input_error(d, k, m, k->history->read[d->instances[m]]);
        if (error > d->errors[m]) {
            d->errors[m] = error;
            d->times[m] = k->read[d->instances[m]];
        }
    }
    return FM_OK;
}

int fm_inputs_are_near(void *self, fm_kernel *k, double begin, double end, double next)
{
    const fm_input_errors_data *d = self;
    const double *now = k->outputs[FM_FLOAT64], *then = k->history->outputs[FM_FLOAT64];
    (void)end, (void)next;
    if (is_jump(d, k))
        return 1;
    for (int m = 0; m < d->n; m++) {
        if (d->ways[m] == FM_HELD)
            continue;
        int64_t slot = d->slots[m];
        double low = smaller(smaller(d->low[m], then[slot]), now[slot]);
        double high = larger(larger(d->high[m], then[slot]), now[slot]);
        double bound = larger(d->limits[m] * (high - low), d->rounding * larger(fabs(low), fabs(high)));
        if (input_error(d, k, m, begin) > bound)
            return 0;
    }
    return 1;
}
