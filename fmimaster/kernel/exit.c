/* exit() inside an FMU: a function is called before the process ends. It can only be set for the whole process. */

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
