/* Arrays of few doubles: a call of memcpy takes longer than to copy them. Smaller and larger: as min and max of Python. */

#ifndef FM_DOUBLES_H
#define FM_DOUBLES_H

#include <string.h>

static inline void copy_doubles(double *target, const double *source, int n)
{
    for (int i = 0; i < n; i++)
        target[i] = source[i];
}

enum { FM_WORD = 8, FM_MOST_INLINE = 16 * FM_WORD };

/* The same of bytes, of which some are no doubles. */
static inline void copy_bytes(char *target, const char *source, size_t bytes)
{
    if (bytes > FM_MOST_INLINE || bytes % FM_WORD) {
        memcpy(target, source, bytes);
        return;
    }
    for (; bytes >= 2 * FM_WORD; bytes -= 2 * FM_WORD, target += 2 * FM_WORD, source += 2 * FM_WORD)
        memcpy(target, source, 2 * FM_WORD);
    if (bytes)
        memcpy(target, source, FM_WORD);
}

static inline double smaller(double a, double b)
{
    return b < a ? b : a;
}

static inline double larger(double a, double b)
{
    return b > a ? b : a;
}

#endif
