/* The whole interface of the kernel. Plain declarations only: the C compiler and cffi read this very file.
 *
 * The kernel knows a value store, programs, and for each instance a table of functions and an opaque pointer. It has no
 * access to FMUs, files, units, names, controllers, or Python. All arrays are borrowed; it allocates when it is made and
 * never during a run. fmimaster/program/instructions/ defines each instruction; the interpreter in Python is
 * fmimaster/run/reference/, and the two agree bit for bit. */

/* Status of FMI functions, and what the kernel adds: numbers that no FMI function returns by accident. An FMU may return any
 * number; status.h says which are success, and Python what the others mean. A function is missing if it has no address. */
enum fm_status {
    FM_OK = 0,
    FM_WARNING = 1,
    FM_DISCARD = 2,
    FM_ERROR = 3,
    FM_FATAL = 4,
    FM_MISSING = -1000001, /* the library does not have the function */
    FM_AGAIN = -1000002,   /* a hook requests another pass */
    FM_REFUSED = -1000003, /* Discard of a call that must not be discarded */
    FM_NO_DERIVATIVES = -1000004, FM_TOO_SHORT = -1000005, FM_STATES_DISCARDED = -1000006, FM_STUCK = -1000008, /* an integrator cannot go on */
    FM_BEHIND_EVENT = -1000007, /* copied states cannot undo an event */
    FM_NOT_VALID = -1000009,    /* the call succeeded, but its answer is not valid */
    FM_SECOND_TICK = -1000010   /* a model partition would be activated twice at one time */
};

/* Types of variables: FM_ and the name in fmimaster.system.model.DataType. */
enum fm_type {
    FM_FLOAT64, FM_FLOAT32, FM_INT8, FM_UINT8, FM_INT16, FM_UINT16, FM_INT32, FM_UINT32, FM_INT64, FM_UINT64,
    FM_BOOLEAN, FM_STRING, FM_BINARY, FM_CLOCK
};

/* Operations: FM_ and the name of the instruction, by which Python finds them; and what only the kernel has. */
enum fm_op {
    FM_MOVE, FM_FIT, FM_SET, FM_GET, FM_STEP, FM_SAVE, FM_RESTORE, FM_KEEP, FM_RECALL, FM_REVERT, FM_REMEMBER, FM_FORGET,
    FM_REPEAT, FM_UNTIL, FM_MODE, FM_SAMPLE, FM_PARALLEL, FM_ALIGN, FM_UPDATE, FM_TICK, FM_CALL, FM_CORRECT, FM_DERIVE,
    FM_MOVE_SET, /* a MOVE and the SET that comes next; the SET is in the program too, but skipped */
    FM_MOVE_OBJECTS, /* a MOVE of text and binaries; that of the numbers of its group comes next */
    FM_MOVE_TRIGGERS, FM_SET_TRIGGERS, FM_GET_CLOCKS, FM_GET_CLOCKED, FM_GET_INTERVALS, /* MOVE, SET and GET of these groups */
    FM_STEP_LIMITED, /* a STEP in a system in which an instance may return early */
    FM_ALIGNED,      /* after what an ALIGN does */
    FM_FUSED,        /* what the next instructions do, in one; they are in the program too, but skipped */
    FM_END
};

/* The calls of an FM_FUSED: an instruction as it was written; the step of an instance; a state that an FMU saves or restores
 * itself; or, with the number of an FMI version, the call of an FMU's function itself. A FM_FUSED_SET_... gathers its values if
 * it has sources. */
enum fm_fused_kind {
    FM_AS_WRITTEN, FM_FUSED_SET_2, FM_FUSED_SET_3, FM_FUSED_STEP, FM_FUSED_STEP_2, FM_FUSED_STEP_3, FM_FUSED_GET_2,
    FM_FUSED_GET_3, FM_FUSED_SAVE, FM_FUSED_RESTORE, FM_FUSED_END
};

/* States that FM_MODE leads to: FM_ and the name in fmimaster.system.states.State. */
enum fm_state {
    FM_INSTANTIATED, FM_CONFIGURATION_MODE, FM_INITIALIZATION_MODE, FM_STEP_MODE, FM_TERMINATED, FM_EVENT_MODE
};

/* Reason why an execution stopped before its end. */
enum fm_stop {
    FM_RAN = 0,
    FM_DISCARDED = 1,
    FM_NOT_CONVERGED = 2,
    FM_FAILED = 3, /* a call returned Error or Fatal, see fm_kernel.failure */
    FM_HAPPENED = 4, /* it did not stop, but an FMU requested an event or the end of the run, or returned early */
    FM_EARLY = 5,    /* an early return that was not allowed, or outside of the step, or that others stand beyond */
    FM_ENDED = 6     /* an FMU ended the run at a time outside of the step */
};

/* The result of DoStep if it did not simply succeed. */
typedef struct {
    double last_successful_time;
    int terminate, discarded, early, event;
} fm_answer;

/* What UpdateDiscreteStates returned. */
typedef struct {
    double next_event_time; /* INFINITY for none */
    int wants_update, terminate;
} fm_update;

/* Arguments of the call that enters Initialization Mode. */
typedef struct {
    double start, stop;
    int stop_defined;
} fm_experiment;

/* An instance: each function returns an fm_status and leaves its name in *function if it failed. */
typedef struct {
    void *self;
    /* n inputs go on from time along polynomials; derivatives[order * n + i], order 0 to degree */
    int (*set_polynomials)(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                       double time, const char **function);
    /* FM_DISCARD if the step did not simply succeed: then, and only then, the answer holds the outcome */
    int (*do_step)(void *self, double time, double size, fm_answer *answer, const char **function);
    int (*save)(void *self, int place, const char **function);
    int (*restore)(void *self, int place, const char **function);
    int (*enter)(void *self, int state, const fm_experiment *experiment, const char **function);
    int (*update)(void *self, fm_update *answer, const char **function);
    int version; /* of FMI, if do_step is nothing but a call of the FMU's function; else 0 */
    /* null, or: start a step whose outcome do_step returns, and wait until that is known. In between others can start. */
    void (*begin_step)(void *self, double time, double size);
    void (*await_step)(void *self);
} fm_instance;

/* Text and binaries are objects of Python: the store has their addresses. Equal addresses are equal values; objects whose
 * addresses differ are copied and compared by Python. These functions return an fm_status. */
typedef struct {
    int (*copy)(void *self, void **target, void *const *source, size_t n);
    int (*differ)(void *self, void *const *one, void *const *other, size_t n); /* FM_AGAIN if values differ */
    int (*sample)(void *self); /* they are those of the rows from now on */
    void *self;
} fm_objects;

/* Recorded text and binaries that lie side by side, and those of the last row. */
typedef struct {
    void *const *values, *const *sampled;
    size_t n;
} fm_sampled;

/* An object, and its bytes as an FMU has them. */
typedef struct {
    const void *object;
    const char *bytes;
    size_t size;
} fm_bytes;

/* The arguments of the call of an FMU's function for text or binaries, and what is known of each element. Python makes the
 * objects of bytes that are new in a Get, and the bytes of objects that are new in a Set. */
typedef struct {
    const char **bytes;
    size_t *sizes; /* of binaries; null for text, which ends with a null */
    fm_bytes *known;
    int (*renew)(void *self);
    void *self;
} fm_texts;

/* Intervals of clocks: counter / resolution, or seconds where the resolution is 0. Numbers of fmi3IntervalQualifier. */
typedef struct {
    uint64_t *counters, *resolutions;
    double *seconds;
    int32_t *qualifiers;
} fm_intervals;
enum { FM_NOT_YET_KNOWN, FM_UNCHANGED, FM_CHANGED };

/* One FMI call, ready to be made: variables of one type that lie side by side are read or set. What makes it is chosen
 * once, by type and FMI version; it hands the arguments on, and returns an fm_status. */
