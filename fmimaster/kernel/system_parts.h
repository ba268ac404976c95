/* What system.c, which runs a system, and system_image.c, which loads it, share. */

#ifndef FM_SYSTEM_PARTS_H
#define FM_SYSTEM_PARTS_H

#include "system.h"

/* Intervals that are done at once; fewer than the rows for which an image has times. */
enum { FM_MOST_INTERVALS = 1000 };

/* A place in the memory of the image; block FM_NOWHERE for none. */
#define FM_NOWHERE UINT64_MAX
typedef struct {
    uint64_t block, offset;
} fm_place;

/* A variable of the system: one of an FMU, with where its value lies after a step, and where its start values lie. */
typedef struct {
    uint64_t instance, type, reference, size;
    fm_place value, starts[2];
} fm_variable;

/* The start value of text or a binary variable. */
typedef struct {
    uint64_t instance, type, reference, n;
    const char **values;
    size_t *sizes;
} fm_start_text;

/* The callbacks of FMI 2.0. */
typedef struct {
    void (*logger)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void *finished;
    void *environment;
} fm_callbacks2;

/* An FMU of the system. */
typedef struct fm_member {
    fm_system *system;
    fm_fmu *fmu;
    void *library;
    uint64_t version;
    const char *name;
    int is_set; /* whether a variable was set after the last step */
    void *functions[FM_FUNCTIONS];
    void *free_instance, *reset, *set_logging, *state_size, *serialize, *deserialize;
    fm_callbacks2 callbacks;
} fm_member;

struct fm_system {
    char *name;
    fm_log log;
    void *environment;
    int logging_on;

    char *file;       /* the image as it was read */
    char *memory;     /* its blocks */
    size_t size;
    uint64_t n_blocks, n_places, n_buffers, n_members, n_attempts, n_variables, n_texts, n_addresses;
    uint64_t *sizes, *begins; /* of the blocks */
    void ***addresses;        /* where addresses stand: they stay what they are when a state is restored */
    void **addresses_now;     /* room for them */
    char *at_first;           /* the memory before initialization */

    fm_kernel *k;
    const fm_instruction *enter, *settle, *begin, *first_attempt, *commit, *rollback, *end;
    const fm_instruction **attempts; /* twice, one behind the other */
    fm_fused **fused;
    const double ***sources;
    uint64_t n_programs;
    fm_member *members;
    fm_variable *variables;
    fm_start_text *texts;

    double resolution, start;
    int64_t first, step, *offsets; /* of the grid: in ticks */
    int is_moved;                  /* whether the start is another one than that of the image, and no tick */
    int64_t done;                  /* intervals of the grid */
    int is_settled;                /* in Initialization Mode: whether values are up to date */
    int mode;                      /* an fm_state */
    double times[FM_MOST_INTERVALS + 1];
};

/* Bytes of the path of the resources, and of the folder of a member. */
enum { FM_LONGEST_FOLDER = 3600 };

/* Memory for n things, all 0. */
void *fm_room(size_t n, size_t size);

/* Says something by the log; returns the status. */
int fm_say(const fm_system *s, int status, const char *category, const char *format, ...);
#define FM_SAY_ERROR(...) fm_say(s, FM_ERROR, "logStatusError", __VA_ARGS__)
const char *fm_category_of(int status);

/* FM_OK and FM_WARNING as they are. Else it is said: FM_DISCARD, FM_FATAL, and FM_ERROR for all that an FMU must not return. */
int fm_told(const fm_system *s, const fm_member *m, int status, const char *function);

/* system_image.c: load the image and its FMUs; an fm_status. */
int fm_system_build(fm_system *s, const char *resources);

/* Make the call of an FMU's function ready by its number; 0 if there is no such function. */
int fm_bind_segment(const fm_member *m, uint64_t which, fm_segment *segment);

/* Set the start values of text and binaries. */
int fm_set_texts(fm_system *s);

#endif
