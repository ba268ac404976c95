/* What is repeated, and what happens at events: the cases of fmimaster/run/reference/steps.py. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"
#include "status.h"

#include <math.h>
#include <string.h>

/* One FMI call. */
static int transfer(fm_kernel *k, const fm_instruction *c, const fm_segment *segment)
{
    int status = segment->transfer(segment);
    return fm_failed(status) ? fm_fail(k, c, status, segment->function) : FM_RAN;
}

int fm_get_clocks(fm_kernel *k, const fm_instruction *c)
{
    int status = FM_RAN;
    memset(c->get_clocks.inputs->active, 0, c->get_clocks.inputs->n);
    for (const fm_segment *v = c->get_clocks.outputs.segments, *end = v + c->get_clocks.outputs.n; v < end && status == FM_RAN; v++)
        status = transfer(k, c, v);
    return status;
}

static int is_any_active(const fm_clocked_part *part)
{
    for (int i = 0; i < part->n_clocks; i++)
        if (*part->clocks[i])
            return 1;
    return 0;
}

int fm_get_clocked(fm_kernel *k, const fm_instruction *c)
{
    const fm_clocked *g = c->get_clocked.clocked;
    int status = FM_RAN;
    for (int s = 0; s < g->n_clocks && status == FM_RAN; s++) {
        const uint8_t *now = g->clocks[s].values;
        status = transfer(k, c, &g->clocks[s]);
        for (size_t i = 0; i < g->clocks[s].size && status == FM_RAN; i++)
            g->active[s][i] |= now[i];
    }
    for (const fm_clocked_part *v = g->parts, *end = v + g->n_parts; v < end && status == FM_RAN; v++)
        if (is_any_active(v))
            status = transfer(k, c, &v->segment);
    return status;
}

/* What has changed of the answer becomes part of all intervals. */
static void take_intervals(const fm_asked *v)
{
    for (size_t i = 0; i < v->segment.n; i++) {
        size_t place = v->places[i];
        if (v->answer.qualifiers[i] != FM_CHANGED)
            continue;
        v->all.counters[place] = v->answer.counters[i];
        v->all.resolutions[place] = v->answer.resolutions[i];
        v->all.seconds[place] = v->answer.seconds[i];
        v->all.qualifiers[place] = FM_CHANGED;
    }
}

int fm_get_intervals(fm_kernel *k, const fm_instruction *c)
{
    int is_later = k->initialized[c->instance];
    const fm_inquiry *inquiry = c->get_intervals.inquiry;
    const fm_asked *v = inquiry->calls[is_later], *end = v + inquiry->n[is_later];
    for (; v < end; v++) {
        if (v->clock && !*v->clock)
            continue;
        int status = transfer(k, c, &v->segment);
        if (status != FM_RAN)
            return status;
        take_intervals(v);
    }
    return FM_RAN;
}

int fm_set_triggers(fm_kernel *k, const fm_instruction *c)
{
    for (const fm_trigger *t = c->triggers.of, *end = t + c->triggers.n; t < end; t++) {
        if (!*t->active)
            continue;
        if (t->shown) /* it stays so in the iteration: a loop sets its triggers again and again */
            *t->shown = 1;
        if (t->counter)
            *t->counter = (int32_t)((uint32_t)*t->counter + 1u); /* it wraps around */
        for (const fm_segment *v = t->segments, *last = v + t->n_segments; v < last; v++) {
            int status = transfer(k, c, v);
            if (status != FM_RAN)
                return status;
        }
        *t->active = 0;
    }
    return FM_RAN;
}

int fm_enter(fm_kernel *k, const fm_instruction *c)
{
    const fm_instance *instance = &k->instances[c->instance];
    const char *function = 0;
    int state = c->mode.state, status = instance->enter(instance->self, state, k->experiment, &function);
    if (fm_failed(status))
        return fm_fail(k, c, status, function);
    if (state == FM_EVENT_MODE) {
        k->events[c->instance]++;
        k->pending[c->instance] = 0;
    }
    k->initialized[c->instance] = state == FM_STEP_MODE || state == FM_EVENT_MODE;
    for (int i = 0; i < c->mode.n; i++)
        memset(c->mode.clocks[i].active, 0, c->mode.clocks[i].n);
    return FM_RAN;
}

int fm_update_states(fm_kernel *k, const fm_instruction *c)
{
    const fm_instance *instance = &k->instances[c->instance];
    const char *function = 0;
    fm_update answer = {INFINITY, 0, 0};
    int status = instance->update(instance->self, &answer, &function);
    if (fm_failed(status))
        return fm_fail(k, c, status, function);
    k->wants_another |= answer.wants_update;
    k->terminate |= answer.terminate;
    k->next_events[c->instance] = answer.next_event_time;
    return answer.terminate ? FM_HAPPENED : FM_RAN; /* only Terminate may follow */
}

/* As in fmimaster/instants/grid.py. */
double fm_same(double time, double step)
{
    double size = fabs(time);
    return fmin(FM_ULPS * (nextafter(size, INFINITY) - size), step / 4);
}

/* Early returns of two passes that are no farther apart count as the same: SAME_LIMIT of reference/steps.py. */
static const double SAME_LIMIT = 1e-9;

int fm_begin_pass(fm_kernel *k, const fm_passes *p)
{
    k->limit = p->limit_at_first;
    k->wants_another = 0;
    memcpy(k->requests, p->requests_at_first, (size_t)k->n_instances);
    int status = fm_copy_outputs(k, p->outputs_before, k->outputs);
    return status == FM_OK ? FM_RAN : fm_fail(k, p->repeat, status, 0);
}

int fm_begin_passes(fm_kernel *k, fm_passes *p, const fm_instruction *c)
{
    p->repeat = c;
    p->count = 0;
    p->wanted_at_first = k->wants_another;
    p->limit_at_first = p->limit_before = k->limit;
    memcpy(p->requests_at_first, k->requests, (size_t)k->n_instances);
    return fm_begin_pass(k, p);
}

/* Whether the passes have converged, or were as many as are allowed. If not, what this one led to is noted for the next one. */
int fm_converged(fm_kernel *k, fm_passes *p, double tolerance)
{
    p->count++;
    k->change = p->count > 1 ? fm_largest_change(k, p->outputs_before) : INFINITY;
    double near = fmax(SAME_LIMIT, fm_same(k->end, k->end - k->begin));
    int is_settled = k->change <= tolerance && fabs(k->limit - p->limit_before) <= near;
    int is_last = p->repeat->repeat.bounded && p->count == p->repeat->repeat.most;
    /* an FMU that has ended the run gets no further step */
    if ((p->count >= p->repeat->repeat.least && is_settled && !k->wants_another) || is_last || k->terminate) {
        k->wants_another = p->wanted_at_first;
        return 1;
    }
    p->limit_before = k->limit;
    return 0;
}

int fm_call_hook(fm_kernel *k, const fm_instruction *c)
{
    int status = c->call.hook->call(c->call.hook->self, k);
    k->wants_another |= status == FM_AGAIN;
    return status == FM_ERROR ? fm_fail(k, c, status, "a hook") : FM_RAN;
}