typedef struct fm_segment fm_segment;
struct fm_segment {
    int (*transfer)(const fm_segment *segment);
    void *address; /* of the function in the library of an FMU */
    void *self;    /* whose variables they are: for an FMU its component */
    const uint32_t *references;
    size_t n, size;
    void *values;
    union {
        int *integers; /* FMI 2.0: room for size Booleans as it has them */
        fm_texts *texts;
        const fm_intervals *intervals;
        size_t bytes; /* elements of semantic adaptation: of a value */
    };
    const char *function;
    int version; /* of FMI, if transfer is nothing but a call of the FMU's function; else 0 */
    int which;   /* number of the FMU's function, by which another instance is bound to the same call */
};

/* One element that is moved from an output to an input. */
typedef struct {
    int source_type, target_type;
    int transformed;
    int plain; /* a Float64 as it is */
    const void *source;
    void *target;
    double factor, offset;
} fm_move;

/* What triggers an event in an instance, and the inputs that belong to it. */
typedef struct {
    uint8_t *active;
    int32_t *counter; /* null for a clock */
    uint8_t *shown;   /* whether an input clock was set; null where nobody needs it */
    int n_sources, n_moves, n_objects, n_segments;
    const uint8_t *const *sources; /* output clocks of which any makes it active */
    const fm_move *moves, *objects; /* of numbers; of text and binaries */
    const fm_segment *segments;
} fm_trigger;

/* Clocks that lie side by side. */
typedef struct {
    uint8_t *active;
    size_t n;
} fm_clocks;

/* Clocked outputs that are read in one call, if one of these clocks is active. */
typedef struct {
    fm_segment segment;
    const uint8_t *const *clocks;
    int n_clocks;
} fm_clocked_part;

/* GET CLOCKED: output clocks are read beside those in the store, which become active, too. */
typedef struct {
    int n_clocks, n_parts;
    const fm_segment *clocks;
    uint8_t *const *active;
    const fm_clocked_part *parts;
} fm_clocked;

/* GET INTERVALS: a call that asks for the intervals of clocks, if one of them need not be active or is. */
typedef struct {
    fm_segment segment;
    const uint8_t *clock; /* null for none */
    const size_t *places; /* of what is asked among all */
    fm_intervals answer, all;
} fm_asked;

/* In Initialization Mode, and later. */
typedef struct {
    int n[2];
    const fm_asked *calls[2];
} fm_inquiry;

/* One continuous input with what a polynomial needs. Slots are indices into the outputs of their type. */
typedef struct {
    int source_instance;
    int source_type;
    size_t source;
    size_t left; /* of its left limit, which a polynomial takes at a point after its centre; itself, if there is none */
    int n_derivatives;
    const size_t *derivatives; /* Float64 */
    double factor, offset;
    int transformed;
} fm_route;

#define FM_TYPES 14

/* A copy of all outputs, and when they were read. */
typedef struct {
    void *outputs[FM_TYPES];
    double *read;
} fm_copy;

/* Extrapolation of one input: the operands of FIT for one route. */
typedef struct {
    int points, derivatives;
    int n_copies; /* so many of the copies serve */
    double held;  /* fraction of the interval whose value is held; NAN for none */
    double mean;  /* fraction of the interval up to which the mean is held; NAN for none */
    int adaptive;
    double compensation;
    double late; /* fraction of the interval at which the newest point counts; NAN: at its own time */
    int half; /* 1 or 2: of a step whose halves have the mean and the first moment; 0: none */
    int is_line; /* whether it is followed along the line through two points, or held at its value or mean, and never jumps */
} fm_fitted;

/* What polynomials are fitted to: the outputs, and these copies of them, buffers before the history. */
typedef struct {
    int rows; /* coefficients of the largest polynomial */
    int is_constant;
    const fm_copy *const *copies;
    const fm_fitted *inputs; /* per input of the instance */
} fm_fit;

/* How unknowns change if knowns change by the seed: a directional derivative of an FMU, or partial derivatives that were
 * measured, one row for each unknown. */
typedef struct fm_derivative fm_derivative;
struct fm_derivative {
    int (*derive)(const fm_derivative *derivative);
    void *address; /* of the function in the library of an FMU */
    void *self;
    const uint32_t *unknowns, *knowns;
    size_t n_unknowns, n_knowns, n_sensitivity, n_seed;
    double *sensitivity, *seed;
    const double *partials;
    const char *function;
};

/* Outputs that CORRECT corrects: their slots, and how their inputs are moved. */
typedef struct {
    fm_derivative derivative;
    const fm_move *moves;
    const size_t *slots;
    const fm_segment *inputs; /* the continuous ones */
    int highest;              /* derivative of them that the FMU takes; -1 for all */
} fm_correction;

/* Outputs of one type that lie side by side. */
typedef struct {
    int type;
    size_t start, n;
} fm_range;

/* Partial derivatives that DERIVE computes if a hook has asked for them, one row for each output; NAN if an output is not
 * finite. The numbers of *wanted are those of fmimaster/program/hook.py. */
enum { FM_NOTHING, FM_WHAT_VARIES, FM_EVERYTHING };
typedef struct {
    fm_derivative derivative;
    const size_t *slots; /* of the outputs */
    double *values;
    const uint8_t *varies; /* per input */
    int *wanted;
} fm_partials;

/* What CALL calls: returns FM_OK, FM_AGAIN, or FM_ERROR. */
typedef struct fm_kernel fm_kernel;
typedef struct {
    int (*call)(void *self, fm_kernel *kernel);
    void *self;
} fm_hook;

/* What ends a stretch of steps early: asked after each attempt, before its commit, with the end of the step after it. Returns 0
 * if Python must look at the attempt. */
typedef struct {
    int (*is_quiet)(void *self, fm_kernel *kernel, double begin, double end, double next);
    int (*renew)(void *self, fm_kernel *kernel); /* after an event inside the stretch; null if there is nothing to do */
    /* after that, for the step from the event on; null if it has no say. 0: Python must look */
    int (*is_quiet_after)(void *self, fm_kernel *kernel, double begin, double end);
    /* may bring the end of the next step forward, and says why by a code; null if it has no say. 0: Python must do it */
    int (*clips)(void *self, const fm_kernel *kernel, double begin, double *end, int64_t *code);
    void *self;
} fm_watch;

/* One FMI call of fused instructions, in one line of the cache. */
typedef struct fm_instruction fm_instruction;
typedef struct fm_fmu fm_fmu;
typedef struct {
    int kind, instance;
    void *address, *self; /* the function of an FMU, and its component */
    union {
        const uint32_t *references;
        const fm_fmu *fmu; /* STEP, SAVE, RESTORE */
    };
    void *values; /* SAVE, RESTORE: where the FMU's state lies */
    union {
        struct {
            uint32_t n, size;
        };
        double at; /* STEP: its end */
    };
    const double *const *sources; /* SET: size of them, or null */
    const fm_instruction *of;     /* whose call it is */
} fm_fused;

/* What a group of an instance is moved by; the calls that set or read it. */
typedef struct {
    int group, n;
    const fm_move *moves;
} fm_moves;

typedef struct {
    int group, n;
    const fm_segment *segments;
} fm_transfers;

/* An instruction; a program is an array of them that ends with FM_END. The member of the union that holds has the name of the
 * instruction, and fields of it the names of the operands that it has in fmimaster/program/instructions/. */
