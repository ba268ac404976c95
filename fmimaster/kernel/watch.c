/* A watch over event indicators: whether an event clock would do nothing in a step, and where it lets the next one end. Where
 * that is not certain, Python decides. Bounds are computed with the operations of fmimaster/events/indicator_courses.py, indicators.py
 * and look_ahead.py in their order, so that certain here is certain there. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"

#include <math.h>

/* Float64 outputs at a communication point, and its time. */
typedef struct {
    const double *values;
    double time;
} point;

/* Functions of the C library know of NAN, and cost a call. Unlike larger(), it gives b if one of them is NAN. */
static inline double larger_of(double a, double b)
{
    return a > b ? a : b;
}

/* Indicators.previous: the newest of the points from one in the history on that is farther than `nearest` from a time. The
 * points end where the history would end if `shift` points were to come into it. */
static int previous(const fm_clock_data *w, const fm_kernel *k, int from, int shift, double now, double nearest, point *found)
{
    for (int b = from; b + shift < k->n_history; b += w->distance) {
        double time = k->history[b].read[w->member];
        if (!(time < INFINITY)) /* NAN: there is no history */
            return 0;
        if (now - time > nearest) {
            *found = (point){k->history[b].outputs[FM_FLOAT64], time};
            return 1;
        }
    }
    return 0;
}

/* Whether the set s has an indicator whose extrapolation over the next step, of this length, stays above 0: extrapolated. */
static int stays_off(const fm_clock_data *w, int64_t s, const double *values, double time, const point *newest, const point *older,
                     double length)
{
    double p[4], h = time - newest->time, k = older ? time - older->time : 0.0;
    for (int64_t i = w->first[s]; i < w->first[s + 1]; i++) {
        fm_from_before((int)w->indicators[i], (int)w->slopes[i], values, newest->values, h, older ? older->values : values, k, p);
        if (fm_stays_above(p, length))
            return 1;
    }
    return 0;
}

/* _curvature: the derivative of another indicator of the set s that is the slope of the indicator i; whether there is one. */
static int finds_curvature(const fm_clock_data *w, int64_t s, int64_t i, const double *values, double *found)
{
    for (int64_t j = w->first[s]; w->slopes[i] >= 0 && j < w->first[s + 1]; j++) {
        if (j == i || w->indicators[j] == w->indicators[i] || w->slopes[j] < 0)
            continue;
        if (fm_is_slope(values[w->indicators[j]], values[w->slopes[i]])) {
            *found = values[w->slopes[j]];
            return 1;
        }
    }
    return 0;
}

/* The same where there is no point before: without_history. 0 as well if a shorter step is to tell the curvature. */
static int stays_off_at_once(const fm_clock_data *w, int64_t s, const double *values, double length)
{
    int stays = 0, knows = w->locates;
    for (int64_t i = w->first[s]; i < w->first[s + 1]; i++) {
        double curvature = 0.0;
        knows |= finds_curvature(w, s, i, values, &curvature);
        double slope = w->slopes[i] < 0 ? 0.0 : values[w->slopes[i]];
        double p[4] = {values[w->indicators[i]], slope, curvature / 2, 0.0};
        stays |= fm_stays_above(p, length);
    }
    return stays && knows;
}

/* Predictive.clip leaves a step alone that begins at `time`. In the history, the points before it are from `from` on, once
 * `shift` points more are in it. */
static int needs_no_clip(const fm_clock_data *w, const fm_kernel *k, int from, int shift, double time, double length)
{
    const double *values = k->outputs[FM_FLOAT64];
    point newest, older, *has_older = 0;
    if (!previous(w, k, from, shift, time, w->near * length, &newest)) {
        for (int s = 0; s < w->n; s++)
            if (!stays_off_at_once(w, s, values, length))
                return 0;
        return 1;
    }
    if (w->lacks_slopes && previous(w, k, from, shift, newest.time, w->near * length, &older))
        has_older = &older;
    for (int s = 0; s < w->n; s++)
        if (!stays_off(w, s, values, time, &newest, has_older, length))
            return 0;
    return 1;
}

