
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "calls.h"

typedef int (*derivative_t)(void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, double *);
typedef int (*plain_t)(void *);
typedef int (*setup_t)(void *, int, double, double, int, double);
typedef int (*derivatives_t)(void *, const uint32_t *, size_t, const int *, const double *);
typedef int (*real_status_t)(void *, int, double *);
typedef int (*boolean_status_t)(void *, int, int *);

enum { LAST_SUCCESSFUL_TIME = 2, TERMINATED = 3 };

static const char *const NAMES[FM_FUNCTIONS] = {
    [FM_GET_FLOAT64] = "GetReal", [FM_GET_INT32] = "GetInteger", [FM_GET_BOOLEAN] = "GetBoolean", [FM_GET_STRING] = "GetString",
    [FM_SET_FLOAT64] = "SetReal", [FM_SET_INT32] = "SetInteger", [FM_SET_BOOLEAN] = "SetBoolean", [FM_SET_STRING] = "SetString",
    [FM_DO_STEP] = "DoStep", [FM_GET_STATE] = "GetFMUstate", [FM_SET_STATE] = "SetFMUstate",
    [FM_FREE_STATE] = "FreeFMUstate",
    [FM_SETUP_EXPERIMENT] = "SetupExperiment", [FM_ENTER_INITIALIZATION] = "EnterInitializationMode",
    [FM_EXIT_INITIALIZATION] = "ExitInitializationMode", [FM_TERMINATE] = "Terminate",
    [FM_SET_INPUT_DERIVATIVES] = "SetRealInputDerivatives", [FM_GET_REAL_STATUS] = "GetRealStatus",
    [FM_GET_BOOLEAN_STATUS] = "GetBooleanStatus", [FM_GET_DIRECTIONAL_DERIVATIVE] = "GetDirectionalDerivative",
    [FM_SET_TIME] = "SetTime", [FM_SET_CONTINUOUS_STATES] = "SetContinuousStates", [FM_GET_DERIVATIVES] = "GetDerivatives",
    [FM_GET_EVENT_INDICATORS] = "GetEventIndicators", [FM_COMPLETED_INTEGRATOR_STEP] = "CompletedIntegratorStep",
};

const char *fm_fmi2_name(int function)
{
    return NAMES[function];
}

static int transfer(const fm_segment *s)
{
    return ((fm_access2_t)s->address)(s->self, s->references, s->n, s->values);
}

/* fmi2Boolean is an int, a Boolean in the value store is one byte. */
static int get_booleans(const fm_segment *s)
{
    uint8_t *bytes = s->values;
    int status = ((fm_access2_t)s->address)(s->self, s->references, s->n, s->integers);
    for (size_t i = 0; i < s->size; i++)
        bytes[i] = s->integers[i] != 0;
    return status;
}

static int set_booleans(const fm_segment *s)
{
    const uint8_t *bytes = s->values;
    for (size_t i = 0; i < s->size; i++)
        s->integers[i] = bytes[i] != 0;
    return ((fm_access2_t)s->address)(s->self, s->references, s->n, s->integers);
}

static int get_strings(const fm_segment *s)
{
    int status = ((fm_access2_t)s->address)(s->self, s->references, s->n, s->texts->bytes);
    return fm_failed(status) ? status : fm_take_texts(s);
}

static int set_strings(const fm_segment *s)
{
    int status = fm_give_texts(s);
    return fm_failed(status) ? status : ((fm_access2_t)s->address)(s->self, s->references, s->n, s->texts->bytes);
}

void fm_fmi2_bind(const fm_fmu *fmu, int type, int is_get, fm_segment *s)
{
    s->self = fmu->component;
    s->which = (is_get ? FM_GET_FLOAT64 : FM_SET_FLOAT64) + type;
    s->address = fm_find(fmu, s->which, &s->function);
    s->transfer = !s->address          ? fm_missing
                  : type == FM_STRING  ? (is_get ? get_strings : set_strings)
                  : type == FM_BOOLEAN ? (is_get ? get_booleans : set_booleans)
                                       : transfer;
    s->version = s->transfer == transfer ? 2 : 0;
}

static int derive(const fm_derivative *d)
{
    return ((derivative_t)d->address)(d->self, d->unknowns, d->n_unknowns, d->knowns, d->n_knowns, d->seed, d->sensitivity);
}

