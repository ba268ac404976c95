/* FMI 2.0 for Co-Simulation: instance.h in the words of fmi2Functions.h. */
#include "instance.h"
#include "fmi2Functions.h"   /* with the prefix of its functions from instance.h */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    fm_Instance base;
    const fmi2CallbackFunctions *callbacks;
    char *name;
    double stop_time;         /* from fmi2SetupExperiment until fmi2EnterInitializationMode */
    double start_time;
    bool set_up;
    bool terminated;          /* the last step ended the simulation */
} Instance;

/* fm_Status has the numbers of fmi2Status; FM_TERMINATE is fmi2Discard, and fmi2GetBooleanStatus tells them apart. */
static fmi2Status status2(fm_Status status)
{
    return status == FM_TERMINATE ? fmi2Discard : (fmi2Status)status;
}

static void log_message(fm_Instance *base, fm_Status status, const char *category, const char *message)
{
    Instance *self = (Instance *)base;
    self->callbacks->logger(self->callbacks->componentEnvironment, self->name, (fmi2Status)status, category, "%s",
                            message);
}

/* Inquire version numbers and set debug logging -------------------------------------------------------------------- */

const char *fmi2GetTypesPlatform(void)
{
    return fmi2TypesPlatform;
}

const char *fmi2GetVersion(void)
{
    return "2.0";
}

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean loggingOn, size_t nCategories,
                               const fmi2String categories[])
{
    return status2(fm_set_logging(c, __func__, loggingOn, nCategories, categories));
}

/* Creation and destruction ----------------------------------------------------------------------------------------- */

void fmi2FreeInstance(fmi2Component c)
{
    Instance *self = c;
    fm_called(c, __func__);
    if (self) free(self->name);
    free(self);
}

/* Frees an instance that cannot be used, after a message that says why. */
#define REFUSE(self, ...) (fm_report(&(self)->base, FM_ERROR, __VA_ARGS__), fmi2FreeInstance(self), NULL)

/* The path of a URI such as file:///tmp/a%20b, to be freed; NULL if there is none. */
static char *path_of(const char *uri)
{
    static const char SCHEME[] = "file:", HOST[] = "//";
    if (!uri) return NULL;
    if (strncmp(uri, SCHEME, strlen(SCHEME)) == 0) uri += strlen(SCHEME);
    if (strncmp(uri, HOST, strlen(HOST)) == 0) {
        uri += strlen(HOST);
        uri += strcspn(uri, "/");                        /* the name of the host, if there is one */
    }
    if (uri[0] == '/' && uri[1] && uri[2] == ':') uri++; /* Windows: /C:/ */
    char *path = malloc(strlen(uri) + 1);
    if (!path) return NULL;
    char *end = path;
    for (; *uri; uri++) {
        unsigned code;
        if (*uri == '%' && sscanf(uri + 1, "%2x", &code) == 1) {
            *end++ = (char)code;
            uri += 2;
        } else {
            *end++ = *uri;
        }
    }
    *end = '\0';
    return path;
}

fmi2Component fmi2Instantiate(fmi2String instanceName, fmi2Type fmuType, fmi2String fmuGUID,
                              fmi2String fmuResourceLocation, const fmi2CallbackFunctions *functions,
                              fmi2Boolean visible, fmi2Boolean loggingOn)
{
    Instance *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->callbacks = functions;
    self->base.log = functions && functions->logger ? log_message : NULL;
    self->base.logged = loggingOn ? ~0u : 0u;
    self->base.stopping = FM_BY_DISCARD;
    if (!instanceName || !*instanceName) return REFUSE(self, "%s: the instance name is empty.", __func__);
    self->name = malloc(strlen(instanceName) + 1);
    if (!self->name) return REFUSE(self, "%s: there is no memory for another instance.", __func__);
    strcpy(self->name, instanceName);
    if (fmuType != fmi2CoSimulation && !FM_HAS_MODEL_EXCHANGE)
        return REFUSE(self, "%s: this FMU has no Model Exchange.", __func__);
    self->base.exchange = self->base.event_mode = fmuType != fmi2CoSimulation;
    if (self->base.exchange) self->base.stopping = FM_NEVER;
    if (!fmuGUID || strcmp(fmuGUID, FM_INSTANTIATION_TOKEN) != 0)
        return REFUSE(self, "%s: the GUID is \"%s\". This binary belongs to \"%s\".", __func__, fmuGUID ? fmuGUID : "",
                      FM_INSTANTIATION_TOKEN);
    char *resources = path_of(fmuResourceLocation);
    fm_Status status = fm_begin(&self->base, resources);
    free(resources);
    if (status == FM_OK) return self;
    fmi2FreeInstance(self);
    return NULL;
}

