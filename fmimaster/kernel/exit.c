/* exit() inside an FMU: a function is called before the process ends. It can only be set for the whole process. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "portable.h"

typedef void (*tell_t)(void);
static _Atomic(tell_t) told;

static void at_exit(void)
{
    tell_t tell = atomic_load_explicit(&told, memory_order_acquire);
    if (tell)
        tell();
}

void fm_at_exit(void (*tell)(void))
{
    static int registered;
    if (!registered)
        registered = fm_before_exit(at_exit);
    atomic_store_explicit(&told, tell, memory_order_release);
}
