/* A Scheduled Execution FMU: twin of ScheduledInstance in fmimaster/fmu/scheduled.py. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel.h"
#include "status.h"

typedef int (*activate_t)(void *, uint32_t, double);

/* The status of a call, with the name of the function for messages if it has failed. */
static int called(fm_scheduled *s, const char *function, int status)
{
    if (fm_failed(status))
        s->function = function;
    return status;
}

static int activate_by(fm_scheduled *s, size_t clock)
{
    fm_schedule *m = &s->memory;
    const char *function;
    activate_t address = (activate_t)fm_find(s->fmu, FM_ACTIVATE_PARTITION, &function);
    if (m->activated[clock] >= *m->now) {
        s->second = clock;
        return FM_SECOND_TICK;
    }
    m->activated[clock] = *m->now;
    ++*m->n_activations;
    *m->is_set = 0;
    ++*s->version;
    s->is_activating = 1;
    int status = address ? address(s->fmu->component, s->clocks[clock], *m->now) : FM_MISSING;
    s->is_activating = 0;
    return s->has_failed ? FM_ERROR : called(s, function, status);
}

/* ActivateModelPartition for each clock that is due. */
static int activate(fm_scheduled *s)
{
    uint8_t *due = s->memory.due;
    int status = FM_OK;
    for (size_t i = 0; i < s->n_clocks && !fm_failed(status); i++) {
        if (!due[i])
            continue;
        due[i] = 0;
        status = activate_by(s, i);
    }
    if (fm_failed(status))
        memset(due, 0, s->n_clocks);
    return status;
}

/* ClockUpdate */

static int read_output_clocks(fm_scheduled *s)
{
    const fm_segment *call = &s->output_clocks;
    const uint8_t *now = call->values;
    int status = call->n ? called(s, call->function, call->transfer(call)) : FM_OK;
    for (size_t i = 0; i < call->n && !fm_failed(status); i++)
        s->memory.active[s->output_places[i]] |= now[i];
    return status;
}

/* One interval, from one place to another. */
static void copy_interval(const fm_intervals *target, size_t to, const fm_intervals *source, size_t from)
{
    target->counters[to] = source->counters[from];
    target->resolutions[to] = source->resolutions[from];
    target->seconds[to] = source->seconds[from];
    target->qualifiers[to] = source->qualifiers[from];
}

static int read_countdowns(fm_scheduled *s)
{
    int status = FM_OK;
    for (int c = 0; c < s->n_countdowns && !fm_failed(status); c++) {
        const fm_countdowns *v = &s->countdowns[c];
        status = called(s, v->segment.function, v->segment.transfer(&v->segment));
    }
    for (int c = 0; c < s->n_countdowns && !fm_failed(status); c++) {
        const fm_countdowns *v = &s->countdowns[c];
        for (size_t i = 0; i < v->segment.n; i++)
            if (v->answer.qualifiers[i] == FM_CHANGED)
                copy_interval(&s->memory.announced, v->places[i], &v->answer, i);
    }
    return status;
}

void fm_clock_update(void *environment)
{
    fm_scheduled *s = environment;
    if (!s->is_activating) {
        s->in_python(environment);
        return;
    }
    int status = read_output_clocks(s);
    if (!fm_failed(status))
        status = read_countdowns(s);
    if (fm_failed(status)) {
        s->fail(s->self, status);
        s->has_failed = 1; /* the activation ends with it */
    }
}

void fm_nothing(void)
{
}

/* Values */

static int read_values(fm_scheduled *s, fm_scheduled_call *c)
{
    int status = called(s, c->call.function, c->call.transfer(&c->call));
    if (!fm_failed(status))
        c->version = *s->version;
    return status;
}

int fm_scheduled_get(const fm_segment *segment)
{
    fm_scheduled_call *c = segment->self;
    fm_scheduled *s = c->scheduled;
    int status = activate(s);
    if (!fm_failed(status) && !(*s->memory.is_set && c->version == *s->version))
        status = read_values(s, c);
    if (!fm_failed(status))
        memcpy(segment->values, c->call.values, c->bytes);
    return status;
}

/* What may be asked for after a set, and was not read since the last activation. */
static int read_before_set(fm_scheduled *s)
{
    int status = FM_OK;
    if (*s->memory.is_set || memchr(s->memory.due, 1, s->n_clocks))
        return FM_OK;
    for (fm_scheduled_call *c = s->unclocked; c && !fm_failed(status); c = c->next)
        if (c->version != *s->version)
            status = read_values(s, c);
    return status;
}

