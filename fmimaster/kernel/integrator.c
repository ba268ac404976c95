/* One-step integrators: twins of fmimaster/fmu/model_exchange/one_step.py, operation by operation. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "numerics.h"
#include "status.h"
#include "exchange.h"

static double scale(const fm_one_step *s, int i, double magnitude)
{
    return s->absolute * s->exchange->nominals[i] + s->relative * magnitude;
}

int fm_one_step_restart(void *self, double time, const double *states)
{
    fm_one_step *s = self;
    (void)states; /* those before a step are the ones of the exchange */
    s->time = time;
    s->is_known = 0;
    s->left = 0.0;
    return FM_OK;
}

/* The slope where a step of Dormand-Prince starts. */
static int begin(fm_one_step *s)
{
    int n = s->exchange->n;
    if (s->is_known) {
        copy_doubles(s->slopes, s->slopes + (FM_STAGES - 1) * n, n);
        return FM_OK;
    }
    int status = derive(s->exchange, s->slopes);
    return status == FM_DISCARD ? FM_NO_DERIVATIVES : status;
}

static inline void end_at(fm_one_step *s, double there, double length)
{
    s->from = s->time;
    s->length = length;
    s->time = there;
}

/* One step; the largest error in units of its tolerance, INFINITY if the FMU cannot compute it. */
static int attempt(fm_one_step *s, double length, double there, double *error)
{
    int n = s->exchange->n;
    for (int stage = 1; stage < FM_STAGES; stage++) {
        for (int i = 0; i < n; i++)
            s->states[i] = s->before[i] + length * fm_weighted_sum(FM_STAGE_WEIGHTS[stage], stage, s->slopes + i, n);
        double at = FM_STAGE_NODES[stage] == 1.0 ? there : s->time + FM_STAGE_NODES[stage] * length;
        int status = move(s->exchange, at, s->states);
        if (!fm_failed(status))
            status = derive(s->exchange, s->slopes + stage * n);
        if (status == FM_DISCARD)
            return *error = INFINITY, FM_OK;
        if (fm_failed(status))
            return status;
    }
    *error = 0.0;
    for (int i = 0; i < n; i++) {
        double magnitude = larger(fabs(s->before[i]), fabs(s->states[i]));
        double change = length * fm_weighted_sum(FM_ERROR_WEIGHTS, FM_STAGES, s->slopes + i, n);
        double one = fabs(change) / scale(s, i, magnitude);
        if (!(one <= *error))
            *error = one;
        if (isnan(one))
            break;
    }
    return FM_OK;
}

static double first_size(const fm_one_step *s)
{
    double states = 0.0, slopes = 0.0;
    for (int i = 0; i < s->exchange->n; i++) {
        double magnitude = fabs(s->before[i]), by = scale(s, i, magnitude);
        states = larger(states, magnitude / by);
        slopes = larger(slopes, fabs(s->slopes[i]) / by);
    }
    return fm_first_length(states, slopes);
}

int fm_dormand_prince_advance(void *self, double end, double *reached)
{
    fm_one_step *s = self;
    double *size = &s->exchange->memory[FM_X_SIZE], time = s->time;
    if (!s->exchange->n) {
        int status = move(s->exchange, end, s->states);
        end_at(s, end, end - time);
        *reached = end;
        return fm_failed(status) && status != FM_DISCARD ? status : look(s->exchange, s->exchange->there);
    }
    int status = begin(s);
    if (fm_failed(status))
        return status;
    double wanted = *size != 0.0 ? *size : first_size(s), most = FM_MOST_FACTOR, length, there, factor;
    for (;;) {
        double rest = end - time, error;
        length = fm_next_length(rest, wanted);
        there = length == rest ? end : time + length;
        status = attempt(s, length, there, &error);
        if (fm_failed(status))
            return status;
        factor = fm_length_factor(error, most);
        if (error <= 1.0)
            break;
        most = 1.0;
        wanted = fm_shorter_length(length, factor);
        if (fm_is_lost(wanted, time, end))
            return FM_TOO_SHORT;
    }
    *size = fm_grown_length(length, wanted, factor, most);
    s->is_known = 1;
    end_at(s, there, length);
    *reached = there;
    return look(s->exchange, s->exchange->there);
}

int fm_dormand_prince_between(void *self, double time, double *states)
{
    const fm_one_step *s = self;
    int n = s->exchange->n;
    double part = (time - s->from) / s->length;
    copy_doubles(states, s->before, n);
    for (int stage = 0; stage < FM_STAGES; stage++) {
        double weight = fm_dense_weight(stage, part, s->length);
        if (stage != FM_IDLE_STAGE)
            for (int i = 0; i < n; i++)
                states[i] += weight * s->slopes[stage * n + i];
    }
    return FM_OK;
}

/* Divide what is left to the end. */
static void divide(fm_one_step *s, double end)
{
    double rest = end - s->time;
    s->left = rest <= s->step ? 1.0 : larger(1.0, ceil(rest / s->step * (1.0 - FM_SLACK)));
    s->end = end;
    s->part = s->left > 1.0 ? rest / s->left : rest;
}

/* The next of the equal steps. */
FM_INLINE int euler_step(fm_one_step *s, double end)
{
    fm_exchange *x = s->exchange;
    int is_last = s->left <= 1.0;
    double there = is_last ? end : s->time + s->part, length = is_last ? end - s->time : s->part;
    int status = derive(x, s->slopes);
    if (fm_failed(status))
        return status == FM_DISCARD ? FM_NO_DERIVATIVES : status;
    for (int i = 0; i < x->n; i++)
        s->states[i] = s->before[i] + length * s->slopes[i];
    s->left -= 1.0;
    end_at(s, there, length);
    status = move(x, there, s->states);
    if (fm_failed(status))
        return status == FM_DISCARD ? FM_STATES_DISCARDED : status;
    return look(x, x->there);
}

int fm_euler_advance(void *self, double end, double *reached)
{
    fm_one_step *s = self;
    if (s->left == 0.0 || end != s->end)
        divide(s, end);
    int status = euler_step(s, end);
    *reached = s->time;
    return status;
}

int fm_euler_reach(void *self, double time, double end, double *reached)
{
    fm_one_step *s = self;
    fm_exchange *x = s->exchange;
    s->time = time;
    divide(s, end);
    do {
        int status = euler_step(s, end);
        if (fm_failed(status))
            return status;
        if (has_changed(x->indicators, x->there, x->m)) {
            *reached = s->time;
            return FM_AGAIN;
        }
        take(x, s->time, s->states);
    } while (s->left > 0.0);
    return FM_OK;
}

int fm_euler_between(void *self, double time, double *states)
{
    const fm_one_step *s = self;
    for (int i = 0; i < s->exchange->n; i++)
        states[i] = s->before[i] + (time - s->from) * s->slopes[i];
    return FM_OK;
}
