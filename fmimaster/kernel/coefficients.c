/* Polynomials of inputs for FMUs that take their coefficients: BinaryInstance.coefficients in fmimaster/fmu/binary.py. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

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
        if (status > FM_WARNING)
            return status;
    }
    return FM_OK;
}
