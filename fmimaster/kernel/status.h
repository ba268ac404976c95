/* What FMI functions return; kernel.h has plain declarations only. */

/* An FMU may return any number: all but FM_OK and FM_WARNING is a failure, also what is negative. */
static inline int fm_failed(int status)
{
    return __builtin_expect((unsigned)status > FM_WARNING, 0);
}
