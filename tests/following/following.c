/* x' = u - x, y = c0 + c1 u + c2 u^2 + d x, for FMI 2.0, without FMU states. following_fmu.py compiles it.
 *
 * FOLLOWS: y belongs to the input at once; otherwise it is computed in steps and in Initialization Mode only.
 * DISTURBED: Get after Set without a step changes x, so that later steps differ. FMI forbids Get there. */
#include "fmi2Functions.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double u, y, k[4], x; /* c0, c1, c2, d */
    int initializing, set;
} Unit;

static void outputs(Unit *unit)
{
    unit->y = unit->k[0] + unit->u * (unit->k[1] + unit->u * unit->k[2]) + unit->k[3] * unit->x;
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return "2.0"; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logs)
{
    Unit *unit = calloc(1, sizeof *unit);
    if (unit) *unit = (Unit){.k = {START}, .x = 0.0};
    return unit;
}

void fmi2FreeInstance(fmi2Component c) { free(c); }

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean has_stop, fmi2Real stop)
{
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    ((Unit *)c)->initializing = 1;
    return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c)
{
    outputs(c);
    ((Unit *)c)->initializing = 0;
    return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }

fmi2Status fmi2Reset(fmi2Component c)
{
    *(Unit *)c = (Unit){.k = {START}, .x = 0.0};
    return fmi2OK;
}

/* Value references: 0 is u, 1 is y, 2 to 5 are the parameters, 6 is x. */
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2Real values[])
{
    for (size_t i = 0; i < n; i++) ((double *)c)[r[i]] = values[i];
    ((Unit *)c)->set = 1;
    return fmi2OK;
}

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real values[])
{
    Unit *unit = c;
    if (unit->initializing || FOLLOWS) outputs(unit);
    if (DISTURBED && unit->set && !unit->initializing) unit->x += 1e-3;
    for (size_t i = 0; i < n; i++) values[i] = ((double *)c)[r[i]];
    return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no_return)
{
    Unit *unit = c;
    unit->x = unit->u + (unit->x - unit->u) * exp(-h);
    unit->set = 0;
    outputs(unit);
    return fmi2OK;
}
