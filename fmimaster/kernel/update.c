/* Intermediate updates of FMI 3.0: an FMU requests the inputs inside a step, and gets the values of their polynomials, and
 * offers its outputs; as InsideOfSteps of fmimaster/fmu/intermediate.py does it. */

#include <math.h>
#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "numerics.h"
#include "calls.h"

void fm_take_polynomials(fm_updates *u, const double *values, double time)
{
    const double *source = *u->source_degree < 0 ? values : u->source_coefficients;
    u->degree = *u->source_degree < 0 ? 0 : *u->source_degree;
    u->centre = *u->source_degree < 0 ? time : *u->source_centre;
    copy_doubles(u->coefficients, source, (u->degree + 1) * u->n_inputs);
}

/* The values of the polynomials at a time. */
static inline void give_inputs(fm_updates *u, double time)
{
    const fm_segment *inputs = &u->inputs;
    double *values = inputs->values, s = time - u->centre;
    for (size_t i = 0; i < inputs->size; i++) {
        const double *of = u->coefficients + u->rows[i];
        values[i] = u->degree == 1 ? (0.0 * s + of[u->n_inputs]) * s + of[0] : fm_horner(of, u->n_inputs, u->degree, s);
    }
    int status = inputs->version == 3
                     ? ((fm_access3_t)inputs->address)(inputs->self, inputs->references, inputs->n, values, inputs->size)
                     : inputs->transfer(inputs);
    if (fm_failed(status)) {
        u->failed = 1; /* the step ends with it */
        u->fail(u->self, status);
    }
}

void fm_intermediate_update(void *environment, double time, _Bool requests_inputs, _Bool gives_outputs, _Bool is_at_end,
                            _Bool can_return, _Bool *returns, double *return_time)
{
    fm_updates *u = environment;
    (void)is_at_end;
    if (returns)
        *returns = 0;
    double until = NAN;
    if (gives_outputs && u->read && !u->failed) { /* FMI 3.0, 4.2.1.3: nothing is read after an input was set */
        until = u->read(u->reader, u->begin, time, can_return);
        u->begin = NAN;
    }
    if (requests_inputs && u->inputs.size && u->degree >= 0 && !u->failed)
        give_inputs(u, time);
    if (isnan(until) || u->failed || !returns)
        return;
    *returns = 1;
    *return_time = until;
}