struct fm_instruction {
    int op, instance;
    int line; /* in the program as it was written */
    union {
        fm_moves move; /* MOVE, MOVE_SET, MOVE_OBJECTS */
        fm_transfers set, get;
        struct {
            int n;
            const fm_trigger *of;
        } triggers; /* MOVE_TRIGGERS, SET_TRIGGERS */
        struct {
            fm_transfers outputs;
            const fm_clocks *inputs; /* of the same instance */
        } get_clocks;
        struct {
            const fm_clocked *clocked;
        } get_clocked;
        struct {
            const fm_inquiry *inquiry;
        } get_intervals;
        struct {
            double at;
            const fm_fit *fitted;
            const fm_segment *inputs; /* the continuous ones */
        } fit;
        struct {
            const fm_correction *correction;
        } correct;
        struct {
            const fm_partials *partials;
        } derive;
        struct {
            double end;
            int may_return_early, has_event_mode; /* of the instance */
        } step; /* STEP, STEP_LIMITED */
        struct {
            int count; /* instructions that do it: those that follow ALIGN, those before ALIGNED */
        } align; /* ALIGN, ALIGNED */
        struct {
            int place;
        } save, restore;
        struct {
            int buffer; /* REMEMBER: -1 for the outputs */
        } keep, recall, remember;
        struct {
            int buffer, n;
            const fm_range *ranges; /* of the outputs of the instance */
        } revert;
        struct {
            int least, most, bounded;
            int depth; /* how many others are around it */
        } repeat;
        struct {
            double tolerance;
            int depth;
        } until;
        struct {
            int state, n;
            const fm_clocks *clocks; /* n of them, inactive in it */
        } mode;
        struct {
            int count;
        } parallel;
        struct {
            int trigger;
        } tick;
        struct {
            const fm_hook *hook;
        } call;
        struct {
            int count; /* instructions that follow: what is done */
            int has_parallel;
            int is_plain; /* whether none needs what others write down */
            const fm_fused *calls; /* up to an FM_FUSED_END */
        } fused;
    };
};

/* A run of recorded numbers: bytes that go from the store into each row of a block. */
typedef struct {
    const char *source;
    char *rows;
    size_t bytes, stride;
    int is_compared; /* with the last row: all but clocks and what is clocked */
} fm_column;

/* The Float64 values of the rows of a block, and what was found in groups of rows soon after these were made: a row for
 * each group, as fm_ranges has it. In the first group nothing is looked for: the row before it is not in the block. */
#define FM_GROUP 64 /* rows */
typedef struct {
    const double *rows; /* null if there are none */
    size_t width;
    int n; /* groups, with the first one */
    double *low, *high, *squares;
    int64_t *later; /* rows of each group that are later than the row before */
} fm_looked;

#define FM_MOST_NESTED 4    /* REPEATs inside each other */
#define FM_MOST_POINTS 8    /* of a polynomial */
#define FM_MOST_NODES 64    /* values and derivatives of it */
#define FM_CANDIDATES 4     /* of an adaptive polynomial */
#define FM_MOST_GIVEN 4     /* remembered values of a compensated input */
#define FM_MEASURE_EVERY 1021 /* attempts: reading the clock takes longer than the step of a small FMU; a prime number, so
                                 that each program of a pattern has its turn */

/* A fixed pool of threads: workers.c. A task must not be run twice, nor two tasks share anything. */
typedef struct fm_pool fm_pool;
typedef void (*fm_task)(void *context, int i);
fm_pool *fm_pool_new(int n_threads);
void fm_pool_free(fm_pool *pool);
void fm_pool_run(fm_pool *pool, fm_task task, void *context, int n);
#define FM_MOST_TASKS 32767

/* tuner.c: whether threads pay, by what steps take. Times in s. */
typedef struct {
    int threads;     /* whether they are used now */
    int is_trial;    /* whether that is tried; else it is the usual way */
    int n, left;     /* steps from one look at the clock to the next, and those to come */
    double since, seconds; /* of these steps: begin of what is not yet counted, and what is */
    double spent;    /* since the last change between the two ways */
    int64_t steps;   /* as well */
    double usual;    /* of a step; a trial that takes more has failed */
    double lost;     /* in a trial: more than that */
    double first, period; /* from one trial to the next: at first, and now */
} fm_tuner;
void fm_tuner_begin(fm_tuner *t, double first);
void fm_tuner_decide(fm_tuner *t, double seconds); /* which n steps took: changes threads and n */
void fm_tuner_start(fm_tuner *t); /* time that counts */
void fm_tuner_stop(fm_tuner *t);
void fm_tuner_look(fm_kernel *k); /* after n steps, while time counts */

/* A REPEAT in progress: the start values of each pass, and the outcome of the pass before. */
typedef struct {
    const fm_instruction *repeat;
    int count, wanted_at_first;
    double limit_at_first, limit_before;
    uint8_t *requests_at_first;
    void *outputs_before[FM_TYPES];
} fm_passes;

/* The outcome of a STEP, until it is combined with those beside it. */
typedef struct {
    int status;
    fm_answer answer;
    const char *function;
    int stopped; /* plain.c: an fm_stop, if that is all that is to be said */
} fm_result;

struct fm_kernel {
    int n_instances, continuous_group;
    const fm_instance *instances;
    const fm_experiment *experiment;
    const int *route_begin; /* per instance, and one more */
    const fm_route *routes;

    /* outputs per type, copies of them, and when they were read */
    void *outputs[FM_TYPES];
    size_t output_sizes[FM_TYPES];
    const fm_range *all_outputs; /* the types that there are, whole */
    int n_types;
    const fm_copy *buffers, *history; /* the history: newest first */
    const double *nominals[FM_TYPES]; /* of Float64 and Float32 */
    double *read;
    int n_history;

    /* where each instance stands, and where it stood when it was saved */
    double *at;
    double *place_at;
    double *kept_from; /* per instance: time of the earliest state saved in this execution, INFINITY if none was */
    int has_saved;     /* whether one has been saved in this execution, or in one before */
    int64_t *stepped; /* the number of the step that led each instance to its state; goes back with it */
    int64_t *place_stepped;

    /* events: the earliest early return or pending event, and which instances request one; the same as they were kept with a
     * buffer */
    double limit, *kept_limit;
    uint8_t *requests, *kept_requests; /* n_instances; n_buffers * n_instances */
    uint8_t *pending;                  /* per instance: it must enter Event Mode before it steps on */
    int wants_another;                 /* whether an instance or a hook requests another pass */
    const uint8_t *stays_ahead;        /* per instance: past an early return it stays where it is */
    int has_events;                    /* whether any instance can request an event */
    fm_passes passes[FM_MOST_NESTED];
    uint8_t *active;     /* per trigger */
    uint8_t *initialized; /* per instance: whether it has left Initialization Mode */
    const uint8_t *calling; /* per instance: the fm_function that an integrator has called last; 0 without one */
    double *next_events; /* [s] per instance, INFINITY for none */
    int64_t *steps, *restores, *events; /* calls per instance */

    /* polynomials of the continuous inputs: coefficients of power k at k * n, degree -1 while they are held */
    double **coefficients;
    double *centre;
    int *degree;
    double **errors, **measured; /* per instance, of adaptive polynomials: FM_CANDIDATES errors, and when, for each input */
    double **lacking, **given_from; /* per instance, of compensated inputs: FM_MOST_GIVEN values of each, and from when on */
    double **foreseen; /* per instance, of inputs that are held over halves of a step: their polynomials at its end */
    int *follows; /* whether the instance has been given a polynomial */
    int fits;  /* whether any program has a FIT: else these are not looked at */
    double *scratch; /* largest n * (degree + 1) * 4 */

    /* rows */
    double *times;
    int n_rows, row_capacity, n_columns, n_sampled;
    const uint8_t *clocks; /* recorded ones in each row: where one is active, it is taken although it equals the last one */
    size_t n_clocks;
    const fm_column *columns;
    const fm_sampled *sampled; /* one of the columns has the number of their values in a list of Python */
    fm_looked looked;

    fm_objects objects;

    /* wall time in DoStep, measured in few attempts: each stands for those up to the next one */
    double *seconds;
    int measuring;                /* for how many the present one stands; 0: it is not measured */
    int64_t attempts, stands_for; /* how many there were, and for how many the measured ones stand */

    /* threads: null for none; a result for each instruction of the largest PARALLEL */
    fm_pool *pool;
    int threaded; /* whether a PARALLEL uses them now */
    int overlaps; /* whether several instances have a begin_step */
    fm_tuner *tuner; /* which decides that; null if it is known */
    fm_result *results;

    /* the execution */
    const fm_instruction *present; /* the instruction that is done: shows another thread which call does not return */
    int is_running;               /* whether it is being done: 0 between two calls of these functions */
    double begin, end;
    int terminate;
    int asked; /* by another thread: fm_repeat returns after the present step */
    int stop_instance, stop_instruction;
    double stop_time, change;
    double failure_size; /* of the step, if a step failed */
    int fatal;           /* whether a call returned FM_FATAL in a PARALLEL: no further step is begun */
    int failure_status;
    const char *failure_function;
};

