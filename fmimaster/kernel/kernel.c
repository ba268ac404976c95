/* The interpreter of programs: the loop over instructions, and what small FMUs need at each step. Each case does what the
 * docstring of its instruction defines, as the function of that name in fmimaster/run/reference does. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"
#include "calls.h"
#include "doubles.h"
#include "portable.h"

#include <math.h>
#include <string.h>

/* What small FMUs need at each step is part of the loop over instructions; the rest is kept out of it, since it would take
 * its registers. */
#define HOT FM_INLINE
#define RARE FM_NOT_INLINE

HOT void move(fm_kernel *k, const fm_instruction *c)
{
    for (const fm_move *v = c->move.moves, *end = v + c->move.n; v < end; v++) {
        if (v->plain)
            *(double *)v->target = *(const double *)v->source;
        else
            fm_convert(v);
    }
    if (k->fits && c->move.group == k->continuous_group)
        k->degree[c->instance] = -1;
}

RARE int set_all_polynomials(fm_kernel *k, const fm_instruction *c)
{
    for (const fm_segment *v = c->set.segments, *end = v + c->set.n; v < end; v++) {
        const char *function = 0;
        int status = fm_set_polynomials(k, c->instance, v, &function);
        if (fm_failed(status))
            return fm_fail(k, c, status, function);
    }
    return FM_RAN;
}

/* All FMI calls of a SET or GET. */
HOT int transfer(fm_kernel *k, const fm_instruction *c, const fm_transfers *all)
{
    for (const fm_segment *v = all->segments, *end = v + all->n; v < end; v++) {
        int status = v->transfer(v);
        if (fm_failed(status))
            return fm_fail(k, c, status, v->function);
    }
    return FM_RAN;
}

/* An instance that is at the limit, or beyond it, does no step: inputs that are set there could not be followed by DoStep, and
 * FMI forbids to read outputs in between. Programs without steps have no limit before their end. */
HOT int takes_no_step(const fm_kernel *k, int instance)
{
    return FM_UNLIKELY(k->limit < k->end) && k->at[instance] >= k->limit;
}

HOT int set(fm_kernel *k, const fm_instruction *c)
{
    int i = c->instance;
    if (takes_no_step(k, i))
        return FM_RAN;
    if (k->fits && c->set.group == k->continuous_group && (k->degree[i] >= 0 || k->follows[i]))
        return set_all_polynomials(k, c);
    return transfer(k, c, &c->set);
}

HOT int move_set(fm_kernel *k, const fm_instruction *c)
{
    move(k, c);
    return set(k, c + 1);
}

HOT int get(fm_kernel *k, const fm_instruction *c)
{
    int status = transfer(k, c, &c->get);
    if (status == FM_RAN)
        k->read[c->instance] = k->at[c->instance];
    return status;
}

static double now(void)
{
    return 1e-9 * (double)fm_nanoseconds();
}

/* The call of DoStep, which leaves its outcome in a result: others may be done at the same time. */
HOT void do_step(fm_kernel *k, const fm_instruction *c, double there, fm_result *r)
{
    const fm_instance *instance = &k->instances[c->instance];
    double here = k->at[c->instance], since = k->measuring ? now() : 0.0;
    r->function = 0; /* an instance in Python has none */
    r->status = instance->do_step(instance->self, here, there - here, &r->answer, &r->function);
    if (k->measuring)
        k->seconds[c->instance] += k->measuring * (now() - since);
}

/* Records the result of a step. */
HOT void has_stepped(fm_kernel *k, const fm_instruction *c, double there, int status)
{
    k->stepped[c->instance] = ++k->steps[c->instance];
    if (!fm_failed(status))
        k->at[c->instance] = there;
}

HOT void step_to(fm_kernel *k, const fm_instruction *c, double there, fm_result *r)
{
    do_step(k, c, there, r);
    has_stepped(k, c, there, r->status);
}

