/* Clocks of FMI 3.0: when they may become active, and the intervals and shifts of those that are time-based. */
#include "instance.h"

#include <math.h>

/* Relative to the time, and in s: by how much a clock may tick beside the time that was announced. Far above the rounding
 * of times, far below any interval that is meant. */
static const double TIME_TOLERANCE = 1e-9;

static double seconds(fm_Fraction fraction)
{
    return (double)fraction.counter / (double)fraction.resolution;
}

/* A double is a fraction: its mantissa by a power of two. False if that is too large. */
static bool exact_fraction(double value, fm_Fraction *fraction)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    uint64_t resolution = 1;
    for (exponent -= 53, mantissa = ldexp(mantissa, 53); exponent < 0 && fmod(mantissa, 2.0) == 0.0; exponent++)
        mantissa /= 2.0;
    if (!(value >= 0.0) || exponent < -63 || exponent > 10) return false;
    if (value == 0.0) exponent = 0;
    if (exponent < 0) resolution <<= -exponent;
    *fraction = (fm_Fraction){(uint64_t)ldexp(mantissa, exponent > 0 ? exponent : 0), resolution};
    return true;
}

void fm_schedule(fm_Instance *self)
{
#if FM_HAS_INTERVALS
    Variables *v = &self->state.variables;
    model_schedule(v);
    for (const fm_Variable *variable = fm_variables; variable < fm_variables + fm_variable_count; variable++) {
        if (!variable->ticks) continue;
        fm_Clock *clock = fm_value(self, variable);
        bool periodic = variable->ticks & FM_PERIODIC;
        clock->origin = v->time + (periodic ? seconds(clock->shift) : 0.0);
        clock->ticks = periodic ? 0 : 1;
    }
#endif
}

void fm_begin_event_mode(fm_Instance *self)
{
    for (const fm_Variable *variable = fm_variables; variable < fm_variables + fm_variable_count; variable++)
        if (variable->type == FM_CLOCK) ((fm_Clock *)fm_value(self, variable))->ticked = false;
}

fm_Status fm_set_clock(fm_Instance *self, const char *function, uint32_t reference, bool active)
{
    const fm_Variable *variable = fm_settable(self, function, reference, FM_CLOCK);
    if (!variable) return FM_ERROR;
    fm_Clock *clock = fm_value(self, variable);
    if (!active && clock->active)
        return fm_report(self, FM_ERROR, "%s: the clock '%s' cannot be deactivated.", function, variable->name);
    if (active && !clock->active && variable->ticks) {
        double due = clock->origin + (double)clock->ticks * seconds(clock->interval), time = self->state.variables.time;
        if (clock->known == FM_NOT_YET_KNOWN)
            return fm_report(self, FM_ERROR, "%s: the clock '%s' cannot tick at t = %.17g s, because its interval is not yet "
                             "known.", function, variable->name, time);
        if (variable->ticks & FM_PERIODIC && clock->ticked)
            return fm_report(self, FM_ERROR, "%s: the periodic clock '%s' has ticked in this Event Mode, at t = %.17g s.",
                             function, variable->name, time);
        if (!(fabs(time - due) <= TIME_TOLERANCE * fmax(1.0, fabs(due))))
            return fm_report(self, FM_ERROR, "%s: the clock '%s' is to tick at t = %.17g s, and not at %.17g s.", function,
                             variable->name, due, time);
    }
    clock->active = active;
    clock->ticked |= active;
    return FM_OK;
}

void fm_start_ticks(fm_Instance *self)
{
    for (const fm_Variable *variable = fm_variables; variable < fm_variables + fm_variable_count; variable++) {
        fm_Clock *clock = fm_value(self, variable);
        if (!variable->ticks || !clock->active) continue;
        clock->ticks++;
        if (!(variable->ticks & FM_PERIODIC)) clock->known = FM_NOT_YET_KNOWN;
    }
}

void fm_finish_ticks(fm_Instance *self)
{
    for (const fm_Variable *variable = fm_variables; variable < fm_variables + fm_variable_count; variable++) {
        fm_Clock *clock = fm_value(self, variable);
        if (variable->ticks && isnan(clock->origin)) clock->origin = self->state.variables.time;
    }
}

/* Scheduled Execution ---------------------------------------------------------------------------------------------- */

#if FM_HAS_SCHEDULED_EXECUTION
fm_Status fm_activate(fm_Instance *self, const char *function, uint32_t reference, double time)
{
    if (!fm_allowed(self, function, FM_CLOCK_ACTIVATION_MODE)) return FM_ERROR;
    Variables *v = &self->state.variables;
    if (!(time >= v->time))
        return fm_report(self, FM_ERROR, "%s: the activation time is %.17g s, but the last one was %.17g s.", function, time,
                         v->time);
    if (time > v->time) fm_begin_event_mode(self);
    v->time = time;
    const fm_Variable *variable = fm_settable(self, function, reference, FM_CLOCK);
    if (!variable) return FM_ERROR;
    fm_Clock *clock = fm_value(self, variable);
    if (clock->ticked)
        return fm_report(self, FM_ERROR, "%s: the model partition of '%s' was activated at t = %.17g s before.", function,
                         variable->name, time);
    if (fm_set_clock(self, function, reference, true) != FM_OK) return FM_ERROR;
    self->state.only_set = false;
    fm_start_ticks(self);
    fm_Status status = model_activate(self, v, reference);
    fm_finish_ticks(self);
    clock->active = false;
    if (status == FM_ERROR || status == FM_FATAL) self->state.mode = FM_FAILED;
    return status;
}

