/* A Model Exchange FMU with an integrator: twin of ExchangeSteps in fmimaster/fmu/model_exchange/steps.py. What
 * changes modes, and the events inside a step, stay in Python: they are rare, and have one definition there. */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel.h"
#include "numerics.h"
#include "status.h"
#include "exchange.h"

typedef int (*completed2_t)(void *, int, int *, int *);
typedef int (*completed3_t)(void *, bool, bool *, bool *);

enum { MODE_EVENT = 1, MODE_CONTINUOUS_TIME = 2 }; /* Mode in memory.py */

int fm_exchange_set_inputs(fm_exchange *x, double time)
{
    fm_updates *u = x->fmu->updates;
    fm_intermediate_update(u, time, 1, 0, 0, 0, 0, 0);
    if (!u->failed)
        return FM_OK;
    x->function = u->inputs.function;
    return FM_ERROR;
}

/* Go to a time in the last step of the integrator, or to these states. */
static int go(fm_exchange *x, double time, const double *states)
{
    int status = FM_OK;
    if (states)
        copy_doubles(x->y, states, x->n);
    else
        status = x->integrator.between(x->integrator.self, time, x->y);
    if (fm_failed(status))
        return status;
    status = move(x, time, x->y);
    return status == FM_DISCARD ? FM_REFUSED : status;
}

/* locate of equations.py: the first change of an indicator; the FMU stands there, or at the end of the step. */
static int locate(fm_exchange *x, double low, double high, double *there)
{
    int m = x->m;
    double low_weight = 1.0, high_weight = 1.0, last = high;
    int moved = 0;
    copy_doubles(x->at_low, x->indicators, m);
    copy_doubles(x->at_high, x->there, m);
    for (int trial = 1; trial < FM_MOST_TRIALS; trial++) {
        if (fm_is_located(low, high))
            break;
        double middle = fm_next_trial(low, high, low_weight, high_weight, x->indicators, x->at_low, x->at_high, m,
                                      trial % FM_BISECT_EVERY == 0);
        int status = go(x, middle, 0);
        if (!fm_failed(status))
            status = look(x, x->z);
        if (fm_failed(status))
            return status;
        if (has_changed(x->indicators, x->z, x->m)) {
            high = middle;
            copy_doubles(x->at_high, x->z, m);
            low_weight = moved > 0 ? 0.5 * low_weight : 1.0;
            high_weight = 1.0;
            moved = 1;
        } else {
            low = middle;
            copy_doubles(x->at_low, x->z, m);
            high_weight = moved < 0 ? 0.5 * high_weight : 1.0;
            low_weight = 1.0;
            moved = -1;
        }
    }
    *there = high;
    return go(x, high, high == last ? x->integrator.states : 0);
}

/* CompletedIntegratorStep, for FMUs that need it. */
static int complete(fm_exchange *x, double there, int *wants_event, int *ends)
{
    *wants_event = *ends = 0;
    x->memory[FM_X_UNTOLD] = x->copies && *x->fmu->kept_from < there;
    if (x->memory[FM_X_UNTOLD] != 0.0)
        return FM_OK;
    void *address = x->fmu->functions[FM_COMPLETED_INTEGRATOR_STEP];
    *x->fmu->calling = FM_COMPLETED_INTEGRATOR_STEP;
    int keeps = *x->fmu->kept_from >= there, status;
    if (!address)
        return called(x, FM_COMPLETED_INTEGRATOR_STEP, FM_MISSING);
    if (x->version == 2) {
        int enter = 0, end = 0;
        status = ((completed2_t)address)(x->fmu->component, keeps, &enter, &end);
        *wants_event = enter != 0;
        *ends = end != 0;
    } else {
        bool enter = false, end = false;
        status = ((completed3_t)address)(x->fmu->component, keeps, &enter, &end);
        *wants_event = enter;
        *ends = end;
    }
    return called(x, FM_COMPLETED_INTEGRATOR_STEP, status);
}

