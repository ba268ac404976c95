/* Solves x' = v, v' = a(t, x, v) with the events of fmi-ls-manifest.xml.
 *
 * Included by a model that defines the functions declared here, and in whose description there is `eventPolicy`. It gets
 * model_step and model_update, calls check_event_policy in its model_check and show_triggered_events
 * in its model_outputs.
 *
 * An event occurs when the largest of its indicators, which was positive, has come down to zero; its time is found by
 * bisection, with the micro step done again at every length that is tried. What happens then is up to `eventPolicy` and
 * to the FMI version, see readme.md of TwoMassUpper.
 */
#ifndef FM_EVENT_SOLVER_H
#define FM_EVENT_SOLVER_H

#include "model.h"

#include <math.h>
#include <string.h>

typedef struct { double x, v; } Motion;

/* Defined by the model. `s` is the time since v->time. */
static Motion flow(const Variables *v, double s, Motion m, double h);
static Motion indicators(const Variables *v, int event, double s, Motion m);
static fm_Payload own_payload(const Variables *v, int event, double s);   /* what the inputs say of the partners */
static Motion reset(const Variables *v, int event, double s, Motion m, fm_Payload payload);
static Motion get_motion(const Variables *v);
static void set_motion(Variables *v, Motion m);
static void calculate_outputs(Variables *v, double s);

enum { EXECUTE, ANNOUNCE, IGNORE };         /* eventPolicy */

static const double MICRO_STEP = 1e-3;      /* [s] */
static const double EVENT_WIDTH = 1e-13;    /* [s] the bracket at which bisection ends */
static const double AT_THE_END = 1e-10;     /* [s] an event as close as this to the end of a step is there */
static const double ON = 1e-9;              /* [s] a private event that is as near where an importer stops occurs there */
enum { MOST_EVENTS = 1000 };                /* in one step; more of them accumulate, and the step would not end */

static fm_Status check_event_policy(fm_Instance *self, const Variables *v)
{
    if (v->eventPolicy >= EXECUTE && v->eventPolicy <= IGNORE) return FM_OK;
    return fm_report(self, FM_ERROR, "eventPolicy is %d. It must be 0 (execute), 1 (announce) or 2 (ignore).",
                     v->eventPolicy);
}

static double largest_indicator(const Variables *v, int event, double s, Motion m)
{
    Motion z = indicators(v, event, s, m);
    return fmax(z.x, z.v);
}

static fm_Clock *announcement(Variables *v, int event)
{
    return fm_events[event].announce ? (fm_Clock *)((char *)v + fm_events[event].announce) : NULL;
}

static fm_Clock *trigger(Variables *v, int event)
{
    return fm_events[event].trigger ? (fm_Clock *)((char *)v + fm_events[event].trigger) : NULL;
}

/* What a trigger brings with it, or else what the inputs say. */
static fm_Payload triggered_payload(const Variables *v, int event)
{
    fm_Payload payload = own_payload(v, event, 0.0);
    for (int k = 0; k < FM_MOST_PAYLOAD; k++) {
        size_t offset = fm_events[event].payload[k];
        if (offset) payload.value[k] = *(const double *)((const char *)v + offset);
    }
    return payload;
}

static void remember_reset(Variables *v, int event, Motion left, fm_Payload payload, bool inputs_are_of_before)
{
    fm_EventMemory *memory = &v->memory.event[event];
    memory->left[0] = left.x;
    memory->left[1] = left.v;
    memory->payload = payload;
    memory->reset = inputs_are_of_before;
}

/* Step ------------------------------------------------------------------------------------------------------------- */

/* Length of the micro step from `m` at which `event` has just occurred; known to have occurred at `h`. */
static double locate(const Variables *v, int event, double s, Motion m, double h)
{
    double before = 0.0, after = h;
    while (after - before > EVENT_WIDTH) {
        double middle = before + (after - before) / 2;
        if (largest_indicator(v, event, s + middle, flow(v, s, m, middle)) > 0.0) before = middle;
        else after = middle;
    }
    return after;
}

/* Goes from `*s` and `*m` to the first event and returns true, or to `end` and returns false. `located` are all events
 * that have occurred there; NULL: it looks for none. */
