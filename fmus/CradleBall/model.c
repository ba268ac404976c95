/* A ball in a row of balls: it hits its left and its right neighbour. See readme.md. */
#include "oscillator.h"
#include "partner.h"

enum { LEFT, RIGHT };   /* neighbours */
enum { OF_TWO, BY_IMPORTER };   /* contactLaw */

static double mass_of(const Variables *v, int neighbour)
{
    return neighbour == LEFT ? v->left_m : v->right_m;
}

static Inputs inputs_of(const Variables *v, int neighbour)
{
    if (neighbour == LEFT) return (Inputs){{v->left_x, v->left_v, v->left_a}, v->left_poly};
    return (Inputs){{v->right_x, v->right_v, v->right_a}, v->right_poly};
}

static int event_with(int neighbour)
{
    return neighbour == LEFT ? EVENT_left : EVENT_right;
}

static int neighbour_in(int event)
{
    return event == EVENT_left ? LEFT : RIGHT;
}

/* Gap to a neighbour, its first and its second derivative. Both balls calculate the same differences: the same bits. */
static Partner gap(const Variables *v, int neighbour, double s, Motion m)
{
    double a = acceleration(v, s, m);
    Partner u = partner(v, neighbour, s);
    if (neighbour == LEFT) return (Partner){m.x - u.x - (v->r + v->left_r), m.v - u.v, a - u.a};
    return (Partner){u.x - m.x - (v->r + v->right_r), u.v - m.v, u.a - a};
}

/* Without a neighbour nothing can occur: one indicator is positive for good. */
static Motion indicators(const Variables *v, int event, double s, Motion m)
{
    if (!(mass_of(v, neighbour_in(event)) > 0.0)) return (Motion){0.0, 1.0};
    Partner z = gap(v, neighbour_in(event), s, m);
    return (Motion){z.x, z.v};
}

static fm_Payload own_payload(const Variables *v, int event, double s)
{
    return (fm_Payload){{partner(v, neighbour_in(event), s).v}};
}

/* Velocity after it was `before`, of the mass `m`, by a hit with the mass `other` of velocity `v`. Reciprocal masses: a
 * mass of 1e300 is a wall. */
static double after_hit(double e, double before, double m, double v, double other)
{
    return before - (1.0 + e) * (before - v) * (1.0 / m) / (1.0 / m + 1.0 / other);
}

/* The sign with which a neighbour pushes. */
static double direction(int neighbour)
{
    return neighbour == LEFT ? 1.0 : -1.0;
}

static double impulse(const Variables *v, int neighbour)
{
    return neighbour == LEFT ? v->left_p : v->right_p;
}

/* The forces of the importer at contacts, over the mass. */
static bool pushes(const Variables *v, double s, double p[PUSHES])
{
    memset(p, 0, PUSHES * sizeof *p);
    if (v->contactLaw != BY_IMPORTER) return false;
    double age = v->memory.input_age + s;
    bool found = false;
    for (int neighbour = LEFT; neighbour <= RIGHT; neighbour++) {
        const double *c = neighbour == LEFT ? v->left_fpoly : v->right_fpoly;
        double held[PUSHES] = {neighbour == LEFT ? v->left_f : v->right_f};
        if (v->inputOrder != POLYNOMIAL) c = held;
        double factor = direction(neighbour) / v->m;
        for (int k = 0; k < PUSHES; k++) {   /* about `age` instead of the time at which the coefficients were set */
            p[k] += factor * derived(c, k, age);
            factor /= k + 1;
            found = found || c[k] != 0.0;
        }
    }
    return found;
}

static Motion reset(const Variables *v, int event, double s, Motion m, fm_Payload payload)
{
    int neighbour = neighbour_in(event);
    if (v->contactLaw == BY_IMPORTER) return (Motion){m.x, m.v + direction(neighbour) * impulse(v, neighbour) / v->m};
    return (Motion){m.x, after_hit(v->e, m.v, v->m, payload.value[0], mass_of(v, neighbour_in(event)))};
}

static double partner_after(const Variables *v, int neighbour)
{
    const fm_EventMemory *memory = &v->memory.event[event_with(neighbour)];
    if (v->contactLaw == BY_IMPORTER)
        return memory->payload.value[0] - direction(neighbour) * impulse(v, neighbour) / mass_of(v, neighbour);
    return after_hit(v->e, memory->payload.value[0], mass_of(v, neighbour), memory->left[1], v->m);
}

static void calculate_outputs(Variables *v, double s)
{
    Motion m = get_motion(v);
    v->a = acceleration(v, s, m);
    v->inverseMass = 1.0 / v->m;
    double *z[] = {&v->left_z_1, &v->left_z_2, &v->right_z_1, &v->right_z_2};
    double *dz[] = {&v->left_dz_1, &v->left_dz_2, &v->right_dz_1, &v->right_dz_2};
    for (int neighbour = LEFT; neighbour <= RIGHT; neighbour++) {
        Motion now = indicators(v, event_with(neighbour), s, m);
        bool is_there = mass_of(v, neighbour) > 0.0;
        Partner rates = gap(v, neighbour, s, m);
        *z[2 * neighbour] = now.x;
        *z[2 * neighbour + 1] = now.v;
        *dz[2 * neighbour] = is_there ? rates.v : 0.0;
        *dz[2 * neighbour + 1] = is_there ? rates.a : 0.0;
    }
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (check_input_order(self, v) != FM_OK || check_event_policy(self, v) != FM_OK) return FM_ERROR;
    if (v->contactLaw != OF_TWO && v->contactLaw != BY_IMPORTER)
        return fm_report(self, FM_ERROR, "contactLaw is %d. It must be 0 (of two bodies) or 1 (by the importer).",
                         v->contactLaw);
    if (v->m > 0.0 && v->left_m >= 0.0 && v->right_m >= 0.0 && v->w >= 0.0 && v->e >= 0.0 && v->e <= 1.0) return FM_OK;
    return fm_report(self, FM_ERROR, "m is %g, left.m %g, right.m %g kg, w is %g rad/s, e is %g. m must be positive, "
                     "left.m, right.m and w not negative, e from 0 to 1.", v->m, v->left_m, v->right_m, v->w, v->e);
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