/* Whether the set s has an indicator that stays above 0 in a step that was tried: between. */
static int stayed_off(const fm_clock_data *w, int64_t s, const double *before, const double *after, double begin, double length,
                      const point *older)
{
    double p[4], k = older ? begin - older->time : 0.0;
    for (int64_t i = w->first[s]; i < w->first[s + 1]; i++) {
        int z = (int)w->indicators[i], dz = (int)w->slopes[i];
        if (fm_stays_above_between(z, dz, before, after, length))
            return 1;
        fm_from_ends(z, dz, before, after, length, older ? older->values : before, k, p);
        if (fm_stays_above(p, length))
            return 1;
    }
    return 0;
}

/* Predictive.passed finds no event in a step that was tried. */
static int passes_none(const fm_clock_data *w, const fm_kernel *k, double begin, double length)
{
    point older, *has_older = 0;
    const double *before = k->history->outputs[FM_FLOAT64];
    if (w->lacks_slopes && previous(w, k, w->distance, 0, begin, w->near * length, &older))
        has_older = &older;
    for (int s = 0; s < w->n; s++)
        if (w->is_located[s] && !stayed_off(w, s, before, k->outputs[FM_FLOAT64], begin, length, has_older))
            return 0;
    return 1;
}

/* Indicators.present, of a step that will be accepted. */
static void note_largest(const fm_clock_data *w, const fm_kernel *k)
{
    const double *values = k->outputs[FM_FLOAT64];
    double *restrict largest = w->largest;
    for (size_t j = 0; j < k->output_sizes[FM_FLOAT64]; j++) {
        double size = fabs(values[j]);
        largest[j] = larger_of(size < INFINITY ? size : 0.0, largest[j]);
    }
}

/* Indicators._phase is ABOVE for the set s, or its event is never on: an indicator is above zero. */
static int is_off(const fm_clock_data *w, int64_t s, const double *values, double near_zero)
{
    for (int64_t i = w->first[s]; i < w->first[s + 1]; i++) {
        int64_t z = w->indicators[i], dz = w->slopes[i];
        double now = values[z], usual = w->largest[z], bound = larger_of(FM_FAR * usual, w->tolerances[i]), of_inputs = 0.0;
        if (now > 0.0 && w->is_own[s])
            return 1;
        if (dz >= 0) {
            double slope = fabs(values[dz]) < INFINITY ? fabs(values[dz]) : 0.0;
            bound = larger_of(larger_of(FM_ROUNDING * usual, near_zero * slope), w->tolerances[i]);
            for (int64_t j = w->first_source[i]; j < w->first_source[i + 1]; j++)
                of_inputs = larger_of(of_inputs, w->factors[j] * w->largest[w->sources[j]]);
        }
        if (now > bound && now > FM_OF_INPUTS * of_inputs)
            return 1;
    }
    return 0;
}

/* Indicators.at is empty. */
static int none_is_on(const fm_clock_data *w, const fm_kernel *k)
{
    double known = NAN, near_zero = 0.0;
    for (int s = 0; s < w->n; s++) {
        double time = k->read[w->instances[s]];
        if (time != known)
            near_zero = larger_of(FM_SLIVER * w->step, fm_same(time, w->step));
        known = time;
        if (!w->is_inside[s] && !is_off(w, s, k->outputs[FM_FLOAT64], near_zero))
            return 0;
    }
    return 1;
}

/* LookAhead.clip leaves a step from `time` to `end` alone. */
static int foresees_none(const fm_clock_data *w, const fm_kernel *k, int from, int shift, double time, double end)
{
    const double *values = k->outputs[FM_FLOAT64];
    point before;
    for (int i = 0; i < w->n_ahead; i++) {
        double ahead = values[w->ahead[i]];
        if (ahead >= 0.0 && time + (ahead == 0.0 ? w->shortest : ahead) < end)
            return 0;
    }
    if (!previous(w, k, from, shift, time, 0.0, &before))
        return 1;
    for (int s = 0; s < w->n; s++) {
        int stays = !w->is_foreseen[s];
        for (int64_t i = w->first[s]; i < w->first[s + 1] && !stays; i++) {
            double now = values[w->indicators[i]];
            stays = now + w->forecast * (now - before.values[w->indicators[i]]) >= 0.0;
        }
        if (!stays)
            return 0;
    }
    return 1;
}

/* check_indicators_are_finite raises nothing. */
static int all_are_numbers(const fm_clock_data *w, const fm_kernel *k)
{
    for (int64_t i = 0; i < w->first[w->n]; i++)
        if (isnan(((const double *)k->outputs[FM_FLOAT64])[w->indicators[i]]))
            return 0;
    return 1;
}

