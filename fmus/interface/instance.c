#include "instance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative to the step: by how much the begin of a step may differ from the end of the last one, and its end exceed the
 * stop time. Far above the rounding of t = start + k h, far below any step that is meant. */
static const double TIME_TOLERANCE = 1e-6;

enum { LONGEST_MESSAGE = 512 };

/* LogCategories of every modelDescription.xml, by status. */
static const char *const CATEGORIES[] = {
    "logEvents", "logStatusWarning", "logStatusDiscard", "logStatusError", "logStatusFatal"};
enum { CATEGORY_COUNT = sizeof CATEGORIES / sizeof *CATEGORIES };
static const unsigned ALWAYS_LOGGED = 1u << FM_ERROR | 1u << FM_FATAL;

static const unsigned ANY_MODE = ~0u;

fm_Status fm_begin(fm_Instance *self, const char *resources)
{
    memcpy(&self->start, &fm_start_values, sizeof fm_start_values);
    fm_Status status = FM_OK;
#if FM_HEARS_CALLS
    model_called(&self->start, "Instantiate");
#endif
#if FM_HAS_RESOURCES
    status = model_load(self, &self->start, resources ? resources : "");
#endif
    fm_reset(self);
    return status;
}

void fm_called(fm_Instance *self, const char *function)
{
#if FM_HEARS_CALLS
    if (self) model_called(&self->state.variables, function);
#endif
}

void fm_reset(fm_Instance *self)
{
    fm_State *state = &self->state;
    memset(state, 0, sizeof *state);   /* padding too: equal states are equal bytes */
    state->mode = FM_INSTANTIATED;
    state->stale = true;
    state->stop_time = INFINITY;
    memcpy(&state->variables, &self->start, sizeof self->start);
}

/* Messages --------------------------------------------------------------------------------------------------------- */

fm_Status fm_report(fm_Instance *self, fm_Status status, const char *format, ...)
{
    fm_Status category = status == FM_TERMINATE ? FM_OK : status;
    if (self->log && (self->logged | ALWAYS_LOGGED) & 1u << category) {
        char message[LONGEST_MESSAGE];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        self->log(self, category, CATEGORIES[category], message);
    }
    return status;
}

fm_Status fm_set_logging(fm_Instance *self, const char *function, bool on, size_t count, const char *const categories[])
{
    if (!fm_allowed(self, function, ANY_MODE)) return FM_ERROR;
    unsigned chosen = count ? 0 : ANY_MODE;
    for (size_t i = 0; i < count; i++) {
        size_t status = 0;
        while (status < CATEGORY_COUNT && strcmp(categories[i], CATEGORIES[status]) != 0) status++;
        if (status == CATEGORY_COUNT)
            return fm_report(self, FM_ERROR, "%s: there is no log category \"%s\".", function, categories[i]);
        chosen |= 1u << status;
    }
    self->logged = on ? self->logged | chosen : self->logged & ~chosen;
    return FM_OK;
}

fm_Status fm_unsupported(fm_Instance *self, const char *function)
{
    return self ? fm_report(self, FM_ERROR, "%s: this FMU does not provide the function.", function) : FM_ERROR;
}

/* Modes ------------------------------------------------------------------------------------------------------------ */

static const char *mode_name(fm_Mode mode)
{
    switch (mode) {
    case FM_INSTANTIATED: return "the state Instantiated";
    case FM_INITIALIZATION_MODE: return "Initialization Mode";
    case FM_STEP_MODE: return "Step Mode";
    case FM_INTERMEDIATE_UPDATE_MODE: return "Intermediate Update Mode";
    case FM_TERMINATED: return "the state Terminated";
    case FM_STEP_FAILED: return "the state stepFailed";
    case FM_FAILED: return "the state error";
    case FM_EVENT_MODE: return "Event Mode";
    case FM_CLOCK_ACTIVATION_MODE: return "Clock Activation Mode";
    case FM_CLOCK_UPDATE_MODE: return "Clock Update Mode";
    }
    return "no state";
}

