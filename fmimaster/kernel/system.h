/* A system whose run is data: what Python has planned, written as an image, and run by the kernel without Python. The FMI
 * functions of an exported system are around these: system_fmi2.c and system_fmi3.c.
 *
 * Functions that return an int return an fm_status: FM_OK, FM_WARNING, FM_DISCARD, FM_ERROR or FM_FATAL. Each failure has
 * been said by the log, with the name of the member. Nothing here is for several threads at once. */

#ifndef FM_SYSTEM_H
#define FM_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

typedef struct fm_system fm_system;

/* The SHA-256 of kernel.h, in hexadecimal digits: an image is for a kernel that was compiled with the same header. */
extern const char fm_kernel_hash[65];

/* What is said by the system and by its members: an fm_status, a log category of FMI, a text in UTF-8. */
typedef void (*fm_log)(void *environment, int status, const char *category, const char *text);

/* The system of an image, instantiated: `resources` is a folder (with a separator at its end or without), which has
 * system.image; the paths of FMUs in it are relative to that folder, or absolute. Null if it cannot be; the log says why. */
fm_system *fm_system_new(const char *resources, const char *name, int logging_on, fm_log log, void *environment);
void fm_system_free(fm_system *s);
void fm_system_log(fm_system *s, int logging_on);

/* Values of variables by their references, which are their places in the table of the image. All have one type. Booleans are
 * one byte each; text are `const char *`, valid until the next call. An array has all its elements, one behind the other. */
int fm_system_get(fm_system *s, int type, const uint32_t *references, size_t n, void *values, size_t n_values);
int fm_system_set(fm_system *s, int type, const uint32_t *references, size_t n, const void *values, size_t n_values);

/* To Initialization Mode, to Step Mode, to Terminated, and back to Instantiated. */
int fm_system_initialize(fm_system *s, const fm_experiment *experiment, int tolerance_defined, double tolerance);
int fm_system_begin(fm_system *s);
int fm_system_terminate(fm_system *s);
int fm_system_reset(fm_system *s);

/* Steps up to time + size, which must be a point of the grid. *reached is the time where it stands afterwards; *terminate,
 * whether a member has ended the run there. */
int fm_system_step(fm_system *s, double time, double size, double *reached, int *terminate);

/* Many runs, one after the other, from the start of an experiment on. In each, n_set variables get Float64 values, one row of
 * `values`; then come n_rows rows of n_get Float64 values, `every` intervals of the grid from one to the next. The system must
 * be instantiated or terminated; it is terminated after it. statuses: an fm_status for each run; its other rows are NAN. */
typedef struct {
    fm_experiment experiment;
    size_t n_set, n_get, n_rows, every;
    const uint32_t *set, *get;
} fm_sweep;
int fm_system_sweep(fm_system *s, const fm_sweep *sweep, size_t n_runs, const double *values, double *rows, int *statuses);

/* States: a new one if *state is null, else it is written over. */
int fm_system_save(fm_system *s, void **state);
int fm_system_restore(fm_system *s, const void *state);
void fm_system_free_state(fm_system *s, void **state);
int fm_system_serialized_size(fm_system *s, const void *state, size_t *size);
int fm_system_serialize(fm_system *s, const void *state, uint8_t *bytes, size_t size);
int fm_system_deserialize(fm_system *s, const uint8_t *bytes, size_t size, void **state);

#endif
