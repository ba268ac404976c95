/* x' = -x + u, y = x + d u, and an event every `period` seconds: an FMU that refuses each call that the standards do not allow.
 *
 * It knows the states of FMI 2.0.5 (3.2.3 and 4.2.4) and of FMI 3.0.2 (2.3, 3.2, 4.2) by its own tables, and shares no code
 * with the other FMUs of this folder, nor with fmimaster. A forbidden call is logged with its reason and returns Error.
 * Compiled with FMI=2 or FMI=3. tests/strict_fmu.py writes the model descriptions. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#if FMI == 2
#include "fmi2FunctionTypes.h"
typedef fmi2ValueReference Reference;
#else
#include "fmi3FunctionTypes.h"
typedef fmi3ValueReference Reference;
#endif

static const int OK = 0, ERROR = 3; /* statuses */
enum { TIME, X, DER, U, Y, N, PERIOD, M, Z, D, STOP, ANNOUNCE, TICK = 20, HELD, OUT, COPY, IN_CLOCK, SUM, COUNTDOWN };
enum { BOUND = 8 }; /* variables that a run may access in Intermediate Update Mode */

static const double INTERVAL = 0.25;  /* [s] of the clock TICK */
static const double DELAY = 0.03;     /* [s] from an event to COUNTDOWN */
static const double NEAR = 1e-9;      /* [s] times that differ by less are one */

typedef enum { INSTANTIATED, INITIALIZATION, EVENT, STEP, CONTINUOUS, TERMINATED, FAILED } State;
static const char *const NAMES[] = {"Instantiated",         "Initialization Mode", "Event Mode", "Step Mode",
                                    "Continuous-Time Mode", "Terminated",          "the state after Error"};

/* All that SetFMUState restores. */
typedef struct {
    State state;
    double time, x, u, d, period, stop, due, held, next_tick, countdown, next_event, completed;
    int32_t n, m, announce, sum, in_value;
    bool tick, out, in, counting; /* active clocks */
    bool ticked, asked;           /* in this Event Mode: TICK was active in an update; the interval of COUNTDOWN was asked */
    bool armed, was_told;         /* COUNTDOWN runs; its interval was given */
    bool given;                   /* inputs were set since the last step */
    bool pending, ends;           /* Event Mode, or Terminate, must come next */
    bool updated, needs_update;   /* in this Event Mode */
    bool moved, new_states;       /* ME: time has moved since CompletedIntegratorStep; states have changed in an event */
} Values;

typedef struct {
    Values v;
    char name[256];
    bool is_exchange, event_mode, early_return, has_clocks;
    bool updating, may_get, may_set, has_set; /* in Intermediate Update Mode */
    Reference bound[BOUND];
    size_t n_bound;
    double start, end, no_prior; /* no state before this time will be set */
    bool has_end;
    int n_states;
#if FMI == 2
    fmi2CallbackLogger log;
#else
    fmi3LogMessageCallback log;
    fmi3IntermediateUpdateCallback update;
#endif
    void *environment;
} Instance;

/* Refusals */

static int refuse(Instance *s, const char *function, const char *why, ...)
{
    char reason[400], text[600];
    va_list arguments;
    va_start(arguments, why);
    vsnprintf(reason, sizeof reason, why, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "forbidden: %s at t = %.12g in %s: %s", function, s->v.time, NAMES[s->v.state], reason);
    s->v.state = FAILED;
#if FMI == 2
    if (s->log)
        s->log(s->environment, s->name, fmi2Error, "logStatusError", "%s", text);
#else
    if (s->log)
        s->log(s->environment, fmi3Error, "logStatusError", text);
#endif
    return ERROR;
}

#define IN(state) (1u << (state))
static int allowed(Instance *s, const char *function, unsigned states)
{
    if (s->updating)
        return refuse(s, function, "it is not allowed in Intermediate Update Mode");
    if (!(states & IN(s->v.state)))
        return refuse(s, function, "it is not allowed there");
    return OK;
}

