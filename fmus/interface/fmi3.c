/* FMI 3.0 for Co-Simulation: instance.h in the words of fmi3Functions.h. */
#include "instance.h"
#include "fmi3Functions.h"   /* with the prefix of its functions from instance.h */

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    fm_Instance base;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log_message;
    fmi3IntermediateUpdateCallback intermediate_update;
    fmi3ClockUpdateCallback clock_update;
} Instance;

/* fm_Status has the numbers of fmi3Status; FM_TERMINATE is told in another way. */
static fmi3Status status3(fm_Status status)
{
    return status == FM_TERMINATE ? fmi3OK : (fmi3Status)status;
}

static void log_message(fm_Instance *base, fm_Status status, const char *category, const char *message)
{
    Instance *self = (Instance *)base;
    self->log_message(self->environment, status3(status), category, message);
}

static void intermediate_update(fm_Instance *base, double time)
{
    Instance *self = (Instance *)base;
    fmi3Boolean early_return_requested = fmi3False;
    fmi3Float64 early_return_time = 0.0;
    self->intermediate_update(self->environment, time, fmi3True, fmi3False, fmi3False, fmi3False,
                              &early_return_requested, &early_return_time);
}

static void clock_update(fm_Instance *base)
{
    Instance *self = (Instance *)base;
    self->clock_update(self->environment);
}

static double intermediate_values(fm_Instance *base, double time)
{
    Instance *self = (Instance *)base;
    fmi3Boolean can_return = base->stopping == FM_BY_RETURN, early_return_requested = fmi3False;
    fmi3Float64 early_return_time = time;
    self->intermediate_update(self->environment, time, fmi3False, fmi3True, fmi3True, can_return, &early_return_requested,
                              &early_return_time);
    return can_return && early_return_requested ? early_return_time : INFINITY;
}

/* Inquire version numbers and set debug logging -------------------------------------------------------------------- */

const char *fmi3GetVersion(void)
{
    return fmi3Version;
}

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean loggingOn, size_t nCategories,
                               const fmi3String categories[])
{
    return status3(fm_set_logging(instance, __func__, loggingOn, nCategories, categories));
}

/* Creation and destruction ----------------------------------------------------------------------------------------- */

/* Frees an instance that cannot be used, after a message that says why. */
#define REFUSE(self, ...) (fm_report(&(self)->base, FM_ERROR, __VA_ARGS__), free(self), NULL)

fmi3Instance fmi3InstantiateCoSimulation(
    fmi3String instanceName, fmi3String instantiationToken, fmi3String resourcePath, fmi3Boolean visible,
    fmi3Boolean loggingOn, fmi3Boolean eventModeUsed, fmi3Boolean earlyReturnAllowed,
    const fmi3ValueReference requiredIntermediateVariables[], size_t nRequiredIntermediateVariables,
    fmi3InstanceEnvironment instanceEnvironment, fmi3LogMessageCallback logMessage,
    fmi3IntermediateUpdateCallback intermediateUpdate)
{
    Instance *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->environment = instanceEnvironment;
    self->log_message = logMessage;
    self->intermediate_update = intermediateUpdate;
    self->base.log = logMessage ? log_message : NULL;
    self->base.intermediate_update = intermediateUpdate ? intermediate_update : NULL;
    self->base.intermediate_values = intermediateUpdate ? intermediate_values : NULL;
    self->base.logged = loggingOn ? ~0u : 0u;
    if (!instanceName || !*instanceName) return REFUSE(self, "%s: the instance name is empty.", __func__);
    if (!instantiationToken || strcmp(instantiationToken, FM_INSTANTIATION_TOKEN) != 0)
        return REFUSE(self, "%s: the instantiation token is \"%s\". This binary belongs to \"%s\".", __func__,
                      instantiationToken ? instantiationToken : "", FM_INSTANTIATION_TOKEN);
    if (fm_begin(&self->base, resourcePath) != FM_OK) {
        free(self);
        return NULL;
    }
    if (eventModeUsed && !FM_HAS_EVENT_MODE)
        return REFUSE(self, "%s: eventModeUsed is true, but hasEventMode is false.", __func__);
    self->base.event_mode = eventModeUsed;
    self->base.stopping = eventModeUsed && earlyReturnAllowed ? FM_BY_RETURN : FM_NEVER;
    for (size_t i = 0; i < nRequiredIntermediateVariables; i++)
        if (!fm_is_intermediate(requiredIntermediateVariables[i]))
            return REFUSE(self, "%s: value reference %u is that of no variable with intermediateUpdate.", __func__,
                          (unsigned)requiredIntermediateVariables[i]);
    return self;
}

