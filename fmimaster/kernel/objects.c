/* Text and binaries. They are objects of Python, of which only addresses are known here: where these are equal, nothing is
 * done. What is new is copied, and made of bytes, in Python: fmimaster/run/native/objects.py. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "status.h"

#include <string.h>

int fm_is_object(int type)
{
    return type == FM_STRING || type == FM_BINARY;
}

int fm_copy_objects(const fm_kernel *k, void **target, void *const *source, size_t n)
{
    return memcmp(target, source, n * sizeof(void *)) ? k->objects.copy(k->objects.self, target, source, n) : FM_OK;
}

int fm_objects_differ(const fm_kernel *k, void *const *one, void *const *other, size_t n)
{
    return memcmp(one, other, n * sizeof(void *)) && k->objects.differ(k->objects.self, one, other, n) != FM_OK;
}

int fm_move_objects(fm_kernel *k, const fm_instruction *c, const fm_move *moves, int n)
{
    for (const fm_move *v = moves, *end = v + n; v < end; v++) {
        int status = fm_copy_objects(k, v->target, v->source, 1);
        if (status != FM_OK)
            return fm_fail(k, c, status, 0);
    }
    return FM_RAN;
}

int fm_sample_objects(const fm_kernel *k)
{
    for (const fm_sampled *v = k->sampled, *end = v + k->n_sampled; v < end; v++)
        if (memcmp(v->values, v->sampled, v->n * sizeof(void *)))
            return k->objects.sample(k->objects.self);
    return FM_OK;
}

/* Whether the object is not the one that is known, or the FMU has other bytes for it. */
static int is_new(const fm_texts *t, size_t i, const void *object)
{
    const fm_bytes *known = &t->known[i];
    size_t size = t->sizes ? t->sizes[i] : t->bytes[i] ? strlen(t->bytes[i]) : 0;
    return object != known->object || size != known->size || (size && memcmp(t->bytes[i], known->bytes, size));
}

int fm_take_texts(const fm_segment *s)
{
    void *const *objects = s->values;
    for (size_t i = 0; i < s->size; i++)
        if (is_new(s->texts, i, objects[i]))
            return s->texts->renew(s->texts->self);
    return FM_OK;
}

int fm_give_texts(const fm_segment *s)
{
    void *const *objects = s->values;
    for (size_t i = 0; i < s->size; i++)
        if (objects[i] != s->texts->known[i].object)
            return s->texts->renew(s->texts->self);
    return FM_OK;
}
