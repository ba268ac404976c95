/* Rules of step sizes. The PID controller: what PID.decide of fmimaster/steps/pid.py does with a step that is accepted. In
 * Python it took more time than the FMUs of a quarter car. A power of floats is pow of the C library in CPython too, so the
 * bits are the same. And Ramp of fmimaster/steps/ramp.py: short steps between events take less time than Python. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"

#include <math.h>

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

double fm_pid_size(const void *self, int64_t *code)
{
    const fm_pid_data *d = self;
    *code = d->codes[FM_CAUSE];
    return d->sizes[FM_SIZE];
}

int fm_pid_accepts(void *self, double now, double length)
{
    fm_pid_data *d = self;
    double h = d->sizes[FM_SIZE], h1 = d->sizes[FM_BEFORE], h2 = d->sizes[FM_LONG_BEFORE];
    double factor = INFINITY, largest_error = 0.0;
    int limiting = 0, is_odd = 0;
    for (int i = 0; i < d->n; i++) {
        const double *x = d->exponents + 3 * i, *before = d->known + 2 * i;
        double e1 = d->values[d->errors[i]];
        if (!(e1 < INFINITY)) /* NAN, too */
            return 0;
        if (e1 > 0.0) {
            double own = fm_by_errors(d->safety, e1, before[0], before[1], x[0], x[1], x[2], &is_odd);
            if (own < factor) {
                factor = own;
                limiting = i;
            }
            if (e1 > largest_error)
                largest_error = e1;
        }
    }
    if (d->a1 != 0.0 || d->a2 != 0.0)
        factor = factor * fm_by_sizes(h, h1, h2, d->a1, d->a2, &is_odd);
    if (is_odd) /* Python raises an exception there, or may */
        return 0;
    double wanted = fm_wanted_size(h, length, fm_within(factor, d->least, d->most));
    double size = fm_within(wanted, d->smallest, d->largest);
    if (fm_may_be_repeated(largest_error, d->reject_above, length, d->smallest))
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

double fm_ramp_size(const void *self, int64_t *code)
{
    const fm_ramp_data *d = self;
    double longest = fm_longest_step(*d->previous, d->first, d->growth, d->size);
    *code = longest < d->size ? FM_GROWING : FM_FULL;
    return longest < d->size ? longest : d->size;
}

int fm_ramp_accepts(void *self, double now, double length)
{
    const fm_ramp_data *d = self;
    (void)now;
    if (!fm_has_full_size(*d->previous, length, d->growth, d->size))
        *d->previous = length;
    return 1;
}
