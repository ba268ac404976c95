/* An exported system as an instance of FMI: see system_instance.h. */

#include "system_instance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "portable.h"
#include "status.h"

enum { LONGEST_TEXT = 1024 };

/* The log -------------------------------------------------------------------------------------------------------------- */

static const char *category_of(int status)
{
    return status == FM_WARNING   ? "logStatusWarning"
           : status == FM_DISCARD ? "logStatusDiscard"
           : status == FM_FATAL   ? "logStatusFatal"
                                  : "logStatusError";
}

int fm_exported_fail(const fm_exported *e, int status, const char *format, ...)
{
    char text[LONGEST_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    e->tell((fm_exported *)e, status, category_of(status), text);
    return status;
}

/* What the system says: problems always, all else if it is asked for. */
static void said(void *environment, int status, const char *category, const char *text)
{
    fm_exported *e = environment;
    if (status == FM_OK) {
        size_t k = 0;
        while (k < e->n_categories && strcmp(e->categories[k], category))
            k++;
        if (!e->logging_on || (e->n_categories && k == e->n_categories))
            return;
    }
    e->tell(e, status, category, text);
}

static void forget_categories(fm_exported *e)
{
    for (size_t k = 0; k < e->n_categories; k++)
        free(e->categories[k]);
    free(e->categories);
    e->categories = 0;
    e->n_categories = 0;
}

static void forget_kept(fm_exported *e)
{
    free(e->kept);
    e->kept = 0;
    e->n_kept = 0;
}

static char *copied(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : 0;
}

static int no_memory(const fm_exported *e, const char *function)
{
    return fm_exported_fail(e, FM_ERROR, "%s: there is not enough memory.", function);
}

static int is_null(const fm_exported *e, const char *function, const char *what)
{
    return fm_exported_fail(e, FM_ERROR, "%s: %s is null.", function, what);
}

int fm_exported_set_logging(fm_exported *e, const char *function, int on, size_t n, const char *const *categories)
{
    if (!e)
        return FM_ERROR;
    if (n && !categories)
        return is_null(e, function, "the array of categories");
    for (size_t k = 0; k < n; k++)
        if (!categories[k])
            return is_null(e, function, "a category");
    forget_categories(e);
    e->categories = n ? calloc(n, sizeof *e->categories) : 0;
    if (n && !e->categories)
        return no_memory(e, function);
    for (; e->n_categories < n; e->n_categories++)
        if (!(e->categories[e->n_categories] = copied(categories[e->n_categories])))
            return no_memory(e, function);
    e->logging_on = on;
    fm_system_log(e->system, on);
    return FM_OK;
}

/* Instances ------------------------------------------------------------------------------------------------------------ */

/* What stands beside the image, in a text of two lines: the instantiation token, and for each value reference a letter of
 * `settable` in fmimaster/export/archive.py. Returns whether it could be read. */
static int read_interface(fm_exported *e, const char *path)
{
    static const char NAME[] = "/interface.txt";
    char *place = malloc(strlen(path) + sizeof NAME);
    size_t size;
    e->token = place ? fm_read_whole(strcat(strcpy(place, path), NAME), &size) : 0;
    free(place);
    e->settable = e->token ? strchr(e->token, '\n') : 0;
    if (!e->settable)
        return 0;
    *e->settable++ = 0;
    e->n_variables = strcspn(e->settable, "\n");
    return 1;
}

/* Says why the instance cannot be, and frees it. */
static fm_exported *refused(fm_exported *e, const char *function, const char *why, const char *what)
{
    fm_exported_fail(e, FM_ERROR, "%s: %s%s", function, why, what);
    fm_exported_free(e);
    return 0;
}

fm_exported *fm_exported_new(const char *function, const char *name, const char *token, const char *path, int logging_on,
                             fm_tell tell, void (*logger)(void), void *environment)
{
    fm_exported *e = calloc(1, sizeof *e);
    if (!e)
        return 0;
    *e = (fm_exported){.mode = FM_MODE_INSTANTIATED, .tell = tell, .logger = logger, .environment = environment};
    if (!name || !*name)
        return refused(e, function, "the name of the instance is empty. Give it a name.", "");
    e->name = copied(name);
    if (!e->name)
        return refused(e, function, "there is not enough memory.", "");
    if (!path)
        return refused(e, function, "the folder of resources is missing, or it is no path and no URI of a file.", "");
    if (!read_interface(e, path))
        return refused(e, function, "the resources have no file interface.txt. Unpack the FMU again. Folder: ", path);
    if (!token || strcmp(token, e->token))
        return refused(e, function, "the instantiation token is not that of this FMU, which is ", e->token);
    e->logging_on = logging_on;
    e->system = fm_system_new(path, name, logging_on, said, e);
    if (e->system)
        return e;
    fm_exported_free(e); /* the log says why */
    return 0;
}

void fm_exported_free(fm_exported *e)
{
    if (!e)
        return;
    if (e->system)
        fm_system_free(e->system);
    forget_categories(e);
    forget_kept(e);
    free(e->token);
    free(e->name);
    free(e);
}

/* The state machine ---------------------------------------------------------------------------------------------------- */

static const char *mode_in_words(int mode)
{
    switch (mode) {
    case FM_MODE_INSTANTIATED: return "before Initialization Mode";
    case FM_MODE_INITIALIZATION: return "in Initialization Mode";
    case FM_MODE_STEP: return "in Step Mode";
    case FM_MODE_STEP_FAILED: return "after a step that was discarded";
    case FM_MODE_TERMINATED: return "after the end";
    case FM_MODE_ERROR: return "after an error";
    default: return "after a fatal error";
    }
}

int fm_exported_may(const fm_exported *e, const char *function, int modes)
{
    if (!e)
        return 0;
    if (!(e->mode & modes))
        fm_exported_fail(e, FM_ERROR, "%s must not be called %s.", function, mode_in_words(e->mode));
    return (e->mode & modes) != 0;
}

int fm_exported_lacks(const fm_exported *e, const char *function, const char *why)
{
    return e ? fm_exported_fail(e, FM_ERROR, "%s cannot be used: %s.", function, why) : FM_ERROR;
}

/* After a call of the system: its next mode, or that of its failure. */
static int entered(fm_exported *e, int status, int mode)
{
    e->mode = status == FM_FATAL ? FM_MODE_FATAL : fm_failed(status) ? FM_MODE_ERROR : mode;
    return status;
}

int fm_exported_initialize(fm_exported *e, const char *function)
{
    if (!fm_exported_may(e, function, FM_MODE_INSTANTIATED))
        return FM_ERROR;
    const fm_experiment *x = &e->experiment;
    if (!isfinite(x->start) || (x->stop_defined && !(x->stop >= x->start)))
        return fm_exported_fail(e, FM_ERROR, "%s: the start time %.17g s and the stop time %.17g s do not fit.", function,
                                x->start, x->stop_defined ? x->stop : INFINITY);
    e->time = x->start;
    e->has_ended = 0;
    int status = fm_system_initialize(e->system, x, e->tolerance_defined, e->tolerance);
    for (size_t k = 0; k < e->n_kept && !fm_failed(status); k++) {
        int set = fm_system_set(e->system, e->kept[k].type, &e->kept[k].reference, 1, &e->kept[k].value, 1);
        status = set == FM_OK ? status : set;
    }
    forget_kept(e);
    return entered(e, status, FM_MODE_INITIALIZATION);
}

int fm_exported_begin(fm_exported *e, const char *function)
{
    if (!fm_exported_may(e, function, FM_MODE_INITIALIZATION))
        return FM_ERROR;
    return entered(e, fm_system_begin(e->system), FM_MODE_STEP);
}

int fm_exported_terminate(fm_exported *e, const char *function)
{
    if (!fm_exported_may(e, function, FM_MODE_STEP | FM_MODE_STEP_FAILED))
        return FM_ERROR;
    return entered(e, fm_system_terminate(e->system), FM_MODE_TERMINATED);
}

int fm_exported_reset(fm_exported *e, const char *function)
{
    if (!fm_exported_may(e, function, FM_MODES_OF_STATES))
        return FM_ERROR;
    e->has_ended = 0;
    forget_kept(e);
    return entered(e, fm_system_reset(e->system), FM_MODE_INSTANTIATED);
}

/* A communication point that an importer has computed in another way. */
static int is_near(double a, double b, double size)
{
    return fabs(a - b) <= 1e-6 * size + 1e-12 * fabs(b);
}

int fm_exported_step(fm_exported *e, const char *function, double time, double size)
{
    if (!fm_exported_may(e, function, FM_MODE_STEP))
        return FM_ERROR;
    if (!isfinite(time) || !isfinite(size) || !(size > 0.0))
        return fm_exported_fail(e, FM_ERROR, "%s: a step of %.17g s from t = %.17g s is not possible. Expected more than 0 s.",
                                function, size, time);
    if (!is_near(time, e->time, size))
        return fm_exported_fail(e, FM_ERROR, "%s: a step cannot begin at t = %.17g s, since the system is at t = %.17g s.",
                                function, time, e->time);
    if (e->has_ended)
        return fm_exported_fail(e, FM_ERROR, "%s: a component of the system has ended the simulation at t = %.17g s.",
                                function, e->time);
    int status = fm_system_step(e->system, time, size, &e->time, &e->has_ended);
    return status == FM_DISCARD ? status : entered(e, status, FM_MODE_STEP);
}

/* Variables ------------------------------------------------------------------------------------------------------------ */

static int may_transfer(const fm_exported *e, const char *function, int modes, const uint32_t *references, size_t n,
                        const void *values, size_t n_values)
{
    if (!fm_exported_may(e, function, modes))
        return 0;
    if ((n && !references) || (n_values && !values)) {
        is_null(e, function, "an array");
        return 0;
    }
    return 1;
}

/* i: an input or a tunable parameter; k: an input of an FMU of FMI 2.0, which gets it in Initialization Mode or later;
 * p: exact at the start; a: approximate at the start; all else is computed. */
static int may_be_set(const fm_exported *e, char kind)
{
    int modes = kind == 'i' || kind == 'k' ? FM_MODES_OF_SET
                : kind == 'p'              ? FM_MODE_INSTANTIATED | FM_MODE_INITIALIZATION
                : kind == 'a'              ? FM_MODE_INSTANTIATED
                                           : 0;
    return (e->mode & modes) != 0;
}

static int transferred(fm_exported *e, int status)
{
    if (status == FM_FATAL)
        e->mode = FM_MODE_FATAL;
    return status;
}

int fm_exported_get(fm_exported *e, const char *function, int type, const uint32_t *references, size_t n, void *values,
                    size_t n_values)
{
    if (!may_transfer(e, function, FM_MODES_OF_GET, references, n, values, n_values))
        return FM_ERROR;
    return transferred(e, fm_system_get(e->system, type, references, n, values, n_values));
}

static int is_kept(const fm_exported *e, uint32_t reference)
{
    return reference < e->n_variables && e->settable[reference] == 'k';
}

static int keeps_any(const fm_exported *e, const uint32_t *references, size_t n)
{
    while (n && !is_kept(e, references[n - 1]))
        n--;
    return n != 0;
}

/* Sets variables one by one, but keeps those for which it is too early. */
static int set_or_keep(fm_exported *e, const char *function, int type, const uint32_t *references, size_t n,
                       const char *values, size_t n_values)
{
    if (n != n_values || type == FM_STRING)
        return fm_exported_fail(e, FM_ERROR, "%s: inputs of FMI 2.0 are set together with arrays, or are text. Set them in "
                                "Initialization Mode.", function);
    int worst = FM_OK;
    for (size_t i = 0; i < n; i++) {
        const char *value = values + i * fm_size[type];
        int status = FM_OK;
        if (!is_kept(e, references[i])) {
            status = transferred(e, fm_system_set(e->system, type, references + i, 1, value, 1));
        } else {
            fm_kept_value *more = realloc(e->kept, (e->n_kept + 1) * sizeof *more);
            if (!more)
                return no_memory(e, function);
            e->kept = more;
            e->kept[e->n_kept] = (fm_kept_value){type, references[i], 0};
            memcpy(&e->kept[e->n_kept++].value, value, fm_size[type]);
        }
        if (fm_failed(status))
            return status;
        worst = status > worst ? status : worst;
    }
    return worst;
}

int fm_exported_set(fm_exported *e, const char *function, int type, const uint32_t *references, size_t n,
                    const void *values, size_t n_values)
{
    if (!may_transfer(e, function, FM_MODES_OF_SET, references, n, values, n_values))
        return FM_ERROR;
    for (size_t k = 0; k < n; k++)
        if (references[k] < e->n_variables && !may_be_set(e, e->settable[references[k]]))
            return fm_exported_fail(e, FM_ERROR, "%s: the variable with value reference %u must not be set %s.", function,
                                    (unsigned)references[k], mode_in_words(e->mode));
    if (e->mode == FM_MODE_INSTANTIATED && keeps_any(e, references, n))
        return set_or_keep(e, function, type, references, n, values, n_values);
    return transferred(e, fm_system_set(e->system, type, references, n, values, n_values));
}

/* FMU states ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    int mode, has_ended;
    double time;
    fm_experiment experiment;
    int tolerance_defined;
    double tolerance;
} own_state; /* written as it is in memory: only the same binary reads it */

typedef struct {
    own_state own;
    void *of_system;
} exported_state;

int fm_exported_save(fm_exported *e, const char *function, void **state)
{
    if (!fm_exported_may(e, function, FM_MODES_OF_STATES))
        return FM_ERROR;
    if (!state)
        return is_null(e, function, "the place of the state");
    if (e->n_kept)
        return fm_exported_fail(e, FM_ERROR, "%s: inputs of FMI 2.0 were set. Set them in Initialization Mode.", function);
    exported_state *s = *state ? *state : calloc(1, sizeof *s);
    if (!s)
        return no_memory(e, function);
    int status = fm_system_save(e->system, &s->of_system);
    if (fm_failed(status)) {
        if (!*state) {
            fm_system_free_state(e->system, &s->of_system);
            free(s);
        }
        return transferred(e, status);
    }
    memset(&s->own, 0, sizeof s->own); /* also what lies between its fields */
    s->own.mode = e->mode, s->own.has_ended = e->has_ended, s->own.time = e->time;
    s->own.experiment.start = e->experiment.start, s->own.experiment.stop = e->experiment.stop;
    s->own.experiment.stop_defined = e->experiment.stop_defined;
    s->own.tolerance_defined = e->tolerance_defined, s->own.tolerance = e->tolerance;
    *state = s;
    return status;
}

int fm_exported_restore(fm_exported *e, const char *function, const void *state)
{
    const exported_state *s = state;
    if (!fm_exported_may(e, function, FM_MODES_OF_STATES))
        return FM_ERROR;
    if (!s)
        return is_null(e, function, "the state");
    int status = fm_system_restore(e->system, s->of_system);
    if (fm_failed(status))
        return entered(e, status, FM_MODE_ERROR);
    forget_kept(e);
    e->mode = s->own.mode, e->has_ended = s->own.has_ended, e->time = s->own.time;
    e->experiment = s->own.experiment;
    e->tolerance_defined = s->own.tolerance_defined, e->tolerance = s->own.tolerance;
    return status;
}

int fm_exported_free_state(fm_exported *e, const char *function, void **state)
{
    if (!fm_exported_may(e, function, FM_MODES_OF_STATES))
        return FM_ERROR;
    if (!state)
        return is_null(e, function, "the place of the state");
    exported_state *s = *state;
    if (s) {
        fm_system_free_state(e->system, &s->of_system);
        free(s);
        *state = 0;
    }
    return FM_OK;
}

int fm_exported_serialized_size(fm_exported *e, const char *function, const void *state, size_t *size)
{
    const exported_state *s = state;
    if (!fm_exported_may(e, function, FM_MODES_OF_STATES))
        return FM_ERROR;
    if (!s || !size)
        return is_null(e, function, s ? "the place of the size" : "the state");
    int status = fm_system_serialized_size(e->system, s->of_system, size);
    *size += fm_failed(status) ? 0 : sizeof s->own;
    return transferred(e, status);
}

int fm_exported_serialize(fm_exported *e, const char *function, const void *state, uint8_t *bytes, size_t size)
{
    const exported_state *s = state;
    size_t needed;
    int status = fm_exported_serialized_size(e, function, state, &needed);
    if (fm_failed(status))
        return status;
    if (!bytes)
        return is_null(e, function, "the array of bytes");
    if (size < needed)
        return fm_exported_fail(e, FM_ERROR, "%s: the array has %zu bytes, and %zu are needed.", function, size, needed);
    memcpy(bytes, &s->own, sizeof s->own);
    return transferred(e, fm_system_serialize(e->system, s->of_system, bytes + sizeof s->own, needed - sizeof s->own));
}

int fm_exported_deserialize(fm_exported *e, const char *function, const uint8_t *bytes, size_t size, void **state)
{
    if (!fm_exported_may(e, function, FM_MODES_OF_STATES))
        return FM_ERROR;
    if (!bytes || !state)
        return is_null(e, function, bytes ? "the place of the state" : "the array of bytes");
    own_state own;
    if (size < sizeof own)
        return fm_exported_fail(e, FM_ERROR, "%s: %zu bytes are no state of this FMU.", function, size);
    memcpy(&own, bytes, sizeof own);
    if (own.mode <= 0 || own.mode > FM_MODE_ERROR || (own.mode & (own.mode - 1)) || !isfinite(own.time))
        return fm_exported_fail(e, FM_ERROR, "%s: the bytes are no state of this FMU.", function);
    exported_state *s = *state ? *state : calloc(1, sizeof *s);
    if (!s)
        return no_memory(e, function);
    int status = fm_system_deserialize(e->system, bytes + sizeof own, size - sizeof own, &s->of_system);
    if (!fm_failed(status)) {
        s->own = own;
        *state = s;
    } else if (!*state) {
        fm_system_free_state(e->system, &s->of_system);
        free(s);
    }
    return transferred(e, status);
}
