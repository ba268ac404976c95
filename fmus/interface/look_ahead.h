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

/* [s] from `s` until the first event; 0: one is due now; -1: none. It compares the indicators with those that could be read at the start of the
 * last step, before inputs were set for it: an importer that compares what it reads predicts the same. */
static double look_ahead(Variables *v, double s, Motion m)
{
    double first = -1.0;
    for (int event = 0; event < FM_EVENT_COUNT; event++) {
        fm_EventMemory *memory = &v->memory.event[event];
        const double *before = memory->before;
        Motion now = indicators(v, event, s, m);
        memory->now[0] = now.x;
        memory->now[1] = now.v;
        if (!(v->memory.step > 0.0)) continue;
        double t1 = indicator_time(v, before[0], now.x), t2 = indicator_time(v, before[1], now.v);
        double t = t1 < 0.0 || t2 < 0.0 ? -1.0 : fmax(t1, t2);
        if (t >= 0.0 && (first < 0.0 || t < first)) first = t;
    }
    return first;
}

#endif