/* By how much, relative to the step, the time that an FMU names may be outside of it: OUTSIDE of reference/steps.py. */
static const double OUTSIDE = 1e-6;

/* The time that an FMU has reached in a step, by the one that it names; NAN if that is not in the step: time_in_step of
 * reference/steps.py. */
static double time_in_step(double named, double here, double there)
{
    double step = there - here, near = fm_same(there, step), outside = fmax(OUTSIDE * step, near);
    if (!(here - outside <= named && named <= there + outside)) /* NAN, too */
        return NAN;
    if (named >= there - near)
        return there;
    return named <= here + near ? here : named;
}

/* An instance must enter Event Mode before it steps on: its time is the limit, also between parts of a step. */
RARE void event_is_pending(fm_kernel *k, int i)
{
    if (k->at[i] < k->limit) {
        k->limit = k->at[i];
        memset(k->requests, 0, (size_t)k->n_instances); /* those are for events at later times */
    }
    k->requests[i] = k->pending[i] = 1;
}

/* A step that did not simply succeed: the run ends, an event, an early return, or a step that cannot be done. */
RARE int step_answered(fm_kernel *k, const fm_instruction *c, double there, const fm_result *r)
{
    const fm_answer *answer = &r->answer;
    int i = c->instance;
    double here = k->at[i], named = answer->last_successful_time, reached = time_in_step(named, here, there);
    if (r->status != FM_DISCARD) {
        k->failure_size = there - here;
        return fm_fail(k, c, r->status, r->function);
    }
    k->terminate |= answer->terminate;
    k->at[i] = there;
    if (answer->terminate) {
        k->at[i] = named;
        if (isnan(reached))
            return fm_stop_at(k, c, FM_ENDED);
        k->at[i] = reached;
        if (c->step.end != 1.0)
            return FM_HAPPENED; /* FMI: only Terminate may follow, no other part of the step */
    } else if (answer->discarded) {
        if (!c->step.may_return_early || c->step.has_event_mode || isnan(reached)) {
            k->at[i] = named;
            return fm_stop_at(k, c, FM_DISCARDED);
        }
        /* it has not done the step, not even if the event is at its very end: ALIGN brings it back */
        k->limit = fmin(reached, there - fm_same(there, there - here));
        memset(k->requests, 0, (size_t)k->n_instances); /* those are for events at later times */
        k->requests[i] = 1;
    } else if (answer->early && reached != there) {
        if (!c->step.may_return_early || isnan(reached)) {
            k->at[i] = named;
            return fm_stop_at(k, c, FM_EARLY);
        }
        k->limit = k->at[i] = reached;
        memset(k->requests, 0, (size_t)k->n_instances);
    }
    if (answer->event && c->step.has_event_mode)
        event_is_pending(k, i);
    return FM_RAN;
}

HOT int step(fm_kernel *k, const fm_instruction *c)
{
    fm_result r;
    double there = end_of(k, c);
    step_to(k, c, there, &r);
    return fm_failed(r.status) ? step_answered(k, c, there, &r) : FM_RAN;
}

RARE int step_limited(fm_kernel *k, const fm_instruction *c)
{
    fm_result r;
    double there = fmin(end_of(k, c), k->limit);
    if (k->at[c->instance] >= there)
        return FM_RAN;
    step_to(k, c, there, &r);
    return fm_failed(r.status) ? step_answered(k, c, there, &r) : FM_RAN;
}

/* The segment of the call of a SET or GET, for its name. */
RARE int fused_failed(fm_kernel *k, const fm_fused *v, const fm_transfers *of, int status)
{
    const fm_segment *s = of->segments;
    while (s->values != v->values)
        s++;
    return fm_fail(k, v->of, status, s->function);
}

