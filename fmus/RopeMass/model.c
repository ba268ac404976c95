/* One of three masses on a common rope: when it goes taut, all three jump. See readme.md. */
#include "oscillator.h"
#include "partner.h"

enum { FIRST, SECOND };   /* the other masses */

static Inputs inputs_of(const Variables *v, int other)
{
    if (other == FIRST) return (Inputs){{v->first_x, v->first_v, v->first_a}, v->first_poly};
    return (Inputs){{v->second_x, v->second_v, v->second_a}, v->second_poly};
}

static int event_with(int other)
{
    return EVENT_taut;
}

/* Nothing pushes the mass. */
static bool pushes(const Variables *v, double s, double p[PUSHES])
{
    return false;
}

/* From the smallest to the largest: the three masses, which number each other differently, have the same bits. */
static double sum(double a, double b, double c)
{
    double low = fmin(a, b), high = fmax(a, b);
    double middle = fmax(low, fmin(high, c));
    return fmin(low, c) + middle + fmax(high, c);
}

/* Slack of the rope, its first and its second derivative. */
static Partner slack(const Variables *v, double s, Motion m)
{
    Partner p = partner(v, FIRST, s), q = partner(v, SECOND, s);
    return (Partner){v->rope - sum(m.x, p.x, q.x), -sum(m.v, p.v, q.v), -sum(acceleration(v, s, m), p.a, q.a)};
}

static Motion indicators(const Variables *v, int event, double s, Motion m)
{
    Partner z = slack(v, s, m);
    return (Motion){z.x, z.v};
}

static fm_Payload own_payload(const Variables *v, int event, double s)
{
    return (fm_Payload){{partner(v, FIRST, s).v, partner(v, SECOND, s).v}};
}

/* The velocity of the mass `m` after the rope has pulled all three, which had these velocities, by the same impulse. */
static double after_pull(const Variables *v, double m, double before, double all_before)
{
    return before - (1.0 + v->e) * all_before / sum(1.0 / v->m, 1.0 / v->first_m, 1.0 / v->second_m) / m;
}

static Motion reset(const Variables *v, int event, double s, Motion m, fm_Payload payload)
{
    return (Motion){m.x, after_pull(v, v->m, m.v, sum(m.v, payload.value[FIRST], payload.value[SECOND]))};
}

static double partner_after(const Variables *v, int other)
{
    const fm_EventMemory *memory = &v->memory.event[EVENT_taut];
    const double *w = memory->payload.value;
    return after_pull(v, other == FIRST ? v->first_m : v->second_m, w[other], sum(memory->left[1], w[FIRST], w[SECOND]));
}

static void calculate_outputs(Variables *v, double s)
{
    Motion m = get_motion(v);
    Partner z = slack(v, s, m);
    v->a = acceleration(v, s, m);
    v->taut_z_1 = z.x;
    v->taut_z_2 = z.v;
    v->taut_dz_1 = z.v;
    v->taut_dz_2 = z.a;
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (check_input_order(self, v) != FM_OK || check_event_policy(self, v) != FM_OK) return FM_ERROR;
    if (v->m > 0.0 && v->first_m > 0.0 && v->second_m > 0.0 && v->w >= 0.0 && v->e >= 0.0 && v->e <= 1.0) return FM_OK;
    return fm_report(self, FM_ERROR, "m is %g, first.m %g, second.m %g kg, w is %g rad/s, e is %g. The masses must be "
                     "positive, w not negative, e from 0 to 1.", v->m, v->first_m, v->second_m, v->w, v->e);
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