bool fm_allowed(fm_Instance *self, const char *function, unsigned modes)
{
    if (!self) return false;
    fm_called(self, function);
    if (self->state.mode & modes) return true;
    fm_report(self, FM_ERROR, "%s is not allowed in %s.", function, mode_name(self->state.mode));
    return false;
}

/* The outcome of a calculation; after an error there is nothing to go on with but a reset or an earlier FMU state. */
static fm_Status finish(fm_Instance *self, fm_Status status)
{
    if (status == FM_ERROR || status == FM_FATAL) self->state.mode = FM_FAILED;
    return status;
}

/* Counters in place of input clocks: what they count before the first step is no event. */
static void accept_start_counts(Variables *v)
{
    for (const fm_Event *event = fm_events; event < fm_events + FM_EVENT_COUNT; event++) {
        fm_Clock *trigger = (fm_Clock *)((char *)v + event->trigger);
        if (event->trigger) v->memory.event[event - fm_events].shown = trigger->done = trigger->count;
    }
}

/* FMI 2.0: has the importer triggered an event that the next step is to execute? */
static bool trigger_waits(const Variables *v)
{
    for (const fm_Event *event = fm_events; event < fm_events + FM_EVENT_COUNT; event++) {
        const fm_Clock *trigger = (const fm_Clock *)((const char *)v + event->trigger);
        if (event->trigger && trigger->done != trigger->count) return true;
    }
    return v->memory.shown;
}

void fm_refresh(fm_Instance *self)
{
    if (self->state.mode == FM_INITIALIZATION_MODE) {
        accept_start_counts(&self->state.variables);
        if (self->state.stale) fm_schedule(self);
    }
    if (self->state.stale) model_outputs(&self->state.variables);
    self->state.stale = false;
}

fm_Status fm_enter_initialization(fm_Instance *self, const char *function, double start_time, double stop_time)
{
    if (!fm_allowed(self, function, FM_INSTANTIATED)) return FM_ERROR;
    self->state.mode = FM_INITIALIZATION_MODE;
    self->state.stale = true;
    self->state.stop_time = stop_time;
    self->state.variables.time = start_time;
    return FM_OK;
}

fm_Status fm_exit_initialization(fm_Instance *self, const char *function)
{
    if (!fm_allowed(self, function, FM_INITIALIZATION_MODE)) return FM_ERROR;
    fm_refresh(self);
    self->state.mode = self->scheduled    ? FM_CLOCK_ACTIVATION_MODE
                       : self->event_mode ? FM_EVENT_MODE
                                          : FM_STEP_MODE;
    return finish(self, model_check(self, &self->state.variables));
}

static void clear_slopes(fm_Instance *self)
{
    for (const fm_Variable *variable = fm_variables; variable < fm_variables + fm_variable_count; variable++)
        memset((char *)&self->state.variables + variable->slope, 0, (size_t)variable->derivatives * sizeof(double));
}

fm_Status fm_step(fm_Instance *self, const char *function, double t, double h)
{
    if (!fm_allowed(self, function, FM_STEP_MODE)) return FM_ERROR;
    if (self->exchange) return fm_unsupported(self, function);
    double *time = &self->state.variables.time;
    if (!(h > 0.0))
        return fm_report(self, FM_ERROR, "%s: the step size is %g s. It must be positive.", function, h);
    if (!(fabs(t - *time) <= TIME_TOLERANCE * h))
        return fm_report(self, FM_ERROR, "%s: the step is to begin at t = %.17g s, but the last one ended at %.17g s.",
                         function, t, *time);
    if (t + h > self->state.stop_time + TIME_TOLERANCE * h)
        return fm_report(self, FM_ERROR, "%s: the step is to end at t = %.17g s, after the stop time %.17g s.",
                         function, t + h, self->state.stop_time);
    fm_Memory *memory = &self->state.variables.memory;
    if (memory->event_waits)
        return fm_report(self, FM_ERROR, "%s: an event at t = %.17g s is to be handled before, in Event Mode.", function,
                         *time);
    *time = t;
    memory->input_age = 0.0;
    double reached = h;
    fm_Status status = model_check(self, &self->state.variables);
    if (status != FM_ERROR) status = model_step(self, &self->state.variables, &reached);
    if (status == FM_ERROR || status == FM_FATAL) return finish(self, status);
    *time = t + reached;
    memory->input_age = reached;
    memory->inputs_set = false;
    self->state.stale = false;
    if (status != FM_DISCARD) clear_slopes(self);
    return status;
}