/* Modes ------------------------------------------------------------------------------------------------------------ */

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
                               fmi2Boolean stopTimeDefined, fmi2Real stopTime)
{
    Instance *self = c;
    if (!fm_allowed(c, __func__, FM_INSTANTIATED)) return fmi2Error;
    self->set_up = true;
    self->start_time = startTime;
    self->stop_time = stopTimeDefined ? stopTime : INFINITY;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    Instance *self = c;
    if (self && !self->set_up)
        return status2(fm_report(c, FM_ERROR, "%s: fmi2SetupExperiment was not called before.", __func__));
    return self ? status2(fm_enter_initialization(c, __func__, self->start_time, self->stop_time)) : fmi2Error;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c)
{
    return status2(fm_exit_initialization(c, __func__));
}

fmi2Status fmi2Terminate(fmi2Component c)
{
    return status2(fm_terminate(c, __func__));
}

fmi2Status fmi2Reset(fmi2Component c)
{
    Instance *self = c;
    if (!self) return fmi2Error;
    fm_called(c, __func__);
    fm_reset(c);
    self->set_up = false;
    return fmi2OK;
}

/* Step ------------------------------------------------------------------------------------------------------------- */

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real currentCommunicationPoint, fmi2Real communicationStepSize,
                      fmi2Boolean noSetFMUStatePriorToCurrentPoint)
{
    Instance *self = c;
    if (!self) return fmi2Error;
    fm_Status status = fm_step(c, __func__, currentCommunicationPoint, communicationStepSize);
    self->terminated = status == FM_TERMINATE;
    if (status == FM_DISCARD || status == FM_TERMINATE) self->base.state.mode = FM_STEP_FAILED;
    return status2(status);
}

fmi2Status fmi2CancelStep(fmi2Component c)
{
    return status2(fm_unsupported(c, __func__));   /* canRunAsynchronuously is false */
}

static const unsigned STEPPED_MODES = FM_STEP_MODE | FM_STEP_FAILED | FM_TERMINATED;

static fmi2Status no_status(fm_Instance *self, const char *function, fmi2StatusKind kind)
{
    return status2(fm_report(self, FM_ERROR, "%s: there is no status of the kind %d.", function, (int)kind));
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind s, fmi2Real *value)
{
    if (!fm_allowed(c, __func__, STEPPED_MODES)) return fmi2Error;
    if (s != fmi2LastSuccessfulTime) return no_status(c, __func__, s);
    *value = ((Instance *)c)->base.state.variables.time;
    return fmi2OK;
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind s, fmi2Boolean *value)
{
    if (!fm_allowed(c, __func__, STEPPED_MODES)) return fmi2Error;
    if (s != fmi2Terminated) return no_status(c, __func__, s);
    *value = ((Instance *)c)->terminated;
    return fmi2OK;
}

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind s, fmi2Status *value)
{
    return status2(fm_unsupported(c, __func__));
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind s, fmi2Integer *value)
{
    return status2(fm_unsupported(c, __func__));
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind s, fmi2String *value)
{
    return status2(fm_unsupported(c, __func__));
}

