/* A ball on a table that others move: FMI 3.0, Co-Simulation, class triggers; by a counter or by Clocks.
 *
 * It was written from the text of the proposal alone, by somebody who did not know the reference FMUs: the checker of the kit
 * must accept it. test_checker_on_a_stranger.py makes changed copies.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "fmi3Functions.h"

enum { H = 1, V, TABLE, TABLE_V, G, E, V_REST, POLICY, IN, OUT, GAP, GAP_V, GAP_A };
enum { EXECUTE, ANNOUNCE, IGNORE };
enum { INSTANTIATED, INIT, STEP, EVENT, TERMINATED };

typedef struct {                       /* all of it is the FMU state */
    double t, h, v, table, table_v, g, e, v_rest;
    int policy, in, seen, out, clock_in, clock_out;
    int armed;                         /* the event was not on when it was looked at last */
    int pending;                       /* located at this instant, not executed yet */
    int resting, mode;
} State;
typedef struct { State s; int event_mode, early; } Ball;

static double gap(const State* s) { return s->h - s->table; }
static double gap_v(const State* s) { return s->v - s->table_v; }
static int rests(const State* s) { return s->resting && gap(s) <= 1e-9 && fabs(gap_v(s)) <= 1e-9; }
static double gap_a(const State* s) { return rests(s) ? 0 : -s->g; }
static int on(const State* s) { return !rests(s) && gap(s) <= 0 && gap_v(s) <= 0; }

static void start(State* s) {
    State z = {0};
    z.h = 1; z.g = 9.81; z.e = 0.7; z.v_rest = 1e-3;
    *s = z;
}

static void reset(State* s) {          /* the reset of the event */
    double w = s->e * fabs(gap_v(s));
    if (gap(s) < 0) s->h = s->table;
    s->resting = w < s->v_rest && fabs(gap(s)) <= 1e-9;
    if (s->resting) { w = 0; s->h = s->table; }
    s->v = s->table_v + w;
    s->armed = !on(s);
    s->pending = 0;
}

static void locate(State* s) {         /* the event is located at the present time */
    s->armed = 0;
    s->pending = 1;
    s->clock_out = 1;
    s->out = (int)((unsigned)s->out + 1u);
}

static void move(State* s, double dt) {
    s->table += s->table_v * dt;
    if (rests(s)) { s->h = s->table; s->v = s->table_v; }
    else {
        s->resting = 0;
        s->h += s->v * dt - 0.5 * s->g * dt * dt;
        s->v -= s->g * dt;
    }
}

static double next(const State* s) {   /* time to the event, by the motion of ball and table */
    double g0 = gap(s), w = gap_v(s), d;
    if (on(s)) return s->armed ? 0 : INFINITY;
    if (rests(s)) return INFINITY;
    d = w * w + 2 * s->g * g0;
    if (g0 <= 0 && d <= 0) return w / s->g;
    return w >= 0 ? (w + sqrt(d)) / s->g : 2 * g0 / (sqrt(d) - w);
}

#define SELF Ball* b = (Ball*)instance; State* s = &b->s
typedef fmi3Instance I;
typedef const fmi3ValueReference R[];

const char* fmi3GetVersion(void) { return "3.0"; }
fmi3Status fmi3SetDebugLogging(I i, fmi3Boolean on, size_t n, const fmi3String c[]) { return fmi3OK; }

I fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible,
        fmi3Boolean logging, fmi3Boolean eventModeUsed, fmi3Boolean earlyReturnAllowed, R required, size_t n,
        fmi3InstanceEnvironment env, fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update) {
    Ball* b = calloc(1, sizeof *b);
    if (!b || !token || strcmp(token, TOKEN)) { free(b); return 0; }
    b->event_mode = eventModeUsed;
    b->early = earlyReturnAllowed;
    start(&b->s);
    return b;
}
I fmi3InstantiateModelExchange(fmi3String a, fmi3String t, fmi3String p, fmi3Boolean v, fmi3Boolean l,
        fmi3InstanceEnvironment e, fmi3LogMessageCallback m) { return 0; }