/* Execute a program over an interval. Returns an fm_stop. */
int fm_run(fm_kernel *k, const fm_instruction *code, double begin, double end);

/* Attempt an interval, and commit it if nothing happened. Returns an fm_stop. */
int fm_step(fm_kernel *k, const fm_instruction *attempt, const fm_instruction *commit, double begin, double end);

/* Events that are known ahead: the number of the program of the one at the end of each interval, -1 for none; where an FMU
 * has answered more than that all is done, *happened of 1 and how many rows the event has. */
typedef struct {
    const int32_t *numbers;
    const fm_instruction *const *programs;
    const fm_instruction *after; /* the attempt after an event; null for that of the pattern */
    double last;                 /* an event of its own that an FMU announces before it ends the stretch */
    const fm_intervals *intervals; /* of clocks */
    const size_t *n_intervals;
    int n, happened, rows; /* n: instances with such clocks */
} fm_ahead;

/* The begin of some intervals and the end of each, n times in s: those of an array; or, without one, a begin and multiples of
 * 1 / resolution: the first one, and one more each `step`. All these numbers are below 2^52: their quotients are rounded once. */
typedef struct {
    int n;
    const double *array;
    double begin, resolution;
    int64_t first, step;
} fm_times;

/* Attempt and commit the intervals between times while nothing happens; attempts are a pattern of programs that is
 * repeated. *done intervals are committed, the next one is attempted and not committed. Stops early when the next row is
 * the last that has room, when it is asked to, at an attempt that is not quiet for one of the watches, or that did not simply
 * succeed. Returns an fm_stop of the last attempt. With events ahead, null for none, their programs are executed behind the
 * commits; where one has happened so that Python must look at it, the next interval is not attempted, and the fm_stop is its
 * own. */
int fm_repeat(fm_kernel *k, const fm_instruction *const *attempts, int n_attempts, const fm_instruction *commit,
              const fm_times *times, const fm_watch *watches, int n_watches, fm_ahead *ahead, int *done);

/* changes.c: n values of one type with so many bytes, and what they were. */
typedef struct {
    int n, size, is_float, is_object;
    const int64_t *slots;
    const char *values; /* of the store */
    char *before;       /* of the slots alone */
} fm_changes_data;
int fm_is_unchanged(void *self, fm_kernel *kernel, double begin, double end, double next);
int fm_note_values(void *self, fm_kernel *kernel); /* they are those before from now on; returns an fm_status */

/* A PID controller of step sizes with n estimators, which is not stuck at the smallest one more than `many` times. */
enum { FM_SIZE, FM_BEFORE, FM_LONG_BEFORE, FM_STUCK_BEGIN, FM_STUCK_ERROR, FM_PID_SIZES };
enum { FM_CAUSE, FM_STUCK_STEPS, FM_STUCK_REASON, FM_PID_CODES };
typedef struct {
    int n, many, largest_code; /* code of the cause of a step of the largest size */
    double smallest, largest, safety, least, most, reject_above, a1, a2;
    const double *exponents, *values;                   /* three for each estimator; of the store, Float64 */
    const int64_t *errors, *worst, *first_codes;        /* for each estimator: indices into them; code of its first source */
    double *sizes, *known;                              /* FM_PID_SIZES; two errors for each estimator, newest first */
    int64_t *codes;                                     /* FM_PID_CODES */
} fm_pid_data;

/* Steps of one size, with short ones that grow after an event. */
enum { FM_GROWING, FM_FULL };
typedef struct {
    double first, growth, size; /* the first one is this part of the size, in s */
    double *previous;           /* length in s of the last step, one number; 0 after an event */
} fm_ramp_data;

/* A rule of step sizes: the size in s of the next step, with the code of its cause; and the taking up of a step of this length
 * from `now` on, so that the next one is known. The latter returns 0, with nothing changed, for a step on which Python must
 * decide: it may be rejected, or its error is no number. */
typedef struct {
    double (*size)(const void *self, int64_t *code);
    int (*accepts)(void *self, double now, double length);
    void *self;
    int64_t first_code; /* codes of the rule are from this one on */
} fm_rule;

/* controller.c */
double fm_pid_size(const void *self, int64_t *code);
int fm_pid_accepts(void *self, double now, double length);
double fm_ramp_size(const void *self, int64_t *code);
int fm_ramp_accepts(void *self, double now, double length);

/* Attempt and commit steps of the sizes that a rule chooses, at most n, up to one that would end less than a sliver before
 * `last`, or whose end Python must decide on. times[0] is the begin of the first one, whose end may be given: otherwise
 * times[1] is INFINITY. The other times, and the codes of the causes of these ends, are written before each attempt. *done
 * steps are committed, *attempted of 1 tells that the next one is attempted and not committed. Stops as fm_repeat does, and at
 * a step that the rule does not accept; for watches, the end of the step after a step is INFINITY, since it is not known yet.
 * Returns an fm_stop. */
int fm_control(fm_kernel *k, const fm_instruction *attempt, const fm_instruction *commit, const fm_rule *rule, double last, int n,
               double *times, int64_t *codes, const fm_watch *watches, int n_watches, int *done, int *attempted);

/* What an event clock looks at after each step: n sets of indicators, each by one member of an event. Slots are indices into
 * the Float64 outputs; in each array of "first", the entries of k are those from first[k] to first[k + 1]. */
typedef struct {
    int n, member, distance, lacks_slopes; /* history: of which member, every which point; an indicator without derivative */
    int locates, detects, checks, predicts, foresees; /* see Watch of fmimaster/events/event_clock.py; a NAN counts */
    double step, near;                     /* a usual one in s; points are no nearer than this part of the step */
    double approach, close, now;           /* of Predictive, as parts of a usual step; approach 0: Python does it */
    double rest, held;                     /* REST and HELD of fmimaster/program/indicators.py */
    const int64_t *events;                 /* per set: code of the cause that the event is predicted */
    const uint8_t *is_plain;               /* per set: it is triggered, and can always happen */
    const int64_t *first, *instances;      /* per set: its indicators, and its member */
    const uint8_t *is_located, *is_inside, *is_own; /* looked for in a step; executed inside it; by the FMU's own condition */
    const int64_t *indicators, *slopes;    /* -1: it has no derivative */
    const double *tolerances;
    const int64_t *first_source, *sources; /* per indicator: the outputs that feed it, with their factors */
    const double *factors;
    double *largest;                       /* per output: its largest value so far, which is kept up to date */
    double forecast, shortest;             /* of LookAhead */
    int n_ahead;
    const int64_t *ahead;                  /* outputs in which an FMU predicts its next event itself */
    const uint8_t *is_foreseen;            /* per set: by its indicators */
} fm_clock_data;

/* watch.c: whether the event clock would do nothing at the end of a step that was attempted and is not yet committed, nor
 * shorten the next one; 0 if that is not certain. */
int fm_clock_is_quiet(void *self, fm_kernel *k, double begin, double end, double next);
int fm_clock_is_quiet_after(void *self, fm_kernel *k, double begin, double end);

/* watch.c: the end of the next step where the event clock would bring it forward; 0 if it may do something else there. */
int fm_clock_clips(void *self, const fm_kernel *k, double begin, double *end, int64_t *code);

/* observer.c: the same for n events that FMUs execute themselves inside a step: a counter tells of them, slot -1 for none, or the
 * indicators of the member from first[i] to first[i + 1]. An FMU may miss an event by the time `near` in s. */
typedef struct {
    int n;
    double near;
    const int64_t *instances, *counters, *types, *first, *indicators, *slopes;
} fm_observer_data;
int fm_observer_is_quiet(void *self, fm_kernel *k, double begin, double end, double next);

/* exit.c: have a function called when the process ends by exit(), as some FMUs do; null for none. */
void fm_at_exit(void (*tell)(void));

/* fuse.c: make the calls of each FM_FUSED in a program. Without room for calls and sources it only counts both. */
void fm_fuse(const fm_kernel *k, fm_instruction *code, fm_fused *calls, const double **sources, size_t *n_calls,
             size_t *n_sources);

