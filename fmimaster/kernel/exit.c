/* exit() inside an FMU: the process is told before it ends. This can only be known for the process as a whole. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernel.h"

static void (*told)(void);

static void at_exit(void)
{
    void (*tell)(void) = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
    if (tell)
        tell();
}

void fm_at_exit(void (*tell)(void))
{
    static int registered;
    if (!registered)
        registered = !atexit(at_exit);
    __atomic_store_n(&told, tell, __ATOMIC_RELEASE);
}
