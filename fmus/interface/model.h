/* What a model brings and what it may use.
 *
 * A model is a folder with modelDescription.xml (FMI 3.0) and model.c. From the former build.py makes variables.h: the
 * struct Variables, in which every variable has a member of its name, and VR_<name>, its value reference. The latter
 * has the four functions below. All that a model remembers is in Variables, so that a copy of it is the FMU state.
 */
#ifndef FM_MODEL_H
#define FM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [bytes] longest String, with its end, and longest Binary: nothing is allocated when one is set */
enum { FM_CAPACITY = 1024 };

typedef struct { char text[FM_CAPACITY]; } fm_String;
typedef struct { size_t size; uint8_t bytes[FM_CAPACITY]; } fm_Binary;

#include "variables.h"

/* The numbers of fmi2Status and fmi3Status; FM_TERMINATE: the step is done, the model asks to end the simulation. */
typedef enum { FM_OK, FM_WARNING, FM_DISCARD, FM_ERROR, FM_FATAL, FM_TERMINATE } fm_Status;

typedef struct fm_Instance fm_Instance;

/* Called by the interface, defined by the model -------------------------------------------------------------------- */

/* Says at the end of Initialization Mode whether the parameters can be used. */
fm_Status model_check(fm_Instance *self, const Variables *v);

/* Calculates all variables that depend directly on inputs, states, parameters and time. */
void model_outputs(Variables *v);

/* Advances states and outputs from v->time to v->time + h, but not v->time. On FM_DISCARD *v is as it was. */
fm_Status model_step(fm_Instance *self, Variables *v, double h);

/* Partial derivative of an output or state derivative with respect to an input or state; NAN if it is not provided. */
double model_partial(const Variables *v, uint32_t unknown, uint32_t known);

/* Called by the model, defined by the interface -------------------------------------------------------------------- */

/* Logs a message, and returns `status` so that a function can end with it. FM_OK: an event that is worth a line. */
__attribute__((format(printf, 3, 4)))
fm_Status fm_report(fm_Instance *self, fm_Status status, const char *format, ...);

/* Lets the importer set the inputs with intermediateUpdate="true" for `time`; does nothing if it takes no part. */
void fm_intermediate_update(fm_Instance *self, double time);

#endif
