/* Intermediate updates of FMI 3.0: an FMU requests the inputs inside a step, and gets the values of their polynomials; as
 * Fmi3Instance of fmimaster/fmu/fmi3.py does it. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "status.h"

#include <string.h>

void fm_take_polynomials(fm_updates *u, const double *values, double time)
{
    const double *source = *u->source_degree < 0 ? values : u->source_coefficients;
    u->degree = *u->source_degree < 0 ? 0 : *u->source_degree;
    u->centre = *u->source_degree < 0 ? time : *u->source_centre;
    memcpy(u->coefficients, source, sizeof(double) * (size_t)((u->degree + 1) * u->n_inputs));
}

void fm_intermediate_update(void *environment, double time, _Bool requests_inputs, _Bool gives_outputs, _Bool is_at_end,
                            _Bool can_return, _Bool *returns, double *return_time)
{
    fm_updates *u = environment;
    double *values = u->inputs.values;
    (void)gives_outputs, (void)is_at_end, (void)can_return, (void)return_time;
    if (returns)
        *returns = 0;
    if (!requests_inputs || u->degree < 0 || u->failed)
        return;
    fm_evaluate(u->coefficients, u->degree, u->n_inputs, time - u->centre, u->values);
    for (size_t i = 0; i < u->inputs.size; i++)
        values[i] = u->values[u->rows[i]];
    int status = u->inputs.transfer(&u->inputs);
    if (fm_failed(status)) {
        u->failed = 1; /* the step ends with it */
        u->fail(u->self, status);
    }
}