fm_Stopping fm_stopping(const fm_Instance *self)
{
    return self->stopping;
}

bool fm_uses_event_mode(const fm_Instance *self)
{
    return self->event_mode;
}

/* Event Mode ------------------------------------------------------------------------------------------------------- */

fm_Status fm_enter_event_mode(fm_Instance *self, const char *function)
{
    if (!fm_allowed(self, function, FM_STEP_MODE)) return FM_ERROR;
    if (!self->event_mode)
        return fm_report(self, FM_ERROR, "%s: the FMU was instantiated without Event Mode.", function);
    self->state.mode = FM_EVENT_MODE;
    fm_begin_event_mode(self);
    Variables *v = &self->state.variables;
#if FM_HAS_EVENT_MODE && FM_HAS_MODEL_EXCHANGE
    if (self->exchange) model_locate(v);
#endif
    for (int event = 0; event < FM_EVENT_COUNT; event++)
        if (fm_events[event].announce)
            ((fm_Clock *)((char *)v + fm_events[event].announce))->active = v->memory.event[event].located;
    return FM_OK;
}

#if FM_HAS_EVENT_MODE
static void deactivate_clocks(fm_Instance *self, bool inputs)
{
    for (const fm_Variable *variable = fm_variables; variable < fm_variables + fm_variable_count; variable++)
        if (variable->type == FM_CLOCK && (variable->role == FM_TRIGGER) == inputs)
            ((fm_Clock *)fm_value(self, variable))->active = false;
}
#endif

fm_Status fm_update(fm_Instance *self, const char *function, fm_Update *update)
{
    if (!fm_allowed(self, function, FM_EVENT_MODE)) return FM_ERROR;
    *update = (fm_Update){.next_time = INFINITY};
#if FM_HAS_EVENT_MODE
    Variables *v = &self->state.variables;
    deactivate_clocks(self, false);
    fm_start_ticks(self);
    fm_Status status = model_update(self, v, update);   /* may activate output clocks for another iteration */
    fm_finish_ticks(self);
    deactivate_clocks(self, true);
    for (int event = 0; event < FM_EVENT_COUNT; event++) v->memory.event[event].located = false;
    v->memory.event_waits = false;
    self->state.stale = true;
    return finish(self, status);
#else
    return FM_OK;
#endif
}

fm_Status fm_enter_step_mode(fm_Instance *self, const char *function)
{
    if (!fm_allowed(self, function, FM_EVENT_MODE)) return FM_ERROR;
    fm_refresh(self);
    self->state.mode = FM_STEP_MODE;
    return FM_OK;
}

void fm_intermediate_update(fm_Instance *self, double time)
{
    if (!self->intermediate_update) return;
    self->state.mode = FM_INTERMEDIATE_UPDATE_MODE;
    self->intermediate_update(self, time);
    self->state.mode = FM_STEP_MODE;
}

double fm_intermediate_values(fm_Instance *self, double time)
{
    if (!self->intermediate_values) return INFINITY;
    self->state.mode = FM_INTERMEDIATE_UPDATE_MODE;
    double until = self->intermediate_values(self, time);
    self->state.mode = FM_STEP_MODE;
    return until;
}

