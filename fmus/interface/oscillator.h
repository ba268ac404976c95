/* The exact flow of x' = v, v' = g - w^2 (x - x0): a pendulum with small angles, a mass on a spring, or, for w = 0, free
 * fall. Included by a model with states x, v and parameters w, x0, g.
 */
#ifndef FM_OSCILLATOR_H
#define FM_OSCILLATOR_H

#include "event_solver.h"

static double acceleration(const Variables *v, Motion m)
{
    return v->g - v->w * v->w * (m.x - v->x0);
}

static Motion flow(const Variables *v, double s, Motion m, double h)
{
    if (v->w == 0.0) return (Motion){m.x + m.v * h + v->g / 2 * h * h, m.v + v->g * h};
    double rest = v->x0 + v->g / (v->w * v->w);
    double c = cos(v->w * h), q = sin(v->w * h);
    return (Motion){rest + (m.x - rest) * c + m.v / v->w * q, -v->w * (m.x - rest) * q + m.v * c};
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
