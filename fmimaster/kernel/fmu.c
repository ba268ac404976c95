/* Common parts of the tables of functions of FMI 2.0 and 3.0. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "calls.h"

void *fm_find(const fm_fmu *fmu, int which, const char **function)
{
    *function = fmu->names[which];
    return fmu->functions[which];
}

int fm_missing(const fm_segment *segment)
{
    (void)segment;
    return FM_MISSING;
}

int fm_missing_derivative(const fm_derivative *derivative)
{
    (void)derivative;
    return FM_MISSING;
}

int fm_missing_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    const fm_fmu *fmu = self;
    (void)time, (void)size, (void)answer;
    *function = fmu->names[FM_DO_STEP];
    return FM_MISSING;
}

int fm_save_state(void *self, int place, const char **function)
{
    const fm_fmu *fmu = self;
    int which, status = fm_save_in(fmu, &fmu->places[place], &which);
    *function = fmu->names[which];
    return status;
}

int fm_restore_state(void *self, int place, const char **function)
{
    const fm_fmu *fmu = self;
    *function = fmu->names[FM_SET_STATE];
    return fm_restore_from(fmu, &fmu->places[place]);
}

/* BinaryInstance._coefficients in fmimaster/fmu/binary.py. */
int fm_set_coefficients(const fm_fmu *fmu, size_t n, int degree, const double *derivatives, const char **function)
{
    for (int p = 0; p < fmu->n_coefficients; p++) {
        const fm_coefficients *c = &fmu->coefficients[p];
        double *values = c->segment.values, factorial = 1.0;
        for (size_t k = 0; k < c->segment.size; k++) {
            factorial *= k > 1 ? (double)k : 1.0;
            values[k] = k <= (size_t)degree ? derivatives[k * n + (size_t)c->row] / factorial : 0.0;
        }
        int status = c->segment.transfer(&c->segment);
        *function = c->segment.function;
        if (fm_failed(status))
            return status;
    }
    return FM_OK;
}