fm_Status fm_terminate(fm_Instance *self, const char *function)
{
    if (!fm_allowed(self, function, FM_STEP_MODE | FM_STEP_FAILED | FM_EVENT_MODE | FM_CLOCK_ACTIVATION_MODE))
        return FM_ERROR;
    self->state.mode = FM_TERMINATED;
    return FM_OK;
}

/* Variables -------------------------------------------------------------------------------------------------------- */

static const char *type_name(fm_Type type)
{
    switch (type) {
    case FM_FLOAT32: return "Float32";
    case FM_FLOAT64: return "Float64";
    case FM_INT8: return "Int8";
    case FM_UINT8: return "UInt8";
    case FM_INT16: return "Int16";
    case FM_UINT16: return "UInt16";
    case FM_INT32: return "Int32";
    case FM_UINT32: return "UInt32";
    case FM_INT64: return "Int64";
    case FM_UINT64: return "UInt64";
    case FM_BOOLEAN: return "Boolean";
    case FM_STRING: return "String";
    case FM_BINARY: return "Binary";
    case FM_ENUMERATION: return "Enumeration";
    case FM_CLOCK: return "Clock";
    }
    return "unknown";
}

static int compare_reference(const void *reference, const void *variable)
{
    uint32_t a = *(const uint32_t *)reference, b = ((const fm_Variable *)variable)->reference;
    return (a > b) - (a < b);
}

static const fm_Variable *lookup(uint32_t reference)
{
    return bsearch(&reference, fm_variables, fm_variable_count, sizeof *fm_variables, compare_reference);
}

bool fm_is_intermediate(uint32_t reference)
{
    const fm_Variable *variable = lookup(reference);
    return variable && variable->intermediate;
}

static const fm_Variable *find(fm_Instance *self, const char *function, uint32_t reference, unsigned types)
{
    const fm_Variable *variable = lookup(reference);
    if (!variable)
        fm_report(self, FM_ERROR, "%s: there is no variable with value reference %u.", function, (unsigned)reference);
    else if (!(variable->type & types)) {
        fm_report(self, FM_ERROR, "%s: the variable '%s' (value reference %u) is of type %s.", function, variable->name,
                  (unsigned)reference, type_name(variable->type));
        return NULL;
    }
    return variable;
}

/* Is a variable present? A clocked one is if one of its clocks is active; in Initialization Mode all are. */
static bool is_present(const fm_Instance *self, const fm_Variable *variable)
{
    if (self->state.mode & ~(unsigned)(FM_EVENT_MODE | FM_STEP_MODE) || !variable->clocks[0]) return true;
    const Variables *v = &self->state.variables;
    for (int i = 0; i < FM_MOST_CLOCKS; i++) {
        const fm_Clock *clock = (const fm_Clock *)((const char *)v + variable->clocks[i]);
        if (variable->clocks[i] && clock->active) return true;
    }
    return false;
}

const fm_Variable *fm_readable(fm_Instance *self, const char *function, uint32_t reference, unsigned types)
{
    const fm_Variable *variable = find(self, function, reference, types);
    bool follows = self->state.mode & (FM_INITIALIZATION_MODE | FM_EVENT_MODE) ||
                   (self->state.mode == FM_STEP_MODE && (self->exchange || trigger_waits(&self->state.variables)));
    if (variable && follows) fm_refresh(self);
    if (variable && self->state.mode == FM_INTERMEDIATE_UPDATE_MODE && !variable->intermediate) {
        fm_report(self, FM_ERROR, "%s: the variable '%s' (value reference %u) has no intermediateUpdate, and cannot be read "
                  "in Intermediate Update Mode.", function, variable->name, (unsigned)reference);
        return NULL;
    }
    if (!variable || is_present(self, variable)) return variable;
    fm_report(self, FM_ERROR, "%s: the variable '%s' (value reference %u) is absent, because its clock is not active.",
              function, variable->name, (unsigned)reference);
    return NULL;
}