void fm_fmi2_bind_derivative(const fm_fmu *fmu, fm_derivative *d)
{
    d->self = fmu->component;
    d->address = fm_find(fmu, FM_GET_DIRECTIONAL_DERIVATIVE, &d->function);
    d->derive = d->address ? derive : fm_missing_derivative;
}

static int set_polynomials(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                       double time, const char **function)
{
    fm_fmu *fmu = self;
    if (fmu->n_coefficients)
        return fm_set_coefficients(fmu, n, degree, derivatives, function);
    void *address = fm_find(fmu, FM_SET_INPUT_DERIVATIVES, function);
    (void)references, (void)time;
    if (!address)
        return FM_MISSING;
    const double *rates = derivatives + n;
    if (degree < fmu->most_orders) {
        for (size_t r = 0; r < (size_t)fmu->most_orders * n; r++)
            fmu->rates[r] = r < (size_t)degree * n ? rates[r] : 0.0;
        rates = fmu->rates;
    }
    return ((derivatives_t)address)(fmu->component, fmu->rate_references, (size_t)fmu->most_orders * n, fmu->orders, rates);
}

/* Fmi2Instance._discarded in fmimaster/fmu/fmi2.py. */
static int discarded(const fm_fmu *fmu, double time, fm_answer *answer, const char **function)
{
    double reached = time, told_time = time;
    int terminated = 0, told = 0, status;
    void *address = fmu->functions[FM_GET_REAL_STATUS];
    if (address) {
        status = ((real_status_t)address)(fmu->component, LAST_SUCCESSFUL_TIME, &told_time);
        if (!fm_failed(status))
            reached = told_time;
        else if (status != FM_DISCARD && status != FM_ERROR)
            return *function = NAMES[FM_GET_REAL_STATUS], status;
    }
    address = fmu->functions[FM_GET_BOOLEAN_STATUS];
    if (address) {
        status = ((boolean_status_t)address)(fmu->component, TERMINATED, &told);
        if (!fm_failed(status))
            terminated = told;
        else if (status != FM_DISCARD && status != FM_ERROR)
            return *function = NAMES[FM_GET_BOOLEAN_STATUS], status;
    }
    *answer = (fm_answer){reached, terminated != 0, 1, 0, 0};
    return FM_DISCARD;
}

int fm_fmi2_answer(const fm_fmu *fmu, int status, double time, fm_answer *answer, const char **function)
{
    *function = NAMES[FM_DO_STEP];
    return status == FM_DISCARD ? discarded(fmu, time, answer, function) : status;
}

static int do_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    const fm_fmu *fmu = self;
    /* saved states stay valid: a step may be undone */
    return fm_fmi2_step(fmu, fmu->do_step, fmu->component, *fmu->kept_from >= time, time, size, answer, function);
}

static int enter(void *self, int state, const fm_experiment *e, const char **function)
{
    fm_fmu *fmu = self;
    int which = state == FM_STEP_MODE ? FM_EXIT_INITIALIZATION : state == FM_TERMINATED ? FM_TERMINATE : FM_ENTER_INITIALIZATION;
    if (state == FM_INITIALIZATION_MODE) {
        void *setup = fm_find(fmu, FM_SETUP_EXPERIMENT, function);
        int status = setup ? ((setup_t)setup)(fmu->component, fmu->tolerance_defined, fmu->tolerance, e->start,
                                              e->stop_defined, e->stop)
                           : FM_MISSING;
        if (fm_failed(status))
            return status;
    }
    void *address = fm_find(fmu, which, function);
    if (!address)
        return state == FM_TERMINATED ? FM_OK : FM_MISSING; /* the run is over: the call is skipped */
    return ((plain_t)address)(fmu->component);
}

static int update(void *self, fm_update *answer, const char **function)
{
    (void)self, (void)answer;
    *function = "UpdateDiscreteStates"; /* which FMI 2.0 has for Model Exchange only */
    return FM_MISSING;
}

void fm_fmi2_table(fm_fmu *fmu, fm_instance *instance)
{
    fmu->names = NAMES;
    fmu->do_step = fmu->functions[FM_DO_STEP];
    *instance = (fm_instance){fmu, set_polynomials, fmu->do_step ? do_step : fm_missing_step, fm_save_state, fm_restore_state, enter, update,
                              fmu->do_step ? 2 : 0, 0, 0};
}
