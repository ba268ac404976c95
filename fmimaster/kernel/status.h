/* What FMI functions return; kernel.h has plain declarations only. */

#include "portable.h"

/* An FMU may return any number: all but FM_OK and FM_WARNING is a failure, also what is negative. */
static inline int fm_failed(int status)
{
    return FM_UNLIKELY((unsigned)status > FM_WARNING);
}
