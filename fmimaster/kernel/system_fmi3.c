/* FMI 3.0 for Co-Simulation: the functions of an exported system, around system_instance.h. */

#include "system_instance.h"

#include <stdlib.h>
#include <string.h>

#include "fmi3Functions.h" /* of the standard */
#include "status.h"

static void tell(fm_exported *e, int status, const char *category, const char *text)
{
    if (e->logger)
        ((fmi3LogMessageCallback)e->logger)(e->environment, (fmi3Status)status, category, text);
}

/* Inquiries ------------------------------------------------------------------------------------------------------------ */

const char *fmi3GetVersion(void)
{
    return "3.0";
}

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    return fm_exported_set_logging(instance, "fmi3SetDebugLogging", on, n, categories);
}

/* Instances ------------------------------------------------------------------------------------------------------------ */

static fmi3Instance not_offered(const char *function, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                const char *why)
{
    fm_exported e = {.logger = (void (*)(void))log, .environment = environment, .tell = tell};
    fm_exported_lacks(&e, function, why);
    return 0;
}

static const char ONLY[] = "this FMU is for Co-Simulation only";

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean on, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log)
{
    return not_offered("fmi3InstantiateModelExchange", environment, log, ONLY);
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                               fmi3Boolean on, fmi3InstanceEnvironment environment,
                                               fmi3LogMessageCallback log, fmi3ClockUpdateCallback update,
                                               fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock)
{
    return not_offered("fmi3InstantiateScheduledExecution", environment, log, ONLY);
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean on, fmi3Boolean event_mode_used, fmi3Boolean early_return_allowed,
                                         const fmi3ValueReference intermediate_variables[], size_t n_intermediate_variables,
                                         fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                         fmi3IntermediateUpdateCallback update)
{
    static const char FUNCTION[] = "fmi3InstantiateCoSimulation";
    if (event_mode_used)
        return not_offered(FUNCTION, environment, log, "eventModeUsed is true, and hasEventMode is false");
    return fm_exported_new(FUNCTION, name, token, resources, on, tell, (void (*)(void))log, environment);
}

void fmi3FreeInstance(fmi3Instance instance)
{
    fm_exported_free(instance);
}

/* Modes ---------------------------------------------------------------------------------------------------------------- */

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean tolerance_defined, fmi3Float64 tolerance,
                                       fmi3Float64 start, fmi3Boolean stop_defined, fmi3Float64 stop)
{
    static const char FUNCTION[] = "fmi3EnterInitializationMode";
    fm_exported *e = instance;
    if (!fm_exported_may(e, FUNCTION, FM_MODE_INSTANTIATED))
        return fmi3Error;
    e->experiment = (fm_experiment){start, stop_defined ? stop : 0.0, stop_defined};
    e->tolerance_defined = tolerance_defined;
    e->tolerance = tolerance_defined ? tolerance : 0.0;
    return fm_exported_initialize(e, FUNCTION);
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    return fm_exported_begin(instance, "fmi3ExitInitializationMode");
}

fmi3Status fmi3Terminate(fmi3Instance instance)
{
    return fm_exported_terminate(instance, "fmi3Terminate");
}

fmi3Status fmi3Reset(fmi3Instance instance)
{
    return fm_exported_reset(instance, "fmi3Reset");
}

/* Steps ---------------------------------------------------------------------------------------------------------------- */

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 time, fmi3Float64 size, fmi3Boolean no_set_state_before,
                      fmi3Boolean *event, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *reached)
{
    static const char FUNCTION[] = "fmi3DoStep";
    fm_exported *e = instance;
    if (!fm_exported_may(e, FUNCTION, FM_MODE_STEP))
        return fmi3Error;
    if (!event || !terminate || !early || !reached)
        return fm_exported_fail(e, FM_ERROR, "%s: the place of a result is null.", FUNCTION);
    int status = fm_exported_step(e, FUNCTION, time, size);
    *event = *early = 0;
    *terminate = e->has_ended != 0;
    *reached = e->time;
    return status;
}

/* Variables ------------------------------------------------------------------------------------------------------------ */

