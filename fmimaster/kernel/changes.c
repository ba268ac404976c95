/* Values that have changed, which Python must look at: the twin of fmimaster/run/changes.py. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"

#include <string.h>

/* As Python compares numbers: NaN is not what it was, and 0.0 is -0.0. */
static int is_same(const fm_changes_data *d, const void *now, const void *before)
{
    if (!d->is_float)
        return !memcmp(now, before, (size_t)d->size);
    if (d->size == sizeof(double))
        return *(const double *)now == *(const double *)before;
    return *(const float *)now == *(const float *)before;
}

int fm_note_values(void *self, fm_kernel *k)
{
    const fm_changes_data *d = self;
    int status = FM_OK;
    for (int i = 0; i < d->n && status == FM_OK; i++) {
        char *before = d->before + (int64_t)i * d->size;
        const char *now = d->values + d->slots[i] * d->size;
        if (d->is_object)
            status = fm_copy_objects(k, (void **)before, (void *const *)now, 1);
        else
            memcpy(before, now, (size_t)d->size);
    }
    return status;
}

int fm_is_unchanged(void *self, fm_kernel *k, double begin, double end, double next)
{
    const fm_changes_data *d = self;
    (void)k, (void)begin, (void)end, (void)next;
    for (int i = 0; i < d->n; i++)
        if (!is_same(d, d->values + d->slots[i] * d->size, d->before + (int64_t)i * d->size))
            return 0;
    return 1;
}
