/* The value store: how values are converted and moved, and copies of the outputs. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "doubles.h"

#include <math.h>
#include <string.h>

const size_t fm_size[FM_TYPES] = {8, 4, 1, 1, 2, 2, 4, 4, 8, 8, 1, 8, 8, 1};

double fm_as_double(int type, const void *p)
{
    switch (type) {
    case FM_FLOAT64: return *(const double *)p;
    case FM_FLOAT32: return *(const float *)p;
    case FM_INT8: return *(const int8_t *)p;
    case FM_UINT8: case FM_BOOLEAN: return *(const uint8_t *)p;
    case FM_INT16: return *(const int16_t *)p;
    case FM_UINT16: return *(const uint16_t *)p;
    case FM_INT32: return *(const int32_t *)p;
    case FM_UINT32: return *(const uint32_t *)p;
    case FM_INT64: return (double)*(const int64_t *)p;
    default: return (double)*(const uint64_t *)p;
    }
}

static int64_t as_integer(int type, const void *p)
{
    switch (type) {
    case FM_INT8: return *(const int8_t *)p;
    case FM_UINT8: case FM_BOOLEAN: return *(const uint8_t *)p;
    case FM_INT16: return *(const int16_t *)p;
    case FM_UINT16: return *(const uint16_t *)p;
    case FM_INT32: return *(const int32_t *)p;
    case FM_UINT32: return *(const uint32_t *)p;
    default: return *(const int64_t *)p;
    }
}

/* Only conversions that lose nothing, or round to Float32, use this. */
void fm_convert(const fm_move *m)
{
    if (m->source_type == m->target_type && !m->transformed) {
        memcpy(m->target, m->source, fm_size[m->source_type]);
        return;
    }
    if (m->target_type == FM_FLOAT64 || m->target_type == FM_FLOAT32) {
        double value = fm_as_double(m->source_type, m->source);
        if (m->transformed)
            value = m->factor * value + m->offset;
        if (m->target_type == FM_FLOAT64)
            *(double *)m->target = value;
        else
            *(float *)m->target = (float)value;
        return;
    }
    int64_t value = as_integer(m->source_type, m->source);
    switch (m->target_type) {
    case FM_INT8: case FM_UINT8: *(uint8_t *)m->target = (uint8_t)value; break;
    case FM_BOOLEAN: *(uint8_t *)m->target = value != 0; break;
    case FM_INT16: case FM_UINT16: *(uint16_t *)m->target = (uint16_t)value; break;
    case FM_INT32: case FM_UINT32: *(uint32_t *)m->target = (uint32_t)value; break;
    default: *(uint64_t *)m->target = (uint64_t)value; break;
    }
}

int fm_move_triggers(fm_kernel *k, const fm_instruction *c)
{
    for (const fm_trigger *t = c->triggers.of, *end = t + c->triggers.n; t < end; t++) {
        for (int s = 0; s < t->n_sources; s++)
            *t->active |= *t->sources[s];
        if (!*t->active)
            continue;
        for (int m = 0; m < t->n_moves; m++)
            fm_convert(&t->moves[m]);
        int status = fm_move_objects(k, c, t->objects, t->n_objects);
        if (status != FM_RAN)
            return status;
    }
    return FM_RAN;
}

/* Values of one type, from one array to another, which begin at an index. */
static inline int copy_values(const fm_kernel *k, int type, void *target, const void *source, size_t start, size_t n)
{
    size_t bytes = fm_size[type], begin = start * bytes;
    if (fm_is_object(type))
        return fm_copy_objects(k, (void **)target + start, (void *const *)source + start, n);
    copy_bytes((char *)target + begin, (const char *)source + begin, n * bytes);
    return FM_OK;
}

int fm_copy_outputs(const fm_kernel *k, void *const *target, void *const *source)
{
    for (const fm_range *r = k->all_outputs, *end = r + k->n_types; r < end; r++) {
        if (r->type == FM_FLOAT64) { /* in many systems all that there is */
            copy_bytes(target[FM_FLOAT64], source[FM_FLOAT64], r->n * sizeof(double));
            continue;
        }
        int status = copy_values(k, r->type, target[r->type], source[r->type], 0, r->n);
        if (status != FM_OK)
            return status;
    }
    return FM_OK;
}