HOT int set_fused(fm_kernel *k, const fm_fused *v, int version)
{
    gather(v);
    if (FM_UNLIKELY(k->fits) && v->of->set.group == k->continuous_group) {
        if (v->sources)
            k->degree[v->instance] = -1;
        if (k->degree[v->instance] >= 0 || k->follows[v->instance])
            return set(k, v->of); /* of polynomials */
    }
    if (takes_no_step(k, v->instance))
        return FM_RAN;
    int status = transfer_fused(v, version);
    return fm_failed(status) ? fused_failed(k, v, &v->of->set, status) : FM_RAN;
}

HOT int get_fused(fm_kernel *k, const fm_fused *v, int version)
{
    int status = transfer_fused(v, version);
    if (fm_failed(status))
        return fused_failed(k, v, &v->of->get, status);
    k->read[v->instance] = k->at[v->instance];
    return FM_RAN;
}

HOT int step_fused(fm_kernel *k, const fm_fused *v, int version)
{
    if (FM_UNLIKELY(k->measuring))
        return step(k, v->of);
    fm_result r;
    double here = k->at[v->instance], there = end_of_call(k, v);
    r.status = step_of_call(v, version, !k->has_saved || k->kept_from[v->instance] >= here, here, there, &r);
    has_stepped(k, v->of, there, r.status);
    return fm_failed(r.status) ? step_answered(k, v->of, there, &r) : FM_RAN;
}

RARE int save(fm_kernel *k, const fm_instruction *c)
{
    const fm_instance *instance = &k->instances[c->instance];
    const char *function = 0;
    int status = instance->save(instance->self, c->save.place, &function);
    if (fm_failed(status))
        return fm_fail(k, c, status, function);
    has_saved(k, c);
    return FM_RAN;
}

RARE int restore(fm_kernel *k, const fm_instruction *c)
{
    const fm_instance *instance = &k->instances[c->instance];
    const char *function = 0;
    if (!has_moved(k, c))
        return FM_RAN;
    int status = instance->restore(instance->self, c->restore.place, &function);
    if (fm_failed(status))
        return fm_fail(k, c, status, function);
    has_restored(k, c);
    return FM_RAN;
}

/* An instruction whose calls are not those of FMUs as they are, or that only moves. */
int fm_as_written(fm_kernel *k, const fm_instruction *c)
{
    switch (c->op) {
    case FM_MOVE_SET: /* its SET is a separate call */
    case FM_MOVE: move(k, c); return FM_RAN;
    case FM_MOVE_OBJECTS: return fm_move_objects(k, c, c->move.moves, c->move.n);
    case FM_FIT: fm_fit_inputs(k, c); return FM_RAN;
    case FM_KEEP: return fm_keep(k, c);
    case FM_CALL: return fm_call_hook(k, c);
    case FM_SAVE: return save(k, c);
    case FM_RESTORE: return restore(k, c);
    case FM_SET: return set(k, c);
    default: return get(k, c);
    }
}

/* A call, and those of the same kind that come next: to stay here costs less than to jump to each. */
#define CALLS(of_kind, call)                   \
    case of_kind:                              \
        do {                                   \
            k->present = v->of;                \
            if ((status = (call)) != FM_RAN)   \
                return status;                 \
        } while ((++v)->kind == (of_kind));    \
        break

/* What the instructions after an FM_FUSED do, call by call in their order. */
HOT int fused(fm_kernel *k, const fm_fused *v)
{
    for (int status;;) {
        switch (v->kind) {
        case FM_FUSED_END: return FM_RAN;
        CALLS(FM_AS_WRITTEN, fm_as_written(k, v->of));
        CALLS(FM_FUSED_SET_2, set_fused(k, v, 2));
        CALLS(FM_FUSED_SET_3, set_fused(k, v, 3));
        CALLS(FM_FUSED_STEP, step(k, v->of));
        CALLS(FM_FUSED_STEP_2, step_fused(k, v, 2));
        CALLS(FM_FUSED_STEP_3, step_fused(k, v, 3));
        CALLS(FM_FUSED_GET_2, get_fused(k, v, 2));
        CALLS(FM_FUSED_GET_3, get_fused(k, v, 3));
        CALLS(FM_FUSED_SAVE, save(k, v->of));
        CALLS(FM_FUSED_RESTORE, restore(k, v->of));
        default: FM_UNREACHABLE;
        }
    }
}

