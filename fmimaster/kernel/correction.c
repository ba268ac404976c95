/* Partial derivatives of outputs. CORRECT: outputs that depend directly on held inputs, brought to the inputs of now. DERIVE:
 * the derivatives themselves, for a hook. */

#include <math.h>
#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "status.h"

/* Partial derivatives that were measured, times the seed. */
int fm_multiply_partials(const fm_derivative *d)
{
    for (size_t o = 0; o < d->n_sensitivity; o++)
        d->sensitivity[o] = 0.0;
    for (size_t u = 0; u < d->n_seed; u++)
        for (size_t o = 0; o < d->n_sensitivity; o++)
            d->sensitivity[o] += d->partials[o * d->n_seed + u] * d->seed[u];
    return FM_OK;
}

int fm_correct(fm_kernel *k, const fm_instruction *c)
{
    const fm_correction *correction = c->correct.correction;
    const fm_derivative *d = &correction->derivative;
    double *outputs = k->outputs[FM_FLOAT64];
    int has_changed = 0, i = c->instance;
    if (k->degree[i] >= 0) {
        int taken = k->degree[i];
        if (correction->highest >= 0 && taken > correction->highest)
            taken = correction->highest;
        fm_evaluate(k->coefficients[i], taken, (int)correction->inputs->size, k->at[i] - k->centre[i],
                    correction->inputs->values);
        k->degree[i] = -1;
    }
    for (size_t u = 0; u < d->n_seed; u++) {
        const fm_move *move = &correction->moves[u];
        double *input = move->target, before = *input;
        fm_convert(move);
        d->seed[u] = *input - before;
        has_changed |= d->seed[u] != 0.0;
    }
    if (!has_changed)
        return FM_RAN;
    int status = d->derive(d);
    if (fm_failed(status))
        return fm_fail(k, c, status, d->function);
    for (size_t o = 0; o < d->n_sensitivity; o++)
        outputs[correction->slots[o]] += d->sensitivity[o];
    return FM_RAN;
}

int fm_derive(fm_kernel *k, const fm_instruction *c)
{
    const fm_partials *p = c->derive.partials;
    const fm_derivative *d = &p->derivative;
    const double *outputs = k->outputs[FM_FLOAT64];
    int are_finite = 1;
    for (size_t o = 0; o < d->n_sensitivity; o++)
        are_finite &= isfinite(outputs[p->slots[o]]) != 0;
    if (*p->wanted != FM_NOTHING && !are_finite) {
        for (size_t n = 0; n < d->n_sensitivity * d->n_seed; n++)
            p->values[n] = NAN;
        *p->wanted = FM_NOTHING;
    }
    for (size_t u = 0; *p->wanted != FM_NOTHING && u < d->n_seed; u++) {
        if (*p->wanted != FM_EVERYTHING && !p->varies[u])
            continue;
        d->seed[u] = 1.0;
        int status = d->derive(d);
        d->seed[u] = 0.0;
        if (fm_failed(status))
            return fm_fail(k, c, status, d->function);
        for (size_t o = 0; o < d->n_sensitivity; o++)
            p->values[o * d->n_seed + u] = d->sensitivity[o];
    }
    *p->wanted = FM_NOTHING;
    return FM_RAN;
}