I fmi3InstantiateScheduledExecution(fmi3String a, fmi3String t, fmi3String p, fmi3Boolean v, fmi3Boolean l,
        fmi3InstanceEnvironment e, fmi3LogMessageCallback m, fmi3ClockUpdateCallback c,
        fmi3LockPreemptionCallback k, fmi3UnlockPreemptionCallback u) { return 0; }
void fmi3FreeInstance(I instance) { free(instance); }

fmi3Status fmi3EnterInitializationMode(I instance, fmi3Boolean d, fmi3Float64 tol, fmi3Float64 t0, fmi3Boolean sd,
        fmi3Float64 t1) { SELF; s->t = t0; s->mode = INIT; return fmi3OK; }
fmi3Status fmi3ExitInitializationMode(I instance) {
    SELF;
    s->resting = fabs(gap(s)) <= 1e-9 && fabs(gap_v(s)) <= 1e-9;
    s->seen = s->in;
    s->armed = s->policy == EXECUTE || !on(s);
    s->mode = b->event_mode ? EVENT : STEP;
    return fmi3OK;
}
fmi3Status fmi3EnterEventMode(I instance) { SELF; s->mode = EVENT; return fmi3OK; }
fmi3Status fmi3EnterStepMode(I instance) { SELF; s->mode = STEP; return fmi3OK; }
fmi3Status fmi3Terminate(I instance) { SELF; s->mode = TERMINATED; return fmi3OK; }
fmi3Status fmi3Reset(I instance) { SELF; start(s); return fmi3OK; }

fmi3Status fmi3GetFloat64(I instance, R r, size_t n, fmi3Float64 v[], size_t m) {
    SELF;
    for (size_t k = 0; k < n; k++) switch (r[k]) {
        case 0: v[k] = s->t; break;
        case H: v[k] = s->h; break;
        case V: v[k] = s->v; break;
        case TABLE: v[k] = s->table; break;
        case TABLE_V: v[k] = s->table_v; break;
        case G: v[k] = s->g; break;
        case E: v[k] = s->e; break;
        case V_REST: v[k] = s->v_rest; break;
        case GAP: v[k] = gap(s); break;
        case GAP_V: v[k] = gap_v(s); break;
        case GAP_A: v[k] = gap_a(s); break;
        default: return fmi3Error;
    }
    return fmi3OK;
}
fmi3Status fmi3SetFloat64(I instance, R r, size_t n, const fmi3Float64 v[], size_t m) {
    SELF;
    for (size_t k = 0; k < n; k++) switch (r[k]) {
        case H: s->h = v[k]; break;
        case V: s->v = v[k]; break;
        case TABLE: s->table = v[k]; break;
        case TABLE_V: s->table_v = v[k]; break;
        case G: s->g = v[k]; break;
        case E: s->e = v[k]; break;
        case V_REST: s->v_rest = v[k]; break;
        default: return fmi3Error;
    }
    return fmi3OK;
}
fmi3Status fmi3GetInt32(I instance, R r, size_t n, fmi3Int32 v[], size_t m) {
    SELF;
    for (size_t k = 0; k < n; k++) switch (r[k]) {
        case POLICY: v[k] = s->policy; break;
        case IN: v[k] = s->in; break;
        case OUT: v[k] = s->out; break;
        default: return fmi3Error;
    }
    return fmi3OK;
}
static void counter(State* s) {        /* look at the counter */
    if (s->in != s->seen) { s->seen = s->in; reset(s); }
}
fmi3Status fmi3SetInt32(I instance, R r, size_t n, const fmi3Int32 v[], size_t m) {
    SELF;
    for (size_t k = 0; k < n; k++) switch (r[k]) {
        case POLICY: s->policy = v[k]; break;
        case IN: s->in = v[k]; if (s->mode == STEP) counter(s); break;
        default: return fmi3Error;
    }
    return fmi3OK;
}
fmi3Status fmi3GetClock(I instance, R r, size_t n, fmi3Clock v[]) {
    SELF;
    for (size_t k = 0; k < n; k++) switch (r[k]) {
        case IN: v[k] = s->clock_in; break;
        case OUT: v[k] = s->mode == EVENT && s->clock_out; break;
        default: return fmi3Error;
    }
    return fmi3OK;
}
fmi3Status fmi3SetClock(I instance, R r, size_t n, const fmi3Clock v[]) {
    SELF;
    for (size_t k = 0; k < n; k++) if (r[k] == IN) s->clock_in = v[k]; else return fmi3Error;
    return fmi3OK;
}

