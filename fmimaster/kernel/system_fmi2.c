/* FMI 2.0 for Co-Simulation: the functions of an exported system, around system_instance.h. */

#include "system_instance.h"

#include <stdlib.h>
#include <string.h>

#include "fmi2Functions.h" /* of the standard */
#include "portable.h"
#include "status.h"

enum { MOST_AT_ONCE = 256 };

static void tell(fm_exported *e, int status, const char *category, const char *text)
{
    if (e->logger)
        ((fmi2CallbackLogger)e->logger)(e->environment, e->name ? e->name : "", (fmi2Status)status, category, "%s", text);
}

/* Inquiries ------------------------------------------------------------------------------------------------------------ */

const char *fmi2GetTypesPlatform(void)
{
    return fmi2TypesPlatform;
}

const char *fmi2GetVersion(void)
{
    return "2.0";
}

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[])
{
    return fm_exported_set_logging(c, "fmi2SetDebugLogging", on, n, categories);
}

/* Instances ------------------------------------------------------------------------------------------------------------ */

static int digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *found = c ? strchr(digits, c) : 0;
    return found ? (int)(found - digits) % 16 : -1;
}

/* The path of a URI such as file:///tmp/a%20b, file:/tmp or file://server/share, to be freed; what is no URI of a file is a
 * path. Null if there is none. */
static char *path_of(const char *uri)
{
    static const char SCHEME[] = "file:", LOCAL[] = "//localhost/";
    if (!uri)
        return 0;
    char *path = malloc(strlen(uri) + 1), *end = path;
    if (!path)
        return 0;
    if (strncmp(uri, SCHEME, strlen(SCHEME)))
        return strcpy(path, uri);
    uri += strlen(SCHEME);
    if (!strncmp(uri, LOCAL, strlen(LOCAL)))
        uri += strlen(LOCAL) - 1;
    else if (!strncmp(uri, "///", 3))
        uri += 2;
    for (; *uri; uri++) {
        int is_code = uri[0] == '%' && digit(uri[1]) >= 0 && digit(uri[2]) >= 0;
        *end++ = is_code ? (char)(16 * digit(uri[1]) + digit(uri[2])) : *uri;
        uri += is_code ? 2 : 0;
    }
    *end = 0;
    if (FM_HAS_DRIVES && path[0] == '/' && path[1] && path[2] == ':')
        memmove(path, path + 1, strlen(path));
    return path;
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String token, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean on)
{
    static const char FUNCTION[] = "fmi2Instantiate";
    (void)visible;
    void (*logger)(void) = functions ? (void (*)(void))functions->logger : 0;
    void *environment = functions ? functions->componentEnvironment : 0;
    if (type != fmi2CoSimulation) {
        fm_exported e = {.name = (char *)name, .logger = logger, .environment = environment, .tell = tell};
        fm_exported_lacks(&e, FUNCTION, "this FMU is for Co-Simulation only");
        return 0;
    }
    char *path = path_of(resources);
    fm_exported *e = fm_exported_new(FUNCTION, name, token, path, on, tell, logger, environment);
    free(path);
    return e;
}

void fmi2FreeInstance(fmi2Component c)
{
    fm_exported_free(c);
}

/* Modes ---------------------------------------------------------------------------------------------------------------- */

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolerance_defined, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean stop_defined, fmi2Real stop)
{
    fm_exported *e = c;
    if (!fm_exported_may(e, "fmi2SetupExperiment", FM_MODE_INSTANTIATED))
        return fmi2Error;
    e->experiment = (fm_experiment){start, stop_defined ? stop : 0.0, stop_defined};
    e->tolerance_defined = tolerance_defined;
    e->tolerance = tolerance_defined ? tolerance : 0.0;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    return fm_exported_initialize(c, "fmi2EnterInitializationMode");
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c)
{
    return fm_exported_begin(c, "fmi2ExitInitializationMode");
}

fmi2Status fmi2Terminate(fmi2Component c)
{
    return fm_exported_terminate(c, "fmi2Terminate");
}

fmi2Status fmi2Reset(fmi2Component c)
{
    int status = fm_exported_reset(c, "fmi2Reset");
    if (!fm_failed(status)) {
        fm_exported *e = c;
        e->experiment = (fm_experiment){0};
        e->tolerance_defined = 0;
    }
    return status;
}

/* Steps ---------------------------------------------------------------------------------------------------------------- */

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real time, fmi2Real size, fmi2Boolean no_set_state_before)
{
    fm_exported *e = c;
    (void)no_set_state_before;
    int status = fm_exported_step(e, "fmi2DoStep", time, size);
    if (!fm_failed(status) && e->has_ended)
        status = FM_DISCARD; /* fmi2Terminated says that a component has ended the simulation */
    if (status == FM_DISCARD)
        e->mode = FM_MODE_STEP_FAILED;
    return status;
}

fmi2Status fmi2CancelStep(fmi2Component c)
{
    return fm_exported_lacks(c, "fmi2CancelStep", "steps are not asynchronous");
}

static const int MODES_OF_STATUS = FM_MODE_STEP | FM_MODE_STEP_FAILED | FM_MODE_TERMINATED;

static int has_status(const fm_exported *e, const char *function, const void *value, int kind, int known)
{
    if (!fm_exported_may(e, function, MODES_OF_STATUS))
        return 0;
    if (!value)
        fm_exported_fail(e, FM_ERROR, "%s: the place of the value is null.", function);
    else if (kind != known)
        fm_exported_fail(e, FM_DISCARD, "%s: there is no status of the kind %d.", function, kind);
    return value && kind == known;
}

