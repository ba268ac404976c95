/* The exact flow of x' = v, v' = g - w^2 (x - x0): a pendulum with small angles, a mass on a spring, or, for w = 0, free
 * fall. Included by a model with states x, v and parameters w, x0, g.
 */
#ifndef FM_OSCILLATOR_H
#define FM_OSCILLATOR_H

#include "event_solver.h"

enum { PUSHES = 6 };

/* Defined by the model: what else accelerates it at v->time + s + h, as p[0] + p[1] h + p[2] h^2 + ... Returns whether there is
 * anything. */
static bool pushes(const Variables *v, double s, double p[PUSHES]);

static double acceleration(const Variables *v, double s, Motion m)
{
    double p[PUSHES], a = v->g - v->w * v->w * (m.x - v->x0);
    return pushes(v, s, p) ? a + p[0] : a;
}

/* The flow under pushes alone, from rest at 0. */
static Motion pushed(const double p[PUSHES], double h)
{
    Motion m = {0.0, 0.0};
    for (int k = PUSHES - 1; k >= 0; k--) {
        m.x = m.x * h + p[k] / ((k + 1) * (k + 2));
        m.v = m.v * h + p[k] / (k + 1);
    }
    return (Motion){m.x * h * h, m.v * h};
}

/* The derivative of a polynomial of this order at the time h. */
static double derived(const double p[PUSHES], int order, double h)
{
    double sum = 0.0;
    for (int k = PUSHES - 1; k >= order; k--) {
        double factor = 1.0;
        for (int n = 0; n < order; n++) factor *= k - n;
        sum = sum * h + factor * p[k];
    }
    return sum;
}

/* A motion of the oscillator about its place of rest, under pushes, at the time h: p / w^2, less their second derivative over
 * w^4, plus their fourth one over w^6. */
static Motion carried(const Variables *v, const double p[PUSHES], double h)
{
    double w2 = v->w * v->w, by = w2;
    Motion m = {0.0, 0.0};
    for (int order = 0; order < PUSHES; order += 2) {
        m.x += derived(p, order, h) / by;
        m.v += derived(p, order + 1, h) / by;
        by *= -w2;
    }
    return m;
}

static Motion swing(const Variables *v, Motion m, double h)
{
    double rest = v->x0 + v->g / (v->w * v->w);
    double c = cos(v->w * h), q = sin(v->w * h);
    return (Motion){rest + (m.x - rest) * c + m.v / v->w * q, -v->w * (m.x - rest) * q + m.v * c};
}

static Motion flow(const Variables *v, double s, Motion m, double h)
{
    double p[PUSHES];
    bool is_pushed = pushes(v, s, p);
    if (v->w == 0.0) {
        Motion by = is_pushed ? pushed(p, h) : (Motion){0.0, 0.0};
        return (Motion){m.x + m.v * h + v->g / 2 * h * h + by.x, m.v + v->g * h + by.v};
    }
    if (!is_pushed) return swing(v, m, h);
    Motion begin = carried(v, p, 0.0), end = carried(v, p, h);
    Motion free = swing(v, (Motion){m.x - begin.x, m.v - begin.v}, h);
    return (Motion){free.x + end.x, free.v + end.v};
}

static Motion get_motion(const Variables *v)
{
    return (Motion){v->x, v->v};
}

static void set_motion(Variables *v, Motion m)
{
    v->x = m.x;
    v->v = m.v;
}

#endif