fmi3Status fmi3UpdateDiscreteStates(I instance, fmi3Boolean* more, fmi3Boolean* term, fmi3Boolean* nom, fmi3Boolean* val,
        fmi3Boolean* defined, fmi3Float64* next_time) {
    SELF;
    int triggered = s->clock_in || s->in != s->seen;
    s->clock_in = s->clock_out = 0;
    *more = *term = *nom = *val = *defined = fmi3False;
    if (triggered) { s->seen = s->in; reset(s); *val = fmi3True; }
    else if (s->policy == EXECUTE && (s->pending || on(s))) {
        if (!s->pending) locate(s);
        s->clock_out = 0;
        reset(s);
        *val = fmi3True;
    }
    else if (s->policy == ANNOUNCE && s->armed && on(s)) locate(s);  /* inputs have jumped */
    s->pending = 0;
    return fmi3OK;
}

fmi3Status fmi3DoStep(I instance, fmi3Float64 t, fmi3Float64 step, fmi3Boolean no_set, fmi3Boolean* needed,
        fmi3Boolean* term, fmi3Boolean* early, fmi3Float64* last) {
    SELF;
    double left = step, end = t + step, tiny = 4e-16 * (fabs(t) + step);
    *needed = *term = *early = fmi3False;
    s->t = t;
    if (s->pending && s->policy == EXECUTE) reset(s);
    s->pending = s->clock_out = 0;
    for (;;) {
        double dt = next(s);
        int stop;
        if (!(dt <= left + tiny)) { move(s, left); break; }
        if (fabs(dt - left) <= tiny) dt = left;
        move(s, dt);
        left -= dt;
        if (fabs(gap(s)) < 1e-9) s->h = s->table;
        if (s->policy == IGNORE) { s->armed = 0; continue; }
        locate(s);
        stop = b->early && (b->event_mode || s->policy == ANNOUNCE);
        if (left == 0 && b->event_mode) { *needed = fmi3True; break; }
        if (stop && left > 0) {
            *needed = b->event_mode; *early = fmi3True;
            end = t + (step - left);
            break;
        }
        if (s->policy == EXECUTE) reset(s);
        if (left == 0) break;
    }
    if (!s->armed && !on(s)) s->armed = 1;
    s->t = *last = end;
    return fmi3OK;
}

fmi3Status fmi3GetFMUState(I instance, fmi3FMUState* f) {
    SELF;
    if (!*f) *f = malloc(sizeof *s);
    memcpy(*f, s, sizeof *s);
    return fmi3OK;
}
fmi3Status fmi3SetFMUState(I instance, fmi3FMUState f) { SELF; memcpy(s, f, sizeof *s); return fmi3OK; }
fmi3Status fmi3FreeFMUState(I instance, fmi3FMUState* f) { free(*f); *f = 0; return fmi3OK; }
fmi3Status fmi3SerializedFMUStateSize(I instance, fmi3FMUState f, size_t* n) { *n = sizeof(State); return fmi3OK; }
fmi3Status fmi3SerializeFMUState(I instance, fmi3FMUState f, fmi3Byte d[], size_t n) { memcpy(d, f, sizeof(State)); return fmi3OK; }
fmi3Status fmi3DeserializeFMUState(I instance, const fmi3Byte d[], size_t n, fmi3FMUState* f) {
    if (!*f) *f = malloc(sizeof(State));
    memcpy(*f, d, sizeof(State));
    return fmi3OK;
}
fmi3Status fmi3EvaluateDiscreteStates(I instance) { return fmi3OK; }