fmi3Instance fmi3InstantiateModelExchange(
    fmi3String instanceName, fmi3String instantiationToken, fmi3String resourcePath, fmi3Boolean visible,
    fmi3Boolean loggingOn, fmi3InstanceEnvironment instanceEnvironment, fmi3LogMessageCallback logMessage)
{
    if (!FM_HAS_MODEL_EXCHANGE) {
        if (logMessage) logMessage(instanceEnvironment, fmi3Error, "logStatusError", "This FMU has no Model Exchange.");
        return NULL;
    }
    Instance *self = fmi3InstantiateCoSimulation(instanceName, instantiationToken, resourcePath, visible, loggingOn,
                                                 fmi3False, fmi3False, NULL, 0, instanceEnvironment, logMessage, NULL);
    if (self) self->base.exchange = self->base.event_mode = true;
    return self;
}

fmi3Instance fmi3InstantiateScheduledExecution(
    fmi3String instanceName, fmi3String instantiationToken, fmi3String resourcePath, fmi3Boolean visible,
    fmi3Boolean loggingOn, fmi3InstanceEnvironment instanceEnvironment, fmi3LogMessageCallback logMessage,
    fmi3ClockUpdateCallback clockUpdate, fmi3LockPreemptionCallback lockPreemption,
    fmi3UnlockPreemptionCallback unlockPreemption)
{
    if (!FM_HAS_SCHEDULED_EXECUTION) {
        if (logMessage)
            logMessage(instanceEnvironment, fmi3Error, "logStatusError", "This FMU has no Scheduled Execution.");
        return NULL;
    }
    Instance *self = fmi3InstantiateCoSimulation(instanceName, instantiationToken, resourcePath, visible, loggingOn,
                                                 fmi3False, fmi3False, NULL, 0, instanceEnvironment, logMessage, NULL);
    if (!self) return NULL;
    if (!clockUpdate) return REFUSE(self, "%s: clockUpdate is NULL.", __func__);
    self->clock_update = clockUpdate;
    self->base.clock_update = clock_update;
    self->base.lock = lockPreemption;
    self->base.unlock = unlockPreemption;
    self->base.scheduled = true;
    return self;
}

void fmi3FreeInstance(fmi3Instance instance)
{
    fm_called(instance, __func__);
    free(instance);
}

/* Modes ------------------------------------------------------------------------------------------------------------ */

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean toleranceDefined, fmi3Float64 tolerance,
                                       fmi3Float64 startTime, fmi3Boolean stopTimeDefined, fmi3Float64 stopTime)
{
    return status3(fm_enter_initialization(instance, __func__, startTime, stopTimeDefined ? stopTime : INFINITY));
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    return status3(fm_exit_initialization(instance, __func__));
}

fmi3Status fmi3Terminate(fmi3Instance instance)
{
    return status3(fm_terminate(instance, __func__));
}

fmi3Status fmi3Reset(fmi3Instance instance)
{
    if (!instance) return fmi3Error;
    fm_called(instance, __func__);
    fm_reset(instance);
    return fmi3OK;
}

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 currentCommunicationPoint, fmi3Float64 communicationStepSize,
                      fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *eventHandlingNeeded,
                      fmi3Boolean *terminateSimulation, fmi3Boolean *earlyReturn, fmi3Float64 *lastSuccessfulTime)
{
    if (!instance) return fmi3Error;
    fm_Status status = fm_step(instance, __func__, currentCommunicationPoint, communicationStepSize);
    const Variables *v = &((Instance *)instance)->base.state.variables;
    *eventHandlingNeeded = v->memory.event_waits;
    *terminateSimulation = status == FM_TERMINATE;
    *earlyReturn = status != FM_ERROR && status != FM_DISCARD && v->time < currentCommunicationPoint + communicationStepSize;
    *lastSuccessfulTime = v->time;
    return status3(status);
}

/* Event Mode ------------------------------------------------------------------------------------------------------- */

fmi3Status fmi3EnterEventMode(fmi3Instance instance)
{
    return status3(fm_enter_event_mode(instance, __func__));
}

