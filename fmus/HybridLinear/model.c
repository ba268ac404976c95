/* A system with modes, linear in each of them, and events between them; its numbers are in a file. See readme.md. */
#include "model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* As in hybrid_writer.py */
enum { STATES = 4, SIGNALS = 4, ORDERS = 3, INPUTS = SIGNALS * ORDERS, OUTPUTS = 6, EVENTS = 4, MODES = 3 };
enum { INDICATORS = 2, COEFFICIENTS = 6, PARTNER = 2 };

typedef struct { double x[STATES], u[INPUTS], one; } Form;   /* an affine form of states and inputs */
typedef struct { double of[STATES]; } States;
typedef struct { double of[INPUTS]; } Inputs;                /* value, first and second derivative of each signal */

/* What an event does in a mode; next < 0: it cannot happen there. */
typedef struct {
    double next, count;
    Form indicator[INDICATORS], reset[STATES], partner[PARTNER];
    double input[PARTNER];     /* those that the event changes in its partner, to `partner`; < 0: none */
} Transition;

typedef struct {
    double on;
    Form rate[STATES], output[OUTPUTS];
    Transition event[EVENTS];
} Mode;

typedef struct {
    double states, events, start_mode;
    double trigger[EVENTS];    /* is there a trigger? */
    double payload[EVENTS];    /* which input it replaces; < 0: none */
    double x[STATES], u[INPUTS];
    Mode mode[MODES];
} System;

static_assert(sizeof(System) == sizeof((Variables){0}.data), "hybrid_writer.py has another System");
static_assert((int)FM_EVENT_COUNT == (int)EVENTS, "hybrid_writer.py has another number of events");

enum { EXECUTE, ANNOUNCE, IGNORE };   /* eventPolicy */
enum { HELD = 0, POLYNOMIAL = 5 };    /* inputOrder */

static const double MICRO_STEP = 1e-3;      /* [s] */
static const double EVENT_WIDTH = 1e-13;    /* [s] the bracket at which bisection ends */
static const double AT_THE_END = 1e-10;     /* [s] an event as close as this to the end of a step is there */
static const double ON = 1e-9;              /* [s] an event that is as near where an importer stops occurs there */
static const double MASKED = 1.0;           /* the indicators of an event that cannot happen in a mode */
enum { MOST_EVENTS = 1000 };                /* in one step; more of them accumulate, and the step would not end */

static const System *system_of(const Variables *v)
{
    return (const System *)v->data;
}

static const Mode *mode_of(const Variables *v)
{
    return &system_of(v)->mode[v->mode];
}

/* The member `first` and those behind it, which hybrid_writer.py has made of one type and in this order. */
#define MEMBER(v, Type, first, number) (((Type *)((char *)(v) + offsetof(Variables, first)))[number])

static States get_states(const Variables *v)
{
    States x;
    memcpy(x.of, (const char *)v + offsetof(Variables, x_1), sizeof x.of);
    return x;
}

static void set_states(Variables *v, States x)
{
    memcpy((char *)v + offsetof(Variables, x_1), x.of, sizeof x.of);
}

/* The inputs at v->time + s: those that were set, or the polynomials from the time on at which they were set. */
static Inputs inputs_at(const Variables *v, double s)
{
    Inputs u;
    memcpy(u.of, (const char *)v + offsetof(Variables, u_1), sizeof u.of);
    if (v->inputOrder == HELD) return u;
    const double *polynomials = (const double *)((const char *)v + offsetof(Variables, poly_1));
    double t = v->memory.input_age + s;
    for (int i = 0; i < SIGNALS; i++) {
        const double *c = polynomials + i * COEFFICIENTS;
        double value = 0.0, first = 0.0, second = 0.0;
        for (int k = COEFFICIENTS - 1; k >= 0; k--) {   /* Horner, and its derivatives */
            second = second * t + 2 * first;
            first = first * t + value;
            value = value * t + c[k];
        }
        memcpy(u.of + i * ORDERS, (double[]){value, first, second}, ORDERS * sizeof(double));
    }
    return u;
}

static double value_of(const Form *form, const States *x, const Inputs *u)
{
    double sum = form->one;
    for (int i = 0; i < STATES; i++) sum += form->x[i] * x->of[i];
    for (int i = 0; i < INPUTS; i++) sum += form->u[i] * u->of[i];
    return sum;
}

static States rates(const Variables *v, const States *x, const Inputs *u)
{
    States slope;
    for (int i = 0; i < STATES; i++) slope.of[i] = value_of(&mode_of(v)->rate[i], x, u);
    return slope;
}