#define NO(name, ...) fmi3Status name(__VA_ARGS__) { return fmi3Error; }
#define TYPE(T) NO(fmi3Get##T, I i, R r, size_t n, fmi3##T v[], size_t m) \
    NO(fmi3Set##T, I i, R r, size_t n, const fmi3##T v[], size_t m)
TYPE(Float32) TYPE(Int8) TYPE(UInt8) TYPE(Int16) TYPE(UInt16) TYPE(UInt32) TYPE(Int64) TYPE(UInt64) TYPE(Boolean) TYPE(String)
NO(fmi3GetBinary, I i, R r, size_t n, size_t z[], fmi3Binary v[], size_t m)
NO(fmi3SetBinary, I i, R r, size_t n, const size_t z[], const fmi3Binary v[], size_t m)
NO(fmi3GetNumberOfVariableDependencies, I i, fmi3ValueReference r, size_t* n)
NO(fmi3GetVariableDependencies, I i, fmi3ValueReference r, size_t a[], fmi3ValueReference c[], size_t d[], fmi3DependencyKind e[], size_t n)
NO(fmi3GetDirectionalDerivative, I i, R a, size_t b, R c, size_t d, const fmi3Float64 e[], size_t f, fmi3Float64 g[], size_t h)
NO(fmi3GetAdjointDerivative, I i, R a, size_t b, R c, size_t d, const fmi3Float64 e[], size_t f, fmi3Float64 g[], size_t h)
NO(fmi3EnterConfigurationMode, I i) NO(fmi3ExitConfigurationMode, I i)
NO(fmi3GetIntervalDecimal, I i, R r, size_t n, fmi3Float64 a[], fmi3IntervalQualifier q[])
NO(fmi3GetIntervalFraction, I i, R r, size_t n, fmi3UInt64 a[], fmi3UInt64 c[], fmi3IntervalQualifier q[])
NO(fmi3GetShiftDecimal, I i, R r, size_t n, fmi3Float64 a[])
NO(fmi3GetShiftFraction, I i, R r, size_t n, fmi3UInt64 a[], fmi3UInt64 c[])
NO(fmi3SetIntervalDecimal, I i, R r, size_t n, const fmi3Float64 a[])
NO(fmi3SetIntervalFraction, I i, R r, size_t n, const fmi3UInt64 a[], const fmi3UInt64 c[])
NO(fmi3SetShiftDecimal, I i, R r, size_t n, const fmi3Float64 a[])
NO(fmi3SetShiftFraction, I i, R r, size_t n, const fmi3UInt64 a[], const fmi3UInt64 c[])
NO(fmi3EnterContinuousTimeMode, I i)
NO(fmi3CompletedIntegratorStep, I i, fmi3Boolean a, fmi3Boolean* c, fmi3Boolean* d)
NO(fmi3SetTime, I i, fmi3Float64 t) NO(fmi3SetContinuousStates, I i, const fmi3Float64 x[], size_t n)
NO(fmi3GetContinuousStateDerivatives, I i, fmi3Float64 x[], size_t n) NO(fmi3GetEventIndicators, I i, fmi3Float64 x[], size_t n)
NO(fmi3GetContinuousStates, I i, fmi3Float64 x[], size_t n) NO(fmi3GetNominalsOfContinuousStates, I i, fmi3Float64 x[], size_t n)
NO(fmi3GetNumberOfEventIndicators, I i, size_t* n) NO(fmi3GetNumberOfContinuousStates, I i, size_t* n)
NO(fmi3GetOutputDerivatives, I i, R r, size_t n, const fmi3Int32 o[], fmi3Float64 v[], size_t m)
NO(fmi3ActivateModelPartition, I i, fmi3ValueReference r, fmi3Float64 t)
