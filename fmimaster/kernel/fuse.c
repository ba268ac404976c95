/* How instructions are fused: the FMI calls that they make one after the other, each as one flat record. Only what is at hand
 * in every run of the program is taken from the records of an instruction; what is rare is left to the instruction. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

/* The calls so far, and where they go; null while they are only counted. */
struct fusing {
    const fm_kernel *k;
    fm_fused *calls;
    const double **sources;
    size_t n_calls, n_sources;
};

static void add(struct fusing *f, int kind, const fm_instruction *of, fm_fused call)
{
    size_t n = f->n_calls++;
    if (!f->calls)
        return;
    call.kind = kind;
    call.instance = of->instance;
    call.of = of;
    f->calls[n] = call;
}

/* Whether all segments are plain calls of an FMU's functions, all of one FMI version. */
static int version_of(const fm_transfers *t)
{
    int version = t->n ? t->segments[0].version : 0;
    for (int s = 1; s < t->n; s++)
        if (t->segments[s].version != version)
            return 0;
    return version;
}

static fm_fused call_of(const fm_segment *s)
{
    fm_fused call = {.address = s->address, .self = s->self};
    call.references = s->references;
    call.values = s->values;
    call.n = (uint32_t)s->n;
    call.size = (uint32_t)s->size;
    return call;
}

/* Whether a MOVE gathers exactly what a call sets, Float64 as they are. */
static int is_gathered(const fm_moves *move, const fm_segment *s)
{
    const double *values = s->values;
    if ((size_t)move->n != s->size)
        return 0;
    for (int m = 0; m < move->n; m++)
        if (!move->moves[m].plain || move->moves[m].target != (const void *)(values + m))
            return 0;
    return 1;
}

static void fuse_set(struct fusing *f, const fm_instruction *move, const fm_instruction *set)
{
    const fm_transfers *t = &set->set;
    int version = version_of(t), is_single = t->n == 1;
    int kind = version == 2 ? FM_FUSED_SET_2 : FM_FUSED_SET_3;
    if (move && version && is_single && is_gathered(&move->move, t->segments)) {
        fm_fused call = call_of(t->segments);
        if (f->sources) {
            call.sources = f->sources + f->n_sources;
            for (int m = 0; m < move->move.n; m++)
                f->sources[f->n_sources + (size_t)m] = move->move.moves[m].source;
        }
        f->n_sources += (size_t)move->move.n;
        add(f, kind, set, call);
        return;
    }
    if (move)
        add(f, FM_AS_WRITTEN, move, (fm_fused){0});
    if (!version || (!is_single && t->group == f->k->continuous_group)) /* polynomials are set by all calls together */
        add(f, FM_AS_WRITTEN, set, (fm_fused){0});
    else
        for (int s = 0; s < t->n; s++)
            add(f, kind, set, call_of(&t->segments[s]));
}

static void fuse_get(struct fusing *f, const fm_instruction *get)
{
    int version = version_of(&get->get);
    if (!version) {
        add(f, FM_AS_WRITTEN, get, (fm_fused){0});
        return;
    }
    for (int s = 0; s < get->get.n; s++)
        add(f, version == 2 ? FM_FUSED_GET_2 : FM_FUSED_GET_3, get, call_of(&get->get.segments[s]));
}

static void fuse_step(struct fusing *f, const fm_instruction *step)
{
    const fm_instance *instance = &f->k->instances[step->instance];
    fm_fused call = {.at = step->step.end};
    if (!instance->version) {
        add(f, FM_FUSED_STEP, step, call);
        return;
    }
    const fm_fmu *fmu = instance->self;
    call.address = fmu->do_step;
    call.self = fmu->component;
    call.fmu = fmu;
    add(f, instance->version == 2 ? FM_FUSED_STEP_2 : FM_FUSED_STEP_3, step, call);
}

static void fuse_state(struct fusing *f, int kind, const fm_instruction *c, int is_of_fmu, int place)
{
    const fm_fmu *fmu = f->k->instances[c->instance].self;
    if (is_of_fmu)
        add(f, kind, c, (fm_fused){.fmu = fmu, .values = &fmu->places[place]});
    else
        add(f, FM_AS_WRITTEN, c, (fm_fused){0});
}

static void fuse_all(struct fusing *f, fm_instruction *fused)
{
    size_t before = f->n_calls;
    fused->fused.is_plain = 1;
    for (fm_instruction *c = fused + 1, *end = c + fused->fused.count; c < end; c++) {
        const fm_instance *instance = &f->k->instances[c->instance];
        switch (c->op) {
        case FM_MOVE_OBJECTS:
        case FM_FIT:
        case FM_KEEP:
        case FM_CALL:
        case FM_MOVE: add(f, FM_AS_WRITTEN, c, (fm_fused){0}); break;
        case FM_MOVE_SET: fuse_set(f, c, c + 1); c++; break;
        case FM_SET: fuse_set(f, 0, c); break;
        case FM_GET: fuse_get(f, c); break;
        case FM_STEP: fuse_step(f, c); break;
        case FM_SAVE: fuse_state(f, FM_FUSED_SAVE, c, instance->save == fm_save_state, c->save.place); break;
        case FM_RESTORE: fuse_state(f, FM_FUSED_RESTORE, c, instance->restore == fm_restore_state, c->restore.place); break;
        case FM_PARALLEL: fused->fused.has_parallel = 1; break;
        }
    }
    add(f, FM_FUSED_END, fused, (fm_fused){0});
    fused->fused.calls = f->calls ? f->calls + before : 0;
    for (size_t i = before; f->calls && i < f->n_calls; i++) {
        int kind = f->calls[i].kind;
        fused->fused.is_plain &= kind != FM_AS_WRITTEN && kind != FM_FUSED_SAVE && kind != FM_FUSED_RESTORE;
    }
}

void fm_fuse(const fm_kernel *k, fm_instruction *code, fm_fused *calls, const double **sources, size_t *n_calls,
             size_t *n_sources)
{
    struct fusing f = {k, calls, sources, 0, 0};
    for (fm_instruction *c = code; c->op != FM_END; c++)
        if (c->op == FM_FUSED) /* also one that is part of another, for when that one cannot serve */
            fuse_all(&f, c);
    *n_calls = f.n_calls;
    *n_sources = f.n_sources;
}