static States along(States x, double h, States slope)
{
    for (int i = 0; i < STATES; i++) x.of[i] += h * slope.of[i];
    return x;
}

/* One step of the classical Runge-Kutta method. */
static States flow(const Variables *v, double s, States x, double h)
{
    Inputs begin = inputs_at(v, s), middle = inputs_at(v, s + h / 2), end = inputs_at(v, s + h);
    States k1 = rates(v, &x, &begin), at = along(x, h / 2, k1);
    States k2 = rates(v, &at, &middle);
    at = along(x, h / 2, k2);
    States k3 = rates(v, &at, &middle);
    at = along(x, h, k3);
    States k4 = rates(v, &at, &end);
    for (int i = 0; i < STATES; i++) x.of[i] += h / 6 * (k1.of[i] + 2 * k2.of[i] + 2 * k3.of[i] + k4.of[i]);
    return x;
}

/* Events ----------------------------------------------------------------------------------------------------------- */

static const Transition *transition(const Variables *v, int event)
{
    return &mode_of(v)->event[event];
}

static bool is_possible(const Variables *v, int event)
{
    return event < (int)system_of(v)->events && transition(v, event)->next >= 0.0;
}

static double indicator(const Variables *v, int event, int number, const States *x, const Inputs *u)
{
    if (!is_possible(v, event) || number >= (int)transition(v, event)->count) return MASKED;
    return value_of(&transition(v, event)->indicator[number], x, u);
}

/* The time derivative. Of the second derivative of a signal nothing is known; it is held. */
static double indicator_rate(const Variables *v, int event, int number, const States *x, const Inputs *u)
{
    if (!is_possible(v, event) || number >= (int)transition(v, event)->count) return 0.0;
    const Form *form = &transition(v, event)->indicator[number];
    States slope = rates(v, x, u);
    double sum = 0.0;
    for (int i = 0; i < STATES; i++) sum += form->x[i] * slope.of[i];
    for (int i = 0; i < INPUTS; i++)
        if (i % ORDERS < ORDERS - 1) sum += form->u[i] * u->of[i + 1];
    return sum;
}

static double largest_indicator(const Variables *v, int event, double s, const States *x)
{
    if (!is_possible(v, event)) return MASKED;
    Inputs u = inputs_at(v, s);
    double largest = -INFINITY;
    for (int i = 0; i < (int)transition(v, event)->count; i++)
        largest = fmax(largest, indicator(v, event, i, x, &u));
    return largest;
}

/* Would it occur within ON from now? What only rises from zero does not. */
static bool is_on(const Variables *v, int event)
{
    States x = flow(v, 0.0, get_states(v), ON);
    return largest_indicator(v, event, ON, &x) <= 0.0;
}

static fm_Clock *announcement(Variables *v, int event)
{
    return (fm_Clock *)((char *)v + fm_events[event].announce);
}

static fm_Clock *trigger(Variables *v, int event)
{
    return (fm_Clock *)((char *)v + fm_events[event].trigger);
}

/* The inputs that a shared event changes in its partner, until they are set; the others as they are now. */
static void see_partner(Variables *v, const Transition *what, const States *x, const Inputs *left)
{
    Inputs now = *left;
    for (int i = 0; i < PARTNER; i++)
        if (what->input[i] >= 0.0) now.of[(int)what->input[i]] = value_of(&what->partner[i], x, left);
    memcpy((char *)v + offsetof(Variables, u_1), now.of, sizeof now.of);
    for (int i = 0; i < SIGNALS; i++) {
        const double *u = now.of + i * ORDERS;
        double *c = (double *)((char *)v + offsetof(Variables, poly_1)) + i * COEFFICIENTS;
        memcpy(c, (double[COEFFICIENTS]){u[0], u[1], u[2] / 2}, COEFFICIENTS * sizeof *c);
    }
    v->memory.input_age = 0.0;
}

/* At v->time + s, and with the payload in place of an input if the event is triggered. An event that cannot happen in this
 * mode has no effect. */
static void execute(fm_Instance *self, Variables *v, int event, double s, bool triggered)
{
    if (!is_possible(v, event)) return;
    const Transition *what = transition(v, event);
    States x = get_states(v), after = x;
    Inputs u = inputs_at(v, s);
    int payload = (int)system_of(v)->payload[event];
    if (triggered && payload >= 0) u.of[payload] = *(const double *)((const char *)v + fm_events[event].payload[0]);
    for (int i = 0; i < STATES; i++) after.of[i] = value_of(&what->reset[i], &x, &u);
    set_states(v, after);
    if (triggered && payload >= 0) see_partner(v, what, &x, &u);
    int before = v->mode;
    v->mode = (int32_t)what->next;
    for (int other = 0; other < EVENTS; other++) v->memory.event[other].armed = false;
    MEMBER(v, int32_t, count_1, event)++;
    MEMBER(v, double, when_1, event) = v->time + s;
    if (self) fm_report(self, FM_OK, "Event '%d' at t = %.15g s: the mode %d becomes %d.", event + 1, v->time + s, before, v->mode);
}

