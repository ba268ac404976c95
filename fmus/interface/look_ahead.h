/* Local LookAhead: when will an event occur, by straight lines through its indicators?
 *
 * Included by a model with event_solver.h and `lookahead.c`, `.d`, `.tmin`, `.next`. Source: Tischer et al., LookAhead.
 */
#ifndef FM_LOOK_AHEAD_H
#define FM_LOOK_AHEAD_H

#include "event_solver.h"

/* When one indicator will have come down to zero: [s] from now; 0 if it is there; -1 if it will not be soon. */
static double indicator_time(const Variables *v, double before, double now)
{
    if (now + v->lookahead_d * (now - before) >= 0.0) return -1.0;
    if (!(now > 0.0)) return 0.0;
    return fmax(v->lookahead_c * v->memory.step * now / (before - now), v->lookahead_tmin);
}

/* [s] from `s` until the first event; -1: none. It compares the indicators with those at the begin of the last step. */
static double look_ahead(const Variables *v, double s, Motion m)
{
    double first = -1.0;
    if (!(v->memory.step > 0.0)) return first;
    for (int event = 0; event < FM_EVENT_COUNT; event++) {
        const double *before = v->memory.event[event].before;
        Motion now = indicators(v, event, s, m);
        double t1 = indicator_time(v, before[0], now.x), t2 = indicator_time(v, before[1], now.v);
        double t = t1 < 0.0 || t2 < 0.0 ? -1.0 : fmax(t1, t2);
        if (t > 0.0 && t >= v->lookahead_tmin && (first < 0.0 || t < first)) first = t;
    }
    return first;
}

#endif