const fm_Variable *fm_settable(fm_Instance *self, const char *function, uint32_t reference, unsigned types)
{
    const fm_Variable *variable = find(self, function, reference, types);
    if (!variable) return NULL;
    unsigned modes = variable->settable;
    if (modes & FM_STEP_MODE && self->event_mode) modes |= FM_EVENT_MODE;
    if (modes & FM_STEP_MODE && self->scheduled) modes |= FM_CLOCK_ACTIVATION_MODE;
    if (variable->clocks[0] || (variable->discrete && self->event_mode)) modes &= ~(unsigned)FM_STEP_MODE;
    if (!(modes & self->state.mode)) {
        fm_report(self, FM_ERROR, "%s: the variable '%s' (value reference %u) cannot be set in %s.", function,
                  variable->name, (unsigned)reference, mode_name(self->state.mode));
        return NULL;
    }
    Variables *v = &self->state.variables;
    if (self->state.mode == FM_EVENT_MODE && !is_present(self, variable)) {
        fm_report(self, FM_ERROR, "%s: the variable '%s' (value reference %u) cannot be set, because its clock is not "
                  "active.", function, variable->name, (unsigned)reference);
        return NULL;
    }
    if (variable->role == FM_SIGNAL) {
        v->memory.input_age = 0.0;
        for (int event = 0; event < FM_EVENT_COUNT; event++) v->memory.event[event].reset = false;
    }
    if (variable->role != FM_OTHER) v->memory.inputs_set = variable->role == FM_SIGNAL;
    self->state.stale = true;
    return variable;
}

void *fm_value(fm_Instance *self, const fm_Variable *variable)
{
    return (char *)&self->state.variables + variable->offset;
}

fm_Status fm_set_string(fm_Instance *self, const char *function, const fm_Variable *variable, const char *text)
{
    if (!text) return fm_report(self, FM_ERROR, "%s: the text for '%s' is NULL.", function, variable->name);
    size_t size = strlen(text) + 1;
    if (size > FM_CAPACITY)
        return fm_report(self, FM_ERROR, "%s: the text for '%s' has %zu bytes. This FMU keeps at most %d.", function,
                         variable->name, size - 1, FM_CAPACITY - 1);
    memcpy(fm_value(self, variable), text, size);
    return FM_OK;
}

static fm_Status wrong_seed(fm_Instance *self, const char *function, size_t count)
{
    return fm_report(self, FM_ERROR, "%s: the seed has %zu values, which is not what the knowns have together.", function,
                     count);
}

/* The elements of an array are knowns of the value references that follow its own. */
fm_Status fm_directional_derivative(fm_Instance *self, const char *function,
                                    const uint32_t unknowns[], size_t unknown_count,
                                    const uint32_t knowns[], size_t known_count,
                                    const double seed[], size_t seed_count, double sensitivity[])
{
    if (!FM_PROVIDES_DIRECTIONAL_DERIVATIVES) return fm_unsupported(self, function);
    if (!fm_allowed(self, function, FM_INITIALIZATION_MODE | FM_STEP_MODE | FM_EVENT_MODE | FM_TERMINATED))
        return FM_ERROR;
    for (size_t i = 0; i < unknown_count; i++) {
        const fm_Variable *unknown = fm_readable(self, function, unknowns[i], FM_FLOAT64);
        if (!unknown) return FM_ERROR;
        sensitivity[i] = 0.0;
        size_t done = 0;
        for (size_t j = 0; j < known_count; j++) {
            const fm_Variable *known = fm_readable(self, function, knowns[j], FM_FLOAT64);
            if (!known) return FM_ERROR;
            if (known->length > seed_count - done) return wrong_seed(self, function, seed_count);
            for (uint32_t element = 0; element < known->length; element++) {
                double partial = model_partial(&self->state.variables, unknowns[i], knowns[j] + element);
                if (isnan(partial))
                    return fm_report(self, FM_ERROR, "%s: the derivative of '%s' with respect to '%s' is not provided.",
                                     function, unknown->name, known->name);
                sensitivity[i] += partial * seed[done++];
            }
        }
        if (done != seed_count) return wrong_seed(self, function, seed_count);
    }
    return FM_OK;
}

