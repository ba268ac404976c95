/* CVODE as an integrator: twin of CvodeIntegration in fmimaster/fmu/model_exchange/cvode.py, call by call. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel.h"
#include "status.h"
#include "exchange.h"

enum { SUCCESS = 0, RECOVERABLE = 1, FAILED = -1 }; /* answers of a callback */
enum { ONE_STEP = 2, TOO_CLOSE = -27 };             /* CV_ONE_STEP, CV_TOO_CLOSE */

static const double LARGEST_JUMP = 1.0;

/* The answer of a callback; a failure is kept, because CVODE cannot pass it on. */
static int answer(fm_cvode *c, int status)
{
    if (!fm_failed(status))
        return SUCCESS;
    if (status == FM_DISCARD)
        return RECOVERABLE;
    c->status = status;
    return FAILED;
}

int fm_cvode_derive(double time, void *states, void *derivatives, void *data)
{
    fm_cvode *c = data;
    int status = move(c->exchange, time, c->sundials.elements(states));
    if (!fm_failed(status))
        status = derive(c->exchange, c->sundials.elements(derivatives));
    return answer(c, status);
}

int fm_cvode_linearize(double time, void *states, void *derivatives, void *matrix, void *data, void *first, void *second,
                       void *third)
{
    fm_cvode *c = data;
    fm_derivative *jacobian = &c->jacobian;
    size_t n = (size_t)c->exchange->n;
    double *columns = c->sundials.columns(matrix);
    (void)derivatives, (void)first, (void)second, (void)third;
    int status = move(c->exchange, time, c->sundials.elements(states));
    if (fm_failed(status))
        return answer(c, status);
    for (size_t j = 0; j < n; j++) {
        memset(jacobian->seed, 0, sizeof(double) * n);
        jacobian->seed[j] = 1.0;
        status = jacobian->derive(jacobian);
        if (fm_failed(status)) {
            c->exchange->function = jacobian->function;
            return answer(c, status == FM_DISCARD ? FM_REFUSED : status);
        }
        memcpy(columns + j * n, jacobian->sensitivity, sizeof(double) * n);
    }
    return SUCCESS;
}

static void begin(fm_cvode *c)
{
    const fm_exchange *x = c->exchange;
    for (int i = 0; i < x->n; i++)
        c->tolerances[i] = c->absolute * x->nominals[i];
    c->sundials.set_tolerances(c->memory, c->relative, c->tolerances_vector);
    c->sundials.restart(c->memory, c->time, c->states_vector);
    c->is_fresh = 1;
    x->memory[FM_X_SIZE] = 0.0;
}

/* Whether the derivatives have jumped, so that a state differs by more than its tolerance after a step. */
static int has_jumped(fm_cvode *c, int *jumped)
{
    const fm_exchange *x = c->exchange;
    *jumped = 1;
    if (!c->is_known)
        return FM_OK;
    int status = derive(c->exchange, c->slopes);
    if (fm_failed(status))
        return status == FM_DISCARD ? FM_OK : status;
    *jumped = 0;
    for (int i = 0; i < x->n; i++) {
        double change = x->memory[FM_X_SIZE] * (c->slopes[i] - c->slopes_before[i]);
        double tolerance = c->relative * fabs(c->states[i]) + c->tolerances[i];
        if (!(fabs(change / tolerance) <= LARGEST_JUMP))
            *jumped = 1;
    }
    return FM_OK;
}

/* Whether the states, or their nominal values, are not those of the last step. */
static int has_other_states(const fm_cvode *c, const double *states)
{
    const fm_exchange *x = c->exchange;
    for (int i = 0; i < x->n; i++)
        if (states[i] != c->states[i] || c->absolute * x->nominals[i] != c->tolerances[i])
            return 1;
    return 0;
}

/* Keep the derivatives, to find out whether they jump. */
static int mark_event(void *self)
{
    fm_cvode *c = self;
    if (c->is_known)
        return FM_OK;
    int status = derive(c->exchange, c->slopes_before);
    if (fm_failed(status) && status != FM_DISCARD)
        return status;
    c->is_known = status != FM_DISCARD;
    return FM_OK;
}

static int restart(void *self, double time, const double *states)
{
    fm_cvode *c = self;
    const fm_exchange *x = c->exchange;
    int jumped = 0, may_jump = c->has_inputs || x->memory[FM_X_EVENTS] != c->events;
    if (x->memory[FM_X_SIZE] == 0.0 || time != c->time || has_other_states(c, states))
        c->is_fresh = 1;
    c->events = x->memory[FM_X_EVENTS];
    if (!c->is_fresh && may_jump) {
        int status = has_jumped(c, &jumped);
        if (fm_failed(status))
            return status;
    }
    if (c->is_fresh || jumped) {
        c->time = time;
        memcpy(c->states, states, sizeof(double) * (size_t)x->n);
        begin(c);
    }
    return FM_OK;
}

static int step(fm_cvode *c, double end)
{
    c->status = FM_OK;
    c->sundials.set_stop_time(c->memory, end);
    return c->sundials.step(c->memory, end, c->states_vector, &c->time, ONE_STEP);
}

static int advance(void *self, double end, double *reached)
{
    fm_cvode *c = self;
    fm_exchange *x = c->exchange;
    double before = c->time;
    int flag = step(c, end);
    if (flag < 0 && c->status == FM_OK && !c->is_fresh) { /* the derivatives of now do not continue those of the last steps */
        begin(c);
        flag = step(c, end);
    }
    if (c->status != FM_OK)
        return c->status;
    if (flag == TOO_CLOSE)
        c->time = end;
    else if (flag < 0)
        return FM_STUCK;
    else if (c->time <= before)
        return FM_TOO_SHORT;
    c->is_fresh = flag == TOO_CLOSE;
    c->is_known = 0;
    double *size = &x->memory[FM_X_SIZE], length = c->time - before;
    *size = length > *size ? length : *size;
    int status = move(x, c->time, c->states);
    if (fm_failed(status) && status != FM_DISCARD)
        return status;
    *reached = c->time;
    status = c->time == end && c->has_inputs ? mark_event(c) : FM_OK;
    return fm_failed(status) ? status : look(x, x->there);
}

static int between(void *self, double time, double *states)
{
    const fm_cvode *c = self;
    c->sundials.interpolate(c->memory, time, 0, c->work_vector);
    memcpy(states, c->work, sizeof(double) * (size_t)c->exchange->n);
    return FM_OK;
}

void fm_exchange_cvode(fm_exchange *x, fm_cvode *c)
{
    c->exchange = x;
    c->is_fresh = 1;
    x->integrator = (fm_integrator){c, restart, advance, between, 0, c->states, mark_event};
}
