/* FMI 2.0 calls in FMI 3.0 shape. The types are those of the FMI 2.0.5 headers. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

typedef int (*access_t)(void *, const uint32_t *, size_t, void *);
typedef int (*plain_t)(void *);
typedef int (*do_step_t)(void *, double, double, int);
typedef int (*get_state_t)(void *, void **);
typedef int (*set_state_t)(void *, void *);
typedef int (*setup_t)(void *, int, double, double, int, double);
typedef int (*derivatives_t)(void *, const uint32_t *, size_t, const int *, const double *);
typedef int (*real_status_t)(void *, int, double *);
typedef int (*boolean_status_t)(void *, int, int *);

enum { LAST_SUCCESSFUL_TIME = 2, TERMINATED = 3 };

static const char *const NAMES[FM_FUNCTIONS] = {
    [FM_GET_FLOAT64] = "GetReal", [FM_GET_INT32] = "GetInteger", [FM_GET_BOOLEAN] = "GetBoolean",
    [FM_SET_FLOAT64] = "SetReal", [FM_SET_INT32] = "SetInteger", [FM_SET_BOOLEAN] = "SetBoolean",
    [FM_DO_STEP] = "DoStep", [FM_GET_STATE] = "GetFMUstate", [FM_SET_STATE] = "SetFMUstate",
    [FM_SETUP_EXPERIMENT] = "SetupExperiment", [FM_ENTER_INITIALIZATION] = "EnterInitializationMode",
    [FM_EXIT_INITIALIZATION] = "ExitInitializationMode", [FM_TERMINATE] = "Terminate",
    [FM_SET_INPUT_DERIVATIVES] = "SetRealInputDerivatives", [FM_GET_REAL_STATUS] = "GetRealStatus",
    [FM_GET_BOOLEAN_STATUS] = "GetBooleanStatus",
};

const char *fm_fmi2_name(int function)
{
    return NAMES[function];
}

/* The address of a function, with its name left for messages; null if the library lacks it. */
static void *find(const fm_fmu *fmu, int which, const char **function)
{
    *function = NAMES[which];
    return fmu->functions[which];
}

static int access_values(fm_fmu *fmu, int which, int type, const uint32_t *references, size_t n, void *values, size_t size,
                         int is_get, const char **function)
{
    void *address = find(fmu, which, function);
    if (!address)
        return FM_MISSING;
    if (type != FM_BOOLEAN)
        return ((access_t)address)(fmu->component, references, n, values);
    /* fmi2Boolean is an int, a Boolean in the value store is one byte */
    uint8_t *bytes = values;
    if (!is_get)
        for (size_t i = 0; i < size; i++)
            fmu->booleans[i] = bytes[i] != 0;
    int status = ((access_t)address)(fmu->component, references, n, fmu->booleans);
    if (is_get)
        for (size_t i = 0; i < size; i++)
            bytes[i] = fmu->booleans[i] != 0;
    return status;
}

static int get(void *self, int type, const uint32_t *references, size_t n, void *values, size_t size,
               const char **function)
{
    return access_values(self, FM_GET_FLOAT64 + type, type, references, n, values, size, 1, function);
}

static int set(void *self, int type, const uint32_t *references, size_t n, const void *values, size_t size,
               const char **function)
{
    fm_fmu *fmu = self;
    if (type > FM_BOOLEAN) {
        return fmu->python->set(fmu->python->self, type, references, n, values, size, function);
    }
    return access_values(fmu, FM_SET_FLOAT64 + type, type, references, n, (void *)values, size, 0, function);
}

static int interpolate(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                       double time, const char **function)
{
    fm_fmu *fmu = self;
    void *address = find(fmu, FM_SET_INPUT_DERIVATIVES, function);
    (void)time;
    if (!address)
        return FM_MISSING;
    double zero[64] = {0};
    for (int d = 1; d <= fmu->most_orders; d++) {
        for (size_t i = 0; i < n; i++)
            fmu->orders[i] = d;
        for (size_t first = 0; first < n; first += 64) {
            size_t count = n - first < 64 ? n - first : 64;
            const double *values = d <= degree ? &derivatives[(size_t)(d - 1) * n + first] : zero;
            int status = ((derivatives_t)address)(fmu->component, references + first, count, fmu->orders, values);
            if (status > FM_WARNING)
                return status;
        }
    }
    return FM_OK;
}

static int do_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    fm_fmu *fmu = self;
    void *address = find(fmu, FM_DO_STEP, function);
    if (!address)
        return FM_MISSING;
    /* saved states are kept: a step may be undone */
    int status = ((do_step_t)address)(fmu->component, time, size, !fmu->has_saved);
    if (status != FM_DISCARD)
        return status;
    double reached = time;
    int terminated = 0;
    if (fmu->functions[FM_GET_REAL_STATUS])
        ((real_status_t)fmu->functions[FM_GET_REAL_STATUS])(fmu->component, LAST_SUCCESSFUL_TIME, &reached);
    if (fmu->functions[FM_GET_BOOLEAN_STATUS])
        ((boolean_status_t)fmu->functions[FM_GET_BOOLEAN_STATUS])(fmu->component, TERMINATED, &terminated);
    answer->last_successful_time = reached;
    answer->discarded = 1;
    answer->terminate = terminated;
    return FM_OK;
}

static int save(void *self, int place, const char **function)
{
    fm_fmu *fmu = self;
    void *address = find(fmu, FM_GET_STATE, function);
    fmu->has_saved = 1;
    return address ? ((get_state_t)address)(fmu->component, &fmu->places[place]) : FM_MISSING;
}

static int restore(void *self, int place, const char **function)
{
    fm_fmu *fmu = self;
    void *address = find(fmu, FM_SET_STATE, function);
    return address ? ((set_state_t)address)(fmu->component, fmu->places[place]) : FM_MISSING;
}

static int enter(void *self, int state, const fm_experiment *e, const char **function)
{
    fm_fmu *fmu = self;
    int which = state == FM_STEP_MODE ? FM_EXIT_INITIALIZATION : state == FM_TERMINATED ? FM_TERMINATE : FM_ENTER_INITIALIZATION;
    if (state == FM_INITIALIZATION_MODE) {
        void *setup = find(fmu, FM_SETUP_EXPERIMENT, function);
        int defined = e->tolerance_defined || fmu->tolerance_defined;
        double tolerance = e->tolerance_defined ? e->tolerance : fmu->tolerance;
        int status = setup ? ((setup_t)setup)(fmu->component, defined, tolerance, e->start, e->stop_defined, e->stop)
                           : FM_MISSING;
        if (status > FM_WARNING)
            return status;
    }
    void *address = find(fmu, which, function);
    return address ? ((plain_t)address)(fmu->component) : FM_MISSING;
}

void fm_fmi2_table(fm_fmu *fmu, fm_instance *instance)
{
    *instance = (fm_instance){fmu, get, set, interpolate, do_step, save, restore, enter};
}
