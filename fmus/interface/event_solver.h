/* Solves x' = v, v' = a(t, x, v) with events, by the classical Runge-Kutta method of order 4.
 *
 * Included by a model that defines EVENT_COUNT and the three functions declared here. An event occurs when the largest
 * of its indicators, which was positive, has come down to zero; its time is found by bisection, with the micro step
 * done again at every length that is tried. Then the state is reset, and the solver goes on.
 */
#ifndef FM_EVENT_SOLVER_H
#define FM_EVENT_SOLVER_H

#include "model.h"

#include <math.h>

typedef struct { double x, v; } Motion;

/* `s` is the time since the begin of the step. */
static double acceleration(const Variables *v, double s, Motion m);
static double largest_indicator(const Variables *v, int event, double s, Motion m);
static Motion reset(const Variables *v, int event, double s, Motion m);

static const double MICRO_STEP = 1e-3;      /* [s] */
static const double EVENT_WIDTH = 1e-13;    /* [s] the bracket at which bisection ends */
enum { MOST_EVENTS = 1000 };                /* in one step; more of them accumulate, and the step would not end */

static Motion runge_kutta(const Variables *v, double s, Motion m, double h)
{
    Motion k1 = {m.v, acceleration(v, s, m)};
    Motion m2 = {m.x + h / 2 * k1.x, m.v + h / 2 * k1.v};
    Motion k2 = {m2.v, acceleration(v, s + h / 2, m2)};
    Motion m3 = {m.x + h / 2 * k2.x, m.v + h / 2 * k2.v};
    Motion k3 = {m3.v, acceleration(v, s + h / 2, m3)};
    Motion m4 = {m.x + h * k3.x, m.v + h * k3.v};
    Motion k4 = {m4.v, acceleration(v, s + h, m4)};
    return (Motion){m.x + h / 6 * (k1.x + 2 * k2.x + 2 * k3.x + k4.x),
                    m.v + h / 6 * (k1.v + 2 * k2.v + 2 * k3.v + k4.v)};
}

/* Length of the micro step from `m` at which `event` has just occurred; known to have occurred at `h`. */
static double locate(const Variables *v, int event, double s, Motion m, double h)
{
    double before = 0.0, after = h;
    while (after - before > EVENT_WIDTH) {
        double middle = before + (after - before) / 2;
        if (largest_indicator(v, event, s + middle, runge_kutta(v, s, m, middle)) > 0.0) before = middle;
        else after = middle;
    }
    return after;
}

/* Goes from `*s` and `*m` to the first event, whose number it returns, or to `end` and returns -1. */
static int advance(const Variables *v, double *s, Motion *m, double end)
{
    double begin = *s, length = end - begin;
    int count = (int)ceil(length / MICRO_STEP - 1e-9);   /* rounding makes no extra micro step */
    if (count < 1) count = 1;
    double h = length / count;
    for (int i = 1; i <= count; i++) {
        double next_s = i < count ? begin + i * h : end;
        Motion next = runge_kutta(v, *s, *m, h);
        int first = -1;
        double until = h;
        for (int event = 0; event < EVENT_COUNT; event++) {
            bool before = largest_indicator(v, event, *s, *m) <= 0.0;
            bool after = largest_indicator(v, event, next_s, next) <= 0.0;
            if (before || !after) continue;
            double found = locate(v, event, *s, *m, h);
            if (first < 0 || found < until) {
                first = event;
                until = found;
            }
        }
        if (first >= 0) {
            *m = runge_kutta(v, *s, *m, until);
            *s += until;
            return first;
        }
        *m = next;
        *s = next_s;
    }
    return -1;
}

/* One step of length `h`, through all its events; *m becomes its end. */
static fm_Status solve(fm_Instance *self, const Variables *v, Motion *m, double h, const char *const event_names[])
{
    double s = 0.0;
    for (int count = 0; count < MOST_EVENTS; count++) {
        int event = advance(v, &s, m, h);
        if (event < 0) return FM_OK;
        Motion after = reset(v, event, s, *m);
        fm_report(self, FM_OK, "Event '%s' at t = %.15g s: the velocity %.15g m/s becomes %.15g m/s.",
                  event_names[event], v->time + s, m->v, after.v);
        *m = after;
        if (!(s < h)) return FM_OK;
    }
    return fm_report(self, FM_ERROR, "More than %d events in the step from t = %.15g s to %.15g s.", MOST_EVENTS,
                     v->time, v->time + h);
}

#endif
