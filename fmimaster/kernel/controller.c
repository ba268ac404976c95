/* The twin of the PID controller of step sizes, with the same operations in the same order as PID.decide in
 * fmimaster/steps/pid.py. A power of floats is pow of the C library in CPython too, so the bits are the same. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"

#include <math.h>

/* A step is shorter than proposed if it is shorter by more than this part: SHORTENED of fmimaster/steps/pid.py. */
static const double SHORTENED = 1e-9;

/* A power as Python has it, or a note that it raises an exception there, or may. */
static double power(double base, double exponent, int *is_odd)
{
    double found = pow(base, exponent);
    *is_odd |= !isnormal(found);
    return found;
}

static void note_stuck(fm_pid_data *d, int is_stuck, double now, int64_t reason, double error)
{
    int64_t *steps = &d->codes[FM_STUCK_STEPS];
    if (*steps >= d->many)
        return; /* keep the first place where it was stuck */
    if (!is_stuck) {
        *steps = 0;
        return;
    }
    if (*steps == 0)
        d->sizes[FM_STUCK_BEGIN] = now;
    ++*steps;
    d->codes[FM_STUCK_REASON] = reason;
    d->sizes[FM_STUCK_ERROR] = error;
}

int fm_pid_accepts(fm_pid_data *d, double now, double length)
{
    double h = d->sizes[FM_SIZE], h1 = d->sizes[FM_BEFORE], h2 = d->sizes[FM_LONG_BEFORE];
    double factor = INFINITY, largest_error = 0.0;
    int limiting = 0, is_odd = 0;
    for (int i = 0; i < d->n; i++) {
        const double *x = d->exponents + 3 * i, *before = d->known + 2 * i;
        double e1 = d->values[d->errors[i]];
        if (!(e1 < INFINITY)) /* NAN, too */
            return 0;
        if (e1 > 0.0) {
            double own = d->safety * power(e1, x[0], &is_odd) * power(before[0], x[1], &is_odd);
            if (x[2] != 0.0)
                own = own * power(before[1], x[2], &is_odd);
            if (own < factor) {
                factor = own;
                limiting = i;
            }
            if (e1 > largest_error)
                largest_error = e1;
        }
    }
    if (d->a1 != 0.0 || d->a2 != 0.0)
        factor = factor * (power(h / h1, d->a1, &is_odd) * power(h1 / h2, d->a2, &is_odd));
    if (is_odd)
        return 0;
    factor = factor < d->least ? d->least : factor > d->most ? d->most : factor;
    double wanted = h * factor;
    if (length < h * (1.0 - SHORTENED)) {
        wanted = length * factor;
        if (!(factor < 1.0) && h > wanted)
            wanted = h;
    }
    double size = wanted < d->smallest ? d->smallest : wanted > d->largest ? d->largest : wanted;
    if (largest_error > d->reject_above && length > d->smallest * (1.0 + SHORTENED))
        return 0;
    double error = d->values[d->errors[limiting]];
    int64_t source = d->first_codes[limiting] + (int64_t)d->values[d->worst[limiting]];
    note_stuck(d, wanted < d->smallest && error > 1.0, now, source, error);
    for (int i = 0; i < d->n; i++) {
        double e1 = d->values[d->errors[i]], *before = d->known + 2 * i;
        before[1] = before[0];
        before[0] = e1 > 0.0 ? e1 : 1.0;
    }
    d->codes[FM_CAUSE] = size >= d->largest ? d->largest_code : source;
    d->sizes[FM_SIZE] = size;
    d->sizes[FM_BEFORE] = h;
    d->sizes[FM_LONG_BEFORE] = h1;
    return 1;
}
