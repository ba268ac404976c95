/* A traffic light that can be switched off. See readme.md. */
#include "event_unit.h"

enum { OFF, RED, YELLOW, GREEN };   /* colour */

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    fm_Status status = check_event_mode(self);
    return status != FM_OK ? status : check_fraction(self, "red", (fm_Fraction){v->red, v->resolution}, 0);
}

/* ta: how long it has this colour */
static fm_Fraction time_advance(const Variables *v, int64_t colour)
{
    switch (colour) {
    case RED: return (fm_Fraction){v->red, v->resolution};
    case GREEN: return (fm_Fraction){v->green, v->resolution};
    case YELLOW: return (fm_Fraction){v->yellow, v->resolution};
    default: return NEVER;
    }
}

/* delta_int */
static int64_t next_colour(int64_t colour)
{
    return colour == RED ? GREEN : colour == GREEN ? YELLOW : RED;
}

static void transition(Variables *v, int64_t colour)
{
    v->colour = colour;
    v->elapsed = v->time - v->since;
    v->since = v->time;
    fm_announce(&v->due, time_advance(v, colour));
}

void model_schedule(Variables *v)
{
    v->since = v->time;
    fm_announce(&v->due, time_advance(v, v->colour));
}

void model_outputs(Variables *v)
{
    v->change.active = v->due.active;
    if (v->due.active) v->next = next_colour(v->colour);
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    if (v->due.active) transition(v, next_colour(v->colour));
    if (v->toOff.active) transition(v, OFF);
    if (v->toAuto.active && v->colour == OFF) transition(v, RED);   /* else delta_ext has no case: nothing happens */
    return FM_OK;
}
