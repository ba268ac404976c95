/* An exported system as an instance of FMI: what FMI 2.0 and FMI 3.0 share. The values of its status are those of fm_status,
 * which are the numbers of fmi2Status and fmi3Status. */

#ifndef FM_SYSTEM_INSTANCE_H
#define FM_SYSTEM_INSTANCE_H

#include "system.h"

/* The state machine of Co-Simulation; each number is a bit, so that a function can be allowed in several. */
enum fm_mode {
    FM_MODE_INSTANTIATED = 1,
    FM_MODE_INITIALIZATION = 2,
    FM_MODE_STEP = 4,
    FM_MODE_STEP_FAILED = 8, /* FMI 2.0: after fmi2Discard */
    FM_MODE_TERMINATED = 16,
    FM_MODE_ERROR = 32,
    FM_MODE_FATAL = 64
};
#define FM_MODES_OF_GET \
    (FM_MODE_INITIALIZATION | FM_MODE_STEP | FM_MODE_STEP_FAILED | FM_MODE_TERMINATED | FM_MODE_ERROR)
#define FM_MODES_OF_SET (FM_MODE_INSTANTIATED | FM_MODE_INITIALIZATION | FM_MODE_STEP)
#define FM_MODES_OF_STATES (FM_MODE_INSTANTIATED | FM_MODES_OF_GET)

/* A value that was set before Initialization Mode, and is passed on in it. */
typedef struct {
    int type;
    uint32_t reference;
    uint64_t value; /* its bytes, of whatever type */
} fm_kept_value;

/* What an instance says, as its version of FMI has it. */
typedef struct fm_exported fm_exported;
typedef void (*fm_tell)(fm_exported *e, int status, const char *category, const char *text);

struct fm_exported {
    fm_system *system;
    int mode;
    double time;   /* where it stands: the last successful time */
    int has_ended; /* whether a member has ended the run there */
    fm_experiment experiment;
    int tolerance_defined;
    double tolerance;
    char *name, *token, *settable; /* settable: a letter for each value reference */
    size_t n_variables, n_kept;
    fm_kept_value *kept; /* in the order in which they were set */
    fm_tell tell;
    void (*logger)(void); /* of the importer, as its version of FMI has it; may be null */
    void *environment;    /* of the importer */
    int logging_on;
    size_t n_categories; /* those that are shown; 0 for all */
    char **categories;
};

/* A new instance; null if there is none, and the log says why. `path` is the folder of resources. */
fm_exported *fm_exported_new(const char *function, const char *name, const char *token, const char *path, int logging_on,
                             fm_tell tell, void (*logger)(void), void *environment);
void fm_exported_free(fm_exported *e);

/* Says a failure; returns the status, which is FM_DISCARD or worse. */
int fm_exported_fail(const fm_exported *e, int status, const char *format, ...);

/* Whether a function may be called now; if not, the log says it. */
int fm_exported_may(const fm_exported *e, const char *function, int modes);

/* A function that this FMU does not have. */
int fm_exported_lacks(const fm_exported *e, const char *function, const char *why);

int fm_exported_set_logging(fm_exported *e, const char *function, int on, size_t n, const char *const *categories);
int fm_exported_initialize(fm_exported *e, const char *function);
int fm_exported_begin(fm_exported *e, const char *function);
int fm_exported_terminate(fm_exported *e, const char *function);
int fm_exported_reset(fm_exported *e, const char *function);
int fm_exported_step(fm_exported *e, const char *function, double time, double size);

int fm_exported_get(fm_exported *e, const char *function, int type, const uint32_t *references, size_t n, void *values,
                    size_t n_values);
int fm_exported_set(fm_exported *e, const char *function, int type, const uint32_t *references, size_t n,
                    const void *values, size_t n_values);

int fm_exported_save(fm_exported *e, const char *function, void **state);
int fm_exported_restore(fm_exported *e, const char *function, const void *state);
int fm_exported_free_state(fm_exported *e, const char *function, void **state);
int fm_exported_serialized_size(fm_exported *e, const char *function, const void *state, size_t *size);
int fm_exported_serialize(fm_exported *e, const char *function, const void *state, uint8_t *bytes, size_t size);
int fm_exported_deserialize(fm_exported *e, const char *function, const uint8_t *bytes, size_t size, void **state);

#endif
