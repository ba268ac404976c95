/* A watch for events that FMUs execute themselves, inside a step: whether none of them was to happen in it. Where that is not
 * certain, Python looks: fmimaster/run/changes.py and fmimaster/events/indicator_courses.py, whose operations these are, in their
 * order. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"

#include <math.h>
#include <string.h>

/* Values of one indicator before the end of a step, newest first, and their times after its start. */
typedef struct {
    int n;
    double values[FM_MOST_POINTS], slopes[FM_MOST_POINTS], times[FM_MOST_POINTS];
} course;

/* Value, slope and error of an indicator at the end of a step if it goes on as before: extrapolate. */
static void extrapolate(course *c, int has_slopes, double h, double *expected)
{
    double p[4];
    if (!has_slopes) {
        fm_by_values(c->values, c->times, c->n, h, expected);
    } else if (c->n == 1) {
        expected[0] = c->values[0] + c->slopes[0] * h;
        expected[1] = c->slopes[0];
        expected[2] = 0.0;
    } else {
        fm_through_slopes(c->values[0], c->slopes[0], c->values[1], c->slopes[1], c->times[1], p);
        fm_by_slopes(p, c->times[1], h, expected);
    }
}

/* The points of an indicator from the start of the step back; one that has not moved tells nothing of its course. */
static course course_of(const fm_kernel *k, int64_t instance, int64_t z, int64_t dz, double begin)
{
    course c = {0};
    for (int b = 0; b + 1 < k->n_history && c.n < FM_MOST_POINTS; b++) {
        const double *values = k->history[b].outputs[FM_FLOAT64];
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
    const double *start = k->history->outputs[FM_FLOAT64];
    int is_above = 0;
    for (int64_t j = d->first[i]; j < d->first[i + 1]; j++) {
        course c = course_of(k, d->instances[i], d->indicators[j], d->slopes[j], begin);
        double expected[4];
        extrapolate(&c, d->slopes[j] >= 0, end - begin, expected);
        if (!(expected[0] - expected[2] <= d->near * fabs(expected[1])))
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
