/* Counts the ticks of a clock of each kind. See readme.md. */
#include "event_unit.h"

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    fm_Status status = check_event_mode(self);
    if (status == FM_OK) status = check_fraction(self, "tunable.interval", v->tunable.interval, 1);
    return status != FM_OK ? status : check_fraction(self, "tunable.next", (fm_Fraction){v->tunable_next, v->resolution}, 1);
}

static fm_Fraction multiple(const Variables *v, uint64_t counter)
{
    return (fm_Fraction){counter, v->resolution};
}

static void announce_tunable(Variables *v)
{
    fm_announce(&v->tunable, multiple(v, v->tunable_interval));
}

static void announce_changing(Variables *v)
{
    fm_announce(&v->changing, multiple(v, ((uint64_t)v->changing_count + 1) * v->changing_interval));
}

void model_schedule(Variables *v)
{
    v->tunable.shift = (fm_Fraction){0, v->resolution};
    announce_tunable(v);
    announce_changing(v);
}

/* The number of each tick, while the clock is active */
void model_outputs(Variables *v)
{
    if (v->constant.active) v->constant_tick = v->constant_count + 1;
    if (v->fixed.active) v->fixed_tick = v->fixed_count + 1;
    if (v->tunable.active) v->tunable_tick = v->tunable_count + 1;
    if (v->changing.active) v->changing_tick = v->changing_count + 1;
    if (v->countdown.active) v->countdown_tick = v->countdown_count + 1;
    if (v->triggered.active) v->triggered_tick = v->triggered_count + 1;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    v->constant_count += v->constant.active;
    v->fixed_count += v->fixed.active;
    v->tunable_count += v->tunable.active;
    v->changing_count += v->changing.active;
    v->countdown_count += v->countdown.active;
    v->triggered_count += v->triggered.active;
    if (v->changing.active) announce_changing(v);
    if (v->arm.active) fm_announce(&v->countdown, multiple(v, v->countdown_interval));
    if (v->retune.active) v->tunable_interval = v->tunable_next;
    if (v->tunable.interval.counter != v->tunable_interval) announce_tunable(v);   /* the importer may have set it */
    return FM_OK;
}
