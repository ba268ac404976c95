/* The physical limit: what a loop over FMUs costs if it is written by hand for one system of Real signals. It sets inputs,
 * steps, and gets all outputs straight into a row of an array that is there already; nothing else, not even a check.
 * Each FMU file is loaded once. */

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*plain_t)(void *);
typedef int (*set2_t)(void *, const uint32_t *, size_t, const double *);
typedef int (*get2_t)(void *, const uint32_t *, size_t, double *);
typedef int (*set3_t)(void *, const uint32_t *, size_t, const double *, size_t);
typedef int (*get3_t)(void *, const uint32_t *, size_t, double *, size_t);
typedef int (*text2_t)(void *, const uint32_t *, size_t, const char *const *);
typedef int (*text3_t)(void *, const uint32_t *, size_t, const char *const *, size_t);
typedef int (*step2_t)(void *, double, double, int);
typedef int (*step3_t)(void *, double, double, bool, bool *, bool *, bool *, double *);

typedef struct {
    void (*log)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void *finished, *environment;
} callbacks2;

typedef struct {
    void *handle;
    int version;
    set2_t set2;
    get2_t get2;
    step2_t step2;
    set3_t set3;
    get3_t get3;
    step3_t step3;
} library;

typedef struct {
    const library *library;
    void *component;
    size_t n_inputs, n_outputs;
    const uint32_t *inputs, *outputs; /* value references */
    const size_t *sources;            /* of each input: the column of the row */
    double *values;                   /* of the inputs */
    size_t column;                    /* of the first output */
} instance;

static void log2_(void *e, const char *n, int s, const char *c, const char *m, ...)
{
    (void)e, (void)n, (void)s, (void)c, (void)m;
}

static void log3_(void *e, int s, const char *c, const char *m)
{
    (void)e, (void)s, (void)c, (void)m;
}

static const callbacks2 CALLBACKS = {log2_, calloc, free, 0, 0};

static void *function(const library *l, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "fmi%d%s", l->version, name);
    return dlsym(l->handle, full);
}

library *limit_load(const char *path, int version)
{
    library *l = calloc(1, sizeof *l);
    l->version = version;
    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        return 0;
    l->set2 = (set2_t)function(l, "SetReal");
    l->get2 = (get2_t)function(l, "GetReal");
    l->step2 = (step2_t)function(l, "DoStep");
    l->set3 = (set3_t)function(l, "SetFloat64");
    l->get3 = (get3_t)function(l, "GetFloat64");
    l->step3 = (step3_t)function(l, "DoStep");
    return l;
}

void *limit_instantiate(const library *l, const char *name, const char *token, const char *resources)
{
    if (l->version == 2) {
        typedef void *(*make_t)(const char *, int, const char *, const char *, const callbacks2 *, int, int);
        return ((make_t)function(l, "Instantiate"))(name, 1, token, resources, &CALLBACKS, 0, 0);
    }
    typedef void *(*make_t)(const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *, size_t,
                            void *, void (*)(void *, int, const char *, const char *), void *);
    return ((make_t)function(l, "InstantiateCoSimulation"))(name, token, resources, false, false, false, false, 0, 0, 0,
                                                            log3_, 0);
}

int limit_set_text(const library *l, void *component, uint32_t reference, const char *text)
{
    if (l->version == 2)
        return ((text2_t)function(l, "SetString"))(component, &reference, 1, &text);
    return ((text3_t)function(l, "SetString"))(component, &reference, 1, &text, 1);
}

static int set(const instance *i, const uint32_t *references, size_t n, const double *values)
{
    const library *l = i->library;
    return l->version == 2 ? l->set2(i->component, references, n, values)
                           : l->set3(i->component, references, n, values, n);
}

static int get(const instance *i, double *row)
{
    const library *l = i->library;
    return l->version == 2 ? l->get2(i->component, i->outputs, i->n_outputs, row + i->column)
                           : l->get3(i->component, i->outputs, i->n_outputs, row + i->column, i->n_outputs);
}

static void gather(const instance *i, const double *row)
{
    for (size_t j = 0; j < i->n_inputs; j++)
        i->values[j] = row[i->sources[j]];
}

int limit_set(const instance *i, uint32_t reference, double value)
{
    return set(i, &reference, 1, &value);
}

