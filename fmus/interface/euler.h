/* A model x' = rates(x, u) that is solved by the explicit Euler method in steps of its parameter microStep. */
#ifndef FM_EULER_H
#define FM_EULER_H

#include "linear_inputs.h"
#include "state_space.h"

static States advance(const Variables *v, States x, const Course *u, double h)
{
    return euler(v, x, u, h, micro_steps_within(h, v->microStep), 0.0);
}

static fm_Status check_micro_step(fm_Instance *self, const Variables *v)
{
    if (v->microStep > 0.0) return FM_OK;
    return fm_report(self, FM_ERROR, "microStep is %g s. It must be positive.", v->microStep);
}

#endif
