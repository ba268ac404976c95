/* A ball that falls and bounces on the ground. See readme.md. */
#include "event_solver.h"

/* A ball at rest: only its last bounce makes both exactly 0. */
static bool rests(Motion m)
{
    return m.x == 0.0 && m.v == 0.0;
}

static Motion flow(const Variables *v, double s, Motion m, double h)
{
    if (rests(m)) return m;
    return (Motion){m.x + m.v * h + v->g / 2 * h * h, m.v + v->g * h};
}

/* At rest nothing can occur any more: one indicator is positive for good. */
static Motion indicators(const Variables *v, int event, double s, Motion m)
{
    return rests(m) ? (Motion){0.0, 1.0} : m;
}

static fm_Payload own_payload(const Variables *v, int event, double s)
{
    return (fm_Payload){{0.0}};   /* the ground has no velocity to tell */
}

static Motion reset(const Variables *v, int event, double s, Motion m, fm_Payload payload)
{
    double rebound = v->e * fabs(m.v);   /* also if it rises: a trigger is never refused */
    return rebound < v->v_min ? (Motion){0.0, 0.0} : (Motion){m.x, rebound};
}

static Motion get_motion(const Variables *v)
{
    return (Motion){v->h, v->v};
}

static void set_motion(Variables *v, Motion m)
{
    v->h = m.x;
    v->v = m.v;
}

static void calculate_outputs(Variables *v, double s)
{
    Motion m = get_motion(v), z = indicators(v, EVENT_bounce, s, m);
    v->a = rests(m) ? 0.0 : v->g;
    v->bounce_z_1 = z.x;
    v->bounce_z_2 = z.v;
    v->bounce_indicator = fmax(z.x, z.v);
    v->bounce_dz_1 = m.v;
    v->bounce_dz_2 = v->a;
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (!(v->g < 0.0 && v->e >= 0.0 && v->e <= 1.0 && v->v_min >= 0.0))
        return fm_report(self, FM_ERROR, "g is %g m/s2, e is %g, v_min is %g m/s. g must be negative, e from 0 to 1, "
                         "v_min not negative.", v->g, v->e, v->v_min);
    return check_event_policy(self, v);
}

void model_outputs(Variables *v)
{
    show_triggered_events(v);
    calculate_outputs(v, 0.0);
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
