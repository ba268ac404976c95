/* Other masses at a time by the inputs that tell of their position, velocity and acceleration, as `inputOrder` says. */
#ifndef FM_PARTNER_H
#define FM_PARTNER_H

#include "event_solver.h"

typedef struct { double x, v, a; } Partner;

/* The inputs of one partner. */
typedef struct {
    Partner now;             /* of the time v->time - input_age */
    const double *polynomial;
} Inputs;

enum { HELD = 0, LINEAR = 1, POLYNOMIAL = 5 };   /* inputOrder */
enum { COEFFICIENTS = 6 };

/* Defined by the model, which numbers its partners. */
static Inputs inputs_of(const Variables *v, int partner);
static int event_with(int partner);                               /* the shared event that changes its velocity */
static double partner_after(const Variables *v, int partner);     /* its velocity after that, by states and payload before */

static Partner by_inputs(const Variables *v, Inputs u, double s)
{
    Partner p = u.now;
    if (v->inputOrder == HELD) return p;
    if (v->inputOrder == LINEAR) return (Partner){p.x + p.v * s, p.v + p.a * s, p.a};
    p = (Partner){0.0, 0.0, 0.0};
    for (int k = COEFFICIENTS - 1; k >= 0; k--) {   /* Horner, and its derivatives */
        p.a = p.a * s + 2 * p.v;
        p.v = p.v * s + p.x;
        p.x = p.x * s + u.polynomial[k];
    }
    return p;
}

/* At v->time + s. */
static Partner partner(const Variables *v, int number, double s)
{
    Partner p = by_inputs(v, inputs_of(v, number), v->memory.input_age + s);
    bool is_outdated = v->memory.event[event_with(number)].reset;   /* the partner too has jumped since then */
    if (is_outdated) p.v = partner_after(v, number);
    return p;
}

static fm_Status check_input_order(fm_Instance *self, const Variables *v)
{
    if (v->inputOrder == HELD || v->inputOrder == LINEAR || v->inputOrder == POLYNOMIAL) return FM_OK;
    return fm_report(self, FM_ERROR, "inputOrder is %d. It must be 0 (held), 1 (linear) or 5 (polynomial).",
                     v->inputOrder);
}

#endif
