/* Inputs that change in any way inside a step. A model defines INPUTS, their number, before it includes this.
 *
 * FMI 3.0: the importer is asked for them at each time at which the solver needs them. FMI 2.0: they are polynomials of a
 * degree up to FM_INPUT_DERIVATIVES.
 */
#ifndef FM_INTERMEDIATE_INPUTS_H
#define FM_INTERMEDIATE_INPUTS_H

#include "model.h"

#include <math.h>

typedef struct { double of[INPUTS]; } Inputs;

typedef struct { fm_Instance *self; Variables *v; } Course;

/* Defined by the model */
static Inputs get_inputs(const Variables *v);
static Inputs get_derivatives(const Variables *v, int order);   /* of FMI 2.0, of order + 1, at the start of the step */

/* The inputs `s` after the start of the step. */
static Inputs inputs_at(const Course *u, double s)
{
    fm_intermediate_update(u->self, u->v->time + s);
    Inputs now = get_inputs(u->v);
    double factor = 1.0;
    for (int order = 0; order < FM_INPUT_DERIVATIVES; order++) {
        Inputs derivative = get_derivatives(u->v, order);
        factor *= s / (order + 1);
        for (int i = 0; i < INPUTS; i++) now.of[i] += factor * derivative.of[i];
    }
    return now;
}

static Course course(fm_Instance *self, Variables *v, double h)
{
    return (Course){self, v};
}

#endif
