/* The other mass at a time by the inputs u_x, u_v, u_a and u_poly, as `inputOrder` says. */
#ifndef FM_PARTNER_H
#define FM_PARTNER_H

#include "event_solver.h"

typedef struct { double x, v, a; } Partner;

enum { HELD = 0, LINEAR = 1, POLYNOMIAL = 5 };   /* inputOrder */
enum { COEFFICIENTS = 6 };

/* Defined by the model: the velocity of the partner after a shared event, by the states before it and its payload. */
static double partner_after(const Variables *v);

static Partner by_inputs(const Variables *v, double s)
{
    if (v->inputOrder == HELD) return (Partner){v->u_x, v->u_v, v->u_a};
    if (v->inputOrder == LINEAR) return (Partner){v->u_x + v->u_v * s, v->u_v + v->u_a * s, v->u_a};
    Partner p = {0.0, 0.0, 0.0};
    for (int k = COEFFICIENTS - 1; k >= 0; k--) {   /* Horner, and its derivatives */
        p.a = p.a * s + 2 * p.v;
        p.v = p.v * s + p.x;
        p.x = p.x * s + v->u_poly[k];
    }
    return p;
}

/* At v->time + s; the inputs are of the time v->time - input_age. */
static Partner partner(const Variables *v, double s)
{
    Partner p = by_inputs(v, v->memory.input_age + s);
    bool is_outdated = v->memory.reset && !v->memory.inputs_set;   /* the partner too has jumped since then */
    if (is_outdated) p.v = partner_after(v);
    return p;
}

static fm_Status check_input_order(fm_Instance *self, const Variables *v)
{
    if (v->inputOrder == HELD || v->inputOrder == LINEAR || v->inputOrder == POLYNOMIAL) return FM_OK;
    return fm_report(self, FM_ERROR, "inputOrder is %d. It must be 0 (held), 1 (linear) or 5 (polynomial).",
                     v->inputOrder);
}

#endif