/* plain.c: the calls of an attempt if it is nothing else, and its commit is a row of numbers, perhaps after a REMEMBER. */
typedef struct {
    const fm_fused *calls;          /* null: it is no plain step */
    const fm_instruction *remember; /* null for none */
    int is_noted;                   /* whether each call is written down at once, since others need it */
} fm_plain;
fm_plain fm_plain_calls(const fm_kernel *k, const fm_instruction *attempt, const fm_instruction *commit);
/* Attempt and commit such intervals between times from one on, all but the last two, while rows have room and none is to be
 * measured. Returns how many are committed; *answered is the call of the one after them that did not simply succeed, whose
 * result is *r; or null, if that one was not begun. */
int fm_plain_steps(fm_kernel *k, const fm_plain *plain, const fm_times *times, int from, const fm_fused **answered,
                   fm_result *r);

/* rows.c: rows of Float64 values, which lie one behind the other. */
typedef struct {
    size_t width; /* values of a row */
    const double *before; /* the row before the first one; itself, if there is none */
    double time_before;   /* NAN if there is none */
    double *low, *high;   /* for each part a row with the range of each value, in it and in the last row before it */
    double *squares;      /* one row: sums of the squares of changes from a row to a later one are added to it, and NAN if a
                             value of another row is NAN or infinite */
    const fm_looked *looked; /* what is known of groups of these rows; null for nothing */
} fm_ranges;

/* Look at n rows, in parts that begin at `starts`, the first one at 0. Returns how many are later than the row before. */
int64_t fm_look_at_rows(fm_ranges r, const double *times, const double *rows, size_t n, const int64_t *starts, size_t n_parts);

/* Look at the groups that have become complete. */
void fm_look_at_groups(fm_kernel *k);

/* text.c: rows of CSV files. Powers of ten from 10^FM_LEAST_POWER to 10^FM_LARGEST_POWER, two halves each, come from
 * fmimaster/results/numbers.py. */
enum { FM_LEAST_POWER = -342, FM_LARGEST_EXACT_POWER = 55, FM_LARGEST_POWER = 324 };
enum { FM_LONGEST_NUMBER = 24 }; /* characters */

/* A column to be written: Float64 or Int64. */
typedef struct {
    int type;
    const char *values;
    int64_t stride; /* bytes from row to row */
} fm_cells;

/* Write rows with commas between cells, each with a newline at its end; the text has room for the longest numbers. Returns
 * how many characters were written. */
size_t fm_write_rows(const fm_cells *columns, int n_columns, size_t n_rows, const uint64_t *powers, char *text);

/* Read rows of plain decimal numbers, at most n_rows, from a text that ends with a null; values has a place for each number.
 * Returns how many rows were read, and *used characters; a row that has something else, or a
 * number that is not certain to the last bit, ends the reading before it. */
size_t fm_read_rows(const char *text, int n_columns, size_t n_rows, const uint64_t *powers, double *values, size_t *used);

/* values.c: sizes in bytes by type, conversions, copies of the outputs. */
extern const size_t fm_size[];
double fm_as_double(int type, const void *p);
void fm_convert(const fm_move *move);
int fm_move_triggers(fm_kernel *k, const fm_instruction *c);
int fm_copy_outputs(const fm_kernel *k, void *const *target, void *const *source);
int fm_keep(fm_kernel *k, const fm_instruction *c);
int fm_recall(fm_kernel *k, const fm_instruction *c);
int fm_revert(fm_kernel *k, const fm_instruction *c);
int fm_remember(fm_kernel *k, const fm_instruction *c);
void fm_forget(const fm_kernel *k);
double fm_largest_change(const fm_kernel *k, void *const *before);

/* objects.c: text and binaries. Those that return an int return an fm_status, but fm_move_objects an fm_stop. */
int fm_is_object(int type);
int fm_copy_objects(const fm_kernel *k, void **target, void *const *source, size_t n);
int fm_objects_differ(const fm_kernel *k, void *const *one, void *const *other, size_t n);
int fm_move_objects(fm_kernel *k, const fm_instruction *c, const fm_move *moves, int n);
int fm_sample_objects(const fm_kernel *k);
int fm_take_texts(const fm_segment *segment); /* after a Get */
int fm_give_texts(const fm_segment *segment); /* before a Set */

/* polynomial.c: FIT, and SET of inputs that follow polynomials. */
void fm_fit_inputs(fm_kernel *k, const fm_instruction *c);
void fm_evaluate(const double *coefficients, int degree, int n, double s, double *result);
int fm_set_polynomials(fm_kernel *k, int i, const fm_segment *segment, const char **function);

/* correction.c: CORRECT, DERIVE, and what it calls for partial derivatives that were measured. */
int fm_correct(fm_kernel *k, const fm_instruction *c);
int fm_derive(fm_kernel *k, const fm_instruction *c);
int fm_multiply_partials(const fm_derivative *derivative);

/* hooks.c: the hooks that are written in C, each with its data. */
typedef struct {
    int n, buffer, target, worst;
    double absolute, relative, divisor;
    const int64_t *slots;
    const double *nominals;
} fm_weighted_change_data;
int fm_weighted_change(void *self, fm_kernel *kernel);

typedef struct {
    int n;
    double at;
    const int64_t *instances;
} fm_assumed_outputs_data;
int fm_assumed_outputs(void *self, fm_kernel *kernel);

/* power.c: n power bonds with two ports each, one after the other; tolerance 0 for a bond that has no part in the error. Slots
 * are indices into the Float64 values, those of signals into the outputs. */
typedef struct {
    int n, error, worst;
    const int64_t *signals, *instances, *inputs, *columns, *degrees, *outputs;
    const double *weights, *transmitted, *scales, *tolerances;
} fm_bonds_data;
int fm_bond_powers(void *self, fm_kernel *kernel);
int fm_bond_powers_at_instant(void *self, fm_kernel *kernel);
int fm_bond_powers_refreshed(void *self, fm_kernel *kernel);

/* estimators.c: the size of a step, how far outputs are from a prediction, and powers of bonds from those in a buffer. */
#define FM_MOST_DEGREE 3 /* of the polynomial that predicts */
typedef struct {
    int instance, target;
} fm_step_size_data;
int fm_step_size(void *self, fm_kernel *kernel);

typedef struct {
    int n, degree, least, is_maximum, error, worst;
    double absolute, relative;
    const int64_t *instances, *slots;
    const double *nominals;
} fm_prediction_error_data;
int fm_prediction_error(void *self, fm_kernel *kernel);

typedef struct {
    int n, buffer, error, worst;
    const int64_t *powers, *instances;
    const double *scales, *tolerances;
} fm_energy_difference_data;
int fm_energy_difference(void *self, fm_kernel *kernel);

/* estimators.c: how far inputs are from their sources. A hook of the commit notes the largest differences; a watch tells whether one is too large in a step that is not accepted yet. */
typedef struct {
    int n, n_jumps;
    double step, rounding;
    const int64_t *instances, *columns, *sources, *slots, *taken, *ways;
    const double *jumps, *limits, *factors, *offsets;
    double *errors, *times, *low, *high, *steps;
} fm_input_errors_data;
int fm_input_errors(void *self, fm_kernel *kernel);
int fm_inputs_are_near(void *self, fm_kernel *kernel, double begin, double end, double next);

/* pace.c: a run in real time. Times are in s of the run, numbers in ns of the wall clock. */
enum { FM_PACE_SINCE, FM_PACE_STEPS, FM_PACE_LATE, FM_PACE_SUM, FM_PACE_LARGEST, FM_PACE_LAST, FM_PACE_WAITED };
typedef struct {
    double factor;          /* s of the run in a second */
    int64_t limit;          /* a step that is later ends the run */
    const double *began_at; /* the time at FM_PACE_SINCE */
    int64_t *numbers;       /* how many steps, how many of them were not ready in time; sum, largest and last lateness */
    const int *ends;        /* whether the run is about to end: no step waits any more */
    const fm_hook *too_late;
} fm_real_time_data;
int fm_keep_real_time(void *self, fm_kernel *kernel);