fmi3Status fmi3EnterStepMode(fmi3Instance instance)
{
    return status3(fm_enter_step_mode(instance, __func__));
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean *discreteStatesNeedUpdate,
                                    fmi3Boolean *terminateSimulation, fmi3Boolean *nominalsOfContinuousStatesChanged,
                                    fmi3Boolean *valuesOfContinuousStatesChanged, fmi3Boolean *nextEventTimeDefined,
                                    fmi3Float64 *nextEventTime)
{
    fm_Update update = {.next_time = INFINITY};
    fmi3Status status = status3(fm_update(instance, __func__, &update));
    *discreteStatesNeedUpdate = update.again;
    *terminateSimulation = update.terminate;
    *nominalsOfContinuousStatesChanged = fmi3False;
    *valuesOfContinuousStatesChanged = update.states_changed;
    *nextEventTimeDefined = update.next_time < INFINITY;
    *nextEventTime = *nextEventTimeDefined ? update.next_time : 0.0;
    return status;
}

fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        fmi3Clock values[])
{
    if (!fm_allowed(instance, __func__, FM_EVENT_MODE | FM_CLOCK_UPDATE_MODE)) return fmi3Error;
    for (size_t i = 0; i < nValueReferences; i++) {
        const fm_Variable *variable = fm_readable(instance, __func__, valueReferences[i], FM_CLOCK);
        if (!variable) return fmi3Error;
#if FM_HAS_SCHEDULED_EXECUTION
        values[i] = fm_take_clock(instance, variable);
#else
        values[i] = ((fm_Clock *)fm_value(instance, variable))->active;
#endif
    }
    return fmi3OK;
}

fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        const fmi3Clock values[])
{
    if (!fm_allowed(instance, __func__, FM_EVENT_MODE)) return fmi3Error;
    for (size_t i = 0; i < nValueReferences; i++)
        if (fm_set_clock(instance, __func__, valueReferences[i], values[i]) != FM_OK) return fmi3Error;
    return fmi3OK;
}

static const unsigned CLOCK_MODES =
    FM_INITIALIZATION_MODE | FM_EVENT_MODE | FM_CLOCK_ACTIVATION_MODE | FM_CLOCK_UPDATE_MODE;

fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                  size_t nValueReferences, fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[])
{
    if (!fm_allowed(instance, __func__, CLOCK_MODES)) return fmi3Error;
    for (size_t i = 0; i < nValueReferences; i++) {
        fm_Interval interval;
        if (fm_get_interval(instance, __func__, valueReferences[i], false, &interval) != FM_OK) return fmi3Error;
        intervals[i] = interval.seconds;
        qualifiers[i] = (fmi3IntervalQualifier)interval.known;
    }
    return fmi3OK;
}

fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                   size_t nValueReferences, fmi3UInt64 counters[], fmi3UInt64 resolutions[],
                                   fmi3IntervalQualifier qualifiers[])
{
    if (!fm_allowed(instance, __func__, CLOCK_MODES)) return fmi3Error;
    for (size_t i = 0; i < nValueReferences; i++) {
        fm_Interval interval;
        if (fm_get_interval(instance, __func__, valueReferences[i], true, &interval) != FM_OK) return fmi3Error;
        counters[i] = interval.fraction.counter;
        resolutions[i] = interval.fraction.resolution;
        qualifiers[i] = (fmi3IntervalQualifier)interval.known;
    }
    return fmi3OK;
}

fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                               size_t nValueReferences, fmi3Float64 shifts[])
{
    if (!fm_allowed(instance, __func__, CLOCK_MODES)) return fmi3Error;
    for (size_t i = 0; i < nValueReferences; i++) {
        fm_Interval shift;
        if (fm_get_shift(instance, __func__, valueReferences[i], false, &shift) != FM_OK) return fmi3Error;
        shifts[i] = shift.seconds;
    }
    return fmi3OK;
}

fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference valueReferences[],
                                size_t nValueReferences, fmi3UInt64 counters[], fmi3UInt64 resolutions[])
{
    if (!fm_allowed(instance, __func__, CLOCK_MODES)) return fmi3Error;
    for (size_t i = 0; i < nValueReferences; i++) {
        fm_Interval shift;
        if (fm_get_shift(instance, __func__, valueReferences[i], true, &shift) != FM_OK) return fmi3Error;
        counters[i] = shift.fraction.counter;
        resolutions[i] = shift.fraction.resolution;
    }
    return fmi3OK;
}

