/* A mass of 1 kg between two springs. DoStep does one step of the classical Runge-Kutta method in some 10 ns, so that nearly
 * all time is the master's; or so many inner steps, for an FMU that takes longer. Compiled with FMI = 2 or 3.
 *
 *     x'' = k (left - 2 x + right) - d x' - g x
 *
 * Value references are places in `values`. What is not here is not called by any tool; tiny.py adds it by name. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))

enum { LEFT, RIGHT, X, V, K, MORE, N_VALUES = MORE + MORE_OUTPUTS };

static const double GROUND = 1.0;  /* g in N/m */
static const double DAMPER = 0.01; /* d in kg/s: takes more energy than held inputs of steps of 1 ms bring in */

typedef struct {
    double values[N_VALUES];
    char apart[128]; /* two instances share no line of a cache: two cores that write to one wait for each other */
} instance;

static instance *make(void)
{
    instance *i = calloc(1, sizeof *i);
    if (i) i->values[X] = i->values[K] = 1.0;
    return i;
}

static int get(const instance *i, const uint32_t *references, size_t n, double *values)
{
    for (size_t j = 0; j < n; j++)
        values[j] = i->values[references[j]];
    return 0;
}

static int set(instance *i, const uint32_t *references, size_t n, const double *values)
{
    for (size_t j = 0; j < n; j++)
        i->values[references[j]] = values[j];
    return 0;
}

static double acceleration(const double *values, double x, double v)
{
    return values[K] * (values[LEFT] - 2.0 * x + values[RIGHT]) - DAMPER * v - GROUND * x;
}

static void inner_step(double *values, double h)
{
    double x = values[X], v = values[V];
    double a = acceleration(values, x, v);
    double v2 = v + 0.5 * h * a, a2 = acceleration(values, x + 0.5 * h * v, v2);
    double v3 = v + 0.5 * h * a2, a3 = acceleration(values, x + 0.5 * h * v2, v3);
    double v4 = v + h * a3, a4 = acceleration(values, x + h * v3, v4);
    values[X] = x + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4);
    values[V] = v + h / 6.0 * (a + 2.0 * a2 + 2.0 * a3 + a4);
}

static int step(instance *i, double h)
{
    for (int k = 0; k < INNER_STEPS; k++)
        inner_step(i->values, h / INNER_STEPS);
    return 0;
}

#if FMI == 2

PUBLIC const char *fmi2GetTypesPlatform(void) { return "default"; }
PUBLIC const char *fmi2GetVersion(void) { return "2.0"; }

PUBLIC instance *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources,
                                 const void *callbacks, int visible, int logging)
{
    (void)name, (void)type, (void)guid, (void)resources, (void)callbacks, (void)visible, (void)logging;
    return make();
}

PUBLIC void fmi2FreeInstance(instance *i) { free(i); }
PUBLIC int fmi2SetDebugLogging(instance *i, int on, size_t n, const char *const names[])
{
    (void)i, (void)on, (void)n, (void)names;
    return 0;
}
PUBLIC int fmi2SetupExperiment(instance *i, int has_tolerance, double tolerance, double start, int has_stop, double stop)
{
    (void)i, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return 0;
}
PUBLIC int fmi2EnterInitializationMode(instance *i) { (void)i; return 0; }
PUBLIC int fmi2ExitInitializationMode(instance *i) { (void)i; return 0; }
PUBLIC int fmi2Terminate(instance *i) { (void)i; return 0; }
PUBLIC int fmi2GetReal(instance *i, const uint32_t *references, size_t n, double *values)
{
    return get(i, references, n, values);
}
PUBLIC int fmi2SetReal(instance *i, const uint32_t *references, size_t n, const double *values)
{
    return set(i, references, n, values);
}
PUBLIC int fmi2DoStep(instance *i, double t, double h, int no_set_state)
{
    (void)t, (void)no_set_state;
    return step(i, h);
}

#else

PUBLIC const char *fmi3GetVersion(void) { return "3.0"; }

PUBLIC instance *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                             bool logging, bool event_mode, bool early_return,
                                             const uint32_t *intermediate, size_t n_intermediate, void *environment,
                                             const void *log, const void *update)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)event_mode, (void)early_return;
    (void)intermediate, (void)n_intermediate, (void)environment, (void)log, (void)update;
    return make();
}

PUBLIC void fmi3FreeInstance(instance *i) { free(i); }
PUBLIC int fmi3SetDebugLogging(instance *i, bool on, size_t n, const char *const names[])
{
    (void)i, (void)on, (void)n, (void)names;
    return 0;
}
PUBLIC int fmi3EnterInitializationMode(instance *i, bool has_tolerance, double tolerance, double start, bool has_stop,
                                       double stop)
{
    (void)i, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return 0;
}
PUBLIC int fmi3ExitInitializationMode(instance *i) { (void)i; return 0; }
PUBLIC int fmi3Terminate(instance *i) { (void)i; return 0; }
PUBLIC int fmi3GetFloat64(instance *i, const uint32_t *references, size_t n, double *values, size_t n_values)
{
    (void)n_values;
    return get(i, references, n, values);
}
PUBLIC int fmi3SetFloat64(instance *i, const uint32_t *references, size_t n, const double *values, size_t n_values)
{
    (void)n_values;
    return set(i, references, n, values);
}
PUBLIC int fmi3DoStep(instance *i, double t, double h, bool no_set_state, bool *event, bool *terminate, bool *early,
                      double *reached)
{
    (void)no_set_state;
    *event = *terminate = *early = false;
    *reached = t + h;
    return step(i, h);
}

#endif
