/* The solver of an algebraic loop as far as Anderson acceleration goes: fmimaster/loops/hook.py and anderson.py, with the
 * same operations in the same order. What comes later is done by a hook in Python. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"

#include <math.h>
#include <string.h>

/* Indices into the counts: _At of loops/hook.py. */
enum { SWEEPS, KEPT, STAGE, TOTAL, SOLUTIONS, MOST, OVERFLOWED };

/* Indices into the sizes of residuals. */
enum { FIRST, BEST, SLOPE };

/* Arrays of n in the work space; then the differences of iterates, those of residuals, and a basis, depth of each. */
enum { BEFORE, RESIDUAL, RESIDUAL_BEFORE, LEFT, STEPS };

/* BLOWN_UP and DEPENDENT of anderson.py. */
static const double BLOWN_UP = 1e8, DEPENDENT = 1e-12, LEAST_STEP = 1e-8;

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

static double norm(const double *values, int n)
{
    double total = 0.0;
    for (int i = 0; i < n; i++)
        total += values[i] * values[i];
    return sqrt(total);
}

/* The next iterate → x, by the residual of this one: least squares over the differences, newest first. */
static void accelerate(const fm_loop_data *d)
{
    int n = d->n, used = 0, chosen[FM_MOST_ANDERSON], kept = (int)d->counts[KEPT];
    double upper[FM_MOST_ANDERSON][FM_MOST_ANDERSON], gamma[FM_MOST_ANDERSON];
    double *before = work(d, BEFORE), *r = work(d, RESIDUAL), *left = work(d, LEFT);
    double *steps = work(d, STEPS), *changes = steps + d->depth * n, *basis = changes + d->depth * n;
    memcpy(left, r, sizeof(double) * (size_t)n);
    for (int c = 0; c < kept; c++) {
        double *q = basis + used * n, length = norm(changes + c * n, n), rest, dot = 0.0;
        memcpy(q, changes + c * n, sizeof(double) * (size_t)n);
        for (int p = 0; p < used; p++) {
            double product = 0.0;
            for (int i = 0; i < n; i++)
                product += basis[p * n + i] * q[i];
            for (int i = 0; i < n; i++)
                q[i] -= product * basis[p * n + i];
            upper[p][used] = product;
        }
        rest = norm(q, n);
        if (!(rest > DEPENDENT * length))
            continue;
        for (int i = 0; i < n; i++)
            q[i] /= rest;
        for (int i = 0; i < n; i++)
            dot += q[i] * left[i];
        for (int i = 0; i < n; i++)
            left[i] -= dot * q[i];
        upper[used][used] = rest;
        gamma[used] = dot;
        chosen[used++] = c;
    }
    for (int p = used - 1; p >= 0; p--) {
        for (int c = p + 1; c < used; c++)
            gamma[p] -= upper[p][c] * gamma[c];
        gamma[p] /= upper[p][p];
    }
    for (int i = 0; i < n; i++) {
        double next = before[i] + r[i];
        for (int p = 0; p < used; p++)
            next -= (steps[chosen[p] * n + i] + changes[chosen[p] * n + i]) * gamma[p];
        d->x[i] = next * d->nominal[i];
    }
}

/* The scaled iterate and its residual become the newest ones; their differences to those before are kept. */
static void remember(const fm_loop_data *d)
{
    int n = d->n, kept = (int)d->counts[KEPT];
    double *before = work(d, BEFORE), *r = work(d, RESIDUAL), *r_before = work(d, RESIDUAL_BEFORE);
    double *steps = work(d, STEPS), *changes = steps + d->depth * n;
    if (d->depth && d->counts[SWEEPS] > d->plain + 1) {
        int left = kept < d->depth ? kept : d->depth - 1;
        memmove(steps + n, steps, sizeof(double) * (size_t)(left * n));
        memmove(changes + n, changes, sizeof(double) * (size_t)(left * n));
        for (int i = 0; i < n; i++) {
            steps[i] = d->x[i] / d->nominal[i] - before[i];
            changes[i] = r[i] - r_before[i];
        }
        d->counts[KEPT] = left + 1;
    }
    for (int i = 0; i < n; i++)
        before[i] = d->x[i] / d->nominal[i];
    memcpy(r_before, r, sizeof(double) * (size_t)n);
}

/* How the residual has changed since the last iterate, relative to the change of the iterate: Anderson.slope. */
static void note_slope(const fm_loop_data *d)
{
    int n = d->n;
    double step = 0.0, change = 0.0, length = 0.0, *before = work(d, BEFORE), *r_before = work(d, RESIDUAL_BEFORE);
    double *r = work(d, RESIDUAL);
    if (d->counts[SWEEPS] < 2)
        return;
    for (int i = 0; i < n; i++) {
        double s = d->x[i] / d->nominal[i], moved = s - before[i], changed = r[i] - r_before[i];
        length += s * s;
        step += moved * moved;
        change += changed * changed;
    }
    step = sqrt(step);
    change = sqrt(change);
    if (step > LEAST_STEP * (1.0 + sqrt(length)) && change / step < d->sizes[SLOPE])
        d->sizes[SLOPE] = change / step;
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
        note_slope(d);
        return solved(d, k);
    }
    size = norm(r, n);
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
    if (!d->counts[STAGE] && (!isfinite(size) || size > BLOWN_UP * (1.0 + d->sizes[FIRST])))
        d->counts[STAGE] = d->counts[OVERFLOWED] = 1;
    if (d->counts[STAGE])
        return d->later->call(d->later->self, k);
    remember(d);
    accelerate(d);
    put(d, k);
    return FM_AGAIN;
}