/* Whether instances that can do steps by themselves start them at the same time. Those that are measured are done in turn:
 * else each would last as long as all. */
HOT int are_started_together(const fm_kernel *k)
{
    return k->overlaps && !k->measuring;
}

/* Whether several steps after a PARALLEL are done at the same time. */
HOT int steps_together(const fm_kernel *k)
{
    return k->threaded || are_started_together(k);
}

struct steps {
    fm_kernel *k;
    const fm_instruction *first;
    double limit;
    int failed; /* whether any did not simply succeed */
};

/* The status of a step that was not begun, since another one was Fatal. */
enum { NOT_BEGUN = FM_AGAIN };

/* The end of one of the steps. */
static double end_of_one(const struct steps *s, int i)
{
    return fmin(end_of(s->k, s->first + i), s->limit);
}

/* Tasks write nothing that others read, unless a step fails: a line of memory that two cores write goes to and fro. */
static void one_of_steps(void *context, int i)
{
    struct steps *s = context;
    fm_kernel *k = s->k;
    fm_result r;
    double there = end_of_one(s, i);
    if (k->at[s->first[i].instance] >= there)
        return;
    if (fm_load(&k->fatal) && !k->instances[s->first[i].instance].begin_step) {
        k->results[i].status = NOT_BEGUN;
        return;
    }
    do_step(k, s->first + i, there, &r);
    if (!fm_failed(r.status))
        return;
    k->results[i] = r;
    fm_store(&s->failed, 1);
    if (r.status == FM_FATAL)
        fm_store(&k->fatal, 1);
}

/* Start the steps of all instances that can do them by themselves. The last one is waited for here: by then most others are
 * done, so that this process is woken once. */
static void begin_steps(struct steps *s, int n)
{
    fm_kernel *k = s->k;
    const fm_instance *last = 0;
    for (int i = 0; i < n; i++) {
        const fm_instance *instance = &k->instances[s->first[i].instance];
        double here = k->at[s->first[i].instance], there = end_of_one(s, i);
        if (!instance->begin_step || here >= there)
            continue;
        instance->begin_step(instance->self, here, there - here);
        last = instance;
    }
    if (last && !k->threaded)
        last->await_step(last->self);
}

/* The STEPs after a PARALLEL. A Fatal ends the run; else the first failure in the order of the program counts, as if they had
 * been done in turn. */
RARE int parallel(fm_kernel *k, const fm_instruction *c)
{
    struct steps s = {k, c + 1, k->limit, 0};
    for (int i = 0; i < c->parallel.count; i++)
        k->results[i].status = FM_OK;
    if (are_started_together(k))
        begin_steps(&s, c->parallel.count);
    if (k->threaded)
        fm_pool_run(k->pool, one_of_steps, &s, c->parallel.count);
    else
        for (int i = 0; i < c->parallel.count; i++)
            one_of_steps(&s, i);
    for (int i = 0; i < c->parallel.count; i++) {
        double there = end_of_one(&s, i);
        if (k->at[s.first[i].instance] < there && k->results[i].status != NOT_BEGUN)
            has_stepped(k, s.first + i, there, k->results[i].status);
    }
    for (int i = 0; k->fatal && i < c->parallel.count; i++)
        if (k->results[i].status == FM_FATAL)
            return step_answered(k, s.first + i, end_of_one(&s, i), &k->results[i]);
    for (int i = 0; s.failed && i < c->parallel.count; i++) {
        const fm_result *r = &k->results[i];
        int status = fm_failed(r->status) ? step_answered(k, s.first + i, end_of_one(&s, i), r) : FM_RAN;
        if (status != FM_RAN)
            return status;
    }
    return FM_RAN;
}