#define TRANSFERS(NAME, KIND) \
    fmi3Status fmi3Get##NAME(fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3##NAME values[], \
                             size_t n_values) \
    { \
        return fm_exported_get(instance, "fmi3Get" #NAME, KIND, references, n, values, n_values); \
    } \
    fmi3Status fmi3Set##NAME(fmi3Instance instance, const fmi3ValueReference references[], size_t n, \
                             const fmi3##NAME values[], size_t n_values) \
    { \
        return fm_exported_set(instance, "fmi3Set" #NAME, KIND, references, n, values, n_values); \
    }
/* The variable behind those of the system is the time; it has one value, as those that are read with it must have. */
fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Float64 values[],
                          size_t n_values)
{
    static const char FUNCTION[] = "fmi3GetFloat64";
    fm_exported *e = instance;
    size_t k = 0;
    while (e && references && k < n && references[k] != e->n_variables)
        k++;
    if (!e || !references || !values || k == n)
        return fm_exported_get(e, FUNCTION, FM_FLOAT64, references, n, values, n_values);
    if (!fm_exported_may(e, FUNCTION, FM_MODES_OF_GET))
        return fmi3Error;
    if (n != n_values)
        return fm_exported_fail(e, FM_ERROR, "%s: the time is read together with arrays. Read it alone.", FUNCTION);
    int worst = FM_OK;
    for (k = 0; k < n; k++) {
        int status = FM_OK;
        if (references[k] == e->n_variables)
            values[k] = e->time;
        else
            status = fm_exported_get(e, FUNCTION, FM_FLOAT64, references + k, 1, values + k, 1);
        if (fm_failed(status))
            return status;
        worst = status > worst ? status : worst;
    }
    return worst;
}

fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                          const fmi3Float64 values[], size_t n_values)
{
    return fm_exported_set(instance, "fmi3SetFloat64", FM_FLOAT64, references, n, values, n_values);
}

TRANSFERS(Float32, FM_FLOAT32)
TRANSFERS(Int8, FM_INT8)
TRANSFERS(UInt8, FM_UINT8)
TRANSFERS(Int16, FM_INT16)
TRANSFERS(UInt16, FM_UINT16)
TRANSFERS(Int32, FM_INT32)
TRANSFERS(UInt32, FM_UINT32)
TRANSFERS(Int64, FM_INT64)
TRANSFERS(UInt64, FM_UINT64)
TRANSFERS(Boolean, FM_BOOLEAN)
TRANSFERS(String, FM_STRING)

/* FMU states ----------------------------------------------------------------------------------------------------------- */

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    return fm_exported_save(instance, "fmi3GetFMUState", state);
}

fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state)
{
    return fm_exported_restore(instance, "fmi3SetFMUState", state);
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    return fm_exported_free_state(instance, "fmi3FreeFMUState", state);
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size)
{
    return fm_exported_serialized_size(instance, "fmi3SerializedFMUStateSize", state, size);
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size)
{
    return fm_exported_serialize(instance, "fmi3SerializeFMUState", state, bytes, size);
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state)
{
    return fm_exported_deserialize(instance, "fmi3DeserializeFMUState", bytes, size, state);
}

/* What an exported system does not have; a library has all functions of the standard ---------------------------------- */

#define LACKS(NAME, PARAMETERS, WHY) \
    fmi3Status NAME PARAMETERS \
    { \
        return fm_exported_lacks(instance, #NAME, WHY); \
    }
#define NO_BINARY "it has no variables of this type"
#define NO_EVENTS "it has no Event Mode"
#define NO_EXCHANGE "it has no Model Exchange"
#define NO_CLOCKS "it has no clocks"
LACKS(fmi3GetBinary, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, size_t sizes[], fmi3Binary
      values[], size_t n_values), NO_BINARY)
LACKS(fmi3SetBinary, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, const size_t sizes[], const
      fmi3Binary values[], size_t n_values), NO_BINARY)
LACKS(fmi3GetClock, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Clock values[]), NO_CLOCKS)
LACKS(fmi3SetClock, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, const fmi3Clock values[]),
      NO_CLOCKS)
LACKS(fmi3GetNumberOfVariableDependencies, (fmi3Instance instance, fmi3ValueReference reference, size_t *n),
      "providesPerElementDependencies is false")
LACKS(fmi3GetVariableDependencies, (fmi3Instance instance, fmi3ValueReference dependent, size_t elements[],
      fmi3ValueReference independents[], size_t others[], fmi3DependencyKind kinds[], size_t n),
      "providesPerElementDependencies is false")
