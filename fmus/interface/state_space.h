/* A model x' = rates(x, u).
 *
 * Included by a model that defines STATES, their number, before, and includes linear_inputs.h or intermediate_inputs.h. It has the
 * functions model_outputs and model_step.
 */
#ifndef FM_STATE_SPACE_H
#define FM_STATE_SPACE_H

typedef struct { double of[STATES]; } States;

/* Defined by the model */
static States get_states(const Variables *v);
static void set_states(Variables *v, States x);
static States rates(const Variables *v, States x, Inputs u);
static States advance(const Variables *v, States x, const Course *u, double h);   /* the states after h */
static void calculate_outputs(Variables *v, States x, Inputs u);                  /* and time derivatives */

void model_outputs(Variables *v)
{
    calculate_outputs(v, get_states(v), get_inputs(v));
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    Course u = course(self, v, *h);
    States x = advance(v, get_states(v), &u, *h);
    set_states(v, x);
    calculate_outputs(v, x, inputs_at(&u, *h));
    return FM_OK;
}

/* Relative: a step that is longer than so many micro steps by rounding is no reason for one more. */
static const double ROUNDING = 1e-6;

/* The number of equal micro steps of a step of length h, none of which is longer than `longest`. */
static inline double micro_steps_within(double h, double longest)
{
    return fmax(1.0, ceil(h / longest - ROUNDING));
}

static inline States along(States x, double h, States slope)
{
    for (int i = 0; i < STATES; i++) x.of[i] += h * slope.of[i];
    return x;
}

/* The explicit Euler method in `count` micro steps, with the inputs at the fraction `at` of each. */
static inline States euler(const Variables *v, States x, const Course *u, double h, double count, double at)
{
    double micro = h / count;
    for (double q = 0.0; q < count; q++) {
        States slope = rates(v, x, inputs_at(u, (q + at) * micro));
        x = along(x, micro, slope);
    }
    return x;
}

/* The classical Runge-Kutta method of order 4 in `count` micro steps. */
static inline States runge_kutta(const Variables *v, States x, const Course *u, double h, double count)
{
    double micro = h / count;
    for (double q = 0.0; q < count; q++) {
        States k1 = rates(v, x, inputs_at(u, q * micro));
        Inputs middle = inputs_at(u, (q + 0.5) * micro);
        States k2 = rates(v, along(x, micro / 2, k1), middle);
        States k3 = rates(v, along(x, micro / 2, k2), middle);
        States k4 = rates(v, along(x, micro, k3), inputs_at(u, (q + 1.0) * micro));
        for (int i = 0; i < STATES; i++)
            x.of[i] += micro / 6 * (k1.of[i] + 2 * k2.of[i] + 2 * k3.of[i] + k4.of[i]);
    }
    return x;
}

static inline bool is_positive(fm_Instance *self, const char *name, double value)
{
    if (value > 0.0) return true;
    fm_report(self, FM_ERROR, "%s is %g. It must be positive.", name, value);
    return false;
}

#endif