/* One copy ← another one, or the outputs. */
static int copy_all(const fm_kernel *k, const fm_copy *target, void *const *source, const double *read)
{
    copy_doubles(target->read, read, k->n_instances);
    return fm_copy_outputs(k, target->outputs, source);
}

int fm_keep(fm_kernel *k, const fm_instruction *c)
{
    size_t n = (size_t)k->n_instances;
    k->kept_limit[c->keep.buffer] = k->limit;
    memcpy(k->kept_requests + (size_t)c->keep.buffer * n, k->requests, n);
    int status = copy_all(k, &k->buffers[c->keep.buffer], k->outputs, k->read);
    return status == FM_OK ? FM_RAN : fm_fail(k, c, status, 0);
}

int fm_recall(fm_kernel *k, const fm_instruction *c)
{
    size_t n = (size_t)k->n_instances;
    const fm_copy *copy = &k->buffers[c->recall.buffer];
    memcpy(k->read, copy->read, sizeof(double) * n);
    k->limit = fmin(k->kept_limit[c->recall.buffer], k->end);
    memcpy(k->requests, k->kept_requests + (size_t)c->recall.buffer * n, n);
    int status = fm_copy_outputs(k, k->outputs, copy->outputs);
    return status == FM_OK ? FM_RAN : fm_fail(k, c, status, 0);
}

int fm_revert(fm_kernel *k, const fm_instruction *c)
{
    const fm_copy *copy = &k->buffers[c->revert.buffer];
    k->read[c->instance] = copy->read[c->instance];
    for (const fm_range *r = c->revert.ranges, *end = r + c->revert.n; r < end; r++) {
        int status = copy_values(k, r->type, k->outputs[r->type], copy->outputs[r->type], r->start, r->n);
        if (status != FM_OK)
            return fm_fail(k, c, status, 0);
    }
    return FM_RAN;
}

int fm_remember(fm_kernel *k, const fm_instruction *c)
{
    int status = FM_OK;
    for (int b = k->n_history - 1; b > 0 && status == FM_OK; b--)
        status = copy_all(k, &k->history[b], k->history[b - 1].outputs, k->history[b - 1].read);
    if (status == FM_OK && c->remember.buffer < 0)
        status = copy_all(k, k->history, k->outputs, k->read);
    else if (status == FM_OK)
        status = copy_all(k, k->history, k->buffers[c->remember.buffer].outputs, k->buffers[c->remember.buffer].read);
    return status == FM_OK ? FM_RAN : fm_fail(k, c, status, 0);
}

void fm_forget(const fm_kernel *k)
{
    for (int b = 0; b < k->n_history; b++)
        for (int i = 0; i < k->n_instances; i++)
            k->history[b].read[i] = NAN;
}

/* Largest change of an output since the pass before: fmimaster/run/changes.py. */
double fm_largest_change(const fm_kernel *k, void *const *before)
{
    double largest = 0.0;
    for (int t = 0; t < FM_TYPES; t++) {
        size_t n = k->output_sizes[t];
        if (!n)
            continue;
        if (fm_is_object(t)) {
            if (fm_objects_differ(k, before[t], k->outputs[t], n))
                return INFINITY;
            continue;
        }
        if (t > FM_FLOAT32) {
            if (memcmp(before[t], k->outputs[t], n * fm_size[t]))
                return INFINITY;
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            double value, difference;
            if (t == FM_FLOAT64) {
                value = fabs(((double *)k->outputs[t])[i]);
                difference = fabs(((double *)k->outputs[t])[i] - ((double *)before[t])[i]);
            } else {
                value = (double)fabsf(((float *)k->outputs[t])[i]);
                difference = (double)fabsf(((float *)k->outputs[t])[i] - ((float *)before[t])[i]);
            }
            double change = difference / (value > k->nominals[t][i] ? value : k->nominals[t][i]);
            if (isnan(change))
                change = INFINITY;
            if (change > largest)
                largest = change;
        }
    }
    return largest;
}