#define CHECK(function, states)                                                                                              \
    do {                                                                                                                     \
        if (allowed(s, function, states))                                                                                    \
            return ERROR;                                                                                                    \
    } while (0)

static int after_end(Instance *s, const char *function)
{
    return s->v.ends ? refuse(s, function, "the FMU has ended the simulation, so Terminate must follow") : OK;
}

/* Variables */

static bool is_clocked(Reference r) { return r == HELD || r == COPY || r == SUM; }

static bool is_active(const Values *v, Reference r)
{
    return r == HELD ? v->tick : r == COPY ? v->out : v->in;
}

static bool is_bound(const Instance *s, Reference r)
{
    for (size_t i = 0; i < s->n_bound; i++)
        if (s->bound[i] == r)
            return true;
    return false;
}

static int may_get(Instance *s, const char *function, Reference r)
{
    const Values *v = &s->v;
    if (s->updating) {
        if (!s->may_get)
            return refuse(s, function, "getting is not allowed in this intermediate update");
        if (s->has_set)
            return refuse(s, function, "in Intermediate Update Mode all Get calls come before Set");
        if (!is_bound(s, r))
            return refuse(s, function, "variable %u is not among the required intermediate variables", (unsigned)r);
        return OK;
    }
    if (v->state == FAILED || (FMI == 2 && v->state == INSTANTIATED))
        return refuse(s, function, "it is not allowed there");
    if (FMI == 2 && v->state == INITIALIZATION && r != Y && r != N && r != X && r != DER)
        return refuse(s, function, "variable %u is neither an output nor an initial unknown", (unsigned)r);
    if (v->state == STEP && v->given)
        return refuse(s, function, "inputs were set, and DoStep was not called since then");
    if (is_clocked(r) && v->state != INITIALIZATION && !(v->state == EVENT && is_active(v, r)))
        return refuse(s, function, "no clock of variable %u is active", (unsigned)r);
    return OK;
}

static int may_set(Instance *s, const char *function, Reference r, bool changes)
{
    Values *v = &s->v;
    bool is_input = r == U || r == M || r == SUM, is_start = r == PERIOD || r == D || r == STOP || r == ANNOUNCE || r == X;
    if (s->updating) {
        if (!s->may_set || r != U || !is_bound(s, r))
            return refuse(s, function, "variable %u may not be set in this intermediate update", (unsigned)r);
        s->has_set = true;
        return OK;
    }
    if (after_end(s, function))
        return ERROR;
    if (v->state == INSTANTIATED || v->state == INITIALIZATION) {
        bool is_exact = is_start || (FMI == 3 && is_input);
        if (!is_exact && !(v->state == INITIALIZATION && is_input))
            return refuse(s, function, "variable %u cannot be set there", (unsigned)r);
        return OK;
    }
    if (v->state != EVENT && v->state != STEP && v->state != CONTINUOUS)
        return refuse(s, function, "it is not allowed there");
    if (r == X && s->is_exchange && v->state == CONTINUOUS)
        return OK;
    if (!is_input)
        return refuse(s, function, "variable %u is no input", (unsigned)r);
    if (is_clocked(r) && !(v->state == EVENT && is_active(v, r)))
        return refuse(s, function, "no clock of variable %u is active", (unsigned)r);
    if (r == M && v->state == CONTINUOUS)
        return refuse(s, function, "a discrete input is set");
    if (r == M && changes && v->state == STEP && s->event_mode)
        return refuse(s, function, "a discrete input is changed outside of Event Mode, which is used");
    if (v->state == STEP)
        v->given = true;
    return OK;
}

static double real_value(const Instance *s, Reference r)
{
    const Values *v = &s->v;
    switch (r) {
    case TIME: return v->time;
    case X: return v->x;
    case DER: return v->u - v->x;
    case U: return v->u;
    case Y: return v->x + v->d * v->u;
    case PERIOD: return v->period;
    case Z: return v->due - v->time;
    case D: return v->d;
    case STOP: return v->stop;
    default: return v->held;
    }
}

