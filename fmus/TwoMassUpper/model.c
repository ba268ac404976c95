/* The upper mass of two: it hangs by a spring from a fixed point, and the lower mass hangs from it. See readme.md. */
#include "look_ahead.h"
#include "partner.h"
#include "runge_kutta.h"

static double ceiling_position(const Variables *v, double s)
{
    return v->c0 + v->ca * sin(v->cw * (v->time + s) + v->cp);
}

static double ceiling_velocity(const Variables *v, double s)
{
    return v->ca * v->cw * cos(v->cw * (v->time + s) + v->cp);
}

static double ceiling_acceleration(const Variables *v, double s)
{
    return -v->ca * v->cw * v->cw * sin(v->cw * (v->time + s) + v->cp);
}

static double acceleration(const Variables *v, double s, Motion m)
{
    Partner u = partner(v, 0, s);
    return -(v->k1 + v->k2) / v->m1 * m.x - (v->d1 + v->d2) / v->m1 * m.v + v->k2 / v->m1 * u.x + v->d2 / v->m1 * u.v
           - v->g;
}

/* The lower mass has the same expressions, so that both see the same bits. */
static Motion collision_indicators(const Variables *v, double s, Motion m)
{
    Partner u = partner(v, 0, s);
    return (Motion){m.x - u.x - 2 * v->dx, m.v - u.v};
}

static Motion ceiling_indicators(const Variables *v, double s, Motion m)
{
    return (Motion){(ceiling_position(v, s) - v->dx) - m.x, ceiling_velocity(v, s) - m.v};
}

static Motion indicators(const Variables *v, int event, double s, Motion m)
{
    return event == EVENT_ceiling ? ceiling_indicators(v, s, m) : collision_indicators(v, s, m);
}

static fm_Payload own_payload(const Variables *v, int event, double s)
{
    return (fm_Payload){{partner(v, 0, s).v}};
}

static Motion reset(const Variables *v, int event, double s, Motion m, fm_Payload payload)
{
    if (event == EVENT_ceiling) return (Motion){m.x, 2 * ceiling_velocity(v, s) - m.v};
    return (Motion){m.x, ((v->m1 - v->m2) * m.v + 2 * v->m2 * payload.value[0]) / (v->m1 + v->m2)};
}

static Inputs inputs_of(const Variables *v, int partner)
{
    return (Inputs){{v->u_x, v->u_v, v->u_a}, v->u_poly};
}

static int event_with(int partner)
{
    return EVENT_collision;
}

static double partner_after(const Variables *v, int partner)
{
    const fm_EventMemory *memory = &v->memory.event[EVENT_collision];
    return ((v->m2 - v->m1) * memory->payload.value[0] + 2 * v->m1 * memory->left[1]) / (v->m1 + v->m2);
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

static void calculate_outputs(Variables *v, double s)
{
    Motion m = get_motion(v);
    v->a = acceleration(v, s, m);
    Motion ceiling = ceiling_indicators(v, s, m);
    v->ceiling_z_1 = ceiling.x;
    v->ceiling_z_2 = ceiling.v;
    v->ceiling_dz_1 = ceiling.v;
    v->ceiling_dz_2 = ceiling_acceleration(v, s) - v->a;
    Motion collision = collision_indicators(v, s, m);
    v->collision_z_1 = collision.x;
    v->collision_z_2 = collision.v;
    v->collision_dz_1 = collision.v;
    v->collision_dz_2 = v->a - partner(v, 0, s).a;
    v->lookahead_next = look_ahead(v, s, m);
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (check_input_order(self, v) != FM_OK || check_event_policy(self, v) != FM_OK) return FM_ERROR;
    if (!(v->m1 > 0.0 && v->m2 > 0.0))
        return fm_report(self, FM_ERROR, "m1 is %g kg and m2 is %g kg. Both must be positive.", v->m1, v->m2);
    if (!(v->lookahead_c > 0.0 && v->lookahead_d >= 1.0 && v->lookahead_tmin > 0.0))
        return fm_report(self, FM_ERROR, "lookahead.c is %g, lookahead.d is %g, lookahead.tmin is %g s. They must be "
                         "positive, and lookahead.d at least 1.", v->lookahead_c, v->lookahead_d, v->lookahead_tmin);
    return FM_OK;
}

void model_outputs(Variables *v)
{
    show_triggered_events(v);
    calculate_outputs(v, 0.0);
}

/* Row of the Jacobian: d(unknown) = x dx + v dv + u_x du_x + u_v du_v + u_a du_a. */
typedef struct { double x, v, u_x, u_v, u_a; } Row;

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    Row a = {-(v->k1 + v->k2) / v->m1, -(v->d1 + v->d2) / v->m1, v->k2 / v->m1, v->d2 / v->m1, 0};
    Row row;
    switch (unknown) {
    case VR_x: row = (Row){.x = 1}; break;
    case VR_v: row = (Row){.v = 1}; break;
    case VR_a: row = a; break;
    case VR_ceiling_z_1: row = (Row){.x = -1}; break;
    case VR_ceiling_z_2:
    case VR_ceiling_dz_1: row = (Row){.v = -1}; break;
    case VR_ceiling_dz_2: row = (Row){-a.x, -a.v, -a.u_x, -a.u_v, 0}; break;
    case VR_collision_z_1: row = (Row){.x = 1, .u_x = -1}; break;
    case VR_collision_z_2:
    case VR_collision_dz_1: row = (Row){.v = 1, .u_v = -1}; break;
    case VR_collision_dz_2: row = (Row){a.x, a.v, a.u_x, a.u_v, -1}; break;
    default: return NAN;
    }
    /* The inputs u_x, u_v, u_a, or the first three coefficients in place of u_x, u_v and u_a / 2. */
    bool polynomial = v->inputOrder == POLYNOMIAL;
    double by_variable = polynomial ? 0.0 : 1.0, by_coefficient = polynomial ? 1.0 : 0.0;
    switch (known) {
    case VR_x: return row.x;
    case VR_v: return row.v;
    case VR_u_x: return by_variable * row.u_x;
    case VR_u_v: return by_variable * row.u_v;
    case VR_u_a: return by_variable * row.u_a;
    case VR_u_poly: return by_coefficient * row.u_x;
    case VR_u_poly + 1: return by_coefficient * row.u_v;
    case VR_u_poly + 2: return by_coefficient * 2 * row.u_a;
    case VR_u_poly + 3:
    case VR_u_poly + 4:
    case VR_u_poly + 5: return 0.0;
    default: return NAN;
    }
}
