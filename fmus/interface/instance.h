/* What the FMI 2.0 and the FMI 3.0 functions have in common: an instance, its mode, its variables and its log. */
#ifndef FM_INSTANCE_H
#define FM_INSTANCE_H

#include "model.h"

/* Bits, so that one number can say in which modes a call is allowed. FMI 3.0 words; two are the "stepFailed"
 * of FMI 2.0, after a discarded step, and "error" of both. */
typedef enum {
    FM_INSTANTIATED = 1,
    FM_INITIALIZATION_MODE = 2,
    FM_STEP_MODE = 4,
    FM_INTERMEDIATE_UPDATE_MODE = 8,
    FM_TERMINATED = 16,
    FM_STEP_FAILED = 32,
    FM_FAILED = 64,
    FM_EVENT_MODE = 128,
    FM_CLOCK_ACTIVATION_MODE = 256,   /* these two: Scheduled Execution */
    FM_CLOCK_UPDATE_MODE = 512
} fm_Mode;

/* Bits, so that one number can say which types a call takes. */
typedef enum {
    FM_FLOAT32 = 1 << 0,
    FM_FLOAT64 = 1 << 1,
    FM_INT8 = 1 << 2,
    FM_UINT8 = 1 << 3,
    FM_INT16 = 1 << 4,
    FM_UINT16 = 1 << 5,
    FM_INT32 = 1 << 6,
    FM_UINT32 = 1 << 7,
    FM_INT64 = 1 << 8,
    FM_UINT64 = 1 << 9,
    FM_BOOLEAN = 1 << 10,
    FM_STRING = 1 << 11,
    FM_BINARY = 1 << 12,
    FM_ENUMERATION = 1 << 13,
    FM_CLOCK = 1 << 14
} fm_Type;

/* What setting a variable means to the model. */
typedef enum {
    FM_OTHER,
    FM_SIGNAL,               /* a continuous input: it belongs to now */
    FM_TRIGGER               /* an input clock, or the counter in its place: inputs that were set before it are of before */
} fm_Role;

/* How a time-based clock ticks: bits. None for a triggered clock. */
enum {
    FM_PERIODIC = 1,         /* constant, fixed, tunable */
    FM_CHANGING = 2,
    FM_COUNTDOWN = 4,
    FM_SET_AT_START = 8,     /* fixed and tunable, with intervalDecimal: the importer may set it in Initialization Mode */
    FM_SET_AT_EVENTS = 16,   /* tunable, with intervalDecimal */
    FM_BY_FRACTION = 32      /* supportsFraction */
};

typedef struct {
    uint32_t reference;
    fm_Type type;
    unsigned settable;       /* modes in which it may be set, if no Event Mode is used */
    size_t length;           /* number of elements; 1 for a scalar */
    size_t offset;           /* in Variables */
    size_t slope;            /* offset in Variables of the first time derivative of an interpolated input; 0: none */
    int derivatives;         /* how many of them there are */
    fm_Role role;
    bool discrete;           /* it changes at events only: with Event Mode it is set there and not in Step Mode */
    bool intermediate;       /* it has intermediateUpdate="true" */
    size_t clocks[FM_MOST_CLOCKS];   /* offsets in Variables of the clocks of a clocked variable; 0: none */
    unsigned ticks;          /* how a time-based clock ticks; 0 for all others */
    const char *name;
} fm_Variable;

/* Made by build.py: variables.c. Ordered by value reference. */
extern const fm_Variable fm_variables[];
extern const size_t fm_variable_count;
extern const Variables fm_start_values;

/* All that getting and setting the FMU state copies. */
typedef struct {
    fm_Mode mode;
    bool stale;              /* outputs are to be calculated before they are read */
    bool only_set;           /* Clock Activation Mode: something was set since the last activation */
    double stop_time;        /* INFINITY if it is not defined */
    Variables variables;
} fm_State;

/* Begins the instance structs of fmi2.c and fmi3.c. */
struct fm_Instance {
    fm_State state;
    Variables start;         /* values after instantiation and reset */
    bool event_mode;         /* the importer uses Event Mode */
    bool exchange;           /* it is an instance for Model Exchange */
    bool scheduled;          /* it is one for Scheduled Execution */
    fm_Stopping stopping;
    unsigned logged;         /* 1 << status of those messages that are wanted */
    void (*log)(fm_Instance *self, fm_Status status, const char *category, const char *message);
    void (*intermediate_update)(fm_Instance *self, double time);   /* may be NULL */
    double (*intermediate_values)(fm_Instance *self, double time); /* likewise; returns when to return early */
    void (*clock_update)(fm_Instance *self);                       /* these three: Scheduled Execution */
    void (*lock)(void);
    void (*unlock)(void);
};

/* `function` is the name of the FMI function that was called, for the message. Unless they return something else, these
 * functions return FM_OK, or FM_ERROR after a message. An instance of NULL is an FM_ERROR. */