static bool advance(const Variables *v, double *s, Motion *m, double end, bool located[])
{
    double begin = *s, length = end - begin;
    int count = (int)ceil(length / MICRO_STEP - 1e-9);   /* rounding makes no extra micro step */
    if (count < 1) count = 1;
    double h = length / count;
    for (int i = 1; i <= count; i++) {
        double next_s = i < count ? begin + i * h : end;
        Motion next = flow(v, *s, *m, h);
        bool found = false;
        double until = h;
        for (int event = 0; located && event < FM_EVENT_COUNT; event++) {
            bool before = largest_indicator(v, event, *s, *m) <= 0.0;
            bool after = largest_indicator(v, event, next_s, next) <= 0.0;
            located[event] = !before && after;
            if (!located[event]) continue;
            until = fmin(until, locate(v, event, *s, *m, h));
            found = true;
        }
        if (found) {
            *m = flow(v, *s, *m, until);
            *s += until;
            for (int event = 0; event < FM_EVENT_COUNT; event++)
                located[event] = located[event] && largest_indicator(v, event, *s, *m) <= 0.0;
            return true;
        }
        *m = next;
        *s = next_s;
    }
    return false;
}

static Motion execute(fm_Instance *self, const Variables *v, int event, double s, Motion m, fm_Payload payload)
{
    Motion after = reset(v, event, s, m, payload);
    fm_report(self, FM_OK, "Event '%s' at t = %.15g s: the velocity %.15g m/s becomes %.15g m/s.",
              fm_events[event].name, v->time + s, m.v, after.v);
    return after;
}

/* Through all events until the end of the step, or to the first one if steps stop there. */
static fm_Status solve(fm_Instance *self, Variables *v, Motion *m, double *h, bool looks, bool stops)
{
    double s = 0.0;
    for (int count = 0; count < MOST_EVENTS; count++) {
        bool located[FM_EVENT_COUNT] = {false};
        if (!advance(v, &s, m, *h, looks ? located : NULL)) return FM_OK;
        for (int event = 0; event < FM_EVENT_COUNT; event++)
            if (located[event] && announcement(v, event)) fm_count(announcement(v, event));
        if (stops) {
            bool at_the_end = *h - s <= AT_THE_END;
            if (at_the_end) *m = flow(v, s, *m, *h - s);
            else *h = s;
            for (int event = 0; event < FM_EVENT_COUNT; event++) {
                v->memory.event[event].located = located[event];
                v->memory.event[event].located_payload = own_payload(v, event, *h);
            }
            v->memory.event_waits = fm_stopping(self) == FM_BY_RETURN;
            return fm_stopping(self) == FM_BY_DISCARD && !at_the_end ? FM_DISCARD : FM_OK;
        }
        for (int event = 0; event < FM_EVENT_COUNT; event++) {
            if (!located[event] || largest_indicator(v, event, s, *m) > 0.0) continue;
            *m = execute(self, v, event, s, *m, own_payload(v, event, s));
            v->memory.event[event].done = *h - s <= AT_THE_END;
        }
        if (!(s < *h)) return FM_OK;
    }
    return fm_report(self, FM_ERROR, "More than %d events in the step from t = %.15g s to %.15g s: they accumulate at "
                     "t = %.15g s.", MOST_EVENTS, v->time, v->time + *h, v->time + s);
}

/* Events by trigger, in FMI 2.0 ------------------------------------------------------------------------------------ */

static bool is_triggered(Variables *v, int event)
{
    return trigger(v, event) && trigger(v, event)->count != trigger(v, event)->done;
}

static bool is_shown(Variables *v, int event)
{
    return v->memory.event[event].shown != trigger(v, event)->done;
}

/* The states are those before all triggers that the next step is to execute. */
static void hide_triggered_events(Variables *v)
{
    if (v->memory.shown) set_motion(v, (Motion){v->memory.left[0], v->memory.left[1]});
    v->memory.shown = false;
    for (int event = 0; event < FM_EVENT_COUNT; event++) {
        if (!trigger(v, event)) continue;
        fm_EventMemory *of_event = &v->memory.event[event];
        of_event->shown = trigger(v, event)->done;
        of_event->times = 0;
        of_event->reset = false;
    }
}

/* Has the importer taken back a trigger that is shown? */
static bool is_taken_back(Variables *v, int event)
{
    return trigger(v, event) && is_shown(v, event) && !is_triggered(v, event);
}

/* Makes the states, which are outputs, those after the events that the importer has triggered and the next step is to
 * execute: each trigger once, also the second one at an instant. The importer alone judges whether an event happens. */
