/* How the process of the run and the hosts of isolated FMUs wait for each other. */

#include "portable.h"

enum {
    SPIN = 20000,    /* [ns] about what it takes to wake a process on another processor */
    LOOKS = 32,      /* at the word, from one look at the clock to the next */
    TURNS = 2,       /* that a process gives to the others before it sleeps, where they are more than the processors */
    MOST_SKIPPED = 31 /* waits without spinning, where spinning was in vain */
};

/* cffi knows plain types only; atomic ones have the same form. */
static inline _Atomic uint32_t *shared(uint32_t *word)
{
    return (_Atomic uint32_t *)word;
}

static inline void ring(fm_bell *bell, uintptr_t event, uint32_t count)
{
    atomic_store(shared(&bell->count), count);
    if (atomic_load(shared(&bell->sleeps)))
        fm_wake(&bell->count, event);
}

static inline int has_rung(fm_bell *bell, uint32_t count)
{
    return atomic_load_explicit(shared(&bell->count), memory_order_acquire) == count;
}

/* A process that sleeps is woken in some microseconds, in which a small FMU does several steps. So it looks for the other one
 * a moment before it sleeps; less and less often where that is in vain. Where there are more processes than processors, it
 * lets the others run instead: if they come while they do, it neither sleeps nor is woken. Returns whether it has come. */
FM_INLINE int spin(fm_spin *s, int is_crowded, int (*has_come)(void *self), void *self)
{
    if (is_crowded) {
        for (int i = 0; i < TURNS && !has_come(self); i++)
            fm_yield();
        return has_come(self);
    }
    if (s->skips > 0) {
        s->skips--;
        return has_come(self);
    }
    int64_t end = fm_nanoseconds() + SPIN;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (has_come(self)) {
                s->in_vain = 0;
                return 1;
            }
            fm_pause();
        }
        fm_yield(); /* the other process may wait for this processor */
    } while (fm_nanoseconds() < end);
    s->in_vain = s->in_vain >= MOST_SKIPPED ? MOST_SKIPPED : 2 * s->in_vain + 1;
    s->skips = s->in_vain;
    return 0;
}

typedef struct {
    fm_bell *bell;
    uint32_t count;
} fm_ring;

static inline int has_come(void *ring)
{
    const fm_ring *r = ring;
    return has_rung(r->bell, r->count);
}

/* Returns whether the bell has rung. */
static inline int spin_for(fm_bell *bell, uint32_t count, int is_crowded)
{
    fm_ring r = {bell, count};
    return spin(&bell->spin, is_crowded, has_come, &r);
}

/* Returns whether it has not rung within the patience in ns; -1 has no end. */
static inline int sleep_until(fm_bell *bell, uintptr_t event, uint32_t count, int64_t patience)
{
    int is_late = 0;
    atomic_store(shared(&bell->sleeps), 1);
    uint32_t now = atomic_load(shared(&bell->count));
    if (now != count)
        is_late = fm_wait(&bell->count, now, event, patience);
    atomic_store_explicit(shared(&bell->sleeps), 0, memory_order_relaxed);
    return is_late;
}