/* So often an ALIGN brings an instance back: MOST_ALIGNMENTS of reference/steps.py. */
enum { MOST_ALIGNMENTS = 20 };

/* No state that an earlier execution has saved is restored in this one after a step. */
void fm_forget_saved(fm_kernel *k)
{
    for (int i = 0; i < k->n_instances; i++)
        k->kept_from[i] = INFINITY;
    k->has_saved = 0;
}

HOT int sample(fm_kernel *k, const fm_instruction *c)
{
    int status = k->n_sampled ? fm_sample_objects(k) : FM_OK;
    if (status != FM_OK)
        return fm_fail(k, c, status, 0);
    int row = k->n_rows, same = row > 0 && k->times[row - 1] == k->end;
    k->times[row] = k->end;
    for (const fm_column *v = k->columns, *last = v + k->n_columns; v < last; v++) {
        char *target = v->rows + (size_t)row * v->stride;
        copy_bytes(target, v->source, v->bytes);
        if (same && v->is_compared)
            same = !memcmp(target, target - v->stride, v->bytes);
    }
    if (!same || (k->n_clocks && memchr(k->clocks + (size_t)row * k->n_clocks, 1, k->n_clocks)))
        fm_publish(&k->n_rows, row + 1); /* another thread may read the counted rows */
    return FM_RAN;
}

/* The instructions of a program, down to its end or to what stops it. */
HOT int carry_out(fm_kernel *k, const fm_instruction *c)
{
    int status = FM_RAN, alignments = 0;
    for (;; c++) {
        k->present = c;
        switch (c->op) {
        case FM_END: return FM_RAN;
        case FM_MOVE: move(k, c); break;
        case FM_FIT: fm_fit_inputs(k, c); break;
        case FM_SET: status = set(k, c); break;
        /* The same is mostly done for one instance after the other: to stay here costs less than to jump to each. */
        case FM_GET:
            while ((status = get(k, c)) == FM_RAN && c[1].op == FM_GET)
                k->present = ++c;
            break;
        case FM_STEP:
            while ((status = step(k, c)) == FM_RAN && c[1].op == FM_STEP)
                k->present = ++c;
            break;
        case FM_SAVE: status = save(k, c); break;
        case FM_RESTORE: status = restore(k, c); break;
        case FM_KEEP: status = fm_keep(k, c); break;
        case FM_RECALL: status = fm_recall(k, c); break;
        case FM_REVERT: status = fm_revert(k, c); break;
        case FM_REMEMBER: status = fm_remember(k, c); break;
        case FM_FORGET: fm_forget(k); break;
        case FM_REPEAT: status = fm_begin_passes(k, &k->passes[c->repeat.depth], c); break;
        case FM_UNTIL:
            if (fm_converged(k, &k->passes[c->until.depth], c->until.tolerance))
                break;
            if (k->passes[c->until.depth].count >= k->passes[c->until.depth].repeat->repeat.most) {
                k->stop_instance = -1;
                k->stop_instruction = c->line;
                k->stop_time = k->begin;
                return FM_NOT_CONVERGED;
            }
            status = fm_begin_pass(k, &k->passes[c->until.depth]);
            c = k->passes[c->until.depth].repeat;
            break;
        case FM_MODE: status = fm_enter(k, c); break;
        case FM_SAMPLE: status = sample(k, c); break;
        case FM_PARALLEL:
            if (steps_together(k) && c->parallel.count <= FM_MOST_TASKS) {
                status = parallel(k, c);
                c += c->parallel.count;
            }
            break;
        case FM_ALIGN:
            alignments = 1;
            if (k->at[c->instance] <= k->limit)
                c += c->align.count;
            break;
        case FM_ALIGNED:
            if (k->at[c->instance] > k->limit) {
                if (alignments == MOST_ALIGNMENTS) {
                    fm_stop_at(k, c, FM_EARLY);
                    k->stop_time = k->limit;
                    return FM_EARLY;
                }
                alignments++;
                c -= c->align.count; /* to what comes after the ALIGN */
            }
            break;
        case FM_FUSED:
            if (!(c->fused.has_parallel && steps_together(k))) {
                status = fused(k, c->fused.calls);
                c += c->fused.count;
            }
            break;
        case FM_UPDATE: status = fm_update_states(k, c); break;
        case FM_TICK: k->active[c->tick.trigger] = 1; break;
        case FM_CORRECT: status = fm_correct(k, c); break;
        case FM_DERIVE: status = fm_derive(k, c); break;
        case FM_CALL: status = fm_call_hook(k, c); break;
        case FM_MOVE_OBJECTS: status = fm_move_objects(k, c, c->move.moves, c->move.n); break;
        case FM_MOVE_TRIGGERS: status = fm_move_triggers(k, c); break;
        case FM_SET_TRIGGERS: status = fm_set_triggers(k, c); break;
        case FM_GET_CLOCKS: status = fm_get_clocks(k, c); break;
        case FM_GET_CLOCKED: status = fm_get_clocked(k, c); break;
        case FM_GET_INTERVALS: status = fm_get_intervals(k, c); break;
        case FM_STEP_LIMITED: status = step_limited(k, c); break;
        case FM_MOVE_SET:
            while ((status = move_set(k, c)) == FM_RAN && c[2].op == FM_MOVE_SET)
                k->present = c += 2;
            c++;
            break;
        default: FM_UNREACHABLE;
        }
        if (status != FM_RAN)
            return status;
    }
}

