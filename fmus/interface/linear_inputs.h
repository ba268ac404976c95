/* Inputs that are held or linear over a step. A model defines INPUTS, their number, before it includes this. */
#ifndef FM_LINEAR_INPUTS_H
#define FM_LINEAR_INPUTS_H

#include "model.h"

#include <math.h>

typedef struct { double of[INPUTS]; } Inputs;

/* Inputs over a step: value + slope s. */
typedef struct { Inputs value, slope; } Course;

/* Defined by the model */
static Inputs get_inputs(const Variables *v);
static Inputs get_slopes(const Variables *v);   /* FMI 2.0: time derivatives of the inputs in the next step */

static Inputs inputs_at(const Course *u, double s)
{
    Inputs now;
    for (int i = 0; i < INPUTS; i++) now.of[i] = u->value.of[i] + u->slope.of[i] * s;
    return now;
}

/* FMI 2.0 gives the slopes, FMI 3.0 the values at both ends. */
static Course course(fm_Instance *self, Variables *v, double h)
{
    fm_intermediate_update(self, v->time);
    Course u = {get_inputs(v), get_slopes(v)};
    fm_intermediate_update(self, v->time + h);
    Inputs end = get_inputs(v);
    for (int i = 0; i < INPUTS; i++) u.slope.of[i] += (end.of[i] - u.value.of[i]) / h;
    return u;
}

#endif
