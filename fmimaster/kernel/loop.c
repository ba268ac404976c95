/* The solver of an algebraic loop as far as Anderson acceleration goes: fmimaster/loops/hook.py and anderson.py. What comes later is done by a hook in Python. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"

#include <math.h>
#include <string.h>

/* Indices into the counts: _At of loops/hook.py. */
enum { SWEEPS, KEPT, STAGE, TOTAL, SOLUTIONS, MOST, OVERFLOWED };

/* Indices into the sizes of residuals. */
enum { FIRST, BEST, SLOPE };

/* Arrays of n in the work space; then the differences of iterates, those of residuals, and a basis, depth of each. */
enum { BEFORE, RESIDUAL, RESIDUAL_BEFORE, LEFT, SCALED, STEPS };

static double *work(const fm_loop_data *d, int which)
{
    return d->work + (size_t)which * (size_t)d->n;
}

static double given(const fm_loop_data *d, const fm_kernel *k, int i)
{
    if (i < d->doubles)
        return ((const double *)k->outputs[FM_FLOAT64])[d->slots[i]];
    return ((const float *)k->outputs[FM_FLOAT32])[d->slots[i]];
}

/* The iterate → store; what an FMU gets of type Float32 is rounded. */
static void put(const fm_loop_data *d, const fm_kernel *k)
{
    for (int i = 0; i < d->doubles; i++)
        ((double *)k->outputs[FM_FLOAT64])[d->slots[i]] = d->x[i];
    for (int i = d->doubles; i < d->n; i++) {
        float *single = &((float *)k->outputs[FM_FLOAT32])[d->slots[i]];
        *single = (float)d->x[i];
        d->x[i] = *single;
    }
}

/* Start a new solution at x. */
static void begin_at_x(const fm_loop_data *d)
{
    memcpy(d->u0, d->x, sizeof(double) * (size_t)d->n);
    d->counts[SWEEPS] = d->counts[KEPT] = d->counts[STAGE] = d->counts[OVERFLOWED] = 0;
    d->sizes[BEST] = INFINITY;
}

int fm_loop_begin(void *self, fm_kernel *k)
{
    const fm_loop_data *d = self;
    for (int i = 0; i < d->n; i++)
        d->x[i] = given(d, k, i);
    begin_at_x(d);
    return FM_OK;
}

/* The iterate, relative to the nominal values. */
static const double *scaled(const fm_loop_data *d)
{
    double *s = work(d, SCALED);
    for (int i = 0; i < d->n; i++)
        s[i] = d->x[i] / d->nominal[i];
    return s;
}

/* The next iterate → x, by the residual of this one; both become the newest ones: Anderson.next. */
static void accelerate(const fm_loop_data *d)
{
    int n = d->n, kept = (int)d->counts[KEPT], chosen[FM_MOST_ANDERSON];
    double upper[FM_MOST_ANDERSON * FM_MOST_ANDERSON], factors[FM_MOST_ANDERSON];
    double *before = work(d, BEFORE), *r = work(d, RESIDUAL), *r_before = work(d, RESIDUAL_BEFORE), *left = work(d, LEFT);
    double *steps = work(d, STEPS), *changes = steps + d->depth * n, *basis = changes + d->depth * n;
    const double *s = scaled(d);
    size_t bytes = sizeof(double) * (size_t)n;
    if (d->depth && d->counts[SWEEPS] > d->plain + 1) {
        int older = kept < d->depth ? kept : d->depth - 1;
        fm_keep_difference(s, before, n, older, steps);
        fm_keep_difference(r, r_before, n, older, changes);
        d->counts[KEPT] = kept = older + 1;
    }
    memcpy(before, s, bytes);
    memcpy(r_before, r, bytes);
    memcpy(left, r, bytes);
    int used = fm_least_squares(changes, kept, left, n, basis, upper, chosen, factors);
    fm_next_iterate(s, r, n, steps, changes, chosen, factors, used, d->x);
    for (int i = 0; i < n; i++)
        d->x[i] *= d->nominal[i];
}

static int solved(const fm_loop_data *d, const fm_kernel *k)
{
    d->counts[SOLUTIONS]++;
    if (d->counts[MOST] < d->counts[SWEEPS])
        d->counts[MOST] = d->counts[SWEEPS];
    for (int i = 0; i < d->n; i++)
        d->x[i] = given(d, k, i);
    begin_at_x(d);
    return FM_OK;
}

int fm_loop_sweep(void *self, fm_kernel *k)
{
    const fm_loop_data *d = self;
    double *r = work(d, RESIDUAL), size;
    int n = d->n, is_solved = 1;
    if (d->counts[STAGE])
        return d->later->call(d->later->self, k);
    d->counts[SWEEPS]++;
    d->counts[TOTAL]++;
    for (int i = 0; i < n; i++) {
        double allowed = d->absolute * d->nominal[i];
        r[i] = (given(d, k, i) - d->x[i]) / d->nominal[i];
        allowed += d->relative[i] * fabs(d->x[i]);
        is_solved &= fabs(r[i]) * d->nominal[i] <= allowed;
    }
    if (is_solved && d->measures && !d->counts[SOLUTIONS] && d->counts[SWEEPS] == 1) {
        d->counts[STAGE] = 3;
        return d->later->call(d->later->self, k);
    }
    if (is_solved) {
        double slope = INFINITY; /* not known after one sweep */
        if (d->counts[SWEEPS] > 1)
            slope = fm_slope(scaled(d), r, work(d, BEFORE), work(d, RESIDUAL_BEFORE), n);
        if (slope < d->sizes[SLOPE])
            d->sizes[SLOPE] = slope;
        return solved(d, k);
    }
    size = fm_norm(r, 0, n);
    if (!isfinite(size)) {
        d->counts[OVERFLOWED] = 1;
    } else if (size < d->sizes[BEST]) {
        d->sizes[BEST] = size;
        memcpy(d->best_u, d->x, sizeof(double) * (size_t)n);
        memcpy(d->best_residual, r, sizeof(double) * (size_t)n);
    }
    if (d->counts[SWEEPS] == 1)
        d->sizes[FIRST] = size;
    if (d->counts[SWEEPS] == d->most && d->bounded && isfinite(size))
        return solved(d, k);
    d->counts[STAGE] = d->counts[SWEEPS] == d->most;
    if (!d->counts[STAGE] && (!isfinite(size) || size > FM_BLOWN_UP * (1.0 + d->sizes[FIRST])))
        d->counts[STAGE] = d->counts[OVERFLOWED] = 1;
    if (d->counts[STAGE])
        return d->later->call(d->later->self, k);
    accelerate(d);
    put(d, k);
    return FM_AGAIN;
}
