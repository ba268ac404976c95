/* x' = -k x + u, and in each call what extra/acts.txt says. See tests/misbehaving_fmu.py, which builds it with FMI=2 or 3.
 *
 * A line of that file is "call action since argument". The call is the name of a function without prefix; all that set are
 * "Set", all that get are "Get", and "Load" and "Unload" are the library's own. The action is done in each such call from the
 * time on; -inf is earlier than Instantiate. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#if defined(_WIN32)
#include "windows.c"
#else
#include "posix.c"
#endif

#if FMI == 2
#include "fmi2FunctionTypes.h"
#define NAME(function) fmi2##function
#define EXPORT(function) EXPORTED int NAME(function)
typedef fmi2ValueReference Reference;
#else
#include "fmi3FunctionTypes.h"
#define NAME(function) fmi3##function
#define EXPORT(function) EXPORTED int NAME(function)
typedef fmi3ValueReference Reference;
#endif

/* Functions that no run of this FMU needs; they are there because a library without them is warned of. */
#define UNUSED(function) EXPORT(function)(void *c) { return answer(c, #function); }

enum { OK, WARNING, DISCARD, ERROR };
enum { TIME, U, X, K, N, W, DER }; /* value references */

typedef struct {
    double time, u, x, k, w;
    int n; /* steps */
} Values;

typedef struct {
    Values v;
    char name[256];
    double reached; /* last successful time */
    bool terminate, early, event, updates, loses, gives_none;
    bool steps, stale; /* whether it is initialized; whether something was set after the last step */
    pthread_t thread;
    volatile bool in_background;
#if FMI == 2
    fmi2CallbackLogger log;
    fmi2ComponentEnvironment environment;
#else
    fmi3LogMessageCallback log;
    fmi3IntermediateUpdateCallback update;
    fmi3InstanceEnvironment environment;
#endif
} Instance;

/* What it does */

typedef struct {
    char call[32], action[32], argument[4096];
    size_t length; /* of the argument, which may have zeros */
    double since;
} Act;

static Act acts[32];
static int n_acts;

static void perform(Instance *self, const Act *act, int *status);

static int do_acts(Instance *self, const char *call)
{
    int status = OK;
    double now = self ? self->v.time : -INFINITY;
    if (self && !strcmp(call, "Set"))
        self->stale = self->steps;
    else if (self && (!strcmp(call, "DoStep") || !strcmp(call, "ExitInitializationMode")))
        self->steps = true, self->stale = false;
    for (int i = 0; i < n_acts; i++)
        if ((!strcmp(acts[i].call, call) || !strcmp(acts[i].call, "*")) && now >= acts[i].since)
            perform(self, &acts[i], &status);
    return status;
}