int fm_scheduled_set(const fm_segment *segment)
{
    fm_scheduled_call *c = segment->self;
    fm_scheduled *s = c->scheduled;
    int status = *s->fmu->initialized ? read_before_set(s) : FM_OK;
    if (!fm_failed(status))
        status = called(s, c->call.function, c->call.transfer(&c->call));
    if (!fm_failed(status))
        *s->memory.is_set = *s->fmu->initialized;
    return status;
}

int fm_scheduled_get_clocks(const fm_segment *segment)
{
    fm_scheduled_call *c = segment->self;
    uint8_t *values = segment->values, *active = c->scheduled->memory.active;
    int status = activate(c->scheduled);
    for (size_t i = 0; i < segment->n && !fm_failed(status); i++) {
        values[i] = active[c->places[i]];
        active[c->places[i]] = 0;
    }
    return status;
}

int fm_scheduled_set_clocks(const fm_segment *segment)
{
    const fm_scheduled_call *c = segment->self;
    const uint8_t *values = segment->values;
    for (size_t i = 0; i < segment->n; i++)
        c->scheduled->memory.due[c->places[i]] |= values[i];
    return FM_OK;
}

int fm_scheduled_ask(const fm_segment *segment)
{
    fm_scheduled_call *c = segment->self;
    fm_scheduled *s = c->scheduled;
    const fm_intervals *told = &s->memory.announced;
    /* Clock Activation Mode does not allow asking for countdown clocks, which have calls of their own there. */
    int is_allowed = c->places[0] == s->n_clocks || !*s->fmu->initialized;
    int status = activate(s);
    for (size_t i = 0; i < segment->n && !is_allowed; i++)
        segment->intervals->qualifiers[i] = FM_NOT_YET_KNOWN;
    if (is_allowed && !fm_failed(status))
        status = called(s, c->call.function, c->call.transfer(&c->call));
    for (size_t i = 0; i < segment->n && !fm_failed(status); i++) {
        size_t place = c->places[i];
        if (place == s->n_clocks || told->qualifiers[place] != FM_CHANGED)
            continue;
        if (segment->intervals->qualifiers[i] != FM_CHANGED)
            copy_interval(segment->intervals, i, told, place);
        told->qualifiers[place] = FM_NOT_YET_KNOWN;
    }
    return status;
}

/* Modes, time and states */

static int enter(void *self, int state, const fm_experiment *experiment, const char **function)
{
    const fm_scheduled *s = self;
    int is_same = state == FM_STEP_MODE || state == FM_EVENT_MODE;
    if (is_same && *s->fmu->initialized)
        return FM_OK;
    int status = s->python->enter(s->python->self, state, experiment, function);
    if (is_same && !fm_failed(status))
        *s->fmu->initialized = 1;
    return status;
}

static int do_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    const fm_scheduled *s = self;
    (void)answer, (void)function;
    *s->memory.now = time + size;
    return FM_OK;
}

static int update(void *self, fm_update *answer, const char **function)
{
    fm_scheduled *s = self;
    (void)answer;
    int status = activate(s);
    if (!fm_failed(status))
        memset(s->memory.active, 0, s->n_clocks);
    *function = s->function;
    return status;
}

static int save(void *self, int place, const char **function)
{
    const fm_scheduled *s = self;
    int status = s->has_fmu_states ? fm_save_state(s->fmu, place, function) : FM_OK;
    if (!fm_failed(status))
        memcpy(s->places + (size_t)place * s->size, s->values, s->size);
    s->versions[place] = *s->version;
    return status;
}

static int restore(void *self, int place, const char **function)
{
    fm_scheduled *s = self;
    const char *saved = s->places + (size_t)place * s->size;
    int status = FM_OK;
    if (s->has_fmu_states) {
        status = fm_restore_state(s->fmu, place, function);
    } else if (memcmp(saved + s->counter, s->values + s->counter, sizeof *s->memory.n_activations)) {
        memcpy(&s->wanted, saved, sizeof s->wanted); /* the record begins with the time */
        *function = "SetFMUState";
        return FM_BEHIND_EVENT;
    }
    if (fm_failed(status))
        return status;
    uint8_t is_set = *s->memory.is_set;
    memcpy(s->values, saved, s->size);
    if (!s->has_fmu_states)
        *s->memory.is_set = is_set; /* the FMU stays as it is */
    if (s->versions[place] != *s->version)
        ++*s->version;
    return FM_OK;
}

static int set_polynomials(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                           double time, const char **function)
{
    const fm_scheduled *s = self;
    return s->python->set_polynomials(s->python->self, references, n, degree, derivatives, time, function);
}

void fm_scheduled_table(fm_scheduled *s, fm_instance *instance)
{
    *instance = (fm_instance){s, set_polynomials, do_step, save, restore, enter, update, 0, 0, 0};
}