/* After a step of the integrator: go back to the first event in it; whether there is a state or step event. */
static int take_step(fm_exchange *x, double there, int *happened)
{
    fm_integrator *integrator = &x->integrator;
    const double *states = integrator->states;
    int ends = 0, status = FM_OK;
    int changed = has_changed(x->indicators, x->there, x->m);
    if (changed) {
        status = locate(x, x->memory[FM_X_TIME], there, &there);
        states = x->y;
        if (!fm_failed(status))
            status = look(x, x->there);
        if (fm_failed(status))
            return status;
    }
    take(x, there, states);
    if (x->completes)
        status = complete(x, there, happened, &ends);
    if (fm_failed(status))
        return status == FM_DISCARD ? FM_REFUSED : status;
    x->memory[FM_X_ENDS] = ends;
    x->memory[FM_X_STEP_EVENT] = *happened && !changed && !is_due(x, there);
    *happened |= changed;
    if (integrator->mark_event && !ends && (*happened || is_due(x, there)))
        return integrator->mark_event(integrator->self);
    return FM_OK;
}

/* One step of the integrator, not beyond the first event; whether there is a state or step event. */
static int advance(fm_exchange *x, double stop, int *happened)
{
    fm_integrator *integrator = &x->integrator;
    double end = smaller(stop, x->memory[FM_X_NEXT_EVENT]), there;
    int status = FM_OK;
    if (x->starts)
        status = integrator->restart(integrator->self, x->memory[FM_X_TIME], x->states);
    if (fm_failed(status))
        return status;
    x->starts = 0;
    status = integrator->advance(integrator->self, end, &there);
    return fm_failed(status) ? status : take_step(x, there, happened);
}

static int execute_events(fm_exchange *x)
{
    x->starts = 1;
    return x->execute_events(x->python->self);
}

/* ExchangeSteps._tell_events: a step of which the FMU has not heard, because copies could be restored. */
static int tell_events(fm_exchange *x)
{
    double now = x->memory[FM_X_TIME];
    int wants_event, ends;
    if (*x->fmu->kept_from <= now)
        return FM_OK;
    int status = complete(x, now, &wants_event, &ends);
    if (fm_failed(status))
        return status == FM_DISCARD ? FM_REFUSED : status;
    x->memory[FM_X_ENDS] = ends;
    if (!wants_event || ends)
        return FM_OK;
    x->memory[FM_X_STEP_EVENT] = 1.0;
    return execute_events(x);
}

/* Whether nothing has to be done in a step but what its integrator does by itself, if no indicator changes. */
static inline int is_quiet(const fm_exchange *x, double time, double stop)
{
    const double *memory = x->memory;
    return memory[FM_X_TIME] == time && memory[FM_X_MODE] == MODE_CONTINUOUS_TIME && memory[FM_X_UNTOLD] == 0.0 &&
           memory[FM_X_ENDS] == 0.0 && !x->completes && time < stop && !is_due(x, stop);
}

/* Go on to the end of a step, after its start or after what has happened in it. */
FM_NOT_INLINE int step_on(fm_exchange *x, double stop, int status, int happened, fm_answer *answer, const char **function)
{
    const double *memory = x->memory;
    while (!fm_failed(status)) {
        double now = memory[FM_X_TIME];
        if (memory[FM_X_ENDS] != 0.0) {
            *answer = (fm_answer){now, 1, 0, 0, 0};
            return FM_DISCARD;
        }
        if (!happened && now < stop && !is_due(x, now)) {
            status = advance(x, stop, &happened);
            now = memory[FM_X_TIME];
            if (fm_failed(status) || memory[FM_X_ENDS] != 0.0)
                continue;
        }
        if (happened || is_due(x, now)) {
            if (x->stops) {
                *answer = (fm_answer){now, 0, 0, now < stop, 1};
                return FM_DISCARD;
            }
            status = execute_events(x);
            happened = 0;
        } else if (now >= stop) {
            return FM_OK;
        }
    }
    *function = x->function;
    return status;
}

static int do_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    fm_exchange *x = self;
    fm_integrator *integrator = &x->integrator;
    double *memory = x->memory, stop = time + size, there;
    int status, happened = 0;
    if (integrator->reach && is_quiet(x, time, stop)) {
        status = set_inputs(x, time);
        if (!fm_failed(status))
            status = integrator->reach(integrator->self, time, stop, &there);
        if (status == FM_AGAIN) {
            x->starts = 0;
            status = take_step(x, there, &happened);
        } else if (!fm_failed(status)) {
            memory[FM_X_STEP_EVENT] = 0.0;
            return FM_OK;
        }
        return step_on(x, stop, status, happened, answer, function);
    }
    if (fabs(memory[FM_X_TIME] - time) > SAME * fabs(time)) /* otherwise it stands there already */
        memory[FM_X_TIME] = time;
    status = memory[FM_X_UNTOLD] != 0.0 ? tell_events(x) : FM_OK;
    if (!fm_failed(status) && memory[FM_X_ENDS] != 0.0) { /* at the start: FMI allows only Terminate */
        *answer = (fm_answer){time, 1, 0, 0, 0};
        return FM_DISCARD;
    }
    if (!fm_failed(status) && memory[FM_X_MODE] == MODE_EVENT) /* discrete inputs were set */
        status = execute_events(x);
    if (!fm_failed(status) && memory[FM_X_ENDS] == 0.0)
        status = set_inputs(x, time);
    x->starts = 1;
    return step_on(x, stop, status, 0, answer, function);
}