/* No instance has returned early or requests anything, and no state that an earlier execution has saved is restored. */
HOT void begin_execution(fm_kernel *k, double begin, double end)
{
    k->begin = begin;
    k->end = k->limit = end;
    k->terminate = k->wants_another = 0;
    if (k->has_events)
        memset(k->requests, 0, (size_t)k->n_instances);
    if (k->has_saved)
        fm_forget_saved(k);
}

/* The outcome of an execution in which something may have happened. */
RARE int outcome(fm_kernel *k)
{
    if (k->limit != k->end && !k->terminate) {
        for (int i = 0; i < k->n_instances; i++) {
            if (k->at[i] > k->limit && !k->stays_ahead[i]) { /* it is at an early return, and another instance returned even earlier */
                k->stop_instance = i;
                k->stop_instruction = -1; /* found at the end: no instruction brought it back */
                k->stop_time = k->limit;
                return FM_EARLY;
            }
        }
    }
    return k->terminate || k->limit != k->end || memchr(k->requests, 1, (size_t)k->n_instances) ? FM_HAPPENED : FM_RAN;
}

HOT int ended(fm_kernel *k, int status)
{
    return status == FM_RAN && (k->has_events || k->terminate || k->limit != k->end) ? outcome(k) : status;
}

HOT int execute(fm_kernel *k, const fm_instruction *code, double begin, double end)
{
    begin_execution(k, begin, end);
    return ended(k, carry_out(k, code));
}

/* Commit an attempt; only a hook can fail there. Returns an fm_stop. */
HOT int accept(fm_kernel *k, const fm_instruction *commit)
{
    k->begin = k->end;
    return carry_out(k, commit);
}

/* Between two attempts that are measured is at most one of so many parts of those before them. */
enum { PARTS = 64 };

/* At first each attempt is measured, then ever fewer. Their distances are odd, as FM_MEASURE_EVERY is prime. */
HOT void choose_measuring(fm_kernel *k)
{
    k->measuring = 0;
    if (k->attempts++ == k->stands_for) {
        int64_t n = k->stands_for / PARTS | 1;
        k->measuring = n < FM_MEASURE_EVERY ? (int)n : FM_MEASURE_EVERY;
        k->stands_for += k->measuring;
    }
}