static int get_reals(void *c, const Reference r[], size_t n, double value[], const char *function)
{
    Instance *s = c;
    for (size_t i = 0; i < n; i++) {
        if (may_get(s, function, r[i]))
            return ERROR;
        value[i] = real_value(s, r[i]);
    }
    return OK;
}

static int set_reals(void *c, const Reference r[], size_t n, const double value[], const char *function)
{
    Instance *s = c;
    Values *v = &s->v;
    for (size_t i = 0; i < n; i++) {
        if (may_set(s, function, r[i], true))
            return ERROR;
        if (r[i] == U) v->u = value[i];
        else if (r[i] == X) v->x = value[i];
        else if (r[i] == PERIOD) v->period = value[i];
        else if (r[i] == D) v->d = value[i];
        else v->stop = value[i];
    }
    return OK;
}

static int get_integers(void *c, const Reference r[], size_t n, int32_t value[], const char *function)
{
    Instance *s = c;
    for (size_t i = 0; i < n; i++) {
        if (may_get(s, function, r[i]))
            return ERROR;
        value[i] = r[i] == M ? s->v.m : r[i] == SUM ? s->v.in_value : r[i] == ANNOUNCE ? s->v.announce : s->v.n;
    }
    return OK;
}

static int set_integers(void *c, const Reference r[], size_t n, const int32_t value[], const char *function)
{
    Instance *s = c;
    Values *v = &s->v;
    for (size_t i = 0; i < n; i++) {
        if (may_set(s, function, r[i], r[i] != M || v->m != value[i]))
            return ERROR;
        if (r[i] == M) v->m = value[i];
        else if (r[i] == SUM) v->in_value = value[i];
        else v->announce = value[i];
    }
    return OK;
}

/* Events */

static bool is_due(const Values *v) { return v->period > 0.0 && v->due <= v->time + NEAR; }

static void happen(Values *v)
{
    for (; is_due(v); v->n++, v->due += v->period)
        ;
}

static void enter_event_mode(Instance *s)
{
    Values *v = &s->v;
    v->state = EVENT;
    v->updated = v->needs_update = v->pending = v->given = v->ticked = v->asked = false;
    v->out = is_due(v);
}

static int may_enter_event_mode(Instance *s, const char *function)
{
    CHECK(function, s->is_exchange ? IN(CONTINUOUS) : s->event_mode ? IN(STEP) : 0u);
    if (after_end(s, function))
        return ERROR;
    if (s->is_exchange && s->v.moved)
        return refuse(s, function, "CompletedIntegratorStep was not called at this time");
    enter_event_mode(s);
    return OK;
}

static int may_leave_event_mode(Instance *s, const char *function, State next)
{
    Values *v = &s->v;
    CHECK(function, next == (s->is_exchange ? CONTINUOUS : STEP) ? IN(EVENT) : 0u);
    if (after_end(s, function))
        return ERROR;
    if (!v->updated)
        return refuse(s, function, "the discrete states were not updated");
    if (v->needs_update)
        return refuse(s, function, "another update of the discrete states was requested");
    if (s->has_clocks && !v->asked)
        return refuse(s, function, "the interval of the countdown clock was not asked for in this Event Mode");
    v->tick = v->out = v->in = v->counting = false;
    v->state = next;
    return OK;
}

/* Update of the discrete states; the time of the next event, INFINITY for none. */
static int update(Instance *s, const char *function, bool *ends, double *next)
{
    Values *v = &s->v;
    CHECK(function, IN(EVENT));
    if (after_end(s, function))
        return ERROR;
    if (v->tick && v->ticked)
        return refuse(s, function, "a time-based clock is active in a second update");
    if (is_due(v)) {
        happen(v);
        v->countdown = v->time + DELAY;
        v->armed = true;
        v->was_told = false;
        v->new_states = s->is_exchange;
        v->x += s->is_exchange ? 0.01 : 0.0;
    }
    if (v->tick) {
        v->held = v->x;
        v->next_tick += INTERVAL;
        v->ticked = true;
    }
    if (v->counting)
        v->armed = false;
    if (v->in)
        v->sum += v->in_value;
    v->tick = v->out = v->in = v->counting = false;
    v->updated = true;
    v->needs_update = false;
    *ends = v->ends = v->stop != 0.0 && v->time >= fabs(v->stop) - NEAR; /* below 0: in updates only */
    *next = v->next_event = v->announce && v->period > 0.0 ? v->due : INFINITY;
    return OK;
}

