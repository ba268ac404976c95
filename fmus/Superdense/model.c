/* Several values at one time. See readme.md. */
#include "model.h"

#include <math.h>

enum { STEP = 1, DELAYS, COUNTER, SAWTOOTH, MODES, END };   /* test */
enum { ITERATIONS = 4, LAST_COUNT = 5 };
enum { A = 1, D = 4 };   /* mode */

static const double VALUE = 7.0;
static const double AT_THE_END = 1e-10;     /* [s] an event as close as this to the end of a step is there */

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->test >= STEP && v->test <= END) return FM_OK;
    return fm_report(self, FM_ERROR, "test is %d. It must be 1 to %d.", v->test, END);
}

void model_outputs(Variables *v)
{
}

/* [s] INFINITY: there will be none */
static double event_time(const Variables *v)
{
    switch (v->test) {
    case STEP: return v->y == 0.0 ? 1.0 : INFINITY;
    case DELAYS: return v->iteration == 0 ? 1.0 : INFINITY;
    case COUNTER: return v->c == 0 ? 2.0 : INFINITY;
    case MODES: return v->mode == A ? 3.0 : INFINITY;
    case END: return v->iteration == 0 ? 1.5 : INFINITY;
    default: return v->resetTime + 1.0;
    }
}

static void tick(fm_Clock *clock, double *value)
{
    clock->active = true;
    fm_count(clock);
    *value = VALUE;
}

/* One event iteration at the time `t`. Returns whether another one follows. */
static bool iterate(Variables *v, double t)
{
    switch (v->test) {
    case STEP:
        v->y = 1.0;
        return false;
    case DELAYS:
        v->iteration++;
        if (v->iteration == 1) tick(&v->d1_tick, &v->d1);
        if (v->iteration == 2) tick(&v->d2_tick, &v->d2);
        if (v->iteration == 3) tick(&v->d3_tick, &v->d3);
        return v->iteration < ITERATIONS;
    case COUNTER:
        v->c++;
        return v->c < LAST_COUNT;
    case MODES:
        v->mode++;
        return v->mode < D;
    case END:
        v->iteration = 1;
        return false;
    default:
        v->resetTime = t;
        v->x = 0.0;
        return false;
    }
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    double begin = v->time, end = begin + *h, event = event_time(v);
    if (!fm_uses_event_mode(self)) {
        for (; event <= end; event = event_time(v))
            while (iterate(v, event)) continue;
    } else if (event <= end + AT_THE_END) {
        if (event < end - AT_THE_END) {
            if (fm_stopping(self) != FM_BY_RETURN)
                return fm_report(self, FM_ERROR, "The step from t = %.17g s to %.17g s goes over the event at %.17g s, and "
                                 "early return is not allowed.", begin, end, event);
            *h = event - begin;
        }
        v->memory.event_waits = true;
        if (v->test == DELAYS) tick(&v->d0_tick, &v->d0);
    }
    if (v->test == SAWTOOTH) v->x = v->memory.event_waits ? 1.0 : begin + *h - v->resetTime;
    return FM_OK;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    bool has_begun = v->test == DELAYS    ? v->iteration > 0 && v->iteration < ITERATIONS
                     : v->test == COUNTER ? v->c > 0 && v->c < LAST_COUNT
                     : v->test == MODES   ? v->mode > A && v->mode < D
                                          : false;
    if (v->memory.event_waits || has_begun) {
        update->again = iterate(v, v->time);
        update->states_changed = v->test == SAWTOOTH;
        update->terminate = v->test == END;
    }
    if (v->test != SAWTOOTH) update->next_time = event_time(v);
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