fm_Status fm_begin(fm_Instance *self, const char *resources);   /* once, before all others; `resources` is a folder */
void fm_called(fm_Instance *self, const char *function);        /* first in each call; fm_allowed does it too */
void fm_reset(fm_Instance *self);
bool fm_allowed(fm_Instance *self, const char *function, unsigned modes);
fm_Status fm_set_logging(fm_Instance *self, const char *function, bool on, size_t count,
                         const char *const categories[]);

fm_Status fm_enter_initialization(fm_Instance *self, const char *function, double start_time, double stop_time);
fm_Status fm_exit_initialization(fm_Instance *self, const char *function);
fm_Status fm_step(fm_Instance *self, const char *function, double t, double h);
fm_Status fm_enter_event_mode(fm_Instance *self, const char *function);
fm_Status fm_update(fm_Instance *self, const char *function, fm_Update *update);
fm_Status fm_enter_step_mode(fm_Instance *self, const char *function);
fm_Status fm_terminate(fm_Instance *self, const char *function);

/* The variable, ready to be read or to be set; NULL after a message. */
const fm_Variable *fm_readable(fm_Instance *self, const char *function, uint32_t reference, unsigned types);
const fm_Variable *fm_settable(fm_Instance *self, const char *function, uint32_t reference, unsigned types);
bool fm_is_intermediate(uint32_t reference);   /* is there such a variable, with intermediateUpdate="true"? */
void *fm_value(fm_Instance *self, const fm_Variable *variable);
fm_Status fm_set_string(fm_Instance *self, const char *function, const fm_Variable *variable, const char *text);

fm_Status fm_directional_derivative(fm_Instance *self, const char *function,
                                    const uint32_t unknowns[], size_t unknown_count,
                                    const uint32_t knowns[], size_t known_count,
                                    const double seed[], size_t seed_count, double sensitivity[]);

/* Clocks: clocks.c. An interval or a shift in both forms; the importer gives one of them. */
typedef struct {
    fm_Known known;
    fm_Fraction fraction;
    double seconds;
} fm_Interval;

void fm_schedule(fm_Instance *self);           /* Initialization Mode: something was set */
void fm_begin_event_mode(fm_Instance *self);
void fm_start_ticks(fm_Instance *self);        /* before and after an update of the model */
void fm_finish_ticks(fm_Instance *self);
fm_Status fm_set_clock(fm_Instance *self, const char *function, uint32_t reference, bool active);
fm_Status fm_get_interval(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction,
                          fm_Interval *interval);
fm_Status fm_get_shift(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction,
                       fm_Interval *shift);
fm_Status fm_set_interval(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction,
                          fm_Interval interval);
fm_Status fm_set_shift(fm_Instance *self, const char *function, uint32_t reference, bool by_fraction,
                       fm_Interval shift);

/* Scheduled Execution: clocks.c. The model partition of an input clock; and an output clock, which is read once. */
fm_Status fm_activate(fm_Instance *self, const char *function, uint32_t reference, double time);
bool fm_take_clock(fm_Instance *self, const fm_Variable *variable);

/* Calculates what was not calculated since something was set. */
void fm_refresh(fm_Instance *self);

/* Model Exchange. */
typedef struct {
    size_t state, derivative;    /* offsets in Variables */
} fm_StateVariable;
extern const fm_StateVariable fm_states[];   /* FM_STATE_COUNT; made by build.py: variables.c */
extern const size_t fm_indicators[];         /* FM_INDICATOR_COUNT */

size_t fm_state_count(const fm_Instance *self);
size_t fm_indicator_count(const fm_Instance *self);
fm_Status fm_set_time(fm_Instance *self, const char *function, double time);
fm_Status fm_set_states(fm_Instance *self, const char *function, const double states[], size_t count);
fm_Status fm_get_states(fm_Instance *self, const char *function, double states[], size_t count);
fm_Status fm_get_state_derivatives(fm_Instance *self, const char *function, double derivatives[], size_t count);
fm_Status fm_get_nominals(fm_Instance *self, const char *function, double nominals[], size_t count);
fm_Status fm_get_indicators(fm_Instance *self, const char *function, double values[], size_t count);
fm_Status fm_complete_step(fm_Instance *self, const char *function);

/* FMU states: a copy in memory, and as bytes that another instance of the same build understands. */
fm_Status fm_get_state(fm_Instance *self, const char *function, void **state);
fm_Status fm_set_state(fm_Instance *self, const char *function, const void *state);
fm_Status fm_free_state(fm_Instance *self, const char *function, void **state);
fm_Status fm_serialized_size(fm_Instance *self, const char *function, const void *state, size_t *size);
fm_Status fm_serialize(fm_Instance *self, const char *function, const void *state, void *bytes, size_t size);
fm_Status fm_deserialize(fm_Instance *self, const char *function, const void *bytes, size_t size, void **state);

/* The end of a function that this FMU does not have. */
fm_Status fm_unsupported(fm_Instance *self, const char *function);

#endif