/* What lies before a time and was not yet done; the end of a step may be there, its start may not. */
static int nothing_missed(Instance *s, const char *function, double time)
{
    const Values *v = &s->v;
    if (v->next_event < time - NEAR)
        return refuse(s, function, "the time event at %.12g is passed", v->next_event);
    if (!s->has_clocks)
        return OK;
    if (v->next_tick < time - NEAR)
        return refuse(s, function, "the periodic clock has not ticked at %.12g", v->next_tick);
    if (v->armed && v->was_told && v->countdown < time - NEAR)
        return refuse(s, function, "the countdown clock has not ticked at %.12g", v->countdown);
    return OK;
}

/* Steps */

static void integrate(Values *v, double end)
{
    v->x = v->u + (v->x - v->u) * exp(-(end - v->time));
    v->time = end;
}

#if FMI == 3
static void intermediate_update(Instance *s, bool may_set)
{
    bool requested = false;
    double time = 0.0;
    if (!s->update || !s->n_bound)
        return;
    s->updating = s->may_get = true;
    s->may_set = may_set;
    s->has_set = false;
    s->update(s->environment, s->v.time, may_set, true, true, false, &requested, &time);
    s->updating = false;
}
#endif

typedef struct { bool event, ends, early; } Answer;

static int step(Instance *s, const char *function, double time, double size, bool no_prior, Answer *answer)
{
    Values *v = &s->v;
    double end = time + size;
    CHECK(function, s->is_exchange ? 0u : IN(STEP));
    if (after_end(s, function))
        return ERROR;
    if (v->pending)
        return refuse(s, function, "an event is pending, so EnterEventMode must follow");
    if (fabs(time - v->time) > NEAR)
        return refuse(s, function, "the step begins at %.12g", time);
    if (!(size > 0.0))
        return refuse(s, function, "the step size is %g", size);
    if (s->has_end && end > s->end + NEAR)
        return refuse(s, function, "the step ends at %.12g, after the stop time", end);
    if (nothing_missed(s, function, end) || nothing_missed(s, function, v->time + 2.0 * NEAR))
        return ERROR;
    if (no_prior && v->time > s->no_prior)
        s->no_prior = v->time;
    *answer = (Answer){false, false, false};
    bool is_inside = v->period > 0.0 && v->due <= end + NEAR;
    if (is_inside && s->early_return && !v->announce && v->due < end - NEAR) {
        end = v->due;
        answer->early = true;
    }
    double middle = v->time + (end - v->time) / 2.0;
#if FMI == 3
    intermediate_update(s, true);
    integrate(v, middle);
    if (v->state != FAILED)
        intermediate_update(s, true);
#else
    integrate(v, middle);
#endif
    if (v->state == FAILED)
        return ERROR;
    integrate(v, end);
#if FMI == 3
    intermediate_update(s, false);
    if (v->state == FAILED)
        return ERROR;
#endif
    v->given = false;
    if (is_inside && !s->event_mode)
        happen(v);
    answer->event = v->pending = is_inside && s->event_mode && !v->announce;
    answer->ends = v->ends = v->stop > 0.0 && v->time >= v->stop - NEAR;
    return OK;
}

/* States */

static int get_state(Instance *s, const char *function, void **state)
{
    CHECK(function, ~IN(FAILED));
    if (!*state)
        s->n_states++;
    Values *kept = *state ? *state : malloc(sizeof(Values));
    *kept = s->v;
    *state = kept;
    return OK;
}