LACKS(fmi3GetDirectionalDerivative, (fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns, const
      fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed, fmi3Float64 sensitivity[],
      size_t n_sensitivity), "providesDirectionalDerivatives is false")
LACKS(fmi3GetAdjointDerivative, (fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns, const
      fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed, fmi3Float64 sensitivity[],
      size_t n_sensitivity), "providesAdjointDerivatives is false")
LACKS(fmi3GetOutputDerivatives, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, const fmi3Int32
      orders[], fmi3Float64 values[], size_t n_values), "maxOutputDerivativeOrder is 0")
LACKS(fmi3EnterConfigurationMode, (fmi3Instance instance), "it has no structural parameters")
LACKS(fmi3ExitConfigurationMode, (fmi3Instance instance), "it has no structural parameters")
LACKS(fmi3GetIntervalDecimal, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Float64
      intervals[], fmi3IntervalQualifier qualifiers[]), NO_CLOCKS)
LACKS(fmi3GetIntervalFraction, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3UInt64
      counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[]), NO_CLOCKS)
LACKS(fmi3GetShiftDecimal, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Float64 shifts[]),
      NO_CLOCKS)
LACKS(fmi3GetShiftFraction, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3UInt64 counters[],
      fmi3UInt64 resolutions[]), NO_CLOCKS)
LACKS(fmi3SetIntervalDecimal, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, const fmi3Float64
      intervals[]), NO_CLOCKS)
LACKS(fmi3SetIntervalFraction, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, const fmi3UInt64
      counters[], const fmi3UInt64 resolutions[]), NO_CLOCKS)
LACKS(fmi3SetShiftDecimal, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, const fmi3Float64
      shifts[]), NO_CLOCKS)
LACKS(fmi3SetShiftFraction, (fmi3Instance instance, const fmi3ValueReference references[], size_t n, const fmi3UInt64
      counters[], const fmi3UInt64 resolutions[]), NO_CLOCKS)
LACKS(fmi3EnterEventMode, (fmi3Instance instance), NO_EVENTS)
LACKS(fmi3EnterStepMode, (fmi3Instance instance), NO_EVENTS)
LACKS(fmi3EvaluateDiscreteStates, (fmi3Instance instance), NO_EVENTS)
LACKS(fmi3UpdateDiscreteStates, (fmi3Instance instance, fmi3Boolean *update, fmi3Boolean *terminate, fmi3Boolean *nominals,
      fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next), NO_EVENTS)
LACKS(fmi3EnterContinuousTimeMode, (fmi3Instance instance), NO_EXCHANGE)
LACKS(fmi3CompletedIntegratorStep, (fmi3Instance instance, fmi3Boolean no_set_state_before, fmi3Boolean *event, fmi3Boolean
      *terminate), NO_EXCHANGE)
LACKS(fmi3SetTime, (fmi3Instance instance, fmi3Float64 time), NO_EXCHANGE)
LACKS(fmi3SetContinuousStates, (fmi3Instance instance, const fmi3Float64 states[], size_t n), NO_EXCHANGE)
LACKS(fmi3GetContinuousStateDerivatives, (fmi3Instance instance, fmi3Float64 derivatives[], size_t n), NO_EXCHANGE)
LACKS(fmi3GetEventIndicators, (fmi3Instance instance, fmi3Float64 eventIndicators[], size_t nEventIndicators), NO_EXCHANGE)
LACKS(fmi3GetContinuousStates, (fmi3Instance instance, fmi3Float64 states[], size_t n), NO_EXCHANGE)
LACKS(fmi3GetNominalsOfContinuousStates, (fmi3Instance instance, fmi3Float64 nominals[], size_t n), NO_EXCHANGE)
LACKS(fmi3GetNumberOfEventIndicators, (fmi3Instance instance, size_t *nEventIndicators), NO_EXCHANGE)
LACKS(fmi3GetNumberOfContinuousStates, (fmi3Instance instance, size_t *n), NO_EXCHANGE)
LACKS(fmi3ActivateModelPartition, (fmi3Instance instance, fmi3ValueReference clock, fmi3Float64 time),
      "it has no Scheduled Execution")