/* A step, or all of a pattern, is done. */
HOT void count_step(fm_kernel *k)
{
    if (k->tuner && !--k->tuner->left)
        fm_tuner_look(k);
}

int fm_run(fm_kernel *k, const fm_instruction *code, double begin, double end)
{
    int is_tuned = k->tuner && begin < end;
    k->is_running = 1;
    if (begin < end)
        choose_measuring(k);
    if (is_tuned)
        fm_tuner_start(k->tuner);
    int stopped = execute(k, code, begin, end);
    k->measuring = 0;
    if (is_tuned) {
        count_step(k);
        fm_tuner_stop(k->tuner);
    }
    k->is_running = 0;
    return stopped;
}

int fm_step(fm_kernel *k, const fm_instruction *attempt, const fm_instruction *commit, double begin, double end)
{
    k->is_running = 1;
    if (k->tuner)
        fm_tuner_start(k->tuner);
    choose_measuring(k);
    int stopped = execute(k, attempt, begin, end);
    k->measuring = 0;
    if (!stopped)
        stopped = accept(k, commit);
    count_step(k);
    if (k->tuner)
        fm_tuner_stop(k->tuner);
    k->is_running = 0;
    return stopped;
}

/* Whether none of the watches ends the stretch after the attempt of the first of two intervals. */
static int all_quiet(fm_kernel *k, const fm_watch *watches, int n, const double *times)
{
    for (int i = 0; i < n; i++)
        if (!watches[i].is_quiet(watches[i].self, k, times[0], times[1], times[2]))
            return 0;
    return 1;
}

/* Whether an FMU has answered at an event what Python must look at: its next event is near, or the interval of a clock has
 * changed. */
static int is_answered(const fm_kernel *k, const fm_ahead *ahead)
{
    for (int i = 0; i < k->n_instances; i++)
        if (!(k->next_events[i] >= ahead->last)) /* NaN, too */
            return 1;
    for (int i = 0; i < ahead->n; i++)
        for (size_t clock = 0; clock < ahead->n_intervals[i]; clock++)
            if (ahead->intervals[i].qualifiers[clock] == FM_CHANGED)
                return 1;
    return 0;
}

/* The event at the end of the first of two intervals; whether Python must look at it. */
static int let_happen(fm_kernel *k, fm_ahead *ahead, int number, const fm_watch *watches, int n_watches, const double *times,
                      int *stopped)
{
    int rows = k->n_rows;
    *stopped = execute(k, ahead->programs[number], k->end, k->end);
    ahead->rows = k->n_rows - rows;
    for (int i = 0; i < n_watches && !*stopped; i++)
        if (watches[i].renew && watches[i].renew(watches[i].self, k) != FM_OK)
            *stopped = fm_fail(k, ahead->programs[number], FM_ERROR, 0);
    ahead->happened = *stopped || is_answered(k, ahead);
    for (int i = 0; i < n_watches && !ahead->happened; i++)
        if (watches[i].is_quiet_after)
            ahead->happened = !watches[i].is_quiet_after(watches[i].self, k, times[1], times[2]);
    return ahead->happened;
}

/* What a call does that ends plain steps, and the other calls after it. */
RARE int go_on(fm_kernel *k, const fm_fused *v, const fm_result *r)
{
    if (r->stopped != FM_RAN)
        return r->stopped;
    switch (v->kind) {
    case FM_FUSED_SET_2: case FM_FUSED_SET_3: return fused_failed(k, v, &v->of->set, r->status);
    case FM_FUSED_GET_2: case FM_FUSED_GET_3: return fused_failed(k, v, &v->of->get, r->status);
    }
    double there = end_of_call(k, v);
    has_stepped(k, v->of, there, r->status);
    int status = step_answered(k, v->of, there, r);
    return ended(k, status == FM_RAN ? fused(k, v + 1) : status);
}

