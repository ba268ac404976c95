/* A watch for events that FMUs execute themselves, inside a step: whether none of them was to happen in it. Where that is not
 * certain, Python looks: fmimaster/run/observed.py and fmimaster/events/executed.py, whose operations these are, in their
 * order. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "cubic.h"

#include <math.h>
#include <string.h>

/* The value and slope of an indicator that goes on as before, and by how much the value may be wrong. */
typedef struct {
    double value, slope, error;
} expected;

/* Values of one indicator before the end of a step, newest first, and their times after its start. */
typedef struct {
    int n;
    double values[FM_MOST_POINTS], slopes[FM_MOST_POINTS], times[FM_MOST_POINTS];
} course;

/* The polynomial through all values, in Newton's form: _by_values. */
static expected by_values(course *c, double h)
{
    if (c->n < 3)
        return (expected){INFINITY, 0.0, INFINITY};
    double *differences = c->values, total = differences[0], rate = 0.0, product = 1.0, slope_of_product = 0.0;
    for (int k = 1; k < c->n; k++) {
        for (int i = 0; i + k < c->n; i++)
            differences[i] = (differences[i + 1] - differences[i]) / (c->times[i + k] - c->times[i]);
        double distance = h - c->times[k - 1];
        slope_of_product = slope_of_product * distance + product;
        product *= distance;
        total += differences[0] * product;
        rate += differences[0] * slope_of_product;
    }
    return (expected){total, rate, 0.0};
}

/* The cubic through values and derivatives at the start and before: extrapolate. */
static expected by_slopes(const course *c, double h)
{
    double c0 = c->values[0], c1 = c->slopes[0];
    if (c->n == 1)
        return (expected){c0 + c1 * h, c1, 0.0};
    double s = c->times[1];
    cubic p = hermite(c0, c1, c->values[1], c->slopes[1], s);
    double error = fabs(p.c3) * h * h * (h - s) + ROUNDING * (fabs(c0) + fabs(c1 * h));
    return (expected){p.c0 + h * (p.c1 + h * (p.c2 + h * p.c3)), p.c1 + h * (2 * p.c2 + h * 3 * p.c3), error};
}

/* The points of an indicator from the start of the step back; one that has not moved tells nothing of its course. */
static course course_of(const fm_kernel *k, int64_t instance, int64_t z, int64_t dz, double begin)
{
    course c = {0};
    for (int b = 0; b + 1 < k->n_history && c.n < FM_MOST_POINTS; b++) {
        const double *values = values_of(&k->history[b]);
        double time = k->history[b].read[instance], slope = dz < 0 ? 0.0 : values[dz];
        if (b > 0 && !(time < begin))
            continue;
        if (b > 0 && dz >= 0 && c.slopes[0] != 0.0 && values[z] == c.values[0] && slope == c.slopes[0])
            continue;
        c.values[c.n] = values[z];
        c.slopes[c.n] = slope;
        c.times[c.n++] = b > 0 ? time - begin : 0.0;
    }
    return c;
}

/* course: whether the event i was to happen in the step by all its indicators. */
static int was_due(const fm_observer_data *d, const fm_kernel *k, int64_t i, double begin, double end)
{
    const double *start = values_of(k->history);
    int is_above = 0;
    for (int64_t j = d->first[i]; j < d->first[i + 1]; j++) {
        course c = course_of(k, d->instances[i], d->indicators[j], d->slopes[j], begin);
        expected e = d->slopes[j] < 0 ? by_values(&c, end - begin) : by_slopes(&c, end - begin);
        if (!(e.value - e.error <= d->near * fabs(e.slope)))
            return 0;
        is_above |= start[d->indicators[j]] > 0.0;
    }
    return is_above;
}

int fm_observer_is_quiet(void *self, fm_kernel *k, double begin, double end, double next)
{
    const fm_observer_data *d = self;
    (void)begin, (void)next;
    for (int i = 0; i < d->n; i++) {
        int64_t slot = d->counters[i];
        double since = k->history->read[d->instances[i]];
        if (!(since < end)) /* NaN: nothing is known from before */
            continue;
        if (slot < 0 ? was_due(d, k, i, since, end)
                     : memcmp((char *)k->outputs[d->types[i]] + (size_t)slot * fm_size[d->types[i]],
                              (char *)k->history->outputs[d->types[i]] + (size_t)slot * fm_size[d->types[i]],
                              fm_size[d->types[i]]))
            return 0;
    }
    return 1;
}
