/* FMI 3.0 calls as they are. The types are those of the FMI 3.0.2 headers. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "calls.h"

typedef int (*clock_access_t)(void *, const uint32_t *, size_t, void *);
typedef int (*decimal_t)(void *, const uint32_t *, size_t, double *, int32_t *);
typedef int (*fraction_t)(void *, const uint32_t *, size_t, uint64_t *, uint64_t *, int32_t *);
typedef int (*binary_access_t)(void *, const uint32_t *, size_t, size_t *, const char **, size_t);
typedef int (*update_t)(void *, bool *, bool *, bool *, bool *, bool *, double *);
typedef int (*derivative_t)(void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, size_t, double *,
                            size_t);
typedef int (*plain_t)(void *);
typedef int (*initialize_t)(void *, bool, double, double, bool, double);

static const char *const NAMES[FM_FUNCTIONS] = {
    [FM_GET_FLOAT64] = "GetFloat64", [FM_GET_FLOAT32] = "GetFloat32", [FM_GET_INT8] = "GetInt8",
    [FM_GET_UINT8] = "GetUInt8", [FM_GET_INT16] = "GetInt16", [FM_GET_UINT16] = "GetUInt16",
    [FM_GET_INT32] = "GetInt32", [FM_GET_UINT32] = "GetUInt32", [FM_GET_INT64] = "GetInt64",
    [FM_GET_UINT64] = "GetUInt64", [FM_GET_BOOLEAN] = "GetBoolean", [FM_GET_STRING] = "GetString", [FM_GET_BINARY] = "GetBinary",
    [FM_SET_FLOAT64] = "SetFloat64", [FM_SET_FLOAT32] = "SetFloat32", [FM_SET_INT8] = "SetInt8",
    [FM_SET_UINT8] = "SetUInt8", [FM_SET_INT16] = "SetInt16", [FM_SET_UINT16] = "SetUInt16",
    [FM_SET_INT32] = "SetInt32", [FM_SET_UINT32] = "SetUInt32", [FM_SET_INT64] = "SetInt64",
    [FM_SET_UINT64] = "SetUInt64", [FM_SET_BOOLEAN] = "SetBoolean", [FM_SET_STRING] = "SetString", [FM_SET_BINARY] = "SetBinary",
    [FM_DO_STEP] = "DoStep", [FM_GET_STATE] = "GetFMUState", [FM_SET_STATE] = "SetFMUState",
    [FM_FREE_STATE] = "FreeFMUState",
    [FM_ENTER_CONFIGURATION] = "EnterConfigurationMode", [FM_EXIT_CONFIGURATION] = "ExitConfigurationMode",
    [FM_ENTER_INITIALIZATION] = "EnterInitializationMode", [FM_EXIT_INITIALIZATION] = "ExitInitializationMode",
    [FM_TERMINATE] = "Terminate", [FM_GET_CLOCK] = "GetClock", [FM_SET_CLOCK] = "SetClock",
    [FM_ENTER_EVENT] = "EnterEventMode", [FM_ENTER_STEP] = "EnterStepMode",
    [FM_UPDATE_DISCRETE_STATES] = "UpdateDiscreteStates",
    [FM_GET_DIRECTIONAL_DERIVATIVE] = "GetDirectionalDerivative",
    [FM_GET_INTERVAL_DECIMAL] = "GetIntervalDecimal", [FM_GET_INTERVAL_FRACTION] = "GetIntervalFraction",
    [FM_SET_TIME] = "SetTime", [FM_SET_CONTINUOUS_STATES] = "SetContinuousStates", [FM_GET_DERIVATIVES] = "GetContinuousStateDerivatives",
    [FM_GET_EVENT_INDICATORS] = "GetEventIndicators", [FM_COMPLETED_INTEGRATOR_STEP] = "CompletedIntegratorStep",
    [FM_ACTIVATE_PARTITION] = "ActivateModelPartition",
};

const char *fm_fmi3_name(int function)
{
    return NAMES[function];
}

static int transfer(const fm_segment *s)
{
    return ((fm_access3_t)s->address)(s->self, s->references, s->n, s->values, s->size);
}

static int transfer_clocks(const fm_segment *s)
{
    return ((clock_access_t)s->address)(s->self, s->references, s->n, s->values);
}

/* GetString, GetBinary, SetString, SetBinary. */
static int access_texts(const fm_segment *s)
{
    const fm_texts *t = s->texts;
    return t->sizes ? ((binary_access_t)s->address)(s->self, s->references, s->n, t->sizes, t->bytes, s->size)
                    : ((fm_access3_t)s->address)(s->self, s->references, s->n, t->bytes, s->size);
}

static int get_texts(const fm_segment *s)
{
    int status = access_texts(s);
    return fm_failed(status) ? status : fm_take_texts(s);
}

static int set_texts(const fm_segment *s)
{
    int status = fm_give_texts(s);
    return fm_failed(status) ? status : access_texts(s);
}

void fm_fmi3_bind(const fm_fmu *fmu, int type, int is_get, fm_segment *s)
{
    int is_clock = type == FM_CLOCK;
    s->which = is_clock ? (is_get ? FM_GET_CLOCK : FM_SET_CLOCK) : (is_get ? FM_GET_FLOAT64 : FM_SET_FLOAT64) + type;
    s->self = fmu->component;
    s->address = fm_find(fmu, s->which, &s->function);
    s->transfer = !s->address          ? fm_missing
                  : is_clock           ? transfer_clocks
                  : fm_is_object(type) ? (is_get ? get_texts : set_texts)
                                       : transfer;
    s->version = s->transfer == transfer ? 3 : 0;
}

