/* Arrays of few doubles: a call of memcpy takes longer than to copy them. Smaller and larger: as min and max of Python. */

#ifndef FM_DOUBLES_H
#define FM_DOUBLES_H

static inline void copy_doubles(double *target, const double *source, int n)
{
    for (int i = 0; i < n; i++)
        target[i] = source[i];
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
