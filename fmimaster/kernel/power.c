/* Power bonds: twins of the hooks of fmimaster/program/bond_powers.py, with the same operations in the same order. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"

#include <math.h>

/* Signals of a bond: BondSignal of fmimaster/plan/power_bonds.py. */
enum {
    POWER_1, POWER_2, POWER, RESIDUAL_POWER, RESIDUAL_ENERGY, TRANSMITTED_ENERGY, ABSOLUTE_ENERGY, LARGEST_RESIDUAL,
    LARGEST_AT, TIME, LENGTH, ERROR, EVENT_ENERGY, LARGEST_BEFORE, LARGEST_BEFORE_AT, STEP_RESIDUAL, STEP_TRANSMITTED
};

/* FIRST of fmimaster/program/bond_powers.py. */
static const double first_part = 1e-9;

/* The input of a port that the FMU had at the end of the step: held, or the end value of its polynomial. */
static double input(const fm_bonds_data *d, const fm_kernel *k, int port)
{
    int64_t i = d->instances[port];
    const double *values = k->outputs[FM_FLOAT64];
    if (k->degree[i] < 0 || d->columns[port] < 0)
        return values[d->inputs[port]];
    int n = k->route_begin[i + 1] - k->route_begin[i];
    int degree = k->degree[i] < d->degrees[port] ? k->degree[i] : (int)d->degrees[port];
    return fm_horner(k->coefficients[i] + d->columns[port], n, degree, k->read[i] - k->centre[i]);
}

/* The powers of one bond → its signals. */
static void put_powers(const fm_bonds_data *d, const fm_kernel *k, int bond, double *signals)
{
    int a = 2 * bond, b = a + 1;
    const double *values = k->outputs[FM_FLOAT64];
    double y1 = values[d->outputs[a]], y2 = values[d->outputs[b]];
    double first = d->weights[a] * input(d, k, a) * y1, second = d->weights[b] * input(d, k, b) * y2;
    double at_a = k->read[d->instances[a]], at_b = k->read[d->instances[b]], time = at_b < at_a ? at_b : at_a;
    signals[POWER_1] = first;
    signals[POWER_2] = second;
    signals[POWER] = d->transmitted[bond] * y1 * y2;
    signals[RESIDUAL_POWER] = -(first + second);
    signals[LENGTH] = time - signals[TIME];
    signals[TIME] = time;
}

/* The parts of all bonds in the energy error, and the error. */
static void rate(const fm_bonds_data *d, double *outputs)
{
    double sums[2] = {0.0, -1.0};
    int n = 0, worst = 0;
    if (d->error < 0)
        return;
    for (int bond = 0; bond < d->n; bond++) {
        double *signals = outputs + d->signals[bond];
        if (d->tolerances[bond] == 0.0)
            continue;
        double transmitted = fabs(signals[STEP_TRANSMITTED]);
        double residual = signals[STEP_RESIDUAL];
        double part = residual / (d->tolerances[bond] * (d->scales[bond] + transmitted));
        signals[ERROR] = part;
        fm_add_part(part, fabs(part), bond, sums, &worst);
        n++;
    }
    outputs[d->error] = sqrt(sums[0] / n);
    outputs[d->worst] = worst;
}

int fm_bond_powers(void *self, fm_kernel *k)
{
    const fm_bonds_data *d = self;
    double *outputs = k->outputs[FM_FLOAT64];
    for (int bond = 0; bond < d->n; bond++) {
        double *signals = outputs + d->signals[bond], after = signals[TIME] - k->begin;
        put_powers(d, k, bond, signals);
        double residual = signals[RESIDUAL_POWER] * signals[LENGTH], size = fabs(signals[RESIDUAL_POWER]);
        double transmitted = signals[POWER] * signals[LENGTH];
        int goes_on = after > first_part * signals[LENGTH];
        signals[STEP_RESIDUAL] = residual + (goes_on ? signals[STEP_RESIDUAL] : 0.0);
        signals[STEP_TRANSMITTED] = transmitted + (goes_on ? signals[STEP_TRANSMITTED] : 0.0);
        signals[RESIDUAL_ENERGY] += residual;
        signals[TRANSMITTED_ENERGY] += transmitted;
        signals[ABSOLUTE_ENERGY] += fabs(residual);
        if (size > signals[LARGEST_RESIDUAL]) {
            signals[LARGEST_BEFORE] = signals[LARGEST_RESIDUAL];
            signals[LARGEST_BEFORE_AT] = signals[LARGEST_AT];
            signals[LARGEST_RESIDUAL] = size;
            signals[LARGEST_AT] = signals[TIME];
        }
    }
    rate(d, outputs);
    return FM_OK;
}

int fm_bond_powers_at_instant(void *self, fm_kernel *k)
{
    const fm_bonds_data *d = self;
    double *outputs = k->outputs[FM_FLOAT64];
    for (int bond = 0; bond < d->n; bond++) {
        double *signals = outputs + d->signals[bond];
        put_powers(d, k, bond, signals);
        signals[LENGTH] = 0.0;
    }
    return FM_OK;
}

int fm_bond_powers_refreshed(void *self, fm_kernel *k)
{
    const fm_bonds_data *d = self;
    double *outputs = k->outputs[FM_FLOAT64];
    for (int bond = 0; bond < d->n; bond++) {
        double *signals = outputs + d->signals[bond];
        double power = d->transmitted[bond] * outputs[d->outputs[2 * bond]] * outputs[d->outputs[2 * bond + 1]];
        double change = (power - signals[POWER]) * signals[LENGTH];
        signals[POWER] = power;
        signals[TRANSMITTED_ENERGY] += change;
        signals[STEP_TRANSMITTED] += change;
    }
    rate(d, outputs);
    return FM_OK;
}
