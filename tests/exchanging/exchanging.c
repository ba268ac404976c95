/* A strict Model Exchange FMU of FMI 3.0: each call that the standard does not allow in the present state is an error. See
 * tests/exchanging_fmu.py, which builds it.
 *
 * x' = u + d, with the continuous input u, the discrete input d, and a time event at each multiple of `period`, which counts
 * n. If it is eager, each completed step of the integrator is followed by an event, in which nothing happens. It executes a time event only if the time is not before it. Event indicator: u - threshold. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3FunctionTypes.h"

#define EXPORT(function) __attribute__((visibility("default"))) fmi3Status fmi3##function
#define UNUSED(function) EXPORT(function)(void *c) { (void)c; return fmi3Error; }

enum { TIME, X, DER_X, U, D, PERIOD, THRESHOLD, N, STATE_EVENTS, STUBBORN, EAGER, ENTRIES, REALS = THRESHOLD + 1 };
typedef enum { INSTANTIATED = 1, INITIALIZATION = 2, EVENT = 4, CONTINUOUS = 8 } Mode;

typedef struct {
    double real[REALS], next, last_event, last_z;
    int32_t n, state_events, stubborn, eager, entries;
    Mode mode;
    bool ended;
    fmi3LogMessageCallback log;
    fmi3InstanceEnvironment environment;
} Instance;

static bool allowed(Instance *self, unsigned modes, const char *what)
{
    if (self->mode & modes) return true;
    char text[200];
    snprintf(text, sizeof text, "%s is not allowed in state %d.", what, self->mode);
    if (self->log) self->log(self->environment, fmi3Error, "logStatusError", text);
    return false;
}
#define ALLOW(modes) \
    Instance *self = c; \
    if (!allowed(self, (modes), __func__)) return fmi3Error

__attribute__((visibility("default"))) const char *fmi3GetVersion(void) { return "3.0"; }

__attribute__((visibility("default"))) fmi3Instance fmi3InstantiateModelExchange(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging;
    Instance *self = calloc(1, sizeof *self);
    *self = (Instance){.mode = INSTANTIATED, .log = log, .environment = environment, .next = INFINITY};
    self->real[PERIOD] = self->real[THRESHOLD] = 1e9;
    return self;
}

__attribute__((visibility("default"))) void fmi3FreeInstance(fmi3Instance c) { free(c); }

EXPORT(EnterInitializationMode)(fmi3Instance c, fmi3Boolean defined, fmi3Float64 tolerance, fmi3Float64 start,
                                fmi3Boolean has_stop, fmi3Float64 stop)
{
    ALLOW(INSTANTIATED);
    (void)defined, (void)tolerance, (void)has_stop, (void)stop;
    self->mode = INITIALIZATION;
    self->real[TIME] = self->last_event = start;
    return fmi3OK;
}

EXPORT(ExitInitializationMode)(fmi3Instance c)
{
    ALLOW(INITIALIZATION);
    self->mode = EVENT;
    self->next = self->real[PERIOD];
    return fmi3OK;
}

EXPORT(EnterEventMode)(fmi3Instance c)
{
    ALLOW(CONTINUOUS);
    self->mode = EVENT;
    self->entries++;
    self->last_event = self->real[TIME];
    double z = self->real[U] - self->real[THRESHOLD];
    self->state_events += (z > 0) != (self->last_z > 0);
    return fmi3OK;
}

EXPORT(UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *needed, fmi3Boolean *terminate, fmi3Boolean *nominals,
                             fmi3Boolean *values, fmi3Boolean *defined, fmi3Float64 *next)
{
    ALLOW(EVENT);
    if (self->real[TIME] >= self->next && !self->stubborn) {
        self->n++;
        self->next = (self->n + 1) * self->real[PERIOD];
    }
    *needed = *terminate = *nominals = *values = false;
    *defined = true;
    *next = self->next;
    return fmi3OK;
}

EXPORT(EnterContinuousTimeMode)(fmi3Instance c)
{
    ALLOW(EVENT);
    self->mode = CONTINUOUS;
    self->last_z = self->real[U] - self->real[THRESHOLD];
    return fmi3OK;
}

EXPORT(SetTime)(fmi3Instance c, fmi3Float64 time)
{
    ALLOW(CONTINUOUS);
    if (time < self->last_event) return fmi3Error;
    self->real[TIME] = time;
    return fmi3OK;
}

EXPORT(SetContinuousStates)(fmi3Instance c, const fmi3Float64 x[], size_t n)
{
    ALLOW(CONTINUOUS);
    self->real[X] = x[0];
    return n == 1 ? fmi3OK : fmi3Error;
}

#define GET_ONE(function, modes, value)                                       \
    EXPORT(function)(fmi3Instance c, fmi3Float64 values[], size_t n)          \
    {                                                                         \
        ALLOW(modes);                                                         \
        values[0] = (value);                                                  \
        return n == 1 ? fmi3OK : fmi3Error;                                   \
    }
GET_ONE(GetContinuousStates, INITIALIZATION | EVENT | CONTINUOUS, self->real[X])
GET_ONE(GetContinuousStateDerivatives, INITIALIZATION | EVENT | CONTINUOUS, self->real[U] + self->real[D])
GET_ONE(GetNominalsOfContinuousStates, EVENT | CONTINUOUS, 1.0)
GET_ONE(GetEventIndicators, INITIALIZATION | EVENT | CONTINUOUS, self->real[U] - self->real[THRESHOLD])

EXPORT(CompletedIntegratorStep)(fmi3Instance c, fmi3Boolean keeps, fmi3Boolean *event, fmi3Boolean *terminate)
{
    ALLOW(CONTINUOUS);
    (void)keeps;
    *event = self->eager;
    *terminate = false;
    return fmi3OK;
}

EXPORT(Terminate)(fmi3Instance c)
{
    ALLOW(EVENT | CONTINUOUS);
    return fmi3OK;
}

static fmi3Status one(fmi3Instance c, size_t *n)
{
    (void)c;
    *n = 1;
    return fmi3OK;
}
EXPORT(GetNumberOfContinuousStates)(fmi3Instance c, size_t *n) { return one(c, n); }
EXPORT(GetNumberOfEventIndicators)(fmi3Instance c, size_t *n) { return one(c, n); }

EXPORT(GetFloat64)(fmi3Instance c, const fmi3ValueReference references[], size_t count, fmi3Float64 values[], size_t n)
{
    Instance *self = c;
    self->real[DER_X] = self->real[U] + self->real[D];
    for (size_t i = 0; i < count; i++) values[i] = self->real[references[i]];
    return n == count ? fmi3OK : fmi3Error;
}

EXPORT(SetFloat64)(fmi3Instance c, const fmi3ValueReference references[], size_t count, const fmi3Float64 values[], size_t n)
{
    for (size_t i = 0; i < count; i++) {
        ALLOW(references[i] == U || references[i] == X ? 15 : references[i] == D ? 7 : INSTANTIATED | INITIALIZATION);
        self->real[references[i]] = values[i];
    }
    return n == count ? fmi3OK : fmi3Error;
}

EXPORT(GetInt32)(fmi3Instance c, const fmi3ValueReference references[], size_t count, fmi3Int32 values[], size_t n)
{
    const Instance *self = c;
    for (size_t i = 0; i < count; i++)
        values[i] = references[i] == N ? self->n : references[i] == STUBBORN ? self->stubborn
            : references[i] == EAGER ? self->eager : references[i] == ENTRIES ? self->entries : self->state_events;
    return n == count ? fmi3OK : fmi3Error;
}

EXPORT(SetInt32)(fmi3Instance c, const fmi3ValueReference references[], size_t count, const fmi3Int32 values[], size_t n)
{
    ALLOW(INSTANTIATED | INITIALIZATION);
    *(references[0] == EAGER ? &self->eager : &self->stubborn) = values[0];
    return n == 1 && count == 1 ? fmi3OK : fmi3Error;
}

EXPORT(GetFMUState)(fmi3Instance c, fmi3FMUState *state)
{
    if (!*state) *state = malloc(sizeof(Instance));
    memcpy(*state, c, sizeof(Instance));
    return fmi3OK;
}

EXPORT(SetFMUState)(fmi3Instance c, fmi3FMUState state)
{
    memcpy(c, state, sizeof(Instance));
    return fmi3OK;
}

EXPORT(FreeFMUState)(fmi3Instance c, fmi3FMUState *state)
{
    (void)c;
    free(*state);
    *state = NULL;
    return fmi3OK;
}

EXPORT(SetDebugLogging)(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    (void)c, (void)on, (void)n, (void)categories;
    return fmi3OK;
}
