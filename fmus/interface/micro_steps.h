/* A model x' = rates(x, u) whose communication steps have `micro_steps` equal steps of the method `solver`, however long
 * they are. Before it includes this, the model defines EULER_INPUTS: at which fraction of its steps the explicit Euler
 * method takes the inputs.
 */
#ifndef FM_MICRO_STEPS_H
#define FM_MICRO_STEPS_H

#include "intermediate_inputs.h"
#include "state_space.h"

typedef enum { EULER, RUNGE_KUTTA } Solver;   /* the parameter `solver` */

static States advance(const Variables *v, States x, const Course *u, double h)
{
    return v->solver == EULER ? euler(v, x, u, h, v->micro_steps, EULER_INPUTS) : runge_kutta(v, x, u, h, v->micro_steps);
}

static fm_Status check_solver(fm_Instance *self, const Variables *v)
{
    if (v->micro_steps < 1)
        return fm_report(self, FM_ERROR, "micro_steps is %d. It must be at least 1.", v->micro_steps);
    if (v->solver != EULER && v->solver != RUNGE_KUTTA)
        return fm_report(self, FM_ERROR, "solver is %d. It must be 0 (Euler) or 1 (Runge-Kutta).", v->solver);
    return FM_OK;
}

/* Nothing happens in Event Mode, but that outputs follow the inputs which are set there. */
fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    return FM_OK;
}

#endif