/* An event can occur when it has been above zero. Inputs that were set since may have taken it to zero or below at once. */
static void arm(Variables *v, double s)
{
    States x = get_states(v);
    for (int event = 0; event < EVENTS; event++)
        if (is_possible(v, event) && largest_indicator(v, event, s, &x) > 0.0) v->memory.event[event].armed = true;
}

static void calculate_outputs(Variables *v, double s)
{
    States x = get_states(v), slope;
    Inputs u = inputs_at(v, s);
    const Mode *mode = mode_of(v);
    v->on = mode->on != 0.0;
    for (int i = 0; i < OUTPUTS; i++) MEMBER(v, double, y_1, i) = value_of(&mode->output[i], &x, &u);
    slope = rates(v, &x, &u);
    memcpy((char *)v + offsetof(Variables, dx_1), slope.of, sizeof slope.of);
    for (int event = 0; event < EVENTS; event++) {
        for (int i = 0; i < INDICATORS; i++) {
            MEMBER(v, double, z_1, event * INDICATORS + i) = indicator(v, event, i, &x, &u);
            MEMBER(v, double, dz_1, event * INDICATORS + i) = indicator_rate(v, event, i, &x, &u);
        }
        MEMBER(v, double, largest_1, event) = largest_indicator(v, event, s, &x);
    }
    arm(v, s);
}

/* Where Event Mode is not used, a trigger is a counter, and acts when it is set. */
static void execute_counted(fm_Instance *self, Variables *v)
{
    for (int event = 0; event < EVENTS; event++) {
        fm_Clock *counter = trigger(v, event);
        if (counter->count == counter->done) continue;
        counter->done = counter->count;
        execute(self, v, event, 0.0, true);
        v->memory.event[event].done = true;
        v->memory.shown = true;
    }
}

