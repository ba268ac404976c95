/* The upper mass of two: it hangs by a spring from a fixed point, and the lower mass hangs from it. See readme.md. */
#include "model.h"

enum { CEILING, COLLISION, EVENT_COUNT };
static const char *const EVENT_NAMES[] = {"ceiling", "collision"};

#include "event_solver.h"

typedef struct { double x, v, a; } Partner;

/* The lower mass at the time `s` after the begin of the step, by the inputs. */
static Partner partner(const Variables *v, double s)
{
    if (v->inputOrder == 0) return (Partner){v->u_x, v->u_v, v->u_a};
    return (Partner){v->u_x + v->u_v * s, v->u_v + v->u_a * s, v->u_a};
}

static double ceiling_position(const Variables *v, double s)
{
    return v->c0 + v->ca * sin(v->cw * (v->time + s) + v->cp);
}

static double ceiling_velocity(const Variables *v, double s)
{
    return v->ca * v->cw * cos(v->cw * (v->time + s) + v->cp);
}

static double acceleration(const Variables *v, double s, Motion m)
{
    Partner u = partner(v, s);
    return -(v->k1 + v->k2) / v->m1 * m.x - (v->d1 + v->d2) / v->m1 * m.v + v->k2 / v->m1 * u.x + v->d2 / v->m1 * u.v
           - v->g;
}

/* The lower mass has the same expressions, so that both see the same bits. */
static Motion collision_indicators(const Variables *v, double s, Motion m)
{
    Partner u = partner(v, s);
    return (Motion){m.x - u.x - 2 * v->dx, m.v - u.v};
}

static Motion ceiling_indicators(const Variables *v, double s, Motion m)
{
    return (Motion){(ceiling_position(v, s) - v->dx) - m.x, ceiling_velocity(v, s) - m.v};
}

static double largest_indicator(const Variables *v, int event, double s, Motion m)
{
    Motion z = event == CEILING ? ceiling_indicators(v, s, m) : collision_indicators(v, s, m);
    return fmax(z.x, z.v);
}

static Motion reset(const Variables *v, int event, double s, Motion m)
{
    if (event == CEILING) return (Motion){m.x, 2 * ceiling_velocity(v, s) - m.v};
    return (Motion){m.x, ((v->m1 - v->m2) * m.v + 2 * v->m2 * partner(v, s).v) / (v->m1 + v->m2)};
}

static void calculate_outputs(Variables *v, double s)
{
    Motion m = {v->x, v->v};
    v->a = acceleration(v, s, m);
    Motion ceiling = ceiling_indicators(v, s, m);
    v->ceiling_z_1 = ceiling.x;
    v->ceiling_z_2 = ceiling.v;
    Motion collision = collision_indicators(v, s, m);
    v->collision_z_1 = collision.x;
    v->collision_z_2 = collision.v;
    v->collision_dz_1 = collision.v;
    v->collision_dz_2 = v->a - partner(v, s).a;
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->inputOrder != 0 && v->inputOrder != 1)
        return fm_report(self, FM_ERROR, "inputOrder is %d. It must be 0 (held) or 1 (linear).", v->inputOrder);
    if (!(v->m1 > 0.0 && v->m2 > 0.0))
        return fm_report(self, FM_ERROR, "m1 is %g kg and m2 is %g kg. Both must be positive.", v->m1, v->m2);
    return FM_OK;
}

void model_outputs(Variables *v)
{
    calculate_outputs(v, 0.0);
}

fm_Status model_step(fm_Instance *self, Variables *v, double h)
{
    Motion m = {v->x, v->v};
    fm_Status status = solve(self, v, &m, h, EVENT_NAMES);
    v->x = m.x;
    v->v = m.v;
    calculate_outputs(v, h);
    return status;
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
    case VR_ceiling_z_2: row = (Row){.v = -1}; break;
    case VR_collision_z_1: row = (Row){.x = 1, .u_x = -1}; break;
    case VR_collision_z_2:
    case VR_collision_dz_1: row = (Row){.v = 1, .u_v = -1}; break;
    case VR_collision_dz_2: row = (Row){a.x, a.v, a.u_x, a.u_v, -1}; break;
    default: return NAN;
    }
    switch (known) {
    case VR_x: return row.x;
    case VR_v: return row.v;
    case VR_u_x: return row.u_x;
    case VR_u_v: return row.u_v;
    case VR_u_a: return row.u_a;
    default: return NAN;
    }
}