/* Through Initialization Mode; as many passes as a system needs whose initial values depend on each other. */
int limit_initialize(const instance *instances, int n, double start, double stop, int passes, double *row)
{
    int status = 0;
    for (int i = 0; i < n; i++) {
        const library *l = instances[i].library;
        void *component = instances[i].component;
        if (l->version == 2) {
            typedef int (*setup_t)(void *, int, double, double, int, double);
            status |= ((setup_t)function(l, "SetupExperiment"))(component, 0, 0.0, start, 1, stop);
            status |= ((plain_t)function(l, "EnterInitializationMode"))(component);
        } else {
            typedef int (*enter_t)(void *, bool, double, double, bool, double);
            status |= ((enter_t)function(l, "EnterInitializationMode"))(component, false, 0.0, start, true, stop);
        }
        status |= get(&instances[i], row);
    }
    for (int p = 0; p < passes; p++)
        for (int i = 0; i < n; i++) {
            gather(&instances[i], row);
            status |= set(&instances[i], instances[i].inputs, instances[i].n_inputs, instances[i].values);
            status |= get(&instances[i], row);
        }
    for (int i = 0; i < n; i++)
        status |= ((plain_t)function(instances[i].library, "ExitInitializationMode"))(instances[i].component);
    return status;
}

static double clock_of(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int loop2(const instance *all, int n, int64_t start, int64_t step, double resolution, int64_t steps,
                 double *times, double *rows, size_t width)
{
    int status = 0;
    const instance *end = all + n;
    for (int64_t k = 0; k < steps; k++, rows += width) {
        double here = times[k], there = (double)(start + (k + 1) * step) / resolution;
        for (const instance *i = all; i < end; i++) {
            gather(i, rows);
            status |= i->library->set2(i->component, i->inputs, i->n_inputs, i->values);
        }
        for (const instance *i = all; i < end; i++)
            status |= i->library->step2(i->component, here, there - here, 1);
        for (const instance *i = all; i < end; i++)
            status |= i->library->get2(i->component, i->outputs, i->n_outputs, rows + width + i->column);
        times[k + 1] = there;
    }
    return status;
}

static int loop3(const instance *all, int n, int64_t start, int64_t step, double resolution, int64_t steps,
                 double *times, double *rows, size_t width)
{
    int status = 0;
    const instance *end = all + n;
    for (int64_t k = 0; k < steps; k++, rows += width) {
        double here = times[k], there = (double)(start + (k + 1) * step) / resolution, reached;
        bool event, terminate, early;
        for (const instance *i = all; i < end; i++) {
            gather(i, rows);
            status |= i->library->set3(i->component, i->inputs, i->n_inputs, i->values, i->n_inputs);
        }
        for (const instance *i = all; i < end; i++)
            status |= i->library->step3(i->component, here, there - here, true, &event, &terminate, &early, &reached);
        for (const instance *i = all; i < end; i++)
            status |= i->library->get3(i->component, i->outputs, i->n_outputs, rows + width + i->column, i->n_outputs);
        times[k + 1] = there;
    }
    return status;
}

/* All steps; all instances are of one FMI version. The k-th time is (start + k * step) / resolution, in s.
 *
 * rows[0] holds the initial outputs; seconds[0] and seconds[1] are the wall and CPU time of the loop. Returns all statuses
 * joined by "or". */
int limit_run(const instance *instances, int n, int64_t start, int64_t step, double resolution, int64_t steps,
              double *times, double *rows, size_t width, double *seconds)
{
    double wall = clock_of(CLOCK_MONOTONIC), cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    times[0] = (double)start / resolution;
    int status = (instances->library->version == 2 ? loop2 : loop3)(instances, n, start, step, resolution, steps, times,
                                                                     rows, width);
    seconds[0] = clock_of(CLOCK_MONOTONIC) - wall;
    seconds[1] = clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return status;
}

void limit_free(instance *instances, int n)
{
    for (int i = 0; i < n; i++) {
        ((plain_t)function(instances[i].library, "Terminate"))(instances[i].component);
        ((void (*)(void *))function(instances[i].library, "FreeInstance"))(instances[i].component);
    }
}

void limit_unload(library *l)
{
    dlclose(l->handle);
    free(l);
}
