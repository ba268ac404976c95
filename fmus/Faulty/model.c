/* x' = -k x + u with u held, and a fault on order. See readme.md. */
#define _POSIX_C_SOURCE 200809L
#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <strings.h>
#include <unistd.h>
#endif

enum Fault {
    NONE, WARNS, DISCARDS, FAILS, DIES, NOT_A_NUMBER, REFUSES, PRINTS, TERMINATES,
    /* in any call: its process ends, or the call does not return, or takes much memory */
    CRASHES, ABORTS, EXITS, OVERFLOWS, HANGS, ALLOCATES, FAULT_COUNT
};

enum { EXIT_STATUS = 3, BLOCK = 1 << 26, BLOCKS = 64, PAGE = 4096 };   /* 64 blocks of 64 MiB: 4 GiB */

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

/* Faults of the process -------------------------------------------------------------------------------------------- */

static bool same_name(const char *a, const char *b)
{
#ifdef _WIN32
    return _stricmp(a, b) == 0;
#else
    return strcasecmp(a, b) == 0;
#endif
}

static void sleep_for_ever(void)
{
    for (;;)
#ifdef _WIN32
        Sleep(INFINITE);
#else
        pause();
#endif
}

static unsigned overflow(unsigned depth)
{
    volatile unsigned char frame[PAGE];
    frame[0] = (unsigned char)depth;
    return depth ? overflow(depth + 1) + frame[0] : 0;
}

/* Memory that is kept. Without it the process is aborted, as by an exception that nothing catches. */
static void allocate(void)
{
    for (int block = 0; block < BLOCKS; block++) {
        volatile unsigned char *bytes = malloc(BLOCK);
        if (!bytes) abort();
        for (size_t i = 0; i < BLOCK; i += PAGE) bytes[i] = 1;   /* a page that is not written takes no memory */
    }
}

/* With a marker only in the first call for which its file is not there. */
static bool is_on(const char *marker)
{
    if (!*marker) return true;
    FILE *file = fopen(marker, "wx");
    if (!file) return errno != EEXIST;
    fclose(file);
    return true;
}

static void disturb(const Variables *v)
{
    if (v->fault < CRASHES || v->fault >= FAULT_COUNT || !is_on(v->marker.text)) return;
    switch ((enum Fault)v->fault) {
    case CRASHES: *(volatile int *)NULL = 0; break;
    case ABORTS: abort();
    case EXITS: exit(EXIT_STATUS);
    case OVERFLOWS: overflow(1); break;
    case HANGS: sleep_for_ever(); break;
    default: allocate();
    }
}

static void copy_text(fm_String *to, const char *name)
{
    const char *text = getenv(name);
    if (text) snprintf(to->text, sizeof to->text, "%s", text);
}

/* The environment has start values for faults in a call in which no parameter has been set yet. */
void model_called(Variables *v, const char *function)
{
    if (strcmp(function, "Instantiate") == 0) {
        const char *fault = getenv("FAULTY_FAULT");
        if (fault) v->fault = atoi(fault);
        copy_text(&v->call, "FAULTY_CALL");
        copy_text(&v->marker, "FAULTY_MARKER");
    }
    const char *name = strncmp(function, "fmi", 3) == 0 ? function + 4 : function;   /* without fmi2 or fmi3 */
    bool is_step = strcmp(name, "DoStep") == 0;                                      /* see model_step */
    if (!is_step && same_name(name, v->call.text) && v->time >= v->faultTime) disturb(v);
}

/* Faults of a step ------------------------------------------------------------------------------------------------- */

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
    if (fault >= CRASHES && same_name("DoStep", v->call.text)) disturb(v);
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
