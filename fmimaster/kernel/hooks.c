/* Hooks in C: twins of hooks in Python, with the same operations in the same order. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"

#include <math.h>

/* fmimaster/algorithms/waveform.py */
int fm_assumed_outputs(void *self, fm_kernel *k)
{
    const fm_assumed_outputs_data *d = self;
    double end = d->at == 1.0 ? k->end : k->begin + d->at * (k->end - k->begin);
    for (int i = 0; i < d->n; i++)
        k->read[d->instances[i]] = end;
    return FM_OK;
}

/* fmimaster/steps/doubling_errors.py */
int fm_weighted_change(void *self, fm_kernel *k)
{
    const fm_weighted_change_data *d = self;
    double *now = k->outputs[FM_FLOAT64], sums[2] = {0.0, 0.0};
    const double *then = k->buffers[d->buffer].outputs[FM_FLOAT64];
    int worst = 0;
    for (int i = 0; i < d->n; i++) {
        int64_t slot = d->slots[i];
        double part = (now[slot] - then[slot]) / (d->absolute * d->nominals[i] + d->relative * fabs(now[slot]));
        fm_add_part(part, part * part, i, sums, &worst);
    }
    now[d->target] = sqrt(sums[0] / d->n) / d->divisor;
    now[d->worst] = worst;
    return FM_OK;
}
