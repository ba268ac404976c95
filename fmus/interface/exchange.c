/* Model Exchange: time and states come from the importer. Step Mode is what FMI calls Continuous-Time Mode here. */
#include "instance.h"

#include <math.h>

static const unsigned MODES = FM_STEP_MODE | FM_EVENT_MODE;

/* Is the call allowed, and is `count` what it must be? */
static bool serves(fm_Instance *self, const char *function, unsigned modes, size_t count, size_t expected)
{
    if (self && !self->exchange) {
        fm_report(self, FM_ERROR, "%s: the FMU was not instantiated for Model Exchange.", function);
        return false;
    }
    if (!fm_allowed(self, function, modes)) return false;
    if (count == expected) return true;
    fm_report(self, FM_ERROR, "%s: the array has %zu values, expected %zu.", function, count, expected);
    return false;
}

static double *member(fm_Instance *self, size_t offset)
{
    return (double *)((char *)&self->state.variables + offset);
}

/* A model whose numbers are in a file says there how many states and event indicators it has. */
size_t fm_state_count(const fm_Instance *self)
{
#if FM_HAS_RESOURCES && FM_HAS_MODEL_EXCHANGE
    return self ? (size_t)model_states(&self->state.variables) : 0;
#else
    return FM_STATE_COUNT;
#endif
}

size_t fm_indicator_count(const fm_Instance *self)
{
#if FM_HAS_RESOURCES && FM_HAS_MODEL_EXCHANGE
    return self ? (size_t)model_indicators(&self->state.variables) : 0;
#else
    return FM_INDICATOR_COUNT;
#endif
}

fm_Status fm_set_time(fm_Instance *self, const char *function, double time)
{
    if (!serves(self, function, MODES, 0, 0)) return FM_ERROR;
    Variables *v = &self->state.variables;
    for (int event = 0; event < FM_EVENT_COUNT && v->time != time; event++) v->memory.event[event].done = false;
    v->time = time;
    self->state.stale = true;
    return FM_OK;
}

fm_Status fm_set_states(fm_Instance *self, const char *function, const double states[], size_t count)
{
    if (!serves(self, function, FM_STEP_MODE, count, fm_state_count(self))) return FM_ERROR;
    for (size_t i = 0; i < count; i++) *member(self, fm_states[i].state) = states[i];
    self->state.stale = true;
    return FM_OK;
}

fm_Status fm_get_states(fm_Instance *self, const char *function, double states[], size_t count)
{
    if (!serves(self, function, MODES | FM_INITIALIZATION_MODE, count, fm_state_count(self))) return FM_ERROR;
    fm_refresh(self);
    for (size_t i = 0; i < count; i++) states[i] = *member(self, fm_states[i].state);
    return FM_OK;
}

fm_Status fm_get_state_derivatives(fm_Instance *self, const char *function, double derivatives[], size_t count)
{
    if (!serves(self, function, MODES | FM_INITIALIZATION_MODE, count, fm_state_count(self))) return FM_ERROR;
    fm_refresh(self);
    for (size_t i = 0; i < count; i++) derivatives[i] = *member(self, fm_states[i].derivative);
    return FM_OK;
}

fm_Status fm_get_nominals(fm_Instance *self, const char *function, double nominals[], size_t count)
{
    if (!serves(self, function, MODES | FM_INITIALIZATION_MODE, count, fm_state_count(self))) return FM_ERROR;
    for (size_t i = 0; i < count; i++) nominals[i] = 1.0;
    return FM_OK;
}

fm_Status fm_get_indicators(fm_Instance *self, const char *function, double values[], size_t count)
{
    if (!serves(self, function, MODES | FM_INITIALIZATION_MODE, count, fm_indicator_count(self))) return FM_ERROR;
    fm_refresh(self);
    for (size_t i = 0; i < count; i++) values[i] = *member(self, fm_indicators[i]);
    return FM_OK;
}

fm_Status fm_complete_step(fm_Instance *self, const char *function)
{
    return serves(self, function, FM_STEP_MODE, 0, 0) ? FM_OK : FM_ERROR;
}