/* The clock finds no event at `time`, and leaves the step after it alone. */
static int leaves_alone(const fm_clock_data *w, const fm_kernel *k, int from, int shift, double time, double end)
{
    note_largest(w, k);
    if (w->detects && !none_is_on(w, k))
        return 0;
    if (w->checks && !all_are_numbers(w, k))
        return 0;
    if (!(end < INFINITY)) /* fm_clock_clips is asked */
        return 1;
    if (w->predicts && !needs_no_clip(w, k, from, shift, time, end - time))
        return 0;
    return !w->foresees || foresees_none(w, k, from, shift, time, end);
}

int fm_clock_is_quiet(void *self, fm_kernel *k, double begin, double end, double next)
{
    const fm_clock_data *w = self;
    if (w->locates && !passes_none(w, k, begin, end - begin))
        return 0;
    return leaves_alone(w, k, 0, w->distance, end, next);
}

int fm_clock_is_quiet_after(void *self, fm_kernel *k, double begin, double end)
{
    const fm_clock_data *w = self;
    return leaves_alone(w, k, w->distance, 0, begin, end);
}

/* Indicators.rests may be true for the set s: all its indicators are negligible. */
static int may_rest(const fm_clock_data *w, int64_t s, const double *values)
{
    for (int64_t i = w->first[s]; i < w->first[s + 1]; i++) {
        int64_t z = w->indicators[i], dz = w->slopes[i];
        if (dz < 0)
            return 0;
        double bound = larger_of(w->rest * w->largest[z], w->rest * w->step * w->largest[dz]);
        for (int64_t j = w->first_source[i]; j < w->first_source[i + 1]; j++)
            bound = larger_of(bound, w->held * (w->factors[j] * w->largest[w->sources[j]]));
        if (fabs(values[z]) > bound)
            return 0;
    }
    return 1;
}

/* Most indicators of a set whose event the kernel predicts. */
enum { MOST_INDICATORS = 8 };

/* The time in s until all indicators of the set s are reached; INFINITY if that is not before the horizon. */
static double time_reached(const fm_clock_data *w, int64_t s, const double *values, double time, const point *newest,
                           const point *older, double horizon)
{
    double cubics[MOST_INDICATORS][4], h = time - newest->time, k = older ? time - older->time : 0.0;
    int m = 0;
    for (int64_t i = w->first[s]; i < w->first[s + 1]; i++, m++)
        fm_from_before((int)w->indicators[i], (int)w->slopes[i], values, newest->values, h, older ? older->values : values, k,
                       cubics[m]);
    return fm_first_time_reached(cubics, m, horizon, -INFINITY);
}

int fm_clock_clips(void *self, const fm_kernel *k, double begin, double *end, int64_t *code)
{
    const fm_clock_data *w = self;
    const double *values = k->outputs[FM_FLOAT64];
    double horizon = *end - begin, earliest = INFINITY;
    point newest, older, *has_older = 0;
    int64_t event = 0;
    if (!previous(w, k, w->distance, 0, begin, w->near * horizon, &newest))
        return needs_no_clip(w, k, w->distance, 0, begin, horizon);
    if (w->lacks_slopes && previous(w, k, w->distance, 0, newest.time, w->near * horizon, &older))
        has_older = &older;
    for (int s = 0; s < w->n; s++) {
        if (stays_off(w, s, values, begin, &newest, has_older, horizon))
            continue;
        if (!w->is_plain[s] || w->first[s + 1] - w->first[s] > MOST_INDICATORS || k->read[w->instances[s]] > begin ||
            may_rest(w, s, values))
            return 0;
        double tau = time_reached(w, s, values, begin, &newest, has_older, horizon);
        if (tau < earliest) {
            earliest = tau;
            event = w->events[s];
        }
    }
    if (!(earliest < INFINITY))
        return 1;
    if (w->approach == 0.0 || earliest <= w->now * w->step) /* it happens at once */
        return 0;
    double rounding = larger_of(FM_SLIVER * w->step, fm_same(begin, w->step));
    double towards = begin + (earliest <= w->close * w->step ? larger_of(earliest, rounding) : w->approach * earliest);
    if (towards >= begin + horizon)
        return 1;
    *end = towards;
    *code = event;
    return 1;
}