/* \n, \xNN and \\ in an argument stand for bytes, so that each message fits on a line. */
static size_t decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned byte;
        if (from[0] == '\\' && from[1] == 'x' && sscanf(from + 2, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    return (size_t)(to - text);
}

static void read_acts(void)
{
    char path[4096], line[8192];
    if (!path_of_library((void *)read_acts, path, sizeof path))
        return;
    for (int level = 0; level < 3; level++) { /* binaries/platform/library */
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0;
    }
    strncat(path, "/extra/acts.txt", sizeof path - strlen(path) - 1);
    FILE *file = fopen(path, TO_READ);
    if (!file)
        return;
    while (n_acts < 32 && fgets(line, sizeof line, file)) {
        Act *act = &acts[n_acts];
        char since[64];
        int end = 0;
        if (sscanf(line, "%31s %31s %63s%n", act->call, act->action, since, &end) < 3)
            continue;
        line[strcspn(line, "\n")] = 0;
        act->since = strtod(since, NULL);
        snprintf(act->argument, sizeof act->argument, "%.*s", (int)sizeof act->argument - 1, line + end + (line[end] == ' '));
        act->length = decode(act->argument);
        n_acts++;
    }
    fclose(file);
}

static void note(Instance *self, const char *call);

__attribute__((constructor)) static void load(void)
{
    read_acts();
    for (int i = 0; i < n_acts; i++)
        if (!strcmp(acts[i].call, "Load"))
            note(NULL, "Load"); /* only where it matters: all other calls are those of FMI */
    do_acts(NULL, "Load");
}

__attribute__((destructor)) static void unload(void)
{
    do_acts(NULL, "Unload");
}

static void say(Instance *self, int status, const char *text)
{
    if (!self || !self->log)
        return;
#if FMI == 2
    self->log(self->environment, self->name, (fmi2Status)status, "logStatusError", text ? "%s" : NULL, text);
#else
    self->log(self->environment, (fmi3Status)status, "logStatusError", text);
#endif
}

static void *say_beside(void *context)
{
    say(context, WARNING, "said by another thread");
    return NULL;
}

static void *say_in_background(void *context)
{
    Instance *self = context;
    while (self->in_background) {
        say(self, WARNING, "said in the background");
        rest(0.001);
    }
    return NULL;
}

static void ignore(int number)
{
    (void)number;
}

static void trace(const char *path, Instance *self, const char *call)
{
    char line[512];
    int n = snprintf(line, sizeof line, "%s %s\n", self ? self->name : "-", call);
    int file = open(path, TO_APPEND, 0600);
    if (file >= 0 && write(file, line, (size_t)n) >= 0)
        close(file);
}

static void note(Instance *self, const char *call)
{
    for (int i = 0; i < n_acts; i++)
        if (!strcmp(acts[i].action, "trace"))
            trace(acts[i].argument, self, call);
}

static int overflow(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

/* Until there is no more; what was got is used. */
static void take_memory(void)
{
    for (size_t n = (size_t)1 << 24;;) {
        char *block = malloc(n);
        memset(block, 1, n); /* also where there is none: as FMUs that do not look */
    }
}

static jmp_buf left;
static volatile int zero;

static __attribute__((noinline)) void leave_a_mark(void)
{
    if (setjmp(left))
        abort();
}

static void perform(Instance *self, const Act *act, int *status)
{
    const char *action = act->action, *text = act->argument;
    double value = strtod(text, NULL);
#define IS(word) (!strcmp(action, word))
    if (IS("return")) *status = atoi(text);
    /* messages */
    else if (IS("say")) say(self, *status > ERROR ? ERROR : *status, text);
    else if (IS("say_nothing")) say(self, ERROR, NULL);
    else if (IS("say_with_status")) say(self, atoi(text), "a message with an odd status");
    else if (IS("flood")) for (long i = 0; i < (long)value; i++) say(self, WARNING, "flood");
    else if (IS("flood_for_ever")) for (;;) say(self, WARNING, "flood");
    else if (IS("say_long")) {
        size_t n = (size_t)value;
        char *long_text = malloc(n + 1);
        memset(long_text, 'x', n);
        long_text[n] = 0;
        say(self, ERROR, long_text);
        free(long_text);
    } else if (IS("print")) {
        printf("%s\n", text);
        fflush(stdout);
    }
    /* threads */
    else if (IS("thread") && self) {
        pthread_t thread;
        pthread_create(&thread, NULL, say_beside, self);
        pthread_join(thread, NULL);
    } else if (IS("background") && self && !self->in_background) {
        self->in_background = true;
        pthread_create(&self->thread, NULL, say_in_background, self);
    }
    /* what belongs to the process */
    else if (IS("chdir")) { if (chdir(text)) abort(); }
    else if (IS("umask")) umask((mode_t)strtol(text, NULL, 8));
    else if (IS("locale")) setlocale(LC_ALL, text);
    else if (IS("round_up")) fesetround(FE_UPWARD);
    else if (IS("ignore_sigint")) signal(SIGINT, ignore);
    else if (IS("ignore_sigterm")) signal(SIGTERM, ignore);
    else if (IS("block_signals")) block_signals();
    else if (IS("close")) close(atoi(text));
    else if (IS("write_everywhere")) write_everywhere(text, act->length);
    else if (IS("replace_everywhere")) replace_everywhere();
    else if (IS("close_everywhere")) close_everywhere();
    else if (IS("fork")) start_process(text, false);
    else if (IS("daemon")) start_process(text, true);
    /* ends */
    else if (IS("exit")) exit(atoi(text));
    else if (IS("leave")) _exit(atoi(text));
    else if (IS("abort")) abort();
    else if (IS("crash")) *(volatile int *)NULL = 1;
    else if (IS("overflow")) *status = overflow(0) & WARNING;
    else if (IS("divide")) *status = 10 / zero;
    else if (IS("raise")) raise(atoi(text));
    else if (IS("kill")) kill_this_process();
    else if (IS("end_thread")) pthread_exit(NULL);
    else if (IS("longjmp")) {
        leave_a_mark();
        longjmp(left, 1); /* to a function that has returned */
    } else if (IS("memory")) take_memory();
    /* time */
    else if (IS("sleep")) rest(value);
    else if (IS("hang")) for (;;) rest(3600.0);
    else if (IS("spin")) for (volatile int go = 1; go;) ;
    /* answers of DoStep and UpdateDiscreteStates; NaN as a value */
    else if (IS("reach") && self) self->reached = value;
    else if (IS("terminate") && self) self->terminate = true;
    else if (IS("early") && self) self->early = true;
    else if (IS("event") && self) self->event = true;
    else if (IS("nan") && self) self->v.x = NAN;
    else if (IS("lose") && self) self->loses = true;
    else if (IS("give_none") && self) self->gives_none = true;
    /* calls that FMI forbids in Step Mode: Get after Set */
    else if (IS("refuse_stale") && self && self->stale) *status = ERROR;
    else if (IS("crash_stale") && self && self->stale) abort();
#undef IS
}

static int answer(void *instance, const char *call)
{
    note(instance, call);
    return do_acts(instance, call);
}

/* The FMU */

static void step(Instance *self, double time, double size)
{
    Values *v = &self->v;
    v->x = v->k == 0.0 ? v->x + size * v->u : exp(-v->k * size) * v->x - expm1(-v->k * size) / v->k * v->u;
    v->time = time + size;
    v->n++;
}

static double derivative(const Values *v) { return v->u - v->k * v->x; }

static int get_floats(void *instance, const Reference *r, size_t n, double *values)
{
    const Values *v = &((Instance *)instance)->v;
    int status = answer(instance, "Get");
    const double all[] = {v->time, v->u, v->x, v->k, NAN, v->w, derivative(v)};
    for (size_t i = 0; i < n; i++)
        values[i] = r[i] <= DER ? all[r[i]] : NAN;
    return status;
}

static int set_floats(void *instance, const Reference *r, size_t n, const double *values)
{
    Values *v = &((Instance *)instance)->v;
    int status = answer(instance, ((Instance *)instance)->updates ? "IntermediateSet" : "Set");
    for (size_t i = 0; i < n; i++) {
        *(r[i] == U ? &v->u : r[i] == X ? &v->x : r[i] == W ? &v->w : &v->k) = values[i];
        if (((Instance *)instance)->updates) {
            char text[64];
            snprintf(text, sizeof text, "IntermediateSet-%u", (unsigned)r[i]);
            note(instance, text);
        }
    }
    return status;
}

static int get_integers(void *instance, const Reference *r, size_t n, int *values)
{
    int status = answer(instance, "Get");
    for (size_t i = 0; i < n; i++)
        values[i] = r[i] == N ? ((Instance *)instance)->v.n : 0;
    return status;
}

static int get_state(void *instance, void **state)
{
    int status = answer(instance, "GetState");
    if (*state && ((Instance *)instance)->loses) {
        memset(*state, 0xff, sizeof(Values)); /* the state is elsewhere now, but the caller is not told: as FMUs of fmiCpp do */
        return status;
    }
    if (((Instance *)instance)->gives_none) {
        *state = NULL;
        return status;
    }
    if (!*state)
        *state = malloc(sizeof(Values));
    memcpy(*state, &((Instance *)instance)->v, sizeof(Values));
    return status;
}

static int set_state(void *instance, void *state)
{
    int status = answer(instance, "SetState");
    memcpy(&((Instance *)instance)->v, state, sizeof(Values));
    return status;
}

static int free_state(void *instance, void **state)
{
    int status = answer(instance, "FreeState");
    free(*state);
    *state = NULL;
    return status;
}

static Instance *make(const char *name)
{
    Instance *self = calloc(1, sizeof *self);
    self->v = (Values){.time = -INFINITY, .x = 1.0, .k = 1.0};
    snprintf(self->name, sizeof self->name, "%s", name);
    return self;
}

static void release(Instance *self)
{
    answer(self, "FreeInstance");
    if (self->in_background) {
        self->in_background = false;
        pthread_join(self->thread, NULL);
    }
    free(self);
}

/* Model Exchange: one state, no event indicator */

EXPORT(SetTime)(void *c, double time)
{
    ((Instance *)c)->v.time = time;
    return answer(c, "SetTime");
}

EXPORT(SetContinuousStates)(void *c, const double *states, size_t n)
{
    int status = answer(c, "SetContinuousStates");
    ((Instance *)c)->v.x = states[0];
    return status;
}

EXPORT(GetContinuousStates)(void *c, double *states, size_t n)
{
    int status = answer(c, "GetContinuousStates");
    states[0] = ((Instance *)c)->v.x;
    return status;
}

EXPORT(GetNominalsOfContinuousStates)(void *c, double *nominals, size_t n)
{
    nominals[0] = 1.0;
    return answer(c, "GetNominalsOfContinuousStates");
}

static int get_derivatives(void *c, const char *call, double *derivatives)
{
    int status = answer(c, call);
    derivatives[0] = derivative(&((Instance *)c)->v);
    return status;
}

EXPORT(EnterContinuousTimeMode)(void *c) { return answer(c, "EnterContinuousTimeMode"); }
EXPORT(EnterEventMode)(void *c) { return answer(c, "EnterEventMode"); }
EXPORT(GetEventIndicators)(void *c, double *indicators, size_t n) { return answer(c, "GetEventIndicators"); }

#if FMI == 2

EXPORTED fmi2Component fmi2Instantiate(
    fmi2String name, fmi2Type type, fmi2String token, fmi2String location, const fmi2CallbackFunctions *callbacks,
    fmi2Boolean visible, fmi2Boolean logging_on)
{
    Instance *self = make(name);
    self->log = callbacks->logger;
    self->environment = callbacks->componentEnvironment;
    note(self, location ? "with-resources" : "without-resources");
    if (answer(self, "Instantiate") == OK)
        return self;
    free(self);
    return NULL;
}

EXPORTED void fmi2FreeInstance(void *c) { release(c); }

EXPORT(SetupExperiment)(void *c, int with_tolerance, double tolerance, double start, int with_stop, double stop)
{
    Instance *self = c;
    self->v.time = self->reached = start;
    return answer(c, "SetupExperiment");
}

EXPORT(EnterInitializationMode)(void *c) { return answer(c, "EnterInitializationMode"); }

EXPORT(DoStep)(void *c, double time, double size, int no_set_state)
{
    Instance *self = c;
    self->reached = time;
    self->terminate = false;
    int status = answer(c, "DoStep");
    if (status <= WARNING)
        step(self, time, size);
    return status;
}

EXPORT(GetRealStatus)(void *c, int kind, double *value)
{
    int status = answer(c, "GetRealStatus");
    *value = ((Instance *)c)->reached;
    return status;
}

EXPORT(GetBooleanStatus)(void *c, int kind, int *value)
{
    int status = answer(c, "GetBooleanStatus");
    *value = ((Instance *)c)->terminate;
    return status;
}

EXPORT(GetDerivatives)(void *c, double *derivatives, size_t n) { return get_derivatives(c, "GetDerivatives", derivatives); }

EXPORT(CompletedIntegratorStep)(void *c, int no_set_state, int *enter_event_mode, int *terminate)
{
    int status = answer(c, "CompletedIntegratorStep");
    *enter_event_mode = *terminate = 0;
    return status;
}

EXPORT(NewDiscreteStates)(void *c, fmi2EventInfo *info)
{
    int status = answer(c, "NewDiscreteStates");
    *info = (fmi2EventInfo){0};
    return status;
}

EXPORT(GetReal)(void *c, const Reference *r, size_t n, double *values) { return get_floats(c, r, n, values); }
EXPORT(SetReal)(void *c, const Reference *r, size_t n, const double *values) { return set_floats(c, r, n, values); }
EXPORT(GetInteger)(void *c, const Reference *r, size_t n, int *values) { return get_integers(c, r, n, values); }
EXPORT(GetFMUstate)(void *c, void **state) { return get_state(c, state); }
EXPORT(SetFMUstate)(void *c, void *state) { return set_state(c, state); }
EXPORT(FreeFMUstate)(void *c, void **state) { return free_state(c, state); }

UNUSED(CancelStep) UNUSED(DeSerializeFMUstate) UNUSED(GetBoolean) UNUSED(GetDirectionalDerivative)
UNUSED(GetIntegerStatus) UNUSED(GetRealOutputDerivatives) UNUSED(GetStatus) UNUSED(GetString) UNUSED(GetStringStatus)
UNUSED(GetTypesPlatform) UNUSED(GetVersion) UNUSED(Reset) UNUSED(SerializeFMUstate) UNUSED(SerializedFMUstateSize)
UNUSED(SetBoolean) UNUSED(SetInteger) UNUSED(SetRealInputDerivatives) UNUSED(SetString)

#else

EXPORTED void *fmi3InstantiateCoSimulation(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging_on,
    fmi3Boolean event_mode_used, fmi3Boolean early_return_allowed, const Reference *required, size_t n_required,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update)
{
    Instance *self = make(name);
    self->log = log;
    self->environment = environment;
    self->update = update;
    note(self, resources ? "with-resources" : "without-resources");
    for (size_t i = 0; i < n_required; i++) {
        char text[64];
        snprintf(text, sizeof text, "requires-%u", (unsigned)required[i]);
        note(self, text);
    }
    if (answer(self, "Instantiate") == OK)
        return self;
    free(self);
    return NULL;
}

EXPORTED void *fmi3InstantiateModelExchange(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging_on,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log)
{
    return fmi3InstantiateCoSimulation(
        name, token, resources, visible, logging_on, false, false, NULL, 0, environment, log, NULL);
}

EXPORT(GetContinuousStateDerivatives)(void *c, double *derivatives, size_t n)
{
    return get_derivatives(c, "GetContinuousStateDerivatives", derivatives);
}

EXPORT(GetNumberOfContinuousStates)(void *c, size_t *n)
{
    *n = 1;
    return answer(c, "GetNumberOfContinuousStates");
}

EXPORT(GetNumberOfEventIndicators)(void *c, size_t *n)
{
    *n = 0;
    return answer(c, "GetNumberOfEventIndicators");
}

EXPORT(CompletedIntegratorStep)(void *c, bool no_set_state, bool *enter_event_mode, bool *terminate)
{
    int status = answer(c, "CompletedIntegratorStep");
    *enter_event_mode = *terminate = false;
    return status;
}

EXPORTED void fmi3FreeInstance(void *c) { release(c); }

EXPORT(EnterInitializationMode)(void *c, bool with_tolerance, double tolerance, double start, bool with_stop, double stop)
{
    ((Instance *)c)->v.time = start;
    return answer(c, "EnterInitializationMode");
}

EXPORT(DoStep)(void *c, double time, double size, bool no_set_state, bool *event, bool *terminate, bool *early, double *reached)
{
    Instance *self = c;
    bool go_on = false;
    double when = 0.0;
    self->event = self->terminate = self->early = false;
    self->reached = time + size;
    self->updates = true;
    if (self->update)
        self->update(self->environment, time + size / 2, true, true, true, false, &go_on, &when);
    self->updates = false;
    int status = answer(c, "DoStep");
    if (status <= WARNING)
        step(self, time, self->reached > time && self->reached < time + size ? self->reached - time : size);
    *event = self->event;
    *terminate = self->terminate;
    *early = self->early;
    *reached = self->reached;
    return status;
}

EXPORT(EnterConfigurationMode)(void *c) { return answer(c, "EnterConfigurationMode"); }
EXPORT(ExitConfigurationMode)(void *c) { return answer(c, "ExitConfigurationMode"); }
EXPORT(EnterStepMode)(void *c) { return answer(c, "EnterStepMode"); }

EXPORT(UpdateDiscreteStates)(void *c, bool *again, bool *terminate, bool *nominals, bool *states, bool *defined, double *next)
{
    Instance *self = c;
    self->terminate = false;
    int status = answer(c, "UpdateDiscreteStates");
    *again = *nominals = *states = *defined = false;
    *terminate = self->terminate;
    *next = 0.0;
    return status;
}

EXPORT(GetFloat64)(void *c, const Reference *r, size_t n, double *values, size_t size) { return get_floats(c, r, n, values); }
EXPORT(SetFloat64)(void *c, const Reference *r, size_t n, const double *values, size_t size) { return set_floats(c, r, n, values); }
EXPORT(GetInt32)(void *c, const Reference *r, size_t n, int *values, size_t size) { return get_integers(c, r, n, values); }
EXPORT(GetFMUState)(void *c, void **state) { return get_state(c, state); }
EXPORT(SetFMUState)(void *c, void *state) { return set_state(c, state); }
EXPORT(FreeFMUState)(void *c, void **state) { return free_state(c, state); }

UNUSED(ActivateModelPartition) UNUSED(DeserializeFMUState) UNUSED(EvaluateDiscreteStates) UNUSED(GetAdjointDerivative) UNUSED(GetBinary)
UNUSED(GetBoolean) UNUSED(GetClock)
UNUSED(GetDirectionalDerivative) UNUSED(GetFloat32) UNUSED(GetInt16) UNUSED(GetInt64)
UNUSED(GetInt8) UNUSED(GetIntervalDecimal) UNUSED(GetIntervalFraction) UNUSED(GetNumberOfVariableDependencies)
UNUSED(GetOutputDerivatives) UNUSED(GetShiftDecimal) UNUSED(GetShiftFraction) UNUSED(GetString) UNUSED(GetUInt16)
UNUSED(GetUInt32) UNUSED(GetUInt64) UNUSED(GetUInt8) UNUSED(GetVariableDependencies) UNUSED(GetVersion) UNUSED(InstantiateScheduledExecution) UNUSED(Reset) UNUSED(SerializeFMUState)
UNUSED(SerializedFMUStateSize) UNUSED(SetBinary) UNUSED(SetBoolean) UNUSED(SetClock)
UNUSED(SetFloat32) UNUSED(SetInt16) UNUSED(SetInt32) UNUSED(SetInt64) UNUSED(SetInt8) UNUSED(SetIntervalDecimal)
UNUSED(SetIntervalFraction) UNUSED(SetShiftDecimal) UNUSED(SetShiftFraction) UNUSED(SetString)
UNUSED(SetUInt16) UNUSED(SetUInt32) UNUSED(SetUInt64) UNUSED(SetUInt8)

#endif

EXPORT(ExitInitializationMode)(void *c) { return answer(c, "ExitInitializationMode"); }
EXPORT(Terminate)(void *c) { return answer(c, "Terminate"); }
EXPORT(SetDebugLogging)(void *c, int on, size_t n, const char *const *categories) { return answer(c, "SetDebugLogging"); }
