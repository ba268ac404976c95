/* x' = A x + B u + e, y = C x + D u + f, with matrices from a file. See readme.md and linear_writer.py. */
enum { MOST = 16, STATES = MOST, INPUTS = MOST };   /* as MOST of linear_system.py */
#include "linear_inputs.h"
#include "state_space.h"

#include <stdio.h>
#include <string.h>

/* Largest product of the norm of A and the length of a step of the Taylor series, and the number of its terms. What is
 * left out is below 0.5^18 / 18! = 6e-22. */
static const double LARGEST_PRODUCT = 0.5;
enum { TERMS = 17 };

static States get_states(const Variables *v)
{
    States x;
    memcpy(x.of, v->x, sizeof x.of);
    return x;
}

static void set_states(Variables *v, States x)
{
    memcpy(v->x, x.of, sizeof x.of);
}

static Inputs get_inputs(const Variables *v)
{
    Inputs u;
    memcpy(u.of, v->u, sizeof u.of);
    return u;
}

static Inputs get_slopes(const Variables *v)
{
    Inputs u;
    memcpy(u.of, v->u_slope, sizeof u.of);
    return u;
}

/* value + M x + N u for each row */
static void affine(const Variables *v, int rows, const double *value, const double *m, const double *x, const double *n,
                   const double *u, double *result)
{
    for (int i = 0; i < rows; i++) {
        double sum = value ? value[i] : 0.0;
        for (int j = 0; j < v->states; j++) sum += m[i * v->states + j] * x[j];
        for (int j = 0; u && j < v->inputs; j++) sum += n[i * v->inputs + j] * u[j];
        result[i] = sum;
    }
}

static States rates(const Variables *v, States x, Inputs u)
{
    States slope = {{0.0}};
    affine(v, v->states, v->e, v->A, x.of, v->B, u.of, slope.of);
    return slope;
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    affine(v, v->outputs, v->f, v->C, x.of, v->D, u.of, v->y);
    affine(v, v->states, v->e, v->A, x.of, v->B, u.of, v->dx);
}

static double norm(const Variables *v)
{
    double largest = 0.0;
    for (int i = 0; i < v->states; i++) {
        double sum = 0.0;
        for (int j = 0; j < v->states; j++) sum += fabs(v->A[i * v->states + j]);
        largest = fmax(largest, sum);
    }
    return largest;
}

/* The Taylor series of the solution: term k is h/k (A times term k - 1), and B times the slope of u in the second. */
static States taylor(const Variables *v, States x, const Course *u, double length)
{
    double count = fmax(1.0, ceil(norm(v) * length / LARGEST_PRODUCT));
    double h = length / count;
    for (double q = 0.0; q < count; q++) {
        States term = rates(v, x, inputs_at(u, q * h));
        for (int i = 0; i < v->states; i++) x.of[i] += term.of[i] *= h;
        Inputs slope = u->slope;
        for (int i = 0; i < v->inputs; i++) slope.of[i] *= h;
        for (int k = 2; k <= TERMS; k++) {
            States before = term;
            affine(v, v->states, NULL, v->A, before.of, v->B, k == 2 ? slope.of : NULL, term.of);
            for (int i = 0; i < v->states; i++) x.of[i] += term.of[i] *= h / k;
        }
    }
    return x;
}

static States advance(const Variables *v, States x, const Course *u, double h)
{
    if (v->microStep > 0.0) return euler(v, x, u, h, micro_steps_within(h, v->microStep), 0.0);
    return taylor(v, x, u, h);
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->microStep >= 0.0) return FM_OK;
    return fm_report(self, FM_ERROR, "microStep is %g s. It must be positive, or 0 for the exact solution.",
                     v->microStep);
}

static double element(const double *matrix, int columns, uint32_t row, uint32_t column)
{
    return matrix[row * (uint32_t)columns + column];
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    uint32_t x = known - VR_x, u = known - VR_u, y = unknown - VR_y, dx = unknown - VR_dx;
    uint32_t states = (uint32_t)v->states, inputs = (uint32_t)v->inputs, outputs = (uint32_t)v->outputs;
    if (x >= states && u >= inputs) return NAN;   /* what is negative is a large number */
    if (unknown - VR_x < states) return unknown == known;
    if (y < outputs) return x < states ? element(v->C, v->states, y, x) : element(v->D, v->inputs, y, u);
    if (dx < states) return x < states ? element(v->A, v->states, dx, x) : element(v->B, v->inputs, dx, u);
    return NAN;
}

/* The file of linear_writer.py: numbers of states, inputs and outputs, microStep, A, B, C, D, e, f, x(0), u(0) */
enum { HEAD = 4, LONGEST_FILE = HEAD + 4 * MOST * MOST + 4 * MOST, LONGEST_PATH = 4096 };

static const double *take(const double *from, double *to, int count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
    return from + count;
}

fm_Status model_load(fm_Instance *self, Variables *v, const char *resources)
{
    char path[LONGEST_PATH];
    snprintf(path, sizeof path, "%s/system.f64", resources);
    FILE *file = fopen(path, "rb");
    if (!file) return fm_report(self, FM_ERROR, "The file '%s' cannot be read. It has the matrices.", path);
    double numbers[LONGEST_FILE + 1];
    size_t count = fread(numbers, sizeof *numbers, LONGEST_FILE + 1, file);
    fclose(file);
    bool is_complete = count >= HEAD;
    for (int i = 0; is_complete && i < 3; i++) is_complete = numbers[i] >= 0.0 && numbers[i] <= MOST;
    int n = is_complete ? (int)numbers[0] : 0, m = is_complete ? (int)numbers[1] : 0;
    int p = is_complete ? (int)numbers[2] : 0;
    if (!is_complete || count != (size_t)(HEAD + (n + p) * (n + m) + 2 * n + p + m))
        return fm_report(self, FM_ERROR, "The file '%s' has %zu numbers, which are no system.", path, count);
    v->states = n;
    v->inputs = m;
    v->outputs = p;
    v->microStep = numbers[3];
    const double *at = take(numbers + HEAD, v->A, n * n);
    at = take(at, v->B, n * m);
    at = take(at, v->C, p * n);
    at = take(at, v->D, p * m);
    at = take(at, v->e, n);
    at = take(at, v->f, p);
    at = take(at, v->x, n);
    take(at, v->u, m);
    return FM_OK;
}
