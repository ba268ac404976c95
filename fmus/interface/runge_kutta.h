/* The flow of x' = v, v' = a(s, x, v): one step of the classical Runge-Kutta method of order 4. */
#ifndef FM_RUNGE_KUTTA_H
#define FM_RUNGE_KUTTA_H

#include "event_solver.h"

/* Defined by the model */
static double acceleration(const Variables *v, double s, Motion m);

static Motion flow(const Variables *v, double s, Motion m, double h)
{
    Motion k1 = {m.v, acceleration(v, s, m)};
    Motion m2 = {m.x + h / 2 * k1.x, m.v + h / 2 * k1.v};
    Motion k2 = {m2.v, acceleration(v, s + h / 2, m2)};
    Motion m3 = {m.x + h / 2 * k2.x, m.v + h / 2 * k2.v};
    Motion k3 = {m3.v, acceleration(v, s + h / 2, m3)};
    Motion m4 = {m.x + h * k3.x, m.v + h * k3.v};
    Motion k4 = {m4.v, acceleration(v, s + h, m4)};
    return (Motion){m.x + h / 6 * (k1.x + 2 * k2.x + 2 * k3.x + k4.x),
                    m.v + h / 6 * (k1.v + 2 * k2.v + 2 * k3.v + k4.v)};
}

#endif