/* Of a status that does not exist: Discard, but an error where the call is wrong. */
static fmi2Status no_status(const fm_exported *e, const void *value)
{
    return e && value && (e->mode & MODES_OF_STATUS) ? fmi2Discard : fmi2Error;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value)
{
    const fm_exported *e = c;
    if (!has_status(e, "fmi2GetRealStatus", value, (int)kind, fmi2LastSuccessfulTime))
        return no_status(e, value);
    *value = e->time;
    return fmi2OK;
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value)
{
    const fm_exported *e = c;
    if (!has_status(e, "fmi2GetBooleanStatus", value, (int)kind, fmi2Terminated))
        return no_status(e, value);
    *value = e->has_ended;
    return fmi2OK;
}

#define NO_STATUS(NAME, TYPE) \
    fmi2Status NAME(fmi2Component c, const fmi2StatusKind kind, TYPE *value) \
    { \
        has_status(c, #NAME, value, (int)kind, -1); \
        return no_status(c, value); \
    }
NO_STATUS(fmi2GetStatus, fmi2Status)
NO_STATUS(fmi2GetIntegerStatus, fmi2Integer)
NO_STATUS(fmi2GetStringStatus, fmi2String)

/* Variables ------------------------------------------------------------------------------------------------------------ */

#define TRANSFERS(NAME, TYPE, KIND) \
    fmi2Status fmi2Get##NAME(fmi2Component c, const fmi2ValueReference references[], size_t n, TYPE values[]) \
    { \
        return fm_exported_get(c, "fmi2Get" #NAME, KIND, references, n, values, n); \
    } \
    fmi2Status fmi2Set##NAME(fmi2Component c, const fmi2ValueReference references[], size_t n, const TYPE values[]) \
    { \
        return fm_exported_set(c, "fmi2Set" #NAME, KIND, references, n, values, n); \
    }
TRANSFERS(Real, fmi2Real, FM_FLOAT64)
TRANSFERS(Integer, fmi2Integer, FM_INT32)
TRANSFERS(String, fmi2String, FM_STRING)

/* fmi2Boolean is an int, a Boolean of the system one byte: some at a time are converted. */

static size_t part_of(size_t n, size_t done)
{
    return n - done < MOST_AT_ONCE ? n - done : MOST_AT_ONCE;
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference references[], size_t n, fmi2Boolean values[])
{
    uint8_t bytes[MOST_AT_ONCE];
    int worst = FM_OK;
    size_t done = 0;
    do {
        size_t part = part_of(n, done);
        int status = fm_exported_get(c, "fmi2GetBoolean", FM_BOOLEAN, references ? references + done : 0, part,
                                     values ? bytes : 0, part);
        if (fm_failed(status))
            return status;
        worst = status > worst ? status : worst;
        for (size_t k = 0; k < part; k++)
            values[done + k] = bytes[k] != 0;
        done += part;
    } while (done < n);
    return worst;
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference references[], size_t n, const fmi2Boolean values[])
{
    uint8_t bytes[MOST_AT_ONCE];
    int worst = FM_OK;
    size_t done = 0;
    do {
        size_t part = part_of(n, done);
        for (size_t k = 0; values && k < part; k++)
            bytes[k] = values[done + k] != 0;
        int status = fm_exported_set(c, "fmi2SetBoolean", FM_BOOLEAN, references ? references + done : 0, part,
                                     values ? bytes : 0, part);
        if (fm_failed(status))
            return status;
        worst = status > worst ? status : worst;
        done += part;
    } while (done < n);
    return worst;
}

/* FMU states ----------------------------------------------------------------------------------------------------------- */

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state)
{
    return fm_exported_save(c, "fmi2GetFMUstate", state);
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state)
{
    return fm_exported_restore(c, "fmi2SetFMUstate", state);
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state)
{
    return fm_exported_free_state(c, "fmi2FreeFMUstate", state);
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size)
{
    return fm_exported_serialized_size(c, "fmi2SerializedFMUstateSize", state, size);
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
    return fm_exported_serialize(c, "fmi2SerializeFMUstate", state, (uint8_t *)bytes, size);
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state)
{
    return fm_exported_deserialize(c, "fmi2DeSerializeFMUstate", (const uint8_t *)bytes, size, state);
}

/* What an exported system does not have -------------------------------------------------------------------------------- */

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference references[], size_t n,
                                       const fmi2Integer orders[], const fmi2Real values[])
{
    (void)references, (void)n, (void)orders, (void)values;
    return fm_exported_lacks(c, "fmi2SetRealInputDerivatives", "inputs are not interpolated");
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference references[], size_t n,
                                        const fmi2Integer orders[], fmi2Real values[])
{
    (void)references, (void)n, (void)orders, (void)values;
    return fm_exported_lacks(c, "fmi2GetRealOutputDerivatives", "maxOutputDerivativeOrder is 0");
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[], size_t n_unknowns,
                                        const fmi2ValueReference knowns[], size_t n_knowns, const fmi2Real seed[],
                                        fmi2Real sensitivity[])
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)sensitivity;
    return fm_exported_lacks(c, "fmi2GetDirectionalDerivative", "providesDirectionalDerivative is false");
}