bool fm_take_clock(fm_Instance *self, const fm_Variable *variable)
{
    fm_Clock *clock = fm_value(self, variable);
    bool active = clock->active;
    clock->active = false;
    return active;
}

/* What the importer has not taken in Clock Update Mode; NULL if there is nothing. */
static const fm_Variable *not_taken(fm_Instance *self)
{
    for (const fm_Variable *variable = fm_variables; variable < fm_variables + fm_variable_count; variable++) {
        if (variable->type != FM_CLOCK) continue;
        const fm_Clock *clock = fm_value(self, variable);
        bool announced = variable->ticks & FM_COUNTDOWN && clock->known == FM_CHANGED;
        if (announced || (variable->role != FM_TRIGGER && clock->active)) return variable;
    }
    return NULL;
}

fm_Status fm_clock_update(fm_Instance *self)
{
    fm_finish_ticks(self);
    self->state.mode = FM_CLOCK_UPDATE_MODE;
    self->clock_update(self);
    self->state.mode = FM_CLOCK_ACTIVATION_MODE;
    const fm_Variable *variable = not_taken(self);
    if (!variable) return FM_OK;
    return fm_report(self, FM_ERROR, "The importer has not asked for the clock '%s' in Clock Update Mode, at t = %.17g s.",
                     variable->name, self->state.variables.time);
}

void fm_lock(fm_Instance *self)
{
    if (self->lock) self->lock();
}

void fm_unlock(fm_Instance *self)
{
    if (self->unlock) self->unlock();
}
#endif

/* Intervals and shifts --------------------------------------------------------------------------------------------- */

static const fm_Variable *time_based(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction)
{
    const fm_Variable *variable = fm_readable(self, function, reference, FM_CLOCK);
    if (!variable) return NULL;
    if (!variable->ticks)
        fm_report(self, FM_ERROR, "%s: the clock '%s' is triggered, and has no interval.", function, variable->name);
    else if (by_fraction && !(variable->ticks & FM_BY_FRACTION))
        fm_report(self, FM_ERROR, "%s: supportsFraction of the clock '%s' is false.", function, variable->name);
    else
        return variable;
    return NULL;
}

static const fm_Variable *with_shift(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction)
{
    const fm_Variable *variable = time_based(self, function, reference, by_fraction);
    if (!variable || variable->ticks & FM_PERIODIC) return variable;
    fm_report(self, FM_ERROR, "%s: the clock '%s' is not periodic, and has no shift.", function, variable->name);
    return NULL;
}

fm_Status fm_get_interval(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction,
                          fm_Interval *interval)
{
    const fm_Variable *variable = time_based(self, function, reference, by_fraction);
    if (!variable) return FM_ERROR;
    if (variable->ticks & FM_COUNTDOWN && self->state.mode == FM_CLOCK_ACTIVATION_MODE)
        return fm_report(self, FM_ERROR, "%s: the interval of the countdown clock '%s' is given in Clock Update Mode only.",
                         function, variable->name);
    fm_Clock *clock = fm_value(self, variable);
    *interval = (fm_Interval){clock->known, clock->interval, seconds(clock->interval)};
    if (clock->known == FM_CHANGED) clock->known = FM_UNCHANGED;
    return FM_OK;
}

fm_Status fm_get_shift(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction,
                       fm_Interval *shift)
{
    const fm_Variable *variable = with_shift(self, function, reference, by_fraction);
    if (!variable) return FM_ERROR;
    const fm_Clock *clock = fm_value(self, variable);
    *shift = (fm_Interval){FM_UNCHANGED, clock->shift, seconds(clock->shift)};
    return FM_OK;
}

static bool can_be_set(fm_Instance *self, const char *function, const fm_Variable *variable, unsigned ways)
{
    if (variable->ticks & ways) return true;
    fm_report(self, FM_ERROR, "%s: the importer cannot set this of the clock '%s'.", function, variable->name);
    return false;
}

fm_Status fm_set_interval(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction,
                          fm_Interval interval)
{
    bool at_start = self->state.mode == FM_INITIALIZATION_MODE;
    const fm_Variable *variable = time_based(self, function, reference, by_fraction);
    if (!variable || !can_be_set(self, function, variable, at_start ? FM_SET_AT_START : FM_SET_AT_EVENTS))
        return FM_ERROR;
    if ((!by_fraction && !exact_fraction(interval.seconds, &interval.fraction)) || !interval.fraction.counter ||
        !interval.fraction.resolution)
        return fm_report(self, FM_ERROR, "%s: the interval of the clock '%s' must be above 0 s, and finite.", function,
                         variable->name);
    fm_Clock *clock = fm_value(self, variable);
    clock->interval = interval.fraction;
    if (!at_start) {
        clock->origin = self->state.variables.time;
        clock->ticks = 1;
    }
    return FM_OK;
}

fm_Status fm_set_shift(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction, fm_Interval shift)
{
    const fm_Variable *variable = with_shift(self, function, reference, by_fraction);
    if (!variable || !can_be_set(self, function, variable, FM_SET_AT_START)) return FM_ERROR;
    if ((!by_fraction && !exact_fraction(shift.seconds, &shift.fraction)) || !shift.fraction.resolution)
        return fm_report(self, FM_ERROR, "%s: the shift of the clock '%s' must be 0 s or more, and finite.", function,
                         variable->name);
    fm_Clock *clock = fm_value(self, variable);
    clock->shift = shift.fraction;
    self->state.stale = true;   /* the first tick follows from it */
    return FM_OK;
}
