/* One-step integrators: twins of fmimaster/fmu/model_exchange/one_step.py, operation by operation. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "doubles.h"
#include "status.h"
#include "exchange.h"

enum { STAGES = FM_MOST_STAGES };

static const double NODES[STAGES] = {0.0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1.0, 1.0};

/* A stage and its weight in a sum. */
typedef struct {
    int stage;
    double weight;
} term;

static const term WEIGHTS[STAGES][6] = {
    {{0, 0.0}},
    {{0, 1.0 / 5}},
    {{0, 3.0 / 40}, {1, 9.0 / 40}},
    {{0, 44.0 / 45}, {1, -56.0 / 15}, {2, 32.0 / 9}},
    {{0, 19372.0 / 6561}, {1, -25360.0 / 2187}, {2, 64448.0 / 6561}, {3, -212.0 / 729}},
    {{0, 9017.0 / 3168}, {1, -355.0 / 33}, {2, 46732.0 / 5247}, {3, 49.0 / 176}, {4, -5103.0 / 18656}},
    {{0, 35.0 / 384}, {2, 500.0 / 1113}, {3, 125.0 / 192}, {4, -2187.0 / 6784}, {5, 11.0 / 84}},
};
static const int N_WEIGHTS[STAGES] = {0, 1, 2, 3, 4, 5, 5};
static const term ERROR[6] = {{0, 71.0 / 57600},      {2, -71.0 / 16695}, {3, 71.0 / 1920},
                              {4, -17253.0 / 339200}, {5, 22.0 / 525},    {6, -1.0 / 40}};
static const struct {
    int stage;
    double a, b, c, d;
} DENSE[6] = {
    {0, 1.0, -8048581381.0 / 2820520608.0, 8663915743.0 / 2820520608.0, -12715105075.0 / 11282082432.0},
    {2, 0.0, 131558114200.0 / 32700410799.0, -68118460800.0 / 10900136933.0, 87487479700.0 / 32700410799.0},
    {3, 0.0, -1754552775.0 / 470086768.0, 14199869525.0 / 1410260304.0, -10690763975.0 / 1880347072.0},
    {4, 0.0, 127303824393.0 / 49829197408.0, -318862633887.0 / 49829197408.0, 701980252875.0 / 199316789632.0},
    {5, 0.0, -282668133.0 / 205662961.0, 2019193451.0 / 616988883.0, -1453857185.0 / 822651844.0},
    {6, 0.0, 40617522.0 / 29380423.0, -110615467.0 / 29380423.0, 69997945.0 / 29380423.0},
};

static const double SAFETY = 0.9, LEAST_FACTOR = 0.2, MOST_FACTOR = 10.0, STRETCH = 1.1;
static const double FIRST_SHARE = 0.01, LEAST_NORM = 1e-5, SHORTEST_FIRST = 1e-6;
static const double FEWEST_ULPS = 16 * 0x1p-52, SLACK = 1e-9;

static double sum(const term *terms, int n_terms, const double *slopes, int n, int i)
{
    double total = terms[0].weight * slopes[terms[0].stage * n + i];
    for (int t = 1; t < n_terms; t++)
        total += terms[t].weight * slopes[terms[t].stage * n + i];
    return total;
}

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

/* The slope where a step starts. */
static int begin(fm_one_step *s, int stages)
{
    int n = s->exchange->n;
    if (s->is_known) {
        copy_doubles(s->slopes, s->slopes + (stages - 1) * n, n);
        return FM_OK;
    }
    int status = derive(s->exchange, s->slopes);
    return status == FM_DISCARD ? FM_NO_DERIVATIVES : status;
}

static int end_at(fm_one_step *s, double there, double length, double *reached)
{
    s->from = s->time;
    s->length = length;
    s->time = *reached = there;
    return FM_OK;
}

