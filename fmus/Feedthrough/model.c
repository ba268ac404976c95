/* Outputs that are equal to inputs, one of every type. See readme.md. */
#include "model.h"

#include <math.h>
#include <string.h>

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return FM_OK;
}

void model_outputs(Variables *v)
{
    v->Float32_continuous_output = v->Float32_continuous_input;
    v->Float32_discrete_output = v->Float32_discrete_input;
    v->Float64_continuous_output = v->Float64_continuous_input;
    v->Float64_discrete_output = v->Float64_discrete_input;
    memcpy(v->Float64_vector_output, v->Float64_vector_input, sizeof v->Float64_vector_input);
    v->Int8_output = v->Int8_input;
    v->UInt8_output = v->UInt8_input;
    v->Int16_output = v->Int16_input;
    v->UInt16_output = v->UInt16_input;
    v->Int32_output = v->Int32_input;
    v->UInt32_output = v->UInt32_input;
    v->Int64_output = v->Int64_input;
    v->UInt64_output = v->UInt64_input;
    v->Boolean_output = v->Boolean_input;
    v->String_output = v->String_input;
    v->Binary_output = v->Binary_input;
    v->Enumeration_output = v->Enumeration_input;
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    model_outputs(v);
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