/* loop.c: an algebraic loop of n unknowns, which is solved by Anderson acceleration; the hook comes after it, if it fails. */
#define FM_MOST_ANDERSON 16 /* differences that are remembered */
typedef struct {
    int n, doubles, depth, most, plain, bounded, measures;
    double absolute;
    const int64_t *slots;
    const double *nominal, *relative;
    int64_t *counts;
    double *sizes, *x, *u0, *best_u, *best_residual, *work;
    const fm_hook *later;
} fm_loop_data;
int fm_loop_begin(void *self, fm_kernel *kernel);
int fm_loop_sweep(void *self, fm_kernel *kernel);

/* stop.c: a program stops, returns an fm_stop. */
int fm_stop_at(fm_kernel *k, const fm_instruction *c, int why);
int fm_fail(fm_kernel *k, const fm_instruction *c, int status, const char *function);

/* kernel.c: an instruction that is fused, by itself; what an execution that begins forgets of saved states. */
int fm_as_written(fm_kernel *k, const fm_instruction *c);
void fm_forget_saved(fm_kernel *k);

/* control.c: what happens at events; passes of a REPEAT. fm_same: how far apart two doubles may be that mean one time,
 * beside a step: same of fmimaster/instants/grid.py. */
int fm_get_clocks(fm_kernel *k, const fm_instruction *c);
int fm_get_clocked(fm_kernel *k, const fm_instruction *c);
int fm_get_intervals(fm_kernel *k, const fm_instruction *c);
int fm_set_triggers(fm_kernel *k, const fm_instruction *c);
int fm_enter(fm_kernel *k, const fm_instruction *c);
int fm_update_states(fm_kernel *k, const fm_instruction *c);
int fm_call_hook(fm_kernel *k, const fm_instruction *c);
double fm_same(double time, double step);
int fm_begin_passes(fm_kernel *k, fm_passes *p, const fm_instruction *c);
int fm_begin_pass(fm_kernel *k, const fm_passes *p);
int fm_converged(fm_kernel *k, fm_passes *p, double tolerance);

/* FMI functions that an FMU's table calls, FMI 2.0 and 3.0; the names are given by fm_function_name. */
enum fm_function {
    FM_GET_FLOAT64, FM_GET_FLOAT32, FM_GET_INT8, FM_GET_UINT8, FM_GET_INT16, FM_GET_UINT16, FM_GET_INT32, FM_GET_UINT32,
    FM_GET_INT64, FM_GET_UINT64, FM_GET_BOOLEAN, FM_GET_STRING, FM_GET_BINARY,
    FM_SET_FLOAT64, FM_SET_FLOAT32, FM_SET_INT8, FM_SET_UINT8, FM_SET_INT16, FM_SET_UINT16, FM_SET_INT32, FM_SET_UINT32,
    FM_SET_INT64, FM_SET_UINT64, FM_SET_BOOLEAN, FM_SET_STRING, FM_SET_BINARY,
    FM_DO_STEP, FM_GET_STATE, FM_SET_STATE, FM_FREE_STATE, FM_ENTER_CONFIGURATION, FM_EXIT_CONFIGURATION, FM_SETUP_EXPERIMENT,
    FM_ENTER_INITIALIZATION, FM_EXIT_INITIALIZATION, FM_TERMINATE, FM_SET_INPUT_DERIVATIVES, FM_GET_REAL_STATUS,
    FM_GET_BOOLEAN_STATUS, FM_GET_CLOCK, FM_SET_CLOCK, FM_ENTER_EVENT, FM_ENTER_STEP, FM_UPDATE_DISCRETE_STATES,
    FM_GET_DIRECTIONAL_DERIVATIVE, FM_GET_INTERVAL_DECIMAL, FM_GET_INTERVAL_FRACTION,
    FM_SET_TIME, FM_SET_CONTINUOUS_STATES, FM_GET_DERIVATIVES, FM_GET_EVENT_INDICATORS, FM_COMPLETED_INTEGRATOR_STEP,
    FM_ACTIVATE_PARTITION,
    FM_FUNCTIONS
};

/* Inputs of an FMU that take the coefficients of another one's polynomial. */
typedef struct {
    int row; /* of the input among the continuous ones */
    fm_segment segment;
} fm_coefficients;

/* update.c: inputs that an FMU of FMI 3.0 requests in Intermediate Update Mode; its environment there. */
typedef struct {
    fm_segment inputs;     /* the call that sets them */
    const size_t *rows;    /* of each of its values among the continuous inputs */
    int n_inputs, degree;  /* all of these; -1 before any polynomial was given */
    double centre;
    double *coefficients;          /* as they were given last */
    const int *source_degree;      /* of the polynomials in the value store */
    const double *source_centre, *source_coefficients;
    double begin;          /* of a step, until its first update was read; NAN after it */
    double (*read)(void *reader, double begin, double time, int can_return); /* outputs; null if none is read */
    void *reader;          /* returns when the FMU is to return early, or NAN */
    int failed;            /* whether a call in this mode has failed */
    void (*fail)(void *self, int status); /* called at once */
    void *self;
} fm_updates;

/* The inputs follow the polynomials in the value store from now on, or these values if there are none. */
void fm_take_polynomials(fm_updates *u, const double *values, double time);

/* What the FMU calls: fmi3IntermediateUpdateCallback. */
void fm_intermediate_update(void *environment, double time, _Bool requests_inputs, _Bool gives_outputs, _Bool is_at_end,
                            _Bool can_return, _Bool *returns, double *return_time);

/* An FMU, loaded and instantiated elsewhere. */
struct fm_fmu {
    void *component;
    void *do_step;          /* one of the functions, at hand */
    const char *const *names; /* of the functions, for messages */
    void *const *functions; /* FM_FUNCTIONS addresses, shared by all instances of a library; null where it lacks one */
    void **places;          /* saved FMU states */
    const double *kept_from; /* see fm_kernel */
    uint8_t *initialized; /* whether it has left Initialization Mode: of the kernel's */
    uint8_t *calling;     /* likewise */
    int n_coefficients; /* 0: polynomials are set by the means of the FMI version */
    const fm_coefficients *coefficients;
    int most_orders; /* FMI 2.0: derivatives of inputs, of all continuous inputs for each order */
    const uint32_t *rate_references;
    const int *orders;
    double *rates;
    fm_updates *updates; /* null if Intermediate Update Mode is not used */
    double tolerance;       /* passed when it enters Initialization Mode, as the plan says */
    int tolerance_defined;
};

/* Names without the prefix "fmi2" or "fmi3"; null where the version has no such function. */
const char *fm_fmi2_name(int function);
const char *fm_fmi3_name(int function);

/* Fill the table of functions for an FMU. */
void fm_fmi2_table(fm_fmu *fmu, fm_instance *instance);
void fm_fmi3_table(fm_fmu *fmu, fm_instance *instance);

/* fmu.c: the address of a function, with its name left for messages, null if the library lacks it; and entries of the tables
 * that are the same in both versions. */
void *fm_find(const fm_fmu *fmu, int which, const char **function);
int fm_missing(const fm_segment *segment);
int fm_missing_step(void *self, double time, double size, fm_answer *answer, const char **function);
int fm_save_state(void *self, int place, const char **function);
int fm_restore_state(void *self, int place, const char **function);

/* Set the coefficients of polynomials, for FMUs that take them so. */
int fm_set_coefficients(const fm_fmu *fmu, size_t n, int degree, const double *derivatives, const char **function);

/* Make the call of an FMU ready that reads or sets variables of a type, without those of FMI 3.0 in FMI 2.0; the variables and the
 * place of their values are in the segment already, and texts of text and binaries. */
void fm_fmi2_bind(const fm_fmu *fmu, int type, int is_get, fm_segment *segment);
void fm_fmi3_bind(const fm_fmu *fmu, int type, int is_get, fm_segment *segment);

/* Make the call ready that asks for the intervals of clocks; their arrays are in the segment already. */
void fm_fmi3_bind_intervals(const fm_fmu *fmu, int is_fraction, fm_segment *segment);