static int save(void *self, int place, const char **function)
{
    fm_exchange *x = self;
    int status = x->memory[FM_X_UNTOLD] != 0.0 ? tell_events(x) : FM_OK;
    *function = x->function;
    if (x->goes_back)
        x->memory[FM_X_SIZE] = 0.0;
    x->goes_back = 0;
    if (!fm_failed(status) && !x->copies)
        status = fm_save_state(x->fmu, place, function);
    if (!fm_failed(status))
        memcpy(x->places + (size_t)place * x->size, x->memory, sizeof(double) * x->size);
    return status;
}

static int restore(void *self, int place, const char **function)
{
    fm_exchange *x = self;
    const double *saved = x->places + (size_t)place * x->size;
    int status = FM_OK;
    x->goes_back = x->remembers;
    if (!x->copies) {
        status = fm_restore_state(x->fmu, place, function);
    } else if (saved[FM_X_EVENTS] != x->memory[FM_X_EVENTS]) {
        x->wanted = saved[FM_X_TIME];
        *function = "SetFMUState";
        return FM_BEHIND_EVENT;
    }
    if (fm_failed(status))
        return status;
    memcpy(x->memory, saved, sizeof(double) * x->size);
    if (x->copies && x->memory[FM_X_MODE] == MODE_CONTINUOUS_TIME) {
        status = move(x, x->memory[FM_X_TIME], x->states);
        x->memory[FM_X_UNTOLD] = x->completes;
        *function = x->function;
        if (status == FM_DISCARD)
            status = FM_OK;
    }
    return status;
}

static int set_polynomials(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                           double time, const char **function)
{
    const fm_exchange *x = self;
    (void)references;
    if (x->fmu->n_coefficients)
        return fm_set_coefficients(x->fmu, n, degree, derivatives, function);
    if (x->fmu->updates)
        fm_take_polynomials(x->fmu->updates, derivatives, time);
    return FM_OK;
}

static int enter(void *self, int state, const fm_experiment *experiment, const char **function)
{
    const fm_exchange *x = self;
    return x->python->enter(x->python->self, state, experiment, function);
}

static int update(void *self, fm_update *answer, const char **function)
{
    const fm_exchange *x = self;
    return x->python->update(x->python->self, answer, function);
}

static int no_time(void *component, double time)
{
    (void)component;
    (void)time;
    return FM_MISSING;
}

static int no_pass(void *component, double *values, size_t n)
{
    (void)component;
    (void)values;
    (void)n;
    return FM_MISSING;
}

static fm_pass *found(const fm_exchange *x, int which)
{
    void *address = x->fmu->functions[which];
    return address ? (fm_pass *)address : no_pass;
}

void fm_exchange_table(fm_exchange *x, fm_instance *instance)
{
    void *set_time = x->fmu->functions[FM_SET_TIME];
    x->component = x->fmu->component;
    x->calling = x->fmu->calling;
    x->set_time = set_time ? (fm_pass_time *)set_time : no_time;
    x->set_states = found(x, FM_SET_CONTINUOUS_STATES);
    x->get_derivatives = found(x, FM_GET_DERIVATIVES);
    x->get_indicators = found(x, FM_GET_EVENT_INDICATORS);
    *instance = (fm_instance){x, set_polynomials, do_step, save, restore, enter, update, 0, 0, 0};
}

void fm_exchange_one_step(fm_exchange *x, fm_one_step *s, int is_euler)
{
    s->exchange = x;
    x->integrator = (fm_integrator){s, fm_one_step_restart,
                                    is_euler ? fm_euler_advance : fm_dormand_prince_advance,
                                    is_euler ? fm_euler_between : fm_dormand_prince_between,
                                    is_euler ? fm_euler_reach : 0, s->states, 0};
}