static void show_triggered_events(Variables *v)
{
    fm_Memory *memory = &v->memory;
    for (int event = 0; event < FM_EVENT_COUNT; event++)
        if (is_taken_back(v, event)) hide_triggered_events(v);
    for (int pass = 0; pass < 2; pass++) {   /* shared events have a payload that is a left limit: they are first */
        for (int event = 0; event < FM_EVENT_COUNT; event++) {
            fm_EventMemory *of_event = &memory->event[event];
            if (!trigger(v, event) || fm_events[event].shared != (pass == 0)) continue;
            if (trigger(v, event)->count == of_event->shown) continue;
            Motion m = get_motion(v);
            of_event->shown = trigger(v, event)->count;
            fm_Payload payload = triggered_payload(v, event);
            if (!memory->shown) memcpy(memory->left, (double[]){m.x, m.v}, sizeof memory->left);
            memory->shown = true;
            memory->step = 0.0;
            of_event->times++;
            remember_reset(v, event, m, payload, fm_events[event].shared && !memory->inputs_set);
            set_motion(v, reset(v, event, 0.0, m, payload));
        }
    }
}

/* At the begin of a step */
static void execute_triggered_events(fm_Instance *self, Variables *v)
{
    show_triggered_events(v);
    for (int event = 0; event < FM_EVENT_COUNT; event++) {
        if (!trigger(v, event) || !is_triggered(v, event)) continue;
        fm_Clock *counter = trigger(v, event);
        const fm_EventMemory *memory = &v->memory.event[event];
        Motion left = {memory->left[0], memory->left[1]};
        for (int i = 0; i < memory->times; i++)
            fm_report(self, FM_OK, "Event '%s' at t = %.15g s: triggered; the velocity %.15g m/s becomes %.15g m/s.",
                      fm_events[event].name, v->time, left.v, reset(v, event, 0.0, left, memory->payload).v);
        counter->done = counter->count;
    }
    v->memory.shown = false;
}

/* Called by the interface ------------------------------------------------------------------------------------------ */

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    fm_Memory *memory = &v->memory;
    execute_triggered_events(self, v);
    Motion m = get_motion(v);
    for (int event = 0; event < FM_EVENT_COUNT; event++) {
        const double *now = memory->event[event].now;
        int32_t shown = trigger(v, event) ? trigger(v, event)->count : 0;
        memory->event[event] = (fm_EventMemory){.before = {now[0], now[1]}, .shown = shown};
    }
    bool stops = v->eventPolicy == EXECUTE ? fm_stopping(self) == FM_BY_RETURN
                                           : v->eventPolicy == ANNOUNCE && fm_stopping(self) != FM_NEVER;
    bool looks = v->eventPolicy == EXECUTE || stops;
    fm_Status status = solve(self, v, &m, h, looks, stops);
    memory->step = *h;
    set_motion(v, m);
    calculate_outputs(v, *h);
    return status;
}

/* Is `event` to be executed now, in Event Mode? Once for each trigger; without one, once where it has occurred. */
static bool is_due(Variables *v, int event, Motion m)
{
    const fm_EventMemory *memory = &v->memory.event[event];
    if (trigger(v, event) && trigger(v, event)->active) return true;
    if (memory->done) return false;
    if (v->eventPolicy == IGNORE) return false;
    if (v->eventPolicy == ANNOUNCE && trigger(v, event)) return false;
    if (fm_events[event].shared) return memory->located;
    return largest_indicator(v, event, ON, flow(v, 0.0, m, ON)) <= 0.0;
}

void model_locate(Variables *v)
{
    Motion m = get_motion(v);
    for (int event = 0; event < FM_EVENT_COUNT; event++) {
        fm_EventMemory *memory = &v->memory.event[event];
        bool occurs = largest_indicator(v, event, ON, flow(v, 0.0, m, ON)) <= 0.0;
        memory->located = occurs && !memory->done && v->eventPolicy != IGNORE;
        memory->located_payload = own_payload(v, event, 0.0);
        if (memory->located && announcement(v, event)) fm_count(announcement(v, event));
    }
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    fm_Memory *memory = &v->memory;
    Motion m = get_motion(v);
    for (int pass = 0; pass < 2; pass++) {   /* as in show_triggered_events */
        for (int event = 0; event < FM_EVENT_COUNT; event++) {
            if (fm_events[event].shared != (pass == 0) || !is_due(v, event, m)) continue;
            bool active = trigger(v, event) && trigger(v, event)->active;
            fm_Payload payload = active                         ? triggered_payload(v, event)
                                 : memory->event[event].located ? memory->event[event].located_payload
                                                                : own_payload(v, event, 0.0);
            if (fm_events[event].shared) remember_reset(v, event, m, payload, true);
            m = execute(self, v, event, 0.0, m, payload);
            memory->event[event].done = true;
            memory->step = 0.0;
            update->states_changed = true;
        }
    }
    set_motion(v, m);
    return FM_OK;
}

#endif
