/* Calls of a Model Exchange FMU that integrators make at each stage: inline, since small FMUs take no longer than these. */

typedef int (*set_time_t)(void *, double);
typedef int (*array_t)(void *, double *, size_t);

/* The status of a call, with the name of the function for messages if it has failed. */
static inline int called(fm_exchange *x, int which, int status)
{
    if (fm_failed(status))
        x->function = x->fmu->names[which];
    return status;
}

/* A call of an FMI function with an array. */
static inline int pass(fm_exchange *x, int which, double *values, int n)
{
    if (n == 0)
        return FM_OK;
    void *address = x->fmu->functions[which];
    *x->fmu->calling = (uint8_t)which;
    return called(x, which, address ? ((array_t)address)(x->fmu->component, values, (size_t)n) : FM_MISSING);
}

/* Set time, states and inputs. FM_DISCARD: not possible there. */
static inline int move(fm_exchange *x, double time, double *states)
{
    void *address = x->fmu->functions[FM_SET_TIME];
    *x->fmu->calling = FM_SET_TIME;
    int status = called(x, FM_SET_TIME, address ? ((set_time_t)address)(x->fmu->component, time) : FM_MISSING);
    if (fm_failed(status))
        return status;
    status = pass(x, FM_SET_CONTINUOUS_STATES, states, x->n);
    return fm_failed(status) || !x->fmu->updates ? status : fm_exchange_set_inputs(x, time);
}

/* Get the derivatives where the FMU stands. FM_DISCARD: not possible there. */
static inline int derive(fm_exchange *x, double *derivatives)
{
    return pass(x, FM_GET_DERIVATIVES, derivatives, x->n);
}
