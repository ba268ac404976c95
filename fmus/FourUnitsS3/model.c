/* A mass that two torques accelerate. See readme.md. */
enum { STATES = 1, INPUTS = 2 };
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
    return (Inputs){{v->u31, v->u32}};
}

static Inputs get_slopes(const Variables *v)
{
    return (Inputs){{v->u31_slope, v->u32_slope}};
}

static States rates(const Variables *v, States x, Inputs u)
{
    return (States){{u.of[0] - u.of[1]}};
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    v->der_x = rates(v, x, u).of[0];
    v->y31 = x.of[0] / v->J3;
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return is_positive(self, "J3", v->J3) ? check_micro_step(self, v) : FM_ERROR;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_x && known != VR_u31 && known != VR_u32) return NAN;
    double x = known == VR_x, u31 = known == VR_u31, u32 = known == VR_u32;
    switch (unknown) {
    case VR_x: return x;
    case VR_der_x: return u31 - u32;
    case VR_y31: return x / v->J3;
    default: return NAN;
    }
}
