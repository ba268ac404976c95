/* The FMI calls of each step, which the tables of functions, fused instructions and plain steps share. Types: those of the
 * headers of FMI 2.0.5 and 3.0.2. */

#ifndef FM_CALLS_H
#define FM_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doubles.h"
#include "status.h"

typedef int (*fm_access2_t)(void *, const uint32_t *, size_t, void *);
typedef int (*fm_access3_t)(void *, const uint32_t *, size_t, void *, size_t);
typedef int (*fm_get_state_t)(void *, void **);
typedef int (*fm_set_state_t)(void *, void *);
typedef int (*fm_step2_t)(void *, double, double, int);
typedef int (*fm_step3_t)(void *, double, double, bool, bool *, bool *, bool *, double *);

/* The result of DoStep if it did not simply succeed: FM_DISCARD with an answer, or a failure. */
int fm_fmi2_answer(const fm_fmu *fmu, int status, double time, fm_answer *answer, const char **function);
int fm_fmi3_answer(int status, double time, fm_answer *answer, const char **function);

/* One step of an FMU; whether no state is restored that was saved before it, see fm_kernel.kept_from. */
FM_INLINE int fm_fmi2_step(const fm_fmu *fmu, void *address, void *component, int keeps, double time, double size,
                           fm_answer *answer, const char **function)
{
    int status = ((fm_step2_t)address)(component, time, size, keeps);
    return fm_failed(status) ? fm_fmi2_answer(fmu, status, time, answer, function) : status;
}

FM_INLINE int fm_fmi3_step(void *address, void *component, int keeps, double time, double size,
                           fm_answer *answer, const char **function)
{
    bool event = false, terminate = false, early = false;
    double reached = time + size;
    int status = ((fm_step3_t)address)(component, time, size, keeps, &event, &terminate, &early, &reached);
    if (!fm_failed(status) && !(terminate | early | event)) /* each by itself: a word of them waits for the FMU's stores */
        return status;
    *answer = (fm_answer){reached, terminate, 0, early, event};
    return fm_fmi3_answer(status, time, answer, function);
}

/* BinaryInstance.save in fmimaster/fmu/binary.py: the state that was there is freed before, not handed over. */
FM_INLINE int fm_save_in(const fm_fmu *fmu, void **state, int *which)
{
    void *release = *state ? fmu->functions[FM_FREE_STATE] : 0;
    *which = FM_FREE_STATE;
    if (release) {
        int status = ((fm_get_state_t)release)(fmu->component, state);
        *state = 0;
        if (fm_failed(status))
            return status;
    }
    void *address = fmu->functions[FM_GET_STATE];
    *which = FM_GET_STATE;
    if (!address)
        return FM_MISSING;
    int status = ((fm_get_state_t)address)(fmu->component, state);
    return fm_failed(status) || *state ? status : FM_NOT_VALID; /* Set with a null state crashes many FMUs */
}

FM_INLINE int fm_restore_from(const fm_fmu *fmu, void *const *state)
{
    void *address = fmu->functions[FM_SET_STATE];
    return address ? ((fm_set_state_t)address)(fmu->component, *state) : FM_MISSING;
}

/* What SAVE writes down. */
FM_INLINE void has_saved(fm_kernel *k, const fm_instruction *c)
{
    int i = c->instance, place = c->save.place;
    double here = k->at[i];
    k->has_saved = 1;
    k->kept_from[i] = smaller(k->kept_from[i], here);
    k->place_at[place] = here;
    k->place_stepped[place] = k->stepped[i];
}

/* Whether a RESTORE has anything to do. */
FM_INLINE int has_moved(const fm_kernel *k, const fm_instruction *c)
{
    return k->stepped[c->instance] != k->place_stepped[c->restore.place];
}

/* What RESTORE writes down. */
FM_INLINE void has_restored(fm_kernel *k, const fm_instruction *c)
{
    int i = c->instance, place = c->restore.place;
    k->at[i] = k->place_at[place];
    k->stepped[i] = k->place_stepped[place];
    k->restores[i]++;
    k->pending[i] = 0;
}

FM_INLINE double time_of(const fm_times *t, int i)
{
    if (t->array)
        return t->array[i];
    return i ? (double)(t->first + (i - 1) * t->step) / t->resolution : t->begin;
}

/* Where a step ends. */
FM_INLINE double end_of(const fm_kernel *k, const fm_instruction *c)
{
    return c->step.end == 1.0 ? k->end : k->begin + c->step.end * (k->end - k->begin);
}

FM_INLINE double end_of_call(const fm_kernel *k, const fm_fused *v)
{
    return v->at == 1.0 ? k->end : end_of(k, v->of);
}

/* The calls of FM_FUSED, one by one. The version is constant after inlining. */
FM_INLINE int transfer_fused(const fm_fused *v, int version)
{
    return version == 2 ? ((fm_access2_t)v->address)(v->self, v->references, v->n, v->values)
                        : ((fm_access3_t)v->address)(v->self, v->references, v->n, v->values, v->size);
}

FM_INLINE void gather(const fm_fused *v)
{
    double *values = v->values;
    const double *const *source = v->sources;
    if (source)
        for (uint32_t left = v->size; left; left--)
            *values++ = **source++;
}

/* No state is restored that was saved before the step, unless it keeps one. */
FM_INLINE int step_of_call(const fm_fused *v, int version, int keeps, double here, double there, fm_result *r)
{
    return version == 2 ? fm_fmi2_step(v->fmu, v->address, v->self, keeps, here, there - here, &r->answer, &r->function)
                        : fm_fmi3_step(v->address, v->self, keeps, here, there - here, &r->answer, &r->function);
}

#endif
