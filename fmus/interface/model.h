/* What a model brings and what it may use.
 *
 * A model is a folder with modelDescription.xml (FMI 3.0) and model.c. From the former build.py makes variables.h: the
 * struct Variables, in which every variable has a member of its name, and VR_<name>, its value reference. The latter
 * has the functions below. All that a model remembers is in Variables, so that a copy of it is the FMU state.
 */
#ifndef FM_MODEL_H
#define FM_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [bytes] longest String, with its end, and longest Binary: nothing is allocated when one is set */
enum { FM_CAPACITY = 1024 };

typedef struct { char text[FM_CAPACITY]; } fm_String;
typedef struct { size_t size; uint8_t bytes[FM_CAPACITY]; } fm_Binary;

/* [s] counter / resolution */
typedef struct { uint64_t counter, resolution; } fm_Fraction;

/* What the importer knows of an interval: the numbers of fmi3IntervalQualifier. */
typedef enum { FM_NOT_YET_KNOWN, FM_UNCHANGED, FM_CHANGED } fm_Known;

/* A clock. FMI 3.0 sees whether it is active, in Event Mode. FMI 2.0 sees an Integer: its count. */
typedef struct {
    int32_t count;   /* of an output: events that were located; of an input: FMI 2.0, set by the importer */
    int32_t done;    /* of an input: the count whose event has been executed */
    bool active;
    bool ticked;     /* it was active in this Event Mode */
    fm_Known known;  /* the rest is that of a time-based clock */
    fm_Fraction interval, shift;
    double origin;   /* [s] it ticks next at origin + ticks * interval; NAN: from the present time on */
    uint64_t ticks;
} fm_Clock;

/* Lets a time-based clock tick after this interval: from now on, in Initialization Mode from the start on. */
static inline void fm_announce(fm_Clock *clock, fm_Fraction interval)
{
    clock->interval = interval;
    clock->known = FM_CHANGED;
    clock->origin = NAN;
    clock->ticks = 1;
}

/* Counts an event. After the largest number follows the smallest: only a change counts. */
static inline void fm_count(fm_Clock *clock)
{
    clock->count = clock->count == INT32_MAX ? INT32_MIN : clock->count + 1;
}

#include "variables.h"

/* An event of fmi-ls-manifest.xml, of the number EVENT_<name>. Offsets in Variables; 0: there is none. */
typedef struct {
    const char *name;
    bool shared;
    size_t announce, trigger, payload[FM_MOST_PAYLOAD];
} fm_Event;

extern const fm_Event fm_events[];   /* FM_EVENT_COUNT; made by build.py: variables.c */

/* How a step can end at an event */
typedef enum {
    FM_NEVER,          /* events are executed inside the step */
    FM_BY_DISCARD,     /* FMI 2.0 */
    FM_BY_RETURN       /* FMI 3.0, with Event Mode and early return */
} fm_Stopping;

/* What an update of the discrete states says to the importer */
typedef struct {
    bool again, terminate, states_changed;
    double next_time;  /* [s] of the next time event; INFINITY: none */
} fm_Update;

/* The numbers of fmi2Status and fmi3Status; FM_TERMINATE: the step is done, the model asks to end the simulation. */
typedef enum { FM_OK, FM_WARNING, FM_DISCARD, FM_ERROR, FM_FATAL, FM_TERMINATE } fm_Status;

typedef struct fm_Instance fm_Instance;

/* Called by the interface, defined by the model -------------------------------------------------------------------- */

/* Says at the end of Initialization Mode and before each step whether the parameters can be used. */
fm_Status model_check(fm_Instance *self, const Variables *v);

#if FM_HAS_RESOURCES
/* Reads start values from a file in the folder `resources`; FM_ERROR, after a message, if it cannot. */
fm_Status model_load(fm_Instance *self, Variables *v, const char *resources);
#endif

#if FM_HAS_RESOURCES && FM_HAS_MODEL_EXCHANGE
/* How many of the continuous states and event indicators that the description has there are. */
int model_states(const Variables *v);
int model_indicators(const Variables *v);
#endif

#if FM_HEARS_CALLS
/* Before a call of the FMI function `function` is done, if it needs an instance; "Instantiate" and "FreeInstance" too. */
void model_called(Variables *v, const char *function);
#endif

#if FM_HAS_INTERVALS
/* Initialization Mode: announces the time-based clocks whose intervals and shifts depend on parameters. */
void model_schedule(Variables *v);
#endif

/* Calculates all variables that depend directly on inputs, states, parameters and time; in Event Mode also the output
 * clocks and the clocked outputs of the clocks that are active. */
void model_outputs(Variables *v);

/* Advances states and outputs from v->time to v->time + *h, but not v->time. Where it ends before, also on FM_DISCARD, it
 * sets *h to how far it has come. */
fm_Status model_step(fm_Instance *self, Variables *v, double *h);

#if FM_HAS_SCHEDULED_EXECUTION
/* Scheduled Execution: computes the model partition of the input clock of this value reference at v->time. */
fm_Status model_activate(fm_Instance *self, Variables *v, uint32_t clock);
#endif

/* A model with Event Mode: executes what happens at v->time. */
fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update);

/* Model Exchange: the importer has entered Event Mode. Notes and counts the events that occur now. */
void model_locate(Variables *v);

/* Partial derivative of an output or state derivative with respect to an input or state; NAN if it is not provided. */
double model_partial(const Variables *v, uint32_t unknown, uint32_t known);

/* Called by the model, defined by the interface -------------------------------------------------------------------- */

/* Logs a message, and returns `status` so that a function can end with it. FM_OK: an event that is worth a line. */
__attribute__((format(printf, 3, 4)))
fm_Status fm_report(fm_Instance *self, fm_Status status, const char *format, ...);

/* How steps of this instance can end at an event. */
fm_Stopping fm_stopping(const fm_Instance *self);

/* Does the importer use Event Mode? */
bool fm_uses_event_mode(const fm_Instance *self);

/* Scheduled Execution: tells the importer, inside a model partition, that output clocks are active or that intervals of
 * countdown clocks are known. FM_ERROR, after a message, if it has not asked for them. */
fm_Status fm_clock_update(fm_Instance *self);

/* Scheduled Execution: begins and ends what no other model partition may interrupt. */
void fm_lock(fm_Instance *self);
void fm_unlock(fm_Instance *self);

/* Lets the importer set the inputs with intermediateUpdate="true" for `time`; does nothing if it takes no part. */
void fm_intermediate_update(fm_Instance *self, double time);

/* Lets the importer read the outputs with intermediateUpdate="true" of `time`, which the model has calculated. Returns the
 * time at which the importer requests the end of the step; INFINITY if it does not. */
double fm_intermediate_values(fm_Instance *self, double time);

#endif
