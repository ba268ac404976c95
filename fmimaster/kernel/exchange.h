/* What integrators do with a Model Exchange FMU at each stage and step: inline, since small FMUs take no longer than this. */

#include "doubles.h"

static const double SAME = 8 * 0x1p-52; /* two times that differ by less, relative to their size, are one time */

/* The status of a call, with the name of the function for messages if it has failed. */
static inline int called(fm_exchange *x, int which, int status)
{
    if (fm_failed(status))
        x->function = x->fmu->names[which];
    return status;
}

/* A call of an FMI function with an array. */
static inline int pass(fm_exchange *x, int which, fm_pass *function, double *values, int n)
{
    if (n == 0)
        return FM_OK;
    *x->calling = (uint8_t)which;
    return called(x, which, function(x->component, values, (size_t)n));
}

static inline int set_inputs(fm_exchange *x, double time)
{
    return x->fmu->updates ? fm_exchange_set_inputs(x, time) : FM_OK;
}

/* Set time, states and inputs. FM_DISCARD: not possible there. */
static inline int move(fm_exchange *x, double time, double *states)
{
    *x->calling = FM_SET_TIME;
    int status = called(x, FM_SET_TIME, x->set_time(x->component, time));
    if (fm_failed(status))
        return status;
    status = pass(x, FM_SET_CONTINUOUS_STATES, x->set_states, states, x->n);
    return fm_failed(status) ? status : set_inputs(x, time);
}

/* Get the derivatives where the FMU stands. FM_DISCARD: not possible there. */
static inline int derive(fm_exchange *x, double *derivatives)
{
    return pass(x, FM_GET_DERIVATIVES, x->get_derivatives, derivatives, x->n);
}

/* Event indicators where the FMU stands; an FMU that discards them has failed. */
static inline int look(fm_exchange *x, double *indicators)
{
    int status = pass(x, FM_GET_EVENT_INDICATORS, x->get_indicators, indicators, x->m);
    return status == FM_DISCARD ? FM_REFUSED : status;
}

static inline int has_changed(const double *before, const double *now, int m)
{
    for (int j = 0; j < m; j++)
        if ((now[j] > 0.0) != (before[j] > 0.0))
            return 1;
    return 0;
}

/* Whether the next time event is now. */
static inline int is_due(const fm_exchange *x, double now)
{
    return x->memory[FM_X_NEXT_EVENT] <= now + SAME * fabs(now);
}

/* The states and indicators at the end of a step are those of the exchange from now on. */
static inline void take(fm_exchange *x, double there, const double *states)
{
    x->memory[FM_X_TIME] = there;
    copy_doubles(x->states, states, x->n);
    copy_doubles(x->indicators, x->there, x->m);
}
