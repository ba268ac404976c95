/* Plain steps: attempts that are nothing but fused instructions, each followed by a row of numbers. Many of them are one loop.
 * If they are nothing but steps of instances and calls of FMUs' functions, what the interpreter writes down at each call is
 * written down once for all; else they are noted: it is written down at each call, since others need it. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "calls.h"
#include "doubles.h"
#include "portable.h"

fm_plain fm_plain_calls(const fm_kernel *k, const fm_instruction *attempt, const fm_instruction *commit)
{
    const fm_instruction *remember = commit->op == FM_REMEMBER ? commit++ : 0;
    if (attempt->op != FM_FUSED || attempt[attempt->fused.count + 1].op != FM_END ||
        (attempt->fused.has_parallel && (k->threaded || k->overlaps)) || commit->op != FM_SAMPLE ||
        commit[1].op != FM_END || k->n_sampled || k->tuner)
        return (fm_plain){0};
    return (fm_plain){attempt->fused.calls, remember, !attempt->fused.is_plain || k->fits || remember};
}

/* What the calls before `end`, or all, write down for themselves, if they were made n times. */
static void catch_up(fm_kernel *k, const fm_fused *calls, const fm_fused *end, int n)
{
    for (const fm_fused *v = calls; n && v != end && v->kind != FM_FUSED_END; v++) {
        int i = v->instance;
        if (v->kind == FM_FUSED_STEP || v->kind == FM_FUSED_STEP_2 || v->kind == FM_FUSED_STEP_3)
            k->stepped[i] = k->steps[i] += n;
        else if (v->kind == FM_FUSED_GET_2 || v->kind == FM_FUSED_GET_3)
            k->read[i] = k->at[i];
    }
}

FM_INLINE int set(const fm_fused *v, int version)
{
    gather(v);
    return transfer_fused(v, version);
}

/* A step that is not measured. */
FM_INLINE int step_of_instance(const fm_instance *instance, double here, double there, fm_result *r)
{
    r->function = 0; /* an instance in Python has none */
    return instance->do_step(instance->self, here, there - here, &r->answer, &r->function);
}

FM_INLINE int step(fm_kernel *k, const fm_fused *v, int version, fm_result *r)
{
    double here = k->at[v->instance], there = end_of_call(k, v);
    int status = version ? step_of_call(v, version, 1, here, there, r)
                         : step_of_instance(&k->instances[v->instance], here, there, r);
    if (!fm_failed(status))
        k->at[v->instance] = there;
    return status;
}

/* Calls of one kind, as long as each simply succeeds. */
#define CALLS(of_kind, call)                   \
    for (; v->kind == (of_kind); v++) {        \
        k->present = v->of;                    \
        if (fm_failed(status = (call))) {      \
            r->status = status;                \
            return v;                          \
        }                                      \
    }

/* The calls of an attempt, but nothing that they write down. Returns the one that did not simply succeed, or the end. */
FM_INLINE const fm_fused *attempt_calls(fm_kernel *k, const fm_fused *v, fm_result *r)
{
    int status;
    while (v->kind != FM_FUSED_END) {
        CALLS(FM_FUSED_SET_2, set(v, 2))
        CALLS(FM_FUSED_STEP_2, step(k, v, 2, r))
        CALLS(FM_FUSED_GET_2, transfer_fused(v, 2))
        CALLS(FM_FUSED_SET_3, set(v, 3))
        CALLS(FM_FUSED_STEP_3, step(k, v, 3, r))
        CALLS(FM_FUSED_GET_3, transfer_fused(v, 3))
        CALLS(FM_FUSED_STEP, step(k, v, 0, r))
    }
    return v;
}

/* What an instruction does by itself, which has stopped or not. */
FM_INLINE int has_stopped(fm_result *r, int stopped)
{
    r->stopped = stopped;
    return stopped == FM_RAN ? FM_OK : FM_ERROR;
}

FM_INLINE int set_noted(fm_kernel *k, const fm_fused *v, int version, fm_result *r)
{
    gather(v);
    if (k->fits && v->of->set.group == k->continuous_group) {
        if (v->sources)
            k->degree[v->instance] = -1;
        if (k->degree[v->instance] >= 0 || k->follows[v->instance])
            return has_stopped(r, fm_as_written(k, v->of)); /* of polynomials */
    }
    return transfer_fused(v, version);
}

FM_INLINE int get_noted(fm_kernel *k, const fm_fused *v, int version)
{
    k->read[v->instance] = k->at[v->instance];
    return transfer_fused(v, version);
}

FM_INLINE int step_noted(fm_kernel *k, const fm_fused *v, int version, fm_result *r)
{
    int i = v->instance;
    double here = k->at[i], there = end_of_call(k, v);
    int status = version ? step_of_call(v, version, k->kept_from[i] >= here, here, there, r)
                         : step_of_instance(&k->instances[i], here, there, r);
    if (fm_failed(status))
        return status;
    k->at[i] = there;
    k->stepped[i] = ++k->steps[i];
    return status;
}