void model_outputs(Variables *v)
{
    execute_counted(NULL, v);
    calculate_outputs(v, 0.0);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* From `s` to the first event within the micro step `h`: the part of it after which it has occurred; `h` if there is none. */
static double first_event(const Variables *v, double s, double h, bool located[])
{
    States x = get_states(v), end = flow(v, s, x, h);
    double first = h;
    for (int event = 0; event < EVENTS; event++) {
        bool is_above = largest_indicator(v, event, s, &x) > 0.0;
        bool is_below = largest_indicator(v, event, s + h, &end) <= 0.0;
        located[event] = is_above ? is_below : v->memory.event[event].armed;
        double before = 0.0, after = is_above ? h : 0.0;
        while (located[event] && after - before > EVENT_WIDTH) {
            double middle = before + (after - before) / 2;
            States at = flow(v, s, x, middle);
            if (largest_indicator(v, event, s + middle, &at) > 0.0) before = middle;
            else after = middle;
        }
        if (located[event]) first = fmin(first, after);
    }
    end = flow(v, s, x, first);
    for (int event = 0; event < EVENTS; event++)
        located[event] = located[event] && largest_indicator(v, event, s + first, &end) <= 0.0;
    return first;
}

/* Advances `*s` to the next event and returns true, or to `end` and returns false. */
static bool advance(Variables *v, double *s, double end, bool looks, bool located[])
{
    double begin = *s, count = fmax(1.0, ceil((end - begin) / MICRO_STEP - 1e-9));
    for (double i = 1; i <= count; i++) {
        double next = i < count ? begin + i * (end - begin) / count : end, h = next - *s;
        double until = looks ? first_event(v, *s, h, located) : h;
        set_states(v, flow(v, *s, get_states(v), until));
        bool found = false;
        for (int event = 0; looks && event < EVENTS; event++) found = found || located[event];
        *s = found ? *s + until : next;
        arm(v, *s);
        if (found) return true;
    }
    return false;
}

static fm_Status solve(fm_Instance *self, Variables *v, double *h, bool looks, bool stops)
{
    double s = 0.0;
    for (int count = 0; count < MOST_EVENTS; count++) {
        bool located[EVENTS] = {false};
        if (!advance(v, &s, *h, looks, located)) return FM_OK;
        for (int event = 0; event < EVENTS; event++) {
            if (!located[event]) continue;
            fm_count(announcement(v, event));
            v->memory.event[event].armed = false;
        }
        bool at_the_end = *h - s <= AT_THE_END;
        if (stops) {
            if (at_the_end) set_states(v, flow(v, s, get_states(v), *h - s));
            else *h = s;
            for (int event = 0; event < EVENTS; event++) v->memory.event[event].located = located[event];
            v->memory.event_waits = fm_stopping(self) == FM_BY_RETURN;
            return fm_stopping(self) == FM_BY_DISCARD && !at_the_end ? FM_DISCARD : FM_OK;
        }
        for (int event = 0; event < EVENTS; event++)
            if (located[event]) execute(self, v, event, s, false);
        if (!(s < *h)) return FM_OK;
    }
    return fm_report(self, FM_ERROR, "More than %d events in the step from t = %.15g s to %.15g s: they accumulate at "
                     "t = %.15g s.", MOST_EVENTS, v->time, v->time + *h, v->time + s);
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    execute_counted(self, v);
    v->memory.shown = false;
    for (int event = 0; event < EVENTS; event++) v->memory.event[event].done = v->memory.event[event].located = false;
    bool stops = v->eventPolicy == EXECUTE ? fm_stopping(self) == FM_BY_RETURN
                                           : v->eventPolicy == ANNOUNCE && fm_stopping(self) != FM_NEVER;
    fm_Status status = solve(self, v, h, v->eventPolicy == EXECUTE || stops, stops);
    calculate_outputs(v, *h);
    return status;
}

/* Event Mode ------------------------------------------------------------------------------------------------------- */

void model_locate(Variables *v)
{
    for (int event = 0; event < EVENTS; event++) {
        fm_EventMemory *memory = &v->memory.event[event];
        memory->located = v->eventPolicy != IGNORE && !memory->done && is_on(v, event);
        if (memory->located) fm_count(announcement(v, event));
    }
}

/* Every trigger is executed, also a second one at the same instant. Without one, an event with a trigger is up to the policy. */
static bool is_due(Variables *v, int event)
{
    const fm_EventMemory *memory = &v->memory.event[event];
    if (trigger(v, event)->active || trigger(v, event)->count != trigger(v, event)->done) return true;
    bool waits = v->eventPolicy == IGNORE || (v->eventPolicy == ANNOUNCE && system_of(v)->trigger[event] != 0.0);
    return !waits && !memory->done && (memory->located || is_on(v, event));
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    for (int event = 0; event < EVENTS; event++) {
        if (!is_due(v, event)) continue;
        bool triggered = trigger(v, event)->active || trigger(v, event)->count != trigger(v, event)->done;
        execute(self, v, event, 0.0, triggered);
        trigger(v, event)->done = trigger(v, event)->count;
        v->memory.event[event].done = true;
        update->states_changed = true;
    }
    return FM_OK;
}

/* Called by the interface ------------------------------------------------------------------------------------------ */

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->inputOrder != HELD && v->inputOrder != POLYNOMIAL)
        return fm_report(self, FM_ERROR, "inputOrder is %d. It must be 0 (held) or 5 (polynomial).", v->inputOrder);
    if (v->eventPolicy >= EXECUTE && v->eventPolicy <= IGNORE) return FM_OK;
    return fm_report(self, FM_ERROR, "eventPolicy is %d. It must be 0 (execute), 1 (announce) or 2 (ignore).",
                     v->eventPolicy);
}

int model_states(const Variables *v)
{
    return (int)system_of(v)->states;
}

int model_indicators(const Variables *v)
{
    return (int)system_of(v)->events;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}

enum { LONGEST_PATH = 4096 };

fm_Status model_load(fm_Instance *self, Variables *v, const char *resources)
{
    char path[LONGEST_PATH];
    snprintf(path, sizeof path, "%s/system.f64", resources);
    FILE *file = fopen(path, "rb");
    if (!file) return fm_report(self, FM_ERROR, "The file '%s' cannot be read. It has the system.", path);
    size_t count = fread(v->data, 1, sizeof v->data, file);
    fclose(file);
    if (count != sizeof v->data)
        return fm_report(self, FM_ERROR, "The file '%s' has %zu bytes, which are no system.", path, count);
    const System *system = system_of(v);
    v->mode = (int32_t)system->start_mode;
    memcpy((char *)v + offsetof(Variables, x_1), system->x, sizeof system->x);
    memcpy((char *)v + offsetof(Variables, u_1), system->u, sizeof system->u);
    return FM_OK;
}