static int set_state(Instance *s, const char *function, const void *state)
{
    const Values *kept = state;
    CHECK(function, ~IN(FAILED));
    if (!kept)
        return refuse(s, function, "there is no state");
    if (kept->time < s->no_prior - NEAR)
        return refuse(s, function, "a state at %.12g is set, but none before %.12g was to come", kept->time, s->no_prior);
    s->v = *kept;
    return OK;
}

static int free_state(Instance *s, const char *function, void **state)
{
    CHECK(function, ~0u);
    if (*state)
        s->n_states--;
    free(*state);
    *state = NULL;
    return OK;
}

static void free_instance(Instance *s)
{
    if (s && s->n_states)
        refuse(s, "FreeInstance", "%d FMU states were not freed before", s->n_states);
    free(s);
}

/* The beginning and the end */

static Instance *instantiate(const char *name, bool is_exchange)
{
    Instance *s = calloc(1, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    s->is_exchange = is_exchange;
    s->no_prior = -INFINITY;
    s->v.x = 1.0;
    s->v.next_event = INFINITY;
    s->v.completed = -INFINITY;
    return s;
}

static int enter_initialization(Instance *s, const char *function, double start, bool has_end, double end)
{
    CHECK(function, IN(INSTANTIATED));
    s->v.state = INITIALIZATION;
    s->v.time = s->start = s->v.next_tick = start;
    s->end = end;
    s->has_end = has_end;
    return OK;
}

static int exit_initialization(Instance *s, const char *function)
{
    Values *v = &s->v;
    CHECK(function, IN(INITIALIZATION));
    v->due = v->time + v->period;
    v->given = false;
    if (s->is_exchange || s->event_mode) {
        enter_event_mode(s);
    } else {
        v->state = STEP;
    }
    return OK;
}

static int terminate(Instance *s, const char *function)
{
    CHECK(function, IN(EVENT) | IN(STEP) | IN(CONTINUOUS));
    s->v.state = TERMINATED;
    return OK;
}

/* Model Exchange */

static int set_time(Instance *s, const char *function, double time)
{
    CHECK(function, s->is_exchange ? IN(CONTINUOUS) : 0u);
    if (after_end(s, function))
        return ERROR;
    if (s->v.pending)
        return refuse(s, function, "an event is pending, so EnterEventMode must follow");
    if (time < s->v.completed - NEAR)
        return refuse(s, function, "the time %.12g is before that of the last completed step", time);
    if (nothing_missed(s, function, time))
        return ERROR;
    s->v.moved |= time != s->v.time;
    s->v.time = time;
    return OK;
}

static int set_states(Instance *s, const char *function, const double *x)
{
    CHECK(function, s->is_exchange ? IN(CONTINUOUS) : 0u);
    if (s->v.new_states)
        return refuse(s, function, "the states have changed in an event, and were not read since then");
    s->v.x = *x;
    return OK;
}

static int get_vector(Instance *s, const char *function, unsigned states, double value, double *to)
{
    CHECK(function, s->is_exchange ? states : 0u);
    *to = value;
    return OK;
}

static int complete(Instance *s, const char *function, bool no_prior, bool *enter, bool *ends)
{
    CHECK(function, s->is_exchange ? IN(CONTINUOUS) : 0u);
    if (after_end(s, function))
        return ERROR;
    if (s->v.pending)
        return refuse(s, function, "an event is pending, so EnterEventMode must follow");
    if (s->v.time < s->v.completed)
        return refuse(s, function, "a step was completed at %.12g", s->v.completed);
    if (no_prior && s->v.time > s->no_prior)
        s->no_prior = s->v.time;
    s->v.completed = s->v.time;
    s->v.moved = false;
    *enter = s->v.pending = !s->v.announce && is_due(&s->v);
    *ends = s->v.ends = s->v.stop > 0.0 && s->v.time >= s->v.stop - NEAR;
    return OK;
}

#define ALL (~(IN(FAILED) | IN(INSTANTIATED)))
#if FMI == 2
#include "strict_fmi2.h"
#else
#include "strict_fmi3.h"
#endif