int fm_repeat(fm_kernel *k, const fm_instruction *const *attempts, int n_attempts, const fm_instruction *commit,
              const fm_times *times, const fm_watch *watches, int n_watches, fm_ahead *ahead, int *done)
{
    fm_plain plain = {0};
    const fm_fused *answered = 0;
    fm_result result = {0};
    int stopped, is_after = 0;
    k->is_running = 1;
    if (n_attempts == 1 && !n_watches && !ahead)
        plain = fm_plain_calls(k, *attempts, commit);
    if (k->tuner)
        fm_tuner_start(k->tuner);
    for (int i = 0, next = 0;; i++) {
        if (plain.calls) {
            begin_execution(k, time_of(times, i), time_of(times, i + 1));
            i += fm_plain_steps(k, &plain, times, i, &answered, &result);
        }
        const double here[3] = {time_of(times, i), time_of(times, i + 1), i + 2 < times->n ? time_of(times, i + 2) : NAN};
        choose_measuring(k);
        stopped = answered ? go_on(k, answered, &result)
                           : execute(k, is_after && ahead->after ? ahead->after : attempts[next], here[0], here[1]);
        next = next + 1 == n_attempts ? 0 : next + 1;
        if (next == 0)
            count_step(k);
        *done = i;
        if (stopped || i + 2 == times->n || k->row_capacity - k->n_rows <= 1 || fm_load(&k->asked) ||
            !all_quiet(k, watches, n_watches, here) || (stopped = accept(k, commit)))
            break;
        is_after = ahead && ahead->numbers[i] >= 0;
        if (is_after && let_happen(k, ahead, ahead->numbers[i], watches, n_watches, here, &stopped)) {
            *done = i + 1;
            break;
        }
    }
    k->measuring = k->is_running = 0;
    if (k->tuner)
        fm_tuner_stop(k->tuner);
    return stopped;
}

/* The end of the next step by a rule, or earlier by a watch, and the code of its cause; 0 if Python must find it. */
static int finds_end(const fm_kernel *k, const fm_rule *rule, double last, const fm_watch *watches, int n_watches, double begin,
                     double *end, int64_t *code)
{
    double size = rule->size(rule->self, code);
    *end = begin + size;
    *code += rule->first_code;
    if (last <= *end + FM_SLIVER * (*end - begin)) /* what comes so little after a step ends it */
        return 0;
    for (int i = 0; i < n_watches; i++)
        if (watches[i].clips && !watches[i].clips(watches[i].self, k, begin, end, code))
            return 0;
    return 1;
}

int fm_control(fm_kernel *k, const fm_instruction *attempt, const fm_instruction *commit, const fm_rule *rule, double last, int n,
               double *times, int64_t *codes, const fm_watch *watches, int n_watches, int *done, int *attempted)
{
    int stopped = FM_RAN;
    *attempted = 0;
    k->is_running = 1;
    if (k->tuner)
        fm_tuner_start(k->tuner);
    for (int i = 0;; i++) {
        double begin = times[i], end = times[i + 1];
        *done = i;
        if (!(end < INFINITY)) {
            int64_t code;
            if (!finds_end(k, rule, last, watches, n_watches, begin, &end, &code))
                break;
            codes[i] = code;
            times[i + 1] = end;
        }
        choose_measuring(k);
        stopped = execute(k, attempt, begin, end);
        count_step(k);
        if (stopped || i + 1 == n || k->row_capacity - k->n_rows <= 1 || fm_load(&k->asked) ||
            !all_quiet(k, watches, n_watches, times + i) || !rule->accepts(rule->self, begin, end - begin) ||
            (stopped = accept(k, commit))) {
            *attempted = 1;
            break;
        }
    }
    k->measuring = k->is_running = 0;
    if (k->tuner)
        fm_tuner_stop(k->tuner);
    return stopped;
}