FM_INLINE int save(fm_kernel *k, const fm_fused *v, fm_result *r)
{
    int which, status = fm_save_in(v->fmu, v->values, &which);
    if (fm_failed(status))
        return has_stopped(r, fm_fail(k, v->of, status, v->fmu->names[which]));
    has_saved(k, v->of);
    return FM_OK;
}

FM_INLINE int restore(fm_kernel *k, const fm_fused *v, fm_result *r)
{
    if (!has_moved(k, v->of))
        return FM_OK;
    int status = fm_restore_from(v->fmu, v->values);
    if (fm_failed(status))
        return has_stopped(r, fm_fail(k, v->of, status, v->fmu->names[FM_SET_STATE]));
    has_restored(k, v->of);
    return FM_OK;
}

/* The same, with what they write down. */
FM_INLINE const fm_fused *noted_calls(fm_kernel *k, const fm_fused *v, fm_result *r)
{
    int status;
    for (;;) {
        switch (v->kind) {
        case FM_FUSED_END: return v;
        case FM_AS_WRITTEN: CALLS(FM_AS_WRITTEN, has_stopped(r, fm_as_written(k, v->of))) break;
        case FM_FUSED_SET_2: CALLS(FM_FUSED_SET_2, set_noted(k, v, 2, r)) break;
        case FM_FUSED_SET_3: CALLS(FM_FUSED_SET_3, set_noted(k, v, 3, r)) break;
        case FM_FUSED_STEP: CALLS(FM_FUSED_STEP, step_noted(k, v, 0, r)) break;
        case FM_FUSED_STEP_2: CALLS(FM_FUSED_STEP_2, step_noted(k, v, 2, r)) break;
        case FM_FUSED_STEP_3: CALLS(FM_FUSED_STEP_3, step_noted(k, v, 3, r)) break;
        case FM_FUSED_GET_2: CALLS(FM_FUSED_GET_2, get_noted(k, v, 2)) break;
        case FM_FUSED_GET_3: CALLS(FM_FUSED_GET_3, get_noted(k, v, 3)) break;
        case FM_FUSED_SAVE: CALLS(FM_FUSED_SAVE, save(k, v, r)) break;
        case FM_FUSED_RESTORE: CALLS(FM_FUSED_RESTORE, restore(k, v, r)) break;
        default: FM_UNREACHABLE;
        }
    }
}

/* A row that is later than the one before it. */
FM_INLINE void add_row(fm_kernel *k)
{
    int row = k->n_rows;
    k->times[row] = k->end;
    for (const fm_column *v = k->columns, *last = v + k->n_columns; v < last; v++)
        copy_bytes(v->rows + (size_t)row * v->stride, v->source, v->bytes);
    fm_publish(&k->n_rows, row + 1); /* another thread may read the counted rows */
}

/* Whether they are noted is constant after inlining. */
FM_INLINE int plain_steps(fm_kernel *k, const fm_plain *plain, int is_noted, const fm_times *times, int from,
                          const fm_fused **answered, fm_result *r)
{
    const fm_fused *calls = plain->calls, *v = calls;
    int room = k->row_capacity - k->n_rows - 1, done = 0, n = times->n - 2 - from;
    double next = time_of(times, from);
    n = room < n ? room : n;
    n = k->stands_for - k->attempts < n ? (int)(k->stands_for - k->attempts) : n;
    k->measuring = 0;
    *answered = 0;
    for (; done < n && !fm_load(&k->asked); done++) {
        double begin = next;
        next = time_of(times, from + done + 1);
        if (!(begin < next))
            break; /* its row may equal the one before */
        k->begin = begin;
        k->end = next;
        if (is_noted) {
            k->limit = next;
            if (k->has_saved)
                fm_forget_saved(k);
        }
        v = is_noted ? noted_calls(k, calls, r) : attempt_calls(k, calls, r);
        if (v->kind != FM_FUSED_END) {
            *answered = v;
            break;
        }
        if (is_noted && plain->remember)
            fm_remember(k, plain->remember);
        add_row(k);
        if (k->n_rows % FM_GROUP == 0)
            fm_look_at_groups(k); /* while they are in the cache */
    }
    k->limit = k->end;
    k->attempts += done;
    if (!is_noted) {
        catch_up(k, calls, 0, done);
        if (*answered)
            catch_up(k, calls, v, 1);
    }
    return done;
}

int fm_plain_steps(fm_kernel *k, const fm_plain *plain, const fm_times *times, int from, const fm_fused **answered,
                   fm_result *r)
{
    return plain->is_noted ? plain_steps(k, plain, 1, times, from, answered, r)
                           : plain_steps(k, plain, 0, times, from, answered, r);
}
