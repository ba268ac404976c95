/* x' = -k x + u with u held, and a fault on order. See readme.md. */
#include "model.h"

#include <math.h>
#include <stdio.h>

enum Fault { NONE, WARNS, DISCARDS, FAILS, DIES, NOT_A_NUMBER, REFUSES, PRINTS, TERMINATES, FAULT_COUNT };

/* By how much, relative to the step, steps that are meant to be equal may differ. */
static const double STEP_TOLERANCE = 1e-6;

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->fault < NONE || v->fault >= FAULT_COUNT)
        return fm_report(self, FM_ERROR, "fault is %d. It must be 0 to %d.", v->fault, FAULT_COUNT - 1);
    if (v->fault == REFUSES)
        return fm_report(self, FM_ERROR, "Faulty: told to return Error at the end of Initialization Mode.");
    return FM_OK;
}

void model_outputs(Variables *v)
{
    v->dx = -v->k * v->x + v->u;
}

static fm_Status told_to(fm_Instance *self, fm_Status status, const char *what, double time)
{
    return fm_report(self, status, "Faulty: told to %s at t = %g s.", what, time);
}

fm_Status model_step(fm_Instance *self, Variables *v, double *length)
{
    double h = *length;
    if (v->stepSize > 0.0 && fabs(h - v->stepSize) > STEP_TOLERANCE * v->stepSize)
        return fm_report(self, FM_ERROR, "The step size is %.17g s, but that of the first step was %.17g s. "
                         "canHandleVariableCommunicationStepSize is false.", h, v->stepSize);
    /* The middle of the step, so that rounding does not decide when a fault is due. */
    enum Fault fault = v->time + h / 2 >= v->faultTime ? (enum Fault)v->fault : NONE;
    if (fault == DISCARDS) {
        *length = 0.0;
        return told_to(self, FM_DISCARD, "return Discard", v->time);
    }
    if (fault == FAILS) return told_to(self, FM_ERROR, "return Error", v->time);
    if (fault == DIES) return told_to(self, FM_FATAL, "return Fatal", v->time);
    if (v->stepSize == 0.0) v->stepSize = h;
    v->x = v->k == 0.0 ? v->x + h * v->u : exp(-v->k * h) * v->x - expm1(-v->k * h) / v->k * v->u;
    if (fault == NOT_A_NUMBER) v->x = NAN;
    model_outputs(v);
    if (fault == PRINTS) {
        printf("Faulty: told to print at t = %g s.\n", v->time);
        fflush(stdout);
    }
    if (fault == WARNS) return told_to(self, FM_WARNING, "return Warning", v->time);
    if (fault == TERMINATES) return told_to(self, FM_TERMINATE, "end the simulation", v->time);
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