/* FMU states ------------------------------------------------------------------------------------------------------- */

static bool has_states(fm_Instance *self, const char *function)
{
    if (!FM_CAN_GET_AND_SET_FMU_STATE) {
        fm_unsupported(self, function);
        return false;
    }
    return fm_allowed(self, function, ANY_MODE & ~(unsigned)(FM_INTERMEDIATE_UPDATE_MODE | FM_CLOCK_UPDATE_MODE));
}

fm_Status fm_get_state(fm_Instance *self, const char *function, void **state)
{
    if (!has_states(self, function)) return FM_ERROR;
    if (!*state) *state = malloc(sizeof(fm_State));
    if (!*state) return fm_report(self, FM_ERROR, "%s: there is no memory for another FMU state.", function);
    memcpy(*state, &self->state, sizeof(fm_State));
    return FM_OK;
}

fm_Status fm_set_state(fm_Instance *self, const char *function, const void *state)
{
    if (!has_states(self, function)) return FM_ERROR;
    if (!state) return fm_report(self, FM_ERROR, "%s: the FMU state is NULL.", function);
    memcpy(&self->state, state, sizeof(fm_State));
    return FM_OK;
}

fm_Status fm_free_state(fm_Instance *self, const char *function, void **state)
{
    if (!has_states(self, function)) return FM_ERROR;
    if (!state) return FM_OK;
    free(*state);
    *state = NULL;
    return FM_OK;
}

/* The instantiation token comes from the sources, so that the bytes of another build are recognised. */
typedef struct {
    char token[sizeof FM_INSTANTIATION_TOKEN];
    fm_State state;
} Serialized;

fm_Status fm_serialized_size(fm_Instance *self, const char *function, const void *state, size_t *size)
{
    if (!has_states(self, function)) return FM_ERROR;
    if (!state) return fm_report(self, FM_ERROR, "%s: the FMU state is NULL.", function);
    *size = sizeof(Serialized);
    return FM_OK;
}

fm_Status fm_serialize(fm_Instance *self, const char *function, const void *state, void *bytes, size_t size)
{
    if (!has_states(self, function)) return FM_ERROR;
    if (!state) return fm_report(self, FM_ERROR, "%s: the FMU state is NULL.", function);
    if (size < sizeof(Serialized))
        return fm_report(self, FM_ERROR, "%s: there is room for %zu bytes, but the FMU state has %zu.", function, size,
                         sizeof(Serialized));
    memset(bytes, 0, size);
    memcpy((char *)bytes + offsetof(Serialized, token), FM_INSTANTIATION_TOKEN, sizeof FM_INSTANTIATION_TOKEN);
    memcpy((char *)bytes + offsetof(Serialized, state), state, sizeof(fm_State));
    return FM_OK;
}

fm_Status fm_deserialize(fm_Instance *self, const char *function, const void *bytes, size_t size, void **state)
{
    if (!has_states(self, function)) return FM_ERROR;
    if (size != sizeof(Serialized) || memcmp(bytes, FM_INSTANTIATION_TOKEN, sizeof FM_INSTANTIATION_TOKEN) != 0)
        return fm_report(self, FM_ERROR, "%s: these %zu bytes are no FMU state of this build of %s.", function, size,
                         FM_MODEL_IDENTIFIER);
    if (!*state) *state = malloc(sizeof(fm_State));
    if (!*state) return fm_report(self, FM_ERROR, "%s: there is no memory for another FMU state.", function);
    memcpy(*state, (const char *)bytes + offsetof(Serialized, state), sizeof(fm_State));
    return FM_OK;
}