/* Make the call of an FMU ready that computes a directional derivative; variables and arrays are in it already. */
void fm_fmi2_bind_derivative(const fm_fmu *fmu, fm_derivative *derivative);
void fm_fmi3_bind_derivative(const fm_fmu *fmu, fm_derivative *derivative);
int fm_missing_derivative(const fm_derivative *derivative);

/* integrator.c and exchange.c: a Model Exchange FMU that an integrator steps. Its memory is one array: these numbers, then
 * states, nominal values of the states, event indicators, as in fmimaster/fmu/kernel_memory.py. */
enum {
    FM_X_TIME,
    FM_X_NEXT_EVENT,
    FM_X_SIZE,
    FM_X_MODE,
    FM_X_EVENTS,
    FM_X_ENDS,
    FM_X_UNTOLD,
    FM_X_STEP_EVENT,
    FM_X_NUMBERS
};
#define FM_MOST_STAGES 7

/* How states advance, see Integration in fmimaster/fmu/model_exchange/integrator.py. Each function returns an fm_status;
 * after `advance` the FMU stands at the time reached, with `states`, and its event indicators are in `there` of the exchange.
 * The length of the next step is in the memory. */
typedef struct {
    void *self;
    int (*restart)(void *self, double time, const double *states);
    int (*advance)(void *self, double end, double *reached);
    int (*between)(void *self, double time, double *states);
    /* null, or: all steps between two times as far as nothing else has to be done, and what `take` does after each.
     * FM_AGAIN after one that changes an indicator: it is not taken yet */
    int (*reach)(void *self, double time, double end, double *reached);
    const double *states;
    int (*mark_event)(void *self); /* may be null */
} fm_integrator;

typedef int fm_pass_time(void *component, double time);
typedef int fm_pass(void *component, double *values, size_t n);

typedef struct {
    fm_fmu *fmu;
    int version;              /* of FMI */
    void *component;          /* of the FMU, as what follows: at hand, since it is needed at each stage */
    uint8_t *calling;
    fm_pass_time *set_time;
    fm_pass *set_states, *get_derivatives, *get_indicators;
    const fm_instance *python; /* the same instance, for modes and updates */
    int (*execute_events)(void *self); /* of it: Event Mode, from its start to its end */
    fm_integrator integrator;
    int n, m;                 /* states, event indicators */
    int stops;                /* whether a step ends at the first event */
    int completes;            /* whether it is told when a step of the integrator is completed */
    int copies;               /* whether states are copied, because the FMU cannot save its own */
    int starts;               /* whether the integrator starts here */
    int remembers;            /* whether it remembers earlier steps */
    int goes_back;            /* whether the state that was saved last was restored, if it does */
    size_t size;              /* of the memory */
    double *memory, *states, *nominals, *indicators; /* parts of one array */
    double *places;           /* copies of it */
    double *there, *at_low, *at_high, *z, *y; /* room for indicators, and for states */
    double wanted;            /* time of the copy that could not be restored */
    const char *function;     /* the last one that has failed */
} fm_exchange;

/* For the calls of integrators in exchange.h: of inputs that there are. */
int fm_exchange_set_inputs(fm_exchange *x, double time);

/* Fill the table of functions of such an instance. */
void fm_exchange_table(fm_exchange *x, fm_instance *instance);

/* An integrator without memory. */
typedef struct {
    fm_exchange *exchange;
    double relative, absolute; /* Dormand-Prince */
    double step;               /* Euler: longest one in s */
    double end, left, part;    /* Euler: so many equal parts of this length are left to the end; 0: not known yet */
    double time, from, length; /* where it is; its last step */
    int is_known;              /* whether the last slope is the one where it is */
    double *states, *slopes;   /* slopes: n for each of FM_MOST_STAGES */
    const double *before;      /* the states where a step starts; those of the exchange, which advance after the step */
} fm_one_step;
void fm_exchange_one_step(fm_exchange *x, fm_one_step *s, int is_euler);
int fm_one_step_restart(void *self, double time, const double *states);
int fm_dormand_prince_advance(void *self, double end, double *reached);
int fm_dormand_prince_between(void *self, double time, double *states);
int fm_euler_advance(void *self, double end, double *reached);
int fm_euler_reach(void *self, double time, double end, double *reached);
int fm_euler_between(void *self, double time, double *states);

/* cvode.c: CVODE of SUNDIALS as an integrator. The functions of SUNDIALS come from the libraries that Python has loaded. */
typedef struct {
    int (*step)(void *memory, double end, void *states, double *reached, int task); /* CVode */
    int (*interpolate)(void *memory, double time, int derivative, void *states);    /* CVodeGetDky */
    int (*restart)(void *memory, double time, void *states);                        /* CVodeReInit */
    int (*set_stop_time)(void *memory, double time);                                /* CVodeSetStopTime */
    int (*set_tolerances)(void *memory, double relative, void *absolute);           /* CVodeSVtolerances */
    double *(*elements)(void *vector);                                              /* N_VGetArrayPointer */
    double *(*columns)(void *matrix);                                               /* SUNDenseMatrix_Data */
} fm_sundials;

typedef struct {
    fm_exchange *exchange;
    fm_sundials sundials;
    void *memory, *states_vector, *work_vector, *tolerances_vector; /* of CVODE */
    double *states, *work, *tolerances;                             /* elements of these vectors */
    double *slopes, *slopes_before;
    double relative, absolute, time, events;
    int has_inputs, is_fresh, is_known; /* see CvodeIntegration in fmimaster/fmu/model_exchange/cvode.py */
    int status;                         /* of a call of the FMU that failed in a callback */
    fm_derivative jacobian;             /* of the derivatives by the states */
} fm_cvode;
void fm_exchange_cvode(fm_exchange *x, fm_cvode *c);
int fm_cvode_derive(double time, void *states, void *derivatives, void *data);
int fm_cvode_linearize(double time, void *states, void *derivatives, void *matrix, void *data, void *first, void *second,
                       void *third);

/* adaptation.c: an element of semantic adaptation. Its values lie in memory that it shares with its instance in Python, each in
 * a slot; those that its kind lacks are null. */
enum fm_element_kind {
    FM_SAMPLE_AND_HOLD, FM_UNIT_DELAY, FM_MICROSTEP_DELAY, FM_EVENT_COUNTER, FM_LEVEL_CROSSING, FM_QUANTIZER
};
typedef union {
    uint64_t bits; /* of a value of any type */
    double number;
    int32_t integer;
    uint8_t flag;
} fm_slot;

/* An event where the input reaches a value: see fmimaster/system/adaptation.py. */
typedef struct {
    int sign;
    fm_slot *event, *distance, *passed, *is_at;
} fm_threshold;
#define FM_MOST_THRESHOLDS 2

typedef struct {
    int kind;
    size_t size, n_clocks;
    fm_slot *values, *places; /* size of them; copies */
    fm_slot *const *clocks;
    fm_slot *input, *output, *sample, *clock, *tick, *count, *before;
    fm_slot *policy, *is_started, *is_above, *farthest, *multiple;
    int n_thresholds, execute; /* execute: value of the policy with which the element finds its events itself */
    fm_threshold thresholds[FM_MOST_THRESHOLDS];
    double level, step, hysteresis, near; /* near: see adaptation_elements.py */
} fm_element;
void fm_element_table(fm_element *element, fm_instance *instance);
int fm_element_set(const fm_segment *segment);
int fm_element_get(const fm_segment *segment);

/* scheduled.c: an FMU whose model partitions are activated by its clocks. Its memory is one record, as in
 * fmimaster/fmu/kernel_memory.py; clocks stand in the order in which they are activated. */
typedef struct {
    double *now;
    int64_t *n_activations;
    double *activated;      /* per clock: time of its last activation */
    fm_intervals announced; /* of the countdown clocks */
    uint8_t *is_set;        /* whether a variable was set after the last activation */
    uint8_t *due, *active;  /* per clock */
} fm_schedule;