/* Getting and setting variable values ------------------------------------------------------------------------------ */

static const unsigned READABLE_MODES =
    FM_INITIALIZATION_MODE | FM_STEP_MODE | FM_EVENT_MODE | FM_STEP_FAILED | FM_TERMINATED | FM_FAILED;
static const unsigned SETTABLE_MODES = FM_INSTANTIATED | FM_INITIALIZATION_MODE | FM_STEP_MODE | FM_EVENT_MODE;

/* Variables that FMI 2.0 cannot express are in the FMU, because the model is the same, but nobody is told of them. */
static const fm_Variable *scalar(fm_Instance *self, const char *function, const fm_Variable *variable)
{
    if (!variable || variable->length == 1) return variable;
    fm_report(self, FM_ERROR, "%s: the variable '%s' is an array.", function, variable->name);
    return NULL;
}

/* `read` is the value of the variable at `at`. */
#define GET(Type, types, read)                                                                                         \
    fmi2Status fmi2Get##Type(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2##Type value[])           \
    {                                                                                                                  \
        if (!fm_allowed(c, __func__, READABLE_MODES)) return fmi2Error;                                                \
        for (size_t i = 0; i < nvr; i++) {                                                                             \
            const fm_Variable *variable = scalar(c, __func__, fm_readable(c, __func__, vr[i], types));                 \
            if (!variable) return fmi2Error;                                                                           \
            const void *at = fm_value(c, variable);                                                                    \
            value[i] = read;                                                                                           \
        }                                                                                                              \
        return fmi2OK;                                                                                                 \
    }

/* `write` brings value[i] to the variable at `at`. */
#define SET(Type, types, write)                                                                                        \
    fmi2Status fmi2Set##Type(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2##Type value[])     \
    {                                                                                                                  \
        if (!fm_allowed(c, __func__, SETTABLE_MODES)) return fmi2Error;                                                \
        for (size_t i = 0; i < nvr; i++) {                                                                             \
            const fm_Variable *variable = scalar(c, __func__, fm_settable(c, __func__, vr[i], types));                 \
            if (!variable) return fmi2Error;                                                                           \
            void *at = fm_value(c, variable);                                                                          \
            write;                                                                                                     \
        }                                                                                                              \
        return fmi2OK;                                                                                                 \
    }

static fmi2Integer get_integer(const fm_Variable *variable, const void *at)
{
    return variable->type == FM_INT32 ? *(const int32_t *)at : (fmi2Integer)*(const int64_t *)at;
}

static void set_integer(const fm_Variable *variable, void *at, fmi2Integer value)
{
    if (variable->type == FM_INT32) *(int32_t *)at = value;
    else *(int64_t *)at = value;
}

GET(Real, FM_FLOAT64, *(const double *)at)
GET(Integer, FM_INT32 | FM_ENUMERATION, get_integer(variable, at))
GET(Boolean, FM_BOOLEAN, *(const bool *)at ? fmi2True : fmi2False)
GET(String, FM_STRING, at)

SET(Real, FM_FLOAT64, *(double *)at = value[i])
SET(Integer, FM_INT32 | FM_ENUMERATION, set_integer(variable, at, value[i]))
SET(Boolean, FM_BOOLEAN, *(bool *)at = value[i] != fmi2False)

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2String value[])
{
    if (!fm_allowed(c, __func__, SETTABLE_MODES)) return fmi2Error;
    for (size_t i = 0; i < nvr; i++) {
        const fm_Variable *variable = fm_settable(c, __func__, vr[i], FM_STRING);
        if (!variable || fm_set_string(c, __func__, variable, value[i]) != FM_OK) return fmi2Error;
    }
    return fmi2OK;
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                       const fmi2Integer order[], const fmi2Real value[])
{
    if (!fm_allowed(c, __func__, SETTABLE_MODES)) return fmi2Error;
    for (size_t i = 0; i < nvr; i++) {
        const fm_Variable *variable = fm_settable(c, __func__, vr[i], FM_FLOAT64);
        if (!variable) return fmi2Error;
        if (!variable->slope)
            return status2(fm_report(c, FM_ERROR, "%s: '%s' is not interpolated.", __func__, variable->name));
        if (order[i] < 1 || order[i] > variable->derivatives)
            return status2(fm_report(c, FM_ERROR, "%s: derivative %d of '%s' is not used, only %s.", __func__, order[i],
                                     variable->name, variable->derivatives == 1 ? "the first is" : "lower ones are"));
        double *slope = (double *)((char *)&((Instance *)c)->base.state.variables + variable->slope);
        slope[order[i] - 1] = value[i];
    }
    return fmi2OK;
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                        const fmi2Integer order[], fmi2Real value[])
{
    return status2(fm_unsupported(c, __func__));   /* maxOutputDerivativeOrder is 0 */
}

