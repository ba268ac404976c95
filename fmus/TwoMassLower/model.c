/* The lower mass of two: it hangs by a spring from the upper mass. See readme.md. */
#include "model.h"

enum { FLOOR, COLLISION, EVENT_COUNT };
static const char *const EVENT_NAMES[] = {"floor", "collision"};

#include "event_solver.h"

typedef struct { double x, v, a; } Partner;

/* The upper mass at the time `s` after the begin of the step, by the inputs. */
static Partner partner(const Variables *v, double s)
{
    if (v->inputOrder == 0) return (Partner){v->u_x, v->u_v, v->u_a};
    return (Partner){v->u_x + v->u_v * s, v->u_v + v->u_a * s, v->u_a};
}

static double floor_position(const Variables *v, double s)
{
    return v->f0 + v->fa * sin(v->fw * (v->time + s) + v->fp);
}

static double floor_velocity(const Variables *v, double s)
{
    return v->fa * v->fw * cos(v->fw * (v->time + s) + v->fp);
}

static double acceleration(const Variables *v, double s, Motion m)
{
    Partner u = partner(v, s);
    return -v->k2 / v->m2 * m.x - v->d2 / v->m2 * m.v + v->k2 / v->m2 * u.x + v->d2 / v->m2 * u.v - v->g;
}

/* The upper mass has the same expressions, so that both see the same bits. */
static Motion collision_indicators(const Variables *v, double s, Motion m)
{
    Partner u = partner(v, s);
    return (Motion){u.x - m.x - 2 * v->dx, u.v - m.v};
}

static Motion floor_indicators(const Variables *v, double s, Motion m)
{
    return (Motion){m.x - v->dx - floor_position(v, s), m.v - floor_velocity(v, s)};
}

static double largest_indicator(const Variables *v, int event, double s, Motion m)
{
    Motion z = event == FLOOR ? floor_indicators(v, s, m) : collision_indicators(v, s, m);
    return fmax(z.x, z.v);
}

static Motion reset(const Variables *v, int event, double s, Motion m)
{
    if (event == FLOOR) return (Motion){m.x, 2 * floor_velocity(v, s) - m.v};
    return (Motion){m.x, ((v->m2 - v->m1) * m.v + 2 * v->m1 * partner(v, s).v) / (v->m1 + v->m2)};
}

static void calculate_outputs(Variables *v, double s)
{
    Motion m = {v->x, v->v};
    v->a = acceleration(v, s, m);
    Motion floor = floor_indicators(v, s, m);
    v->floor_z_1 = floor.x;
    v->floor_z_2 = floor.v;
    Motion collision = collision_indicators(v, s, m);
    v->collision_z_1 = collision.x;
    v->collision_z_2 = collision.v;
    v->collision_dz_1 = collision.v;
    v->collision_dz_2 = partner(v, s).a - v->a;
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
    Row a = {-v->k2 / v->m2, -v->d2 / v->m2, v->k2 / v->m2, v->d2 / v->m2, 0};
    Row row;
    switch (unknown) {
    case VR_x: row = (Row){.x = 1}; break;
    case VR_v: row = (Row){.v = 1}; break;
    case VR_a: row = a; break;
    case VR_floor_z_1: row = (Row){.x = 1}; break;
    case VR_floor_z_2: row = (Row){.v = 1}; break;
    case VR_collision_z_1: row = (Row){.x = -1, .u_x = 1}; break;
    case VR_collision_z_2:
    case VR_collision_dz_1: row = (Row){.v = -1, .u_v = 1}; break;
    case VR_collision_dz_2: row = (Row){-a.x, -a.v, -a.u_x, -a.u_v, 1}; break;
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