static int get_decimals(const fm_segment *s)
{
    const fm_intervals *v = s->intervals;
    return ((decimal_t)s->address)(s->self, s->references, s->n, v->seconds, v->qualifiers);
}

static int get_fractions(const fm_segment *s)
{
    const fm_intervals *v = s->intervals;
    int status = ((fraction_t)s->address)(s->self, s->references, s->n, v->counters, v->resolutions, v->qualifiers);
    for (size_t i = 0; i < s->n && !fm_failed(status); i++)
        if (v->qualifiers[i] == FM_CHANGED && !v->resolutions[i])
            return FM_NOT_VALID;
    return status;
}

void fm_fmi3_bind_intervals(const fm_fmu *fmu, int is_fraction, fm_segment *s)
{
    s->self = fmu->component;
    s->which = is_fraction ? FM_GET_INTERVAL_FRACTION : FM_GET_INTERVAL_DECIMAL;
    s->address = fm_find(fmu, s->which, &s->function);
    s->transfer = !s->address ? fm_missing : is_fraction ? get_fractions : get_decimals;
    s->version = 0;
}

static int derive(const fm_derivative *d)
{
    return ((derivative_t)d->address)(d->self, d->unknowns, d->n_unknowns, d->knowns, d->n_knowns, d->seed,
                                     d->n_seed, d->sensitivity, d->n_sensitivity);
}

void fm_fmi3_bind_derivative(const fm_fmu *fmu, fm_derivative *d)
{
    d->self = fmu->component;
    d->address = fm_find(fmu, FM_GET_DIRECTIONAL_DERIVATIVE, &d->function);
    d->derive = d->address ? derive : fm_missing_derivative;
}

static int set_polynomials(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                       double time, const char **function)
{
    const fm_fmu *fmu = self;
    (void)references;
    if (fmu->n_coefficients)
        return fm_set_coefficients(fmu, n, degree, derivatives, function);
    if (fmu->updates)
        fm_take_polynomials(fmu->updates, derivatives, time);
    return FM_OK;
}

int fm_fmi3_answer(int status, double time, fm_answer *answer, const char **function)
{
    *function = NAMES[FM_DO_STEP];
    if (status == FM_DISCARD) /* its other results are undefined, and its time is unchanged */
        *answer = (fm_answer){time, 0, 1, 0, 0};
    return fm_failed(status) ? status : FM_DISCARD;
}

static int do_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    const fm_fmu *fmu = self;
    /* saved states stay valid: a step may be undone */
    return fm_fmi3_step(fmu->do_step, fmu->component, *fmu->kept_from >= time, time, size, answer, function);
}

/* A step of an FMU whose Intermediate Update Mode is used. */
static int do_step_with_updates(void *self, double time, double size, fm_answer *answer, const char **function)
{
    const fm_fmu *fmu = self;
    fmu->updates->begin = time;
    int status = fm_fmi3_step(fmu->do_step, fmu->component, *fmu->kept_from >= time, time, size, answer, function);
    *function = NAMES[FM_DO_STEP];
    return fmu->updates->failed ? FM_ERROR : status;
}

static int enter(void *self, int state, const fm_experiment *e, const char **function)
{
    static const int WHICH[] = {
        [FM_INSTANTIATED] = FM_EXIT_CONFIGURATION, [FM_CONFIGURATION_MODE] = FM_ENTER_CONFIGURATION,
        [FM_INITIALIZATION_MODE] = FM_ENTER_INITIALIZATION, [FM_STEP_MODE] = FM_EXIT_INITIALIZATION,
        [FM_TERMINATED] = FM_TERMINATE, [FM_EVENT_MODE] = FM_EXIT_INITIALIZATION,
    };
    fm_fmu *fmu = self;
    int which = WHICH[state];
    if (which == FM_EXIT_INITIALIZATION && *fmu->initialized) /* leads to one of the two modes */
        which = state == FM_STEP_MODE ? FM_ENTER_STEP : FM_ENTER_EVENT;
    void *address = fm_find(fmu, which, function);
    if (!address)
        return state == FM_TERMINATED ? FM_OK : FM_MISSING; /* the run is over: the call is skipped */
    if (state != FM_INITIALIZATION_MODE) {
        int status = ((plain_t)address)(fmu->component);
        *fmu->initialized |= which == FM_EXIT_INITIALIZATION; /* not before: the call is told by it */
        return status;
    }
    return ((initialize_t)address)(fmu->component, fmu->tolerance_defined, fmu->tolerance, e->start, e->stop_defined,
                                   e->stop);
}

static int update(void *self, fm_update *answer, const char **function)
{
    const fm_fmu *fmu = self;
    void *address = fm_find(fmu, FM_UPDATE_DISCRETE_STATES, function);
    bool wants = false, terminate = false, nominals = false, states = false, defined = false;
    double next = 0.0;
    if (!address)
        return FM_MISSING;
    int status = ((update_t)address)(fmu->component, &wants, &terminate, &nominals, &states, &defined, &next);
    answer->wants_update = wants;
    answer->terminate = terminate;
    if (defined)
        answer->next_event_time = next;
    return status;
}

void fm_fmi3_table(fm_fmu *fmu, fm_instance *instance)
{
    fmu->names = NAMES;
    fmu->do_step = fmu->functions[FM_DO_STEP];
    *instance = (fm_instance){fmu, set_polynomials,
                              !fmu->do_step ? fm_missing_step : fmu->updates ? do_step_with_updates : do_step,
                              fm_save_state, fm_restore_state, enter, update,
                              fmu->do_step && !fmu->updates ? 3 : 0, 0, 0};
}