/* FMU states and derivatives --------------------------------------------------------------------------------------- */

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *FMUstate)
{
    return status2(fm_get_state(c, __func__, FMUstate));
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate FMUstate)
{
    return status2(fm_set_state(c, __func__, FMUstate));
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *FMUstate)
{
    return status2(fm_free_state(c, __func__, FMUstate));
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate FMUstate, size_t *size)
{
    return status2(fm_serialized_size(c, __func__, FMUstate, size));
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate FMUstate, fmi2Byte serializedState[], size_t size)
{
    return status2(fm_serialize(c, __func__, FMUstate, serializedState, size));
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte serializedState[], size_t size,
                                   fmi2FMUstate *FMUstate)
{
    return status2(fm_deserialize(c, __func__, serializedState, size, FMUstate));
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference vUnknown_ref[], size_t nUnknown,
                                        const fmi2ValueReference vKnown_ref[], size_t nKnown, const fmi2Real dvKnown[],
                                        fmi2Real dvUnknown[])
{
    return status2(fm_directional_derivative(c, __func__, vUnknown_ref, nUnknown, vKnown_ref, nKnown, dvKnown,
                                             nKnown, dvUnknown));
}

/* Model Exchange --------------------------------------------------------------------------------------------------- */

fmi2Status fmi2EnterEventMode(fmi2Component c)
{
    return status2(fm_enter_event_mode(c, __func__));
}

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *eventInfo)
{
    fm_Update update = {.next_time = INFINITY};
    fm_Status status = fm_update(c, __func__, &update);
    *eventInfo = (fmi2EventInfo){
        .newDiscreteStatesNeeded = update.again,
        .terminateSimulation = update.terminate,
        .nominalsOfContinuousStatesChanged = fmi2False,
        .valuesOfContinuousStatesChanged = update.states_changed,
        .nextEventTimeDefined = update.next_time < INFINITY,
        .nextEventTime = update.next_time < INFINITY ? update.next_time : 0.0,
    };
    return status2(status);
}

fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c)
{
    return status2(fm_enter_step_mode(c, __func__));
}

fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean noSetFMUStatePriorToCurrentPoint,
                                       fmi2Boolean *enterEventMode, fmi2Boolean *terminateSimulation)
{
    *enterEventMode = *terminateSimulation = fmi2False;
    return status2(fm_complete_step(c, __func__));
}

fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time)
{
    return status2(fm_set_time(c, __func__, time));
}

fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t nx)
{
    return status2(fm_set_states(c, __func__, x, nx));
}

fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t nx)
{
    return status2(fm_get_states(c, __func__, x, nx));
}

fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real derivatives[], size_t nx)
{
    return status2(fm_get_state_derivatives(c, __func__, derivatives, nx));
}

fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real eventIndicators[], size_t ni)
{
    return status2(fm_get_indicators(c, __func__, eventIndicators, ni));
}

fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x_nominal[], size_t nx)
{
    return status2(fm_get_nominals(c, __func__, x_nominal, nx));
}