/* One step; the largest error in units of its tolerance, INFINITY if the FMU cannot compute it. */
static int attempt(fm_one_step *s, double length, double there, double *error)
{
    int n = s->exchange->n;
    for (int stage = 1; stage < STAGES; stage++) {
        for (int i = 0; i < n; i++)
            s->states[i] = s->before[i] + length * sum(WEIGHTS[stage], N_WEIGHTS[stage], s->slopes, n, i);
        double at = NODES[stage] == 1.0 ? there : s->time + NODES[stage] * length;
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
        double one = fabs(length * sum(ERROR, 6, s->slopes, n, i)) / scale(s, i, magnitude);
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
    return states > LEAST_NORM && slopes > LEAST_NORM ? FIRST_SHARE * states / slopes : SHORTEST_FIRST;
}

int fm_dormand_prince_advance(void *self, double end, double *reached)
{
    fm_one_step *s = self;
    double *size = &s->exchange->memory[FM_X_SIZE], time = s->time;
    if (!s->exchange->n) {
        int status = move(s->exchange, end, s->states);
        return fm_failed(status) && status != FM_DISCARD ? status : end_at(s, end, end - time, reached);
    }
    int status = begin(s, STAGES);
    if (fm_failed(status))
        return status;
    double wanted = *size != 0.0 ? *size : first_size(s), most = MOST_FACTOR, length, there, factor;
    for (;;) {
        double rest = end - time, error;
        int is_last = rest <= STRETCH * wanted;
        length = is_last ? rest : rest < 2.0 * wanted ? 0.5 * rest : wanted;
        there = is_last ? end : time + length;
        status = attempt(s, length, there, &error);
        if (fm_failed(status))
            return status;
        factor = error == 0.0 ? most : SAFETY * pow(error, -0.2);
        if (error <= 1.0)
            break;
        most = 1.0;
        wanted = length * larger(LEAST_FACTOR, factor);
        if (wanted < FEWEST_ULPS * larger(fabs(time), fabs(end)))
            return FM_TOO_SHORT;
    }
    double grown = length * smaller(larger(LEAST_FACTOR, factor), most);
    *size = length < wanted ? larger(wanted, grown) : grown;
    s->is_known = 1;
    return end_at(s, there, length, reached);
}

int fm_dormand_prince_between(void *self, double time, double *states)
{
    const fm_one_step *s = self;
    int n = s->exchange->n;
    double part = (time - s->from) / s->length;
    copy_doubles(states, s->before, n);
    for (int t = 0; t < 6; t++) {
        double weight = s->length * (part * (DENSE[t].a + part * (DENSE[t].b + part * (DENSE[t].c + part * DENSE[t].d))));
        for (int i = 0; i < n; i++)
            states[i] += weight * s->slopes[DENSE[t].stage * n + i];
    }
    return FM_OK;
}

int fm_euler_advance(void *self, double end, double *reached)
{
    fm_one_step *s = self;
    double time = s->time;
    int status = begin(s, 1);
    if (fm_failed(status))
        return status;
    if (s->left == 0.0 || end != s->end) {
        double rest = end - time;
        s->left = rest <= s->step ? 1.0 : larger(1.0, ceil(rest / s->step * (1.0 - SLACK)));
        s->end = end;
        s->part = rest / s->left;
    }
    int is_last = s->left == 1.0;
    double there = is_last ? end : time + s->part, length = is_last ? end - time : s->part;
    s->left -= 1.0;
    for (int i = 0; i < s->exchange->n; i++)
        s->states[i] = s->before[i] + length * s->slopes[i];
    status = move(s->exchange, there, s->states);
    if (fm_failed(status))
        return status == FM_DISCARD ? FM_STATES_DISCARDED : status;
    return end_at(s, there, length, reached);
}

int fm_euler_between(void *self, double time, double *states)
{
    const fm_one_step *s = self;
    for (int i = 0; i < s->exchange->n; i++)
        states[i] = s->before[i] + (time - s->from) * s->slopes[i];
    return FM_OK;
}
