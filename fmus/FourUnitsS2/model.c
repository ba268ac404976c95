/* A controller with a proportional and an integral part. See readme.md. */
enum { STATES = 1, INPUTS = 1 };
#include "euler.h"

static States get_states(const Variables *v)
{
    return (States){{v->x}};
}

static void set_states(Variables *v, States x)
{
    v->x = x.of[0];
}

static Inputs get_inputs(const Variables *v)
{
    return (Inputs){{v->u21}};
}

static Inputs get_slopes(const Variables *v)
{
    return (Inputs){{v->u21_slope}};
}

static States rates(const Variables *v, States x, Inputs u)
{
    return (States){{v->ki * (v->r - u.of[0])}};
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    v->der_x = rates(v, x, u).of[0];
    v->y21 = x.of[0] + v->kp * (v->r - u.of[0]);
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return check_micro_step(self, v);
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_x && known != VR_u21) return NAN;
    double x = known == VR_x, u21 = known == VR_u21;
    switch (unknown) {
    case VR_x: return x;
    case VR_der_x: return -v->ki * u21;
    case VR_y21: return x - v->kp * u21;
    default: return NAN;
    }
}