#define SET_OF_CLOCKS(What, set_it, modes)                                                                             \
    fmi3Status fmi3Set##What##Decimal(fmi3Instance instance, const fmi3ValueReference valueReferences[],               \
                                      size_t nValueReferences, const fmi3Float64 values[])                             \
    {                                                                                                                  \
        if (!fm_allowed(instance, __func__, modes)) return fmi3Error;                                                  \
        for (size_t i = 0; i < nValueReferences; i++)                                                                  \
            if (set_it(instance, __func__, valueReferences[i], false, (fm_Interval){.seconds = values[i]}) != FM_OK)   \
                return fmi3Error;                                                                                      \
        return fmi3OK;                                                                                                 \
    }                                                                                                                  \
    fmi3Status fmi3Set##What##Fraction(fmi3Instance instance, const fmi3ValueReference valueReferences[],              \
                                       size_t nValueReferences, const fmi3UInt64 counters[],                           \
                                       const fmi3UInt64 resolutions[])                                                 \
    {                                                                                                                  \
        if (!fm_allowed(instance, __func__, modes)) return fmi3Error;                                                  \
        for (size_t i = 0; i < nValueReferences; i++)                                                                  \
            if (set_it(instance, __func__, valueReferences[i], true,                                                   \
                       (fm_Interval){.fraction = {counters[i], resolutions[i]}}) != FM_OK)                             \
                return fmi3Error;                                                                                      \
        return fmi3OK;                                                                                                 \
    }

SET_OF_CLOCKS(Interval, fm_set_interval, CLOCK_MODES)
SET_OF_CLOCKS(Shift, fm_set_shift, FM_INITIALIZATION_MODE)

/* Getting and setting variable values ------------------------------------------------------------------------------ */

static const unsigned READABLE_MODES =
    FM_INSTANTIATED | FM_INITIALIZATION_MODE | FM_STEP_MODE | FM_INTERMEDIATE_UPDATE_MODE | FM_EVENT_MODE |
    FM_CLOCK_ACTIVATION_MODE | FM_TERMINATED | FM_FAILED;
static const unsigned SETTABLE_MODES =
    FM_INSTANTIATED | FM_INITIALIZATION_MODE | FM_STEP_MODE | FM_INTERMEDIATE_UPDATE_MODE | FM_EVENT_MODE |
    FM_CLOCK_ACTIVATION_MODE;

static fmi3Status wrong_size(fm_Instance *self, const char *function, size_t nValues)
{
    return status3(fm_report(self, FM_ERROR, "%s: nValues is %zu, which is not what the variables have together.",
                             function, nValues));
}

/* Get and set the types of C, whose elements have `size` bytes. */
static fmi3Status get(fm_Instance *self, const char *function, unsigned types, const fmi3ValueReference references[],
                      size_t count, void *values, size_t nValues, size_t size)
{
    if (!fm_allowed(self, function, READABLE_MODES)) return fmi3Error;
    if (self->state.only_set)
        return status3(fm_report(self, FM_ERROR, "%s: variables were set, and no model partition was activated since then.",
                                 function));
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        const fm_Variable *variable = fm_readable(self, function, references[i], types);
        if (!variable) return fmi3Error;
        if (variable->length > nValues - done) return wrong_size(self, function, nValues);
        memcpy((char *)values + done * size, fm_value(self, variable), variable->length * size);
        done += variable->length;
    }
    return done == nValues ? fmi3OK : wrong_size(self, function, nValues);
}

static fmi3Status set(fm_Instance *self, const char *function, unsigned types, const fmi3ValueReference references[],
                      size_t count, const void *values, size_t nValues, size_t size)
{
    if (!fm_allowed(self, function, SETTABLE_MODES)) return fmi3Error;
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        const fm_Variable *variable = fm_settable(self, function, references[i], types);
        if (!variable) return fmi3Error;
        if (variable->length > nValues - done) return wrong_size(self, function, nValues);
        memcpy(fm_value(self, variable), (const char *)values + done * size, variable->length * size);
        done += variable->length;
    }
    self->state.only_set = self->state.mode == FM_CLOCK_ACTIVATION_MODE;
    return done == nValues ? fmi3OK : wrong_size(self, function, nValues);
}

