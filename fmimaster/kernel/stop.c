/* Where a program stops, and why. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"

int fm_stop_at(fm_kernel *k, const fm_instruction *c, int why)
{
    k->stop_instance = c->instance;
    k->stop_instruction = c->line;
    k->stop_time = k->at[c->instance];
    return why;
}

int fm_fail(fm_kernel *k, const fm_instruction *c, int status, const char *function)
{
    k->failure_status = status;
    k->failure_function = function;
    return fm_stop_at(k, c, FM_FAILED);
}
