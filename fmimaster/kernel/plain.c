/* Plain steps: attempts that are nothing but steps of instances and calls of FMUs' functions, each followed by a row of
 * numbers. Many of them are one loop; what the interpreter writes down at each call is written down once for all. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "calls.h"
#include "doubles.h"
#include "portable.h"

const fm_fused *fm_plain_calls(const fm_kernel *k, const fm_instruction *attempt, const fm_instruction *commit)
{
    if (attempt->op != FM_FUSED || attempt[attempt->fused.count + 1].op != FM_END || !attempt->fused.is_plain ||
        (attempt->fused.has_parallel && (k->threaded || k->overlaps)) || commit->op != FM_SAMPLE ||
        commit[1].op != FM_END || k->n_sampled || k->fits || k->tuner)
        return 0;
    return attempt->fused.calls;
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

/* A row that is later than the one before it. */
FM_INLINE void add_row(fm_kernel *k)
{
    int row = k->n_rows;
    k->times[row] = k->end;
    for (const fm_column *v = k->columns, *last = v + k->n_columns; v < last; v++)
        copy_bytes(v->rows + (size_t)row * v->stride, v->source, v->bytes);
    fm_publish(&k->n_rows, row + 1); /* another thread may read the counted rows */
}

int fm_plain_steps(fm_kernel *k, const fm_fused *calls, const fm_times *times, int from, const fm_fused **answered,
                   fm_result *r)
{
    const fm_fused *v = calls;
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
        v = attempt_calls(k, calls, r);
        if (v->kind != FM_FUSED_END) {
            *answered = v;
            break;
        }
        add_row(k);
        if (k->n_rows % FM_GROUP == 0)
            fm_look_at_groups(k); /* while they are in the cache */
    }
    k->limit = k->end;
    k->attempts += done;
    catch_up(k, calls, 0, done);
    if (*answered)
        catch_up(k, calls, v, 1);
    return done;
}
