/* An exported system: the kernel runs what its image says. */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system_parts.h"

#include "calls.h"
#include "portable.h"

enum { LONGEST_TEXT = 4096 };

typedef struct {
    char *memory;
    void **states; /* of the FMUs */
    int64_t done;
    int mode, is_settled;
} system_state;

typedef void (*free_t)(void *);
typedef int (*plain_t)(void *);
typedef int (*debug2_t)(void *, int, size_t, const char *const *);
typedef int (*debug3_t)(void *, bool, size_t, const char *const *);
typedef int (*state_size_t)(void *, void *, size_t *);
typedef int (*bytes_t)(void *, void *, uint8_t *, size_t);
typedef int (*state_of_t)(void *, const uint8_t *, size_t, void **);

void *fm_room(size_t n, size_t size)
{
    return calloc(n ? n : 1, size);
}

/* What is said ------------------------------------------------------------------------------------------------------ */

int fm_say(const fm_system *s, int status, const char *category, const char *format, ...)
{
    char text[LONGEST_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (s->log)
        s->log(s->environment, status, category, text);
    return status;
}

const char *fm_category_of(int status)
{
    return status == FM_WARNING ? "logStatusWarning" : status == FM_DISCARD ? "logStatusDiscard" : status == FM_FATAL ? "logStatusFatal"
                                                                          : status == FM_ERROR ? "logStatusError" : "logEvents";
}

/* FM_OK, FM_WARNING or FM_DISCARD as they are; what an FMU must not return, or a missing function, is FM_ERROR. */
int fm_told(const fm_system *s, const fm_member *m, int status, const char *function)
{
    if (!fm_failed(status))
        return status;
    if (status == FM_MISSING)
        return FM_SAY_ERROR("[%s] the FMU has no function fmi%d%s", m->name, (int)m->version, function);
    if (status == FM_DISCARD)
        return fm_say(s, FM_DISCARD, "logStatusDiscard", "[%s] fmi%d%s: Discard", m->name, (int)m->version, function);
    fm_say(s, status == FM_FATAL ? FM_FATAL : FM_ERROR, fm_category_of(status == FM_FATAL ? FM_FATAL : FM_ERROR),
        "[%s] fmi%d%s returned %s", m->name, (int)m->version, function, status == FM_FATAL ? "Fatal" : "Error");
    return status == FM_FATAL ? FM_FATAL : FM_ERROR;
}

fm_system *fm_system_new(const char *resources, const char *name, int logging_on, fm_log log, void *environment)
{
    char folder[FM_LONGEST_FOLDER];
    fm_system *s = fm_room(1, sizeof *s);
    if (!s)
        return 0;
    s->log = log;
    s->environment = environment;
    s->logging_on = logging_on;
    s->mode = FM_INSTANTIATED;
    size_t n = strlen(resources);
    while (n > 1 && (resources[n - 1] == '/' || resources[n - 1] == '\\'))
        n--;
    s->name = fm_room(strlen(name) + 1, 1);
    if (!s->name || n >= sizeof folder - 40) {
        FM_SAY_ERROR("the path of the resources has too many characters: %s", resources);
        fm_system_free(s);
        return 0;
    }
    strcpy(s->name, name);
    memcpy(folder, resources, n);
    folder[n] = 0;
    if (fm_system_build(s, folder) > FM_WARNING) {
        fm_system_free(s);
        return 0;
    }
    return s;
}

void fm_system_free(fm_system *s)
{
    if (!s)
        return;
    for (uint64_t i = 0; i < s->n_members && s->members; i++) {
        fm_member *m = &s->members[i];
        if (!m->library)
            continue;
        void *component = m->fmu ? m->fmu->component : 0, *release = m->functions[FM_FREE_STATE];
        for (uint64_t p = 0; component && release && m->fmu->places && p < s->n_places; p++)
            if (m->fmu->places[p])
                ((fm_get_state_t)release)(component, &m->fmu->places[p]);
        if (component && m->free_instance)
            ((free_t)m->free_instance)(component);
        fm_library_close(m->library);
    }
    for (uint64_t i = 0; i < s->n_programs; i++) {
        if (s->fused)
            fm_free_aligned(s->fused[i]);
        if (s->sources)
            free(s->sources[i]);
    }
    for (uint64_t i = 0; i < s->n_texts && s->texts; i++) {
        free(s->texts[i].values);
        free(s->texts[i].sizes);
    }
    void *const parts[] = {s->name, s->file, s->sizes, s->begins, s->addresses, s->addresses_now, s->at_first, s->attempts,
                           s->fused, s->sources, s->members, s->variables, s->texts, s->offsets};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
    fm_free_aligned(s->memory);
    free(s);
}

void fm_system_log(fm_system *s, int logging_on)
{
    s->logging_on = logging_on;
    for (uint64_t i = 0; i < s->n_members; i++) {
        const fm_member *m = &s->members[i];
        if (m->set_logging && m->version == 2)
            ((debug2_t)m->set_logging)(m->fmu->component, logging_on, 0, 0);
        else if (m->set_logging)
            ((debug3_t)m->set_logging)(m->fmu->component, logging_on, 0, 0);
    }
}

/* The run ------------------------------------------------------------------------------------------------------------ */

/* What a program has come to: an fm_status. */
static int ran(fm_system *s, int stop)
{
    const fm_kernel *k = s->k;
    int i = k->stop_instance;
    const char *name = i >= 0 && (uint64_t)i < s->n_members ? s->members[i].name : "";
    switch (stop) {
    case FM_RAN: case FM_HAPPENED: return FM_OK;
    case FM_FAILED:
        if (k->failure_status == FM_NOT_VALID)
            return FM_SAY_ERROR("[%s] %s succeeded, but its answer is not valid, t = %.12g s", name, k->failure_function, k->begin);
        if (!k->failure_function || !*name)
            return FM_SAY_ERROR("a part of the method has failed, t = %.12g s", k->begin);
        fm_say(s, FM_ERROR, "logStatusError", "t = %.12g s", k->begin);
        return fm_told(s, &s->members[i], k->failure_status == FM_REFUSED ? FM_ERROR : k->failure_status, k->failure_function);
    case FM_DISCARDED: return fm_say(s, FM_DISCARD, "logStatusDiscard", "[%s] the step from %.12g s was discarded", name, k->begin);
    case FM_NOT_CONVERGED:
        return FM_SAY_ERROR("the iteration over an algebraic loop has not converged in the step from %.12g s; the last change was %.3g",
                     k->begin, k->change);
    default: return FM_SAY_ERROR("[%s] it has ended its step early, at %.12g s", name, k->stop_time);
    }
}

static int run(fm_system *s, const fm_instruction *code, double time)
{
    return ran(s, fm_run(s->k, code, time, time));
}

static double point(const fm_system *s, int64_t n)
{
    int64_t count = (int64_t)s->n_attempts, ticks = n / count * s->step + s->offsets[n % count];
    return s->is_moved ? s->start + (double)ticks / s->resolution : (double)(s->first + ticks) / s->resolution;
}

static double now(const fm_system *s)
{
    return point(s, s->done);
}

int fm_system_initialize(fm_system *s, const fm_experiment *experiment, int tolerance_defined, double tolerance)
{
    fm_kernel *k = s->k;
    (void)tolerance_defined, (void)tolerance; /* those of the members are part of what was exported */
    *(fm_experiment *)k->experiment = *experiment;
    double first = experiment->start * s->resolution;
    s->is_moved = !(fabs(first) < 4503599627370496.0 && (double)llround(first) / s->resolution == experiment->start);
    s->first = s->is_moved ? 0 : llround(first);
    s->start = experiment->start;
    for (int i = 0; i < k->n_instances; i++)
        k->at[i] = experiment->start;
    for (uint64_t i = 0; i < s->n_places; i++)
        k->place_at[i] = experiment->start;
    for (uint64_t i = 0; i < s->n_buffers; i++)
        k->kept_limit[i] = experiment->start;
    k->limit = k->end = experiment->start;
    s->done = 0;
    s->is_settled = 0;
    s->mode = FM_INITIALIZATION_MODE;
    return run(s, s->enter, s->start);
}

/* In Initialization Mode, values follow from what was set when they are needed. */
static int settle(fm_system *s)
{
    if (s->is_settled || s->mode != FM_INITIALIZATION_MODE)
        return FM_OK;
    s->is_settled = 1;
    return run(s, s->settle, s->start);
}

/* All outputs were read after the last variable was set. */
static void are_known(fm_system *s)
{
    for (uint64_t i = 0; i < s->n_members; i++)
        s->members[i].is_set = 0;
}

int fm_system_begin(fm_system *s)
{
    int status = settle(s);
    if (status > FM_WARNING)
        return status;
    s->mode = FM_STEP_MODE;
    are_known(s);
    return run(s, s->begin, s->start);
}

int fm_system_terminate(fm_system *s)
{
    s->mode = FM_TERMINATED;
    return run(s, s->end, s->k->end);
}

static void restore_memory(fm_system *s, const char *from)
{
    for (uint64_t i = 0; i < s->n_addresses; i++)
        s->addresses_now[i] = *s->addresses[i];
    memcpy(s->memory, from, s->size);
    for (uint64_t i = 0; i < s->n_addresses; i++)
        *s->addresses[i] = s->addresses_now[i];
}

int fm_system_reset(fm_system *s)
{
    for (uint64_t i = 0; i < s->n_members; i++) {
        const fm_member *m = &s->members[i];
        int status = m->reset ? ((plain_t)m->reset)(m->fmu->component) : FM_MISSING;
        if (fm_failed(status))
            return fm_told(s, m, status, "Reset");
    }
    restore_memory(s, s->at_first);
    s->done = 0;
    s->mode = FM_INSTANTIATED;
    return fm_set_texts(s);
}

/* How many intervals of the grid end at a time, from the present one on; 0 if none does. */
static int64_t intervals_to(const fm_system *s, double end)
{
    int64_t count = (int64_t)s->n_attempts;
    double near = 1e-6 * (double)s->step / s->resolution / (double)count;
    int64_t steps = (int64_t)floor((end - s->start) * s->resolution / (double)s->step + 1e-9) - 1;
    for (int64_t n = (steps < 0 ? 0 : steps) * count; n <= (steps + 3) * count; n++)
        if (n > s->done && fabs(point(s, n) - end) <= near)
            return n - s->done;
    return 0;
}

/* At most so many intervals as times have room; returns an fm_stop. */
static int some_intervals(fm_system *s, int n)
{
    fm_kernel *k = s->k;
    const fm_instruction **attempts = s->attempts + s->done % (int64_t)s->n_attempts;
    k->n_rows = 0;
    if (n == 1)
        return fm_step(k, s->done ? *attempts : s->first_attempt, s->commit, point(s, s->done), point(s, s->done + 1));
    fm_times times = {n + 1, s->times, 0.0, 0.0, 0, 0};
    if (s->n_attempts == 1 && !s->is_moved)
        times = (fm_times){n + 1, 0, point(s, s->done), s->resolution, s->first + (s->done + 1) * s->step, s->step};
    else
        for (int i = 0; i <= n; i++)
            s->times[i] = point(s, s->done + i);
    int done = 0, stop = fm_repeat(k, attempts, (int)s->n_attempts, s->commit, &times, 0, 0, 0, &done);
    if (stop == FM_RAN && done == n - 1)
        return fm_run(k, s->commit, k->end, k->end);
    s->done += done;
    return stop;
}

int fm_system_step(fm_system *s, double time, double size, double *reached, int *terminate)
{
    fm_kernel *k = s->k;
    double here = now(s), length = (double)s->step / s->resolution;
    *reached = here;
    *terminate = 0;
    if (!(fabs(time - here) <= 1e-6 * length))
        return FM_SAY_ERROR("the step begins at %.17g s, but the system is at %.17g s", time, here);
    int64_t n = intervals_to(s, time + size);
    if (!n)
        return FM_SAY_ERROR("the step from %.12g s by %.12g s does not end at a communication point of the system. Its own step size is %.12g s: "
                     "use it, or a multiple of it.", time, size, length);
    while (n) {
        int64_t before = s->done;
        int part = !before ? 1 : n < FM_MOST_INTERVALS ? (int)n : FM_MOST_INTERVALS, stop = some_intervals(s, part);
        if (stop == FM_RAN) {
            s->done = before + part;
            n -= part;
            continue;
        }
        if (stop == FM_HAPPENED && k->terminate) {
            double end = k->at[0];
            for (int i = 1; i < k->n_instances; i++)
                end = k->at[i] < end ? k->at[i] : end;
            *reached = end;
            *terminate = 1;
            return run(s, s->commit, end);
        }
        *reached = now(s);
        int status = ran(s, stop == FM_HAPPENED ? FM_EARLY : stop);
        if (status != FM_DISCARD || s->rollback->op == FM_END)
            return status == FM_DISCARD ? FM_SAY_ERROR("the members cannot all go back to %.12g s", now(s)) : status;
        int back = run(s, s->rollback, now(s));
        return back > FM_WARNING ? back : FM_DISCARD;
    }
    are_known(s);
    *reached = now(s);
    return FM_OK;
}

/* Values ---------------------------------------------------------------------------------------------------------- */

/* The call of the FMU for text, which goes to the importer or comes from it as it is. */
static int transfer_text(fm_system *s, const fm_variable *v, int is_get, void *values)
{
    const fm_member *m = &s->members[v->instance];
    uint32_t reference = (uint32_t)v->reference;
    void *address = v->type == FM_STRING ? m->functions[is_get ? FM_GET_STRING : FM_SET_STRING] : 0;
    int status = FM_MISSING;
    if (address && m->version == 2)
        status = ((fm_access2_t)address)(m->fmu->component, &reference, 1, values);
    else if (address)
        status = ((fm_access3_t)address)(m->fmu->component, &reference, 1, values, v->size);
    return fm_told(s, m, status, is_get ? "GetString" : "SetString");
}

/* The call of the FMU for one variable. */
static int transfer(fm_system *s, const fm_variable *v, int is_get, void *values)
{
    fm_member *m = &s->members[v->instance];
    if (v->type == FM_STRING || v->type == FM_BINARY)
        return transfer_text(s, v, is_get, values);
    uint32_t reference = (uint32_t)v->reference;
    int integers[64], *more = v->size > 64 ? fm_room(v->size, sizeof *more) : integers;
    if (!more)
        return FM_SAY_ERROR("there is no memory for a variable");
    fm_segment segment = {.references = &reference, .n = 1, .size = v->size, .values = values, .integers = more};
    fm_bind_segment(m, (uint64_t)((is_get ? FM_GET_FLOAT64 : FM_SET_FLOAT64) + (int)v->type), &segment);
    int status = segment.transfer(&segment);
    if (more != integers)
        free(more);
    return fm_told(s, m, status, segment.function ? segment.function : is_get ? "Get" : "Set");
}

static char *memory_of(const fm_system *s, fm_place p)
{
    return p.block == FM_NOWHERE ? 0 : s->memory + s->begins[p.block] + p.offset;
}

static int is_text(int type)
{
    return type == FM_STRING || type == FM_BINARY;
}

static void put_number(int type, void *target, double value)
{
    switch (type) {
    case FM_FLOAT64: *(double *)target = value; break;
    case FM_FLOAT32: *(float *)target = (float)value; break;
    case FM_INT8: *(int8_t *)target = (int8_t)value; break;
    case FM_UINT8: *(uint8_t *)target = (uint8_t)value; break;
    case FM_INT16: *(int16_t *)target = (int16_t)value; break;
    case FM_UINT16: *(uint16_t *)target = (uint16_t)value; break;
    case FM_INT32: *(int32_t *)target = (int32_t)value; break;
    case FM_UINT32: *(uint32_t *)target = (uint32_t)value; break;
    case FM_INT64: *(int64_t *)target = (int64_t)value; break;
    case FM_UINT64: *(uint64_t *)target = (uint64_t)value; break;
    default: *(uint8_t *)target = value != 0.0; break;
    }
}

/* Numbers of one type as those of another; the importer sees to it that they fit. */
static void convert(const char *source, int from, char *target, int to, size_t n)
{
    if (from == to)
        memcpy(target, source, n * fm_size[from]);
    else
        for (size_t i = 0; i < n; i++)
            put_number(to, target + i * fm_size[to], fm_as_double(from, source + i * fm_size[from]));
}

/* The variables of a call, one by one: the number of its values is known to be right after it. */
static const fm_variable *next_variable(fm_system *s, int type, uint32_t reference, size_t left)
{
    if (reference >= s->n_variables) {
        FM_SAY_ERROR("there is no variable with value reference %u", (unsigned)reference);
        return 0;
    }
    const fm_variable *v = &s->variables[reference];
    if (v->size > left || is_text(type) != is_text((int)v->type)) {
        FM_SAY_ERROR("the variable with value reference %u has another type, or another number of values", (unsigned)reference);
        return 0;
    }
    return v;
}

static int get_value(fm_system *s, const fm_variable *v, int type, char *target)
{
    const char *known = s->mode == FM_STEP_MODE && !s->members[v->instance].is_set ? memory_of(s, v->value) : 0;
    if (known) {
        convert(known, (int)v->type, target, type, v->size);
        return FM_OK;
    }
    if ((int)v->type == type)
        return transfer(s, v, 1, target);
    char *own = fm_room(v->size, fm_size[v->type]);
    int status = own ? transfer(s, v, 1, own) : FM_SAY_ERROR("there is no memory for a variable");
    if (own && !fm_failed(status))
        convert(own, (int)v->type, target, type, v->size);
    free(own);
    return status;
}

static int set_value(fm_system *s, const fm_variable *v, int type, const char *source)
{
    char *own = fm_room(v->size, fm_size[v->type]);
    if (!own)
        return FM_SAY_ERROR("there is no memory for a variable");
    convert(source, type, own, (int)v->type, v->size);
    char *start = memory_of(s, v->starts[0]), *again = memory_of(s, v->starts[1]);
    int status = FM_OK, is_later = s->mode != FM_INSTANTIATED;
    for (int k = 0; k < 2 && s->mode != FM_STEP_MODE; k++)
        if (k ? again != 0 : start != 0)
            memcpy(k ? again : start, own, v->size * fm_size[v->type]);
    if (is_later ? s->mode == FM_STEP_MODE || !again : !start && !again)
        status = transfer(s, v, 0, own);
    free(own);
    s->is_settled = 0;
    s->members[v->instance].is_set = 1;
    return status;
}

int fm_system_get(fm_system *s, int type, const uint32_t *references, size_t n, void *values, size_t n_values)
{
    size_t size = fm_size[type], at = 0;
    int worst = settle(s);
    for (size_t i = 0; i < n && worst <= FM_WARNING; i++) {
        const fm_variable *v = next_variable(s, type, references[i], n_values - at);
        if (!v)
            return FM_ERROR;
        int status = get_value(s, v, type, (char *)values + at * size);
        worst = status > worst ? status : worst;
        at += v->size;
    }
    return worst > FM_WARNING || at == n_values ? worst : FM_SAY_ERROR("the variables have %zu values, not %zu", at, n_values);
}

int fm_system_set(fm_system *s, int type, const uint32_t *references, size_t n, const void *values, size_t n_values)
{
    size_t size = fm_size[type], at = 0;
    int worst = FM_OK;
    for (size_t i = 0; i < n && worst <= FM_WARNING; i++) {
        const fm_variable *v = next_variable(s, type, references[i], n_values - at);
        if (!v)
            return FM_ERROR;
        int status = set_value(s, v, type, (const char *)values + at * size);
        worst = status > worst ? status : worst;
        at += v->size;
    }
    return worst > FM_WARNING || at == n_values ? worst : FM_SAY_ERROR("the variables have %zu values, not %zu", at, n_values);
}

/* Many runs ---------------------------------------------------------------------------------------------------------- */

/* Where the values of variables lie that can be taken at each step: the columns of rows. 0 if one has to be read. */
static int make_columns(const fm_system *s, const fm_sweep *sweep, fm_column *columns)
{
    for (size_t j = 0; j < sweep->n_get; j++) {
        const fm_variable *v = &s->variables[sweep->get[j]];
        const char *value = memory_of(s, v->value);
        if (!value || v->type != FM_FLOAT64)
            return 0;
        columns[j] = (fm_column){value, 0, sizeof(double), sweep->n_get * sizeof(double), 0};
    }
    return 1;
}

/* The rows after the first one: n of them, one at each interval, taken by the kernel itself. */
static int take_rows(fm_system *s, const fm_sweep *sweep, fm_column *columns, double *rows)
{
    fm_kernel *k = s->k;
    int stop = FM_RAN;
    k->columns = columns;
    k->n_columns = (int)sweep->n_get;
    for (size_t left = sweep->n_rows - 1; left && stop == FM_RAN;) {
        size_t part = !s->done ? 1 : left < FM_MOST_INTERVALS ? left : FM_MOST_INTERVALS;
        int64_t before = s->done;
        for (size_t j = 0; j < sweep->n_get; j++)
            columns[j].rows = (char *)(rows + j);
        stop = some_intervals(s, (int)part);
        s->done = before + (int64_t)part;
        rows += part * sweep->n_get;
        left -= part;
    }
    k->columns = 0;
    k->n_columns = 0;
    return stop == FM_RAN ? FM_OK : ran(s, stop == FM_HAPPENED ? FM_EARLY : stop);
}

static int read_rows(fm_system *s, const fm_sweep *sweep, double *rows)
{
    int status = FM_OK;
    for (size_t i = 1; i < sweep->n_rows && status <= FM_WARNING; i++) {
        int64_t done = s->done + (int64_t)sweep->every;
        double reached, here = now(s);
        int terminate;
        status = fm_system_step(s, here, point(s, done) - here, &reached, &terminate);
        if (status <= FM_WARNING && terminate)
            status = FM_SAY_ERROR("an FMU has ended the run at %.12g s", reached);
        if (status <= FM_WARNING)
            status = fm_system_get(s, FM_FLOAT64, sweep->get, sweep->n_get, rows += sweep->n_get, sweep->n_get);
    }
    return status;
}

static int one_run(fm_system *s, const fm_sweep *sweep, const double *values, double *rows, fm_column *columns)
{
    int status = s->mode == FM_INSTANTIATED ? FM_OK : fm_system_reset(s);
    if (status <= FM_WARNING)
        status = fm_system_set(s, FM_FLOAT64, sweep->set, sweep->n_set, values, sweep->n_set);
    if (status <= FM_WARNING)
        status = fm_system_initialize(s, &sweep->experiment, 0, 0.0);
    if (status <= FM_WARNING)
        status = fm_system_begin(s);
    if (status <= FM_WARNING)
        status = fm_system_get(s, FM_FLOAT64, sweep->get, sweep->n_get, rows, sweep->n_get);
    if (status <= FM_WARNING)
        status = columns ? take_rows(s, sweep, columns, rows + sweep->n_get) : read_rows(s, sweep, rows);
    return status <= FM_WARNING ? fm_system_terminate(s) : status;
}

int fm_system_sweep(fm_system *s, const fm_sweep *sweep, size_t n_runs, const double *values, double *rows, int *statuses)
{
    size_t n = sweep->n_rows * sweep->n_get;
    fm_column *columns = fm_room(sweep->n_get, sizeof *columns);
    if (!columns)
        return FM_SAY_ERROR("there is no memory for columns");
    for (size_t j = 0; j < sweep->n_get; j++)
        if (!next_variable(s, FM_FLOAT64, sweep->get[j], 1)) {
            free(columns);
            return FM_ERROR;
        }
    int is_taken = sweep->every == 1 && make_columns(s, sweep, columns);
    for (size_t i = 0; i < n * n_runs; i++)
        rows[i] = NAN;
    for (size_t i = 0; i < n_runs; i++) {
        statuses[i] = one_run(s, sweep, values + i * sweep->n_set, rows + i * n, is_taken ? columns : 0);
        s->mode = FM_TERMINATED;
    }
    free(columns);
    return FM_OK;
}

/* States ------------------------------------------------------------------------------------------------------------ */

static system_state *new_state(const fm_system *s)
{
    system_state *state = fm_room(1, sizeof *state);
    if (!state)
        return 0;
    state->memory = fm_room(s->size, 1);
    state->states = fm_room(s->n_members, sizeof *state->states);
    if (state->memory && state->states)
        return state;
    free(state->memory);
    free(state->states);
    free(state);
    return 0;
}

int fm_system_save(fm_system *s, void **state)
{
    system_state *saved = *state ? *state : new_state(s);
    if (!saved)
        return FM_SAY_ERROR("there is no memory for a state");
    *state = saved;
    for (uint64_t i = 0; i < s->n_members; i++) {
        const fm_member *m = &s->members[i];
        int which, status = fm_save_in(m->fmu, &saved->states[i], &which);
        if (fm_failed(status))
            return status == FM_NOT_VALID ? FM_SAY_ERROR("[%s] the FMU has given no state", m->name) : fm_told(s, m, status, m->fmu->names[which]);
    }
    memcpy(saved->memory, s->memory, s->size);
    saved->done = s->done;
    saved->mode = s->mode;
    saved->is_settled = s->is_settled;
    return FM_OK;
}

int fm_system_restore(fm_system *s, const void *state)
{
    const system_state *saved = state;
    for (uint64_t i = 0; i < s->n_members; i++) {
        const fm_member *m = &s->members[i];
        int status = fm_restore_from(m->fmu, &saved->states[i]);
        if (fm_failed(status))
            return fm_told(s, m, status, m->fmu->names[FM_SET_STATE]);
    }
    restore_memory(s, saved->memory);
    s->done = saved->done;
    s->mode = saved->mode;
    s->is_settled = saved->is_settled;
    return FM_OK;
}

void fm_system_free_state(fm_system *s, void **state)
{
    system_state *saved = *state;
    if (!saved)
        return;
    for (uint64_t i = 0; i < s->n_members; i++) {
        void *release = s->members[i].functions[FM_FREE_STATE];
        if (release && saved->states[i])
            ((fm_get_state_t)release)(s->members[i].fmu->component, &saved->states[i]);
    }
    free(saved->memory);
    free(saved->states);
    free(saved);
    *state = 0;
}

/* Bytes of a state: three numbers, the memory without addresses, and for each FMU its size and its bytes. */
enum { HEAD = 4 };

int fm_system_serialized_size(fm_system *s, const void *state, size_t *size)
{
    const system_state *saved = state;
    *size = HEAD * 8 + s->size;
    for (uint64_t i = 0; i < s->n_members; i++) {
        const fm_member *m = &s->members[i];
        size_t own = 0;
        int status = m->state_size ? ((state_size_t)m->state_size)(m->fmu->component, saved->states[i], &own) : FM_MISSING;
        if (fm_failed(status))
            return fm_told(s, m, status, "SerializedFMUStateSize");
        *size += 8 + own;
    }
    return FM_OK;
}

int fm_system_serialize(fm_system *s, const void *state, uint8_t *bytes, size_t size)
{
    const system_state *saved = state;
    size_t wanted = 0;
    int status = fm_system_serialized_size(s, state, &wanted);
    if (status > FM_WARNING)
        return status;
    if (size < wanted)
        return FM_SAY_ERROR("a serialized state has %zu bytes, not %zu", wanted, size);
    const int64_t head[HEAD] = {(int64_t)s->size, saved->done, saved->mode, saved->is_settled};
    memcpy(bytes, head, sizeof head);
    uint8_t *memory = bytes + sizeof head, *at = memory + s->size;
    memcpy(memory, saved->memory, s->size);
    for (uint64_t i = 0; i < s->n_addresses; i++)
        memset(memory + ((char *)s->addresses[i] - s->memory), 0, sizeof(void *));
    for (uint64_t i = 0; i < s->n_members; i++) {
        const fm_member *m = &s->members[i];
        size_t own = 0;
        status = ((state_size_t)m->state_size)(m->fmu->component, saved->states[i], &own);
        uint64_t written = own;
        if (!fm_failed(status) && m->serialize && own <= (size_t)(bytes + size - at) - 8) {
            memcpy(at, &written, 8);
            status = ((bytes_t)m->serialize)(m->fmu->component, saved->states[i], at + 8, own);
            at += 8 + own;
        } else {
            status = fm_failed(status) ? status : FM_MISSING;
        }
        if (fm_failed(status))
            return fm_told(s, m, status, "SerializeFMUState");
    }
    return FM_OK;
}

int fm_system_deserialize(fm_system *s, const uint8_t *bytes, size_t size, void **state)
{
    int64_t head[HEAD];
    if (size < sizeof head + s->size || (memcpy(head, bytes, sizeof head), head[0] != (int64_t)s->size) || head[1] < 0)
        return FM_SAY_ERROR("these %zu bytes are no state of this system", size);
    system_state *saved = new_state(s);
    if (!saved)
        return FM_SAY_ERROR("there is no memory for a state");
    *state = saved;
    memcpy(saved->memory, bytes + sizeof head, s->size);
    saved->done = head[1];
    saved->mode = (int)head[2];
    saved->is_settled = (int)head[3];
    const uint8_t *at = bytes + sizeof head + s->size;
    for (uint64_t i = 0; i < s->n_members; i++) {
        const fm_member *m = &s->members[i];
        uint64_t own = 0, left = (uint64_t)(bytes + size - at);
        if (left >= 8)
            memcpy(&own, at, 8);
        int status = FM_ERROR;
        if (left < 8 || own > left - 8)
            status = FM_SAY_ERROR("these %zu bytes are no state of this system", size);
        else if (!m->deserialize)
            status = fm_told(s, m, FM_MISSING, "DeserializeFMUState");
        else
            status = fm_told(s, m, ((state_of_t)m->deserialize)(m->fmu->component, at + 8, (size_t)own, &saved->states[i]),
                          "DeserializeFMUState");
        if (status > FM_WARNING) {
            fm_system_free_state(s, state);
            return status;
        }
        at += 8 + own;
    }
    return FM_OK;
}