#define GET_AND_SET(Type, types)                                                                                       \
    fmi3Status fmi3Get##Type(fmi3Instance instance, const fmi3ValueReference valueReferences[],                        \
                             size_t nValueReferences, fmi3##Type values[], size_t nValues)                             \
    {                                                                                                                  \
        return get(instance, __func__, types, valueReferences, nValueReferences, values, nValues, sizeof *values);     \
    }                                                                                                                  \
    fmi3Status fmi3Set##Type(fmi3Instance instance, const fmi3ValueReference valueReferences[],                        \
                             size_t nValueReferences, const fmi3##Type values[], size_t nValues)                       \
    {                                                                                                                  \
        return set(instance, __func__, types, valueReferences, nValueReferences, values, nValues, sizeof *values);     \
    }

GET_AND_SET(Float32, FM_FLOAT32)
GET_AND_SET(Float64, FM_FLOAT64)
GET_AND_SET(Int8, FM_INT8)
GET_AND_SET(UInt8, FM_UINT8)
GET_AND_SET(Int16, FM_INT16)
GET_AND_SET(UInt16, FM_UINT16)
GET_AND_SET(Int32, FM_INT32)
GET_AND_SET(UInt32, FM_UINT32)
GET_AND_SET(Int64, FM_INT64 | FM_ENUMERATION)
GET_AND_SET(UInt64, FM_UINT64)
GET_AND_SET(Boolean, FM_BOOLEAN)

fmi3Status fmi3GetString(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         fmi3String values[], size_t nValues)
{
    if (!fm_allowed(instance, __func__, READABLE_MODES)) return fmi3Error;
    if (nValues != nValueReferences) return wrong_size(instance, __func__, nValues);
    for (size_t i = 0; i < nValues; i++) {
        const fm_Variable *variable = fm_readable(instance, __func__, valueReferences[i], FM_STRING);
        if (!variable) return fmi3Error;
        values[i] = fm_value(instance, variable);
    }
    return fmi3OK;
}

fmi3Status fmi3SetString(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         const fmi3String values[], size_t nValues)
{
    if (!fm_allowed(instance, __func__, SETTABLE_MODES)) return fmi3Error;
    if (nValues != nValueReferences) return wrong_size(instance, __func__, nValues);
    for (size_t i = 0; i < nValues; i++) {
        const fm_Variable *variable = fm_settable(instance, __func__, valueReferences[i], FM_STRING);
        if (!variable || fm_set_string(instance, __func__, variable, values[i]) != FM_OK) return fmi3Error;
    }
    return fmi3OK;
}

fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         size_t valueSizes[], fmi3Binary values[], size_t nValues)
{
    if (!fm_allowed(instance, __func__, READABLE_MODES)) return fmi3Error;
    if (nValues != nValueReferences) return wrong_size(instance, __func__, nValues);
    for (size_t i = 0; i < nValues; i++) {
        const fm_Variable *variable = fm_readable(instance, __func__, valueReferences[i], FM_BINARY);
        if (!variable) return fmi3Error;
        fm_Binary *binary = fm_value(instance, variable);
        valueSizes[i] = binary->size;
        values[i] = binary->bytes;
    }
    return fmi3OK;
}

fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         const size_t valueSizes[], const fmi3Binary values[], size_t nValues)
{
    if (!fm_allowed(instance, __func__, SETTABLE_MODES)) return fmi3Error;
    if (nValues != nValueReferences) return wrong_size(instance, __func__, nValues);
    for (size_t i = 0; i < nValues; i++) {
        const fm_Variable *variable = fm_settable(instance, __func__, valueReferences[i], FM_BINARY);
        if (!variable) return fmi3Error;
        if (valueSizes[i] > FM_CAPACITY)
            return status3(fm_report(instance, FM_ERROR, "%s: the value for '%s' has %zu bytes. Its maxSize is %d.",
                                     __func__, variable->name, valueSizes[i], FM_CAPACITY));
        fm_Binary *binary = fm_value(instance, variable);
        binary->size = valueSizes[i];
        if (binary->size) memcpy(binary->bytes, values[i], binary->size);
    }
    return fmi3OK;
}

/* FMU states and derivatives --------------------------------------------------------------------------------------- */

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *FMUState)
{
    return status3(fm_get_state(instance, __func__, FMUState));
}

fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState FMUState)
{
    return status3(fm_set_state(instance, __func__, FMUState));
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *FMUState)
{
    return status3(fm_free_state(instance, __func__, FMUState));
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState FMUState, size_t *size)
{
    return status3(fm_serialized_size(instance, __func__, FMUState, size));
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState FMUState, fmi3Byte serializedState[], size_t size)
{
    return status3(fm_serialize(instance, __func__, FMUState, serializedState, size));
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte serializedState[], size_t size,
                                   fmi3FMUState *FMUState)
{
    return status3(fm_deserialize(instance, __func__, serializedState, size, FMUState));
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                        const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[],
                                        size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity)
{
    if (nSensitivity != nUnknowns)
        return instance ? wrong_size(instance, __func__, nSensitivity) : fmi3Error;
    return status3(fm_directional_derivative(instance, __func__, unknowns, nUnknowns, knowns, nKnowns, seed,
                                             nSeed, sensitivity));
}

/* Model Exchange --------------------------------------------------------------------------------------------------- */

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance)
{
    return status3(fm_enter_step_mode(instance, __func__));
}

fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean noSetFMUStatePriorToCurrentPoint,
                                       fmi3Boolean *enterEventMode, fmi3Boolean *terminateSimulation)
{
    *enterEventMode = *terminateSimulation = fmi3False;
    return status3(fm_complete_step(instance, __func__));
}

fmi3Status fmi3SetTime(fmi3Instance instance, fmi3Float64 time)
{
    return status3(fm_set_time(instance, __func__, time));
}

fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const fmi3Float64 continuousStates[],
                                   size_t nContinuousStates)
{
    return status3(fm_set_states(instance, __func__, continuousStates, nContinuousStates));
}

fmi3Status fmi3GetContinuousStates(fmi3Instance instance, fmi3Float64 continuousStates[], size_t nContinuousStates)
{
    return status3(fm_get_states(instance, __func__, continuousStates, nContinuousStates));
}

fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, fmi3Float64 derivatives[], size_t nContinuousStates)
{
    return status3(fm_get_state_derivatives(instance, __func__, derivatives, nContinuousStates));
}

fmi3Status fmi3GetEventIndicators(fmi3Instance instance, fmi3Float64 eventIndicators[], size_t nEventIndicators)
{
    return status3(fm_get_indicators(instance, __func__, eventIndicators, nEventIndicators));
}

fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, fmi3Float64 nominals[], size_t nContinuousStates)
{
    return status3(fm_get_nominals(instance, __func__, nominals, nContinuousStates));
}

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *nEventIndicators)
{
    *nEventIndicators = fm_indicator_count(instance);
    return instance ? fmi3OK : fmi3Error;
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *nContinuousStates)
{
    *nContinuousStates = fm_state_count(instance);
    return instance ? fmi3OK : fmi3Error;
}

/* What these FMUs do not have -------------------------------------------------------------------------------------- */

#define UNSUPPORTED(name, parameters)                                                                                 \
    fmi3Status name parameters                                                                                         \
    {                                                                                                                  \
        return status3(fm_unsupported(instance, __func__));                                                            \
    }

UNSUPPORTED(fmi3GetAdjointDerivative,
            (fmi3Instance instance, const fmi3ValueReference unknowns[], size_t nUnknowns,
             const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[], size_t nSeed,
             fmi3Float64 sensitivity[], size_t nSensitivity))
UNSUPPORTED(fmi3GetNumberOfVariableDependencies,
            (fmi3Instance instance, fmi3ValueReference valueReference, size_t *nDependencies))
UNSUPPORTED(fmi3GetVariableDependencies,
            (fmi3Instance instance, fmi3ValueReference dependent, size_t elementIndicesOfDependent[],
             fmi3ValueReference independents[], size_t elementIndicesOfIndependents[],
             fmi3DependencyKind dependencyKinds[], size_t nDependencies))
UNSUPPORTED(fmi3GetOutputDerivatives,
            (fmi3Instance instance, const fmi3ValueReference references[], size_t count,
             const fmi3Int32 orders[], fmi3Float64 values[], size_t nValues))
UNSUPPORTED(fmi3EnterConfigurationMode, (fmi3Instance instance))
UNSUPPORTED(fmi3ExitConfigurationMode, (fmi3Instance instance))
UNSUPPORTED(fmi3EvaluateDiscreteStates, (fmi3Instance instance))

/* Scheduled Execution ---------------------------------------------------------------------------------------------- */

fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clockReference, fmi3Float64 activationTime)
{
#if FM_HAS_SCHEDULED_EXECUTION
    return status3(fm_activate(instance, __func__, clockReference, activationTime));
#else
    return status3(fm_unsupported(instance, __func__));
#endif
}