/* Countdown clocks whose intervals are read in one call in ClockUpdate. */
typedef struct {
    fm_segment segment;
    fm_intervals answer;
    const size_t *places; /* among the countdown clocks */
} fm_countdowns;

typedef struct fm_scheduled_call fm_scheduled_call;
typedef struct {
    fm_fmu *fmu;
    const fm_instance *python; /* the same instance, for modes up to the end of its initialization */
    fm_schedule memory;
    fm_scheduled_call *unclocked; /* the last call bound that reads variables which always have values */
    char *values, *places;     /* the record of the memory, and copies of it */
    size_t size, counter;      /* of the record in bytes; where its n_activations stand */
    int64_t *version;          /* changes with each activation and each restored state */
    int64_t *versions;         /* of the copies */
    size_t n_clocks;
    const uint32_t *clocks;    /* value references */
    fm_segment output_clocks;  /* what is read in ClockUpdate: these */
    const size_t *output_places;
    int n_countdowns;
    const fm_countdowns *countdowns;
    int has_fmu_states;
    int is_activating; /* whether a partition is activated in C */
    int has_failed;    /* whether a call in ClockUpdate has failed */
    void (*fail)(void *self, int status); /* called at once */
    void *self;
    void (*in_python)(void *environment); /* ClockUpdate of partitions that are activated in Python */
    size_t second; /* the clock that ticked a second time */
    double wanted; /* time of the copy that could not be restored */
    const char *function; /* the last one that has failed */
} fm_scheduled;

/* One FMI call of such an instance: what self of a segment points to. */
struct fm_scheduled_call {
    fm_scheduled *scheduled;
    fm_segment call;      /* of the FMU; of clocks there is none; what is read has own values, as they were read last */
    const size_t *places; /* of clocks in the memory; of intervals among the countdown clocks, n_clocks for none */
    size_t bytes;         /* of the values */
    int64_t version;      /* when they were read */
    fm_scheduled_call *next; /* of those that read such variables */
};
int fm_scheduled_get(const fm_segment *segment);
int fm_scheduled_set(const fm_segment *segment);
int fm_scheduled_get_clocks(const fm_segment *segment);
int fm_scheduled_set_clocks(const fm_segment *segment);
int fm_scheduled_ask(const fm_segment *segment);
void fm_scheduled_table(fm_scheduled *scheduled, fm_instance *instance);

/* What the FMU calls: fmi3ClockUpdateCallback; fmi3LockPreemptionCallback and its end, since no partition is preempted. */
void fm_clock_update(void *environment);
void fm_nothing(void);

/* isolated.c and host.c: an FMU in another process, its host. Values lie in shared memory; requests are collected, and sent
 * together when an answer is needed, which takes one message. */
enum fm_requested {
    FM_TALK, /* the host reads a request in Python from its channel */
    FM_REQUEST_SET, FM_REQUEST_GET, FM_REQUEST_DERIVE, FM_REQUEST_POLYNOMIALS, FM_REQUEST_STEP, FM_REQUEST_SAVE,
    FM_REQUEST_RESTORE, FM_REQUEST_ENTER, FM_REQUEST_UPDATE
};
#define FM_MOST_REQUESTS 128
typedef struct {
    int what, number; /* of the segment, the derivative, the place, or the state; degree of polynomials */
    double time, size;
} fm_request;

/* Of a process that waits: how often it does not look for the other one before it sleeps. */
typedef struct {
    int skips, in_vain;
} fm_spin;

/* One process rings, the other waits; alone in its line of the cache. */
typedef struct {
    uint32_t count; /* how often it has rung; on Linux a futex */
    uint32_t sleeps; /* whether the other process must be woken */
    fm_spin spin; /* of the process that waits */
    uint32_t unused[12];
} fm_bell;

/* What wakes the process that waits for a bell. On Windows the handle, in this process, of an event that resets itself; elsewhere 0. */
typedef struct {
    uintptr_t asked, answered;
} fm_wakers;

/* What both processes see. Over a link, each has its own: from is_crowded on, it is sent. */
typedef struct {
    fm_bell asked, answered;
    uint32_t logged; /* messages of the FMU for the log */
    int is_crowded;  /* more processes than processors: see spin */
    int n, done; /* requests; those that have succeeded */
    int status;  /* FM_OK; FM_DISCARD: the answer holds the outcome of the step; else the host has the error */
    int source_degree; /* of polynomials: see fm_updates */
    double source_centre;
    uint64_t function; /* that is being called: address of its name in the host */
    double at, kept_from;
    fm_experiment experiment;
    fm_answer answer;
    fm_update update;
    fm_request requests[FM_MOST_REQUESTS];
} fm_message;

/* link.c: messages over a socket instead of the memory that both processes see, to a host on another machine. */
#define FM_LINK_ROOM 16384
typedef struct {
    const void *at;
    size_t size;
} fm_part;
typedef struct {
    int socket; /* that waits as long as look may wait */
    int is_closed, is_damaged; /* what has come is no message, or not what was asked for */
    fm_spin spin;
    uint32_t number, logged; /* of the message that comes */
    uint64_t left;           /* bytes of it that were not taken */
    fm_message head;         /* it, as far as it was taken */
    size_t begin, end;       /* of what has come and was not taken */
    size_t filled;           /* of what was not sent */
    int n_parts;
    fm_part parts[2 * FM_MOST_REQUESTS]; /* values of a message */
    int (*look)(void *self); /* while it waits: 0, or else it waits no more; null to wait without end */
    void *self;
    char received[FM_LINK_ROOM], sent[FM_LINK_ROOM];
} fm_link;

/* Variables of an isolated instance: self of a segment or a derivative. */
typedef struct fm_isolated fm_isolated;
typedef struct {
    fm_isolated *owner;
    void *place, *answer; /* in shared memory: values; what a derivative results in */
    size_t bytes, answer_bytes;
    int number;
    uint32_t fresh; /* the change of the instance after which it was read last */
} fm_remote;

struct fm_isolated {
    fm_message *message;
    fm_wakers wakers;
    fm_link *link; /* to a host on another machine, else null */
    size_t n_inputs;
    const double *at, *kept_from;
    double *derivatives, *coefficients; /* in shared memory: of polynomials */
    const int *source_degree;           /* see fm_updates; null for none */
    const double *source_centre, *source_coefficients;
    fm_remote *remotes[FM_MOST_REQUESTS]; /* of the requests */
    fm_remote *read[FM_MOST_REQUESTS];    /* what was read after the last step: it is read with the next one */
    int n; /* requests that are collected; what the message says of it is the host's to change */
    int n_read, first_read, is_after_step, is_lost, has_polynomials;
    int is_posted; /* the answer to what was collected was not waited for */
    uint32_t change, logged;
    int (*look)(void *self); /* while the host works, and after messages for the log: 0, or else it is lost */
    void *self;
};
void fm_isolated_table(fm_isolated *isolated, fm_instance *instance);
int fm_isolated_set(const fm_segment *segment);
int fm_isolated_get(const fm_segment *segment);
int fm_isolated_derive(const fm_derivative *derivative);
int fm_isolated_talk(fm_isolated *isolated); /* sends what was collected; the answer comes through the channel */
void fm_isolated_talked(fm_isolated *isolated); /* after the answer */

/* In the host: what the requests are made of. */
typedef struct {
    fm_message *message;
    fm_wakers wakers;
    fm_link *link; /* to a run on another machine, else null; with what a request may be, and bytes of each segment */
    int n_segments, n_derivatives, n_coefficients, n_places;
    const size_t *sizes;
    const fm_instance *instance;
    const fm_segment *const *segments;
    const fm_derivative *const *derivatives;
    const uint32_t *references; /* of the inputs that are polynomials */
    size_t n_inputs;
    double *values, *source_values; /* in shared memory: derivatives and coefficients of polynomials */
    int *source_degree;             /* see fm_updates */
    double *source_centre, *source_coefficients;
    uint32_t seen;
} fm_host;
/* Serve until Python is needed: returns FM_OK for FM_TALK, else the status of a call that failed, or FM_ERROR if the link ended. */
int fm_host_serve(fm_host *host);
void fm_host_answer(fm_host *host, int status);
