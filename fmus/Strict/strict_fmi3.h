/* The functions of FMI 3.0 over strict.c. */

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                                fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
                                                const Reference bound[], size_t n_bound, fmi3InstanceEnvironment environment,
                                                fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update_callback)
{
    (void)resources, (void)visible, (void)logging;
    Instance *s = instantiate(name, false);
    s->event_mode = event_mode;
    s->early_return = early_return;
    s->has_clocks = strstr(token, "clocks") != NULL;
    s->n_bound = n_bound < BOUND ? n_bound : BOUND;
    for (size_t i = 0; i < s->n_bound; i++)
        s->bound[i] = bound[i];
    s->environment = environment;
    s->log = log;
    s->update = update_callback;
    if (event_mode ? strstr(token, "events") != NULL : !s->has_clocks)
        return s;
    refuse(s, "fmi3InstantiateCoSimulation", "eventModeUsed is %s", event_mode ? "true" : "false");
    free(s);
    return NULL;
}

EXPORT fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                                 fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                                 fmi3LogMessageCallback log)
{
    (void)resources, (void)visible, (void)logging;
    Instance *s = instantiate(name, true);
    s->has_clocks = strstr(token, "clocks") != NULL;
    s->environment = environment;
    s->log = log;
    return s;
}

EXPORT void fmi3FreeInstance(fmi3Instance c) { free_instance(c); }

EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    (void)c, (void)on, (void)n, (void)categories;
    return fmi3OK;
}

EXPORT fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
                                              fmi3Float64 start, fmi3Boolean has_end, fmi3Float64 end)
{
    (void)has_tolerance, (void)tolerance;
    return enter_initialization(c, "fmi3EnterInitializationMode", start, has_end, end);
}

EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance c) { return exit_initialization(c, "fmi3ExitInitializationMode"); }
EXPORT fmi3Status fmi3EnterEventMode(fmi3Instance c) { return may_enter_event_mode(c, "fmi3EnterEventMode"); }
EXPORT fmi3Status fmi3EnterStepMode(fmi3Instance c) { return may_leave_event_mode(c, "fmi3EnterStepMode", STEP); }
EXPORT fmi3Status fmi3Terminate(fmi3Instance c) { return terminate(c, "fmi3Terminate"); }

EXPORT fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance c)
{
    return may_leave_event_mode(c, "fmi3EnterContinuousTimeMode", CONTINUOUS);
}

EXPORT fmi3Status fmi3GetFloat64(fmi3Instance c, const Reference r[], size_t n, fmi3Float64 values[], size_t size)
{
    (void)size;
    return get_reals(c, r, n, values, "fmi3GetFloat64");
}

EXPORT fmi3Status fmi3SetFloat64(fmi3Instance c, const Reference r[], size_t n, const fmi3Float64 values[], size_t size)
{
    (void)size;
    return set_reals(c, r, n, values, "fmi3SetFloat64");
}

EXPORT fmi3Status fmi3GetInt32(fmi3Instance c, const Reference r[], size_t n, fmi3Int32 values[], size_t size)
{
    (void)size;
    return get_integers(c, r, n, values, "fmi3GetInt32");
}

EXPORT fmi3Status fmi3SetInt32(fmi3Instance c, const Reference r[], size_t n, const fmi3Int32 values[], size_t size)
{
    (void)size;
    return set_integers(c, r, n, values, "fmi3SetInt32");
}

/* Clocks */

EXPORT fmi3Status fmi3GetClock(fmi3Instance c, const Reference r[], size_t n, fmi3Clock values[])
{
    Instance *s = c;
    const Values *v = &s->v;
    CHECK("fmi3GetClock", IN(EVENT));
    for (size_t i = 0; i < n; i++)
        values[i] = r[i] == OUT ? v->out : r[i] == TICK ? v->tick : r[i] == IN_CLOCK ? v->in : v->counting;
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetClock(fmi3Instance c, const Reference r[], size_t n, const fmi3Clock values[])
{
    Instance *s = c;
    Values *v = &s->v;
    CHECK("fmi3SetClock", IN(EVENT));
    if (after_end(s, "fmi3SetClock"))
        return fmi3Error;
    for (size_t i = 0; i < n; i++) {
        bool *active = r[i] == TICK ? &v->tick : r[i] == IN_CLOCK ? &v->in : &v->counting;
        if (r[i] == OUT)
            return refuse(s, "fmi3SetClock", "an output clock is set");
        if (*active && !values[i])
            return refuse(s, "fmi3SetClock", "clock %u cannot be deactivated", (unsigned)r[i]);
        if (values[i] && r[i] == TICK && fabs(v->time - v->next_tick) > NEAR)
            return refuse(s, "fmi3SetClock", "the periodic clock ticks next at %.12g", v->next_tick);
        if (values[i] && r[i] == COUNTDOWN && !(v->armed && v->was_told && fabs(v->time - v->countdown) <= NEAR))
            return refuse(s, "fmi3SetClock", "the countdown clock does not tick now");
        *active = values[i];
    }
    return fmi3OK;
}

static int32_t interval(Instance *s, Reference r, double *seconds)
{
    Values *v = &s->v;
    if (r == TICK) {
        *seconds = INTERVAL;
        return fmi3IntervalUnchanged;
    }
    v->asked = true;
    *seconds = v->countdown - v->time;
    if (!v->armed)
        return fmi3IntervalNotYetKnown;
    if (v->was_told)
        return fmi3IntervalUnchanged;
    v->was_told = true;
    return fmi3IntervalChanged;
}

EXPORT fmi3Status fmi3GetIntervalDecimal(fmi3Instance c, const Reference r[], size_t n, fmi3Float64 intervals[],
                                         fmi3IntervalQualifier qualifiers[])
{
    Instance *s = c;
    CHECK("fmi3GetIntervalDecimal", IN(INITIALIZATION) | IN(EVENT));
    if (after_end(s, "fmi3GetIntervalDecimal"))
        return fmi3Error;
    for (size_t i = 0; i < n; i++)
        qualifiers[i] = (fmi3IntervalQualifier)interval(s, r[i], &intervals[i]);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetShiftDecimal(fmi3Instance c, const Reference r[], size_t n, fmi3Float64 shifts[])
{
    Instance *s = c;
    CHECK("fmi3GetShiftDecimal", IN(INITIALIZATION));
    (void)r;
    for (size_t i = 0; i < n; i++)
        shifts[i] = 0.0;
    return fmi3OK;
}

EXPORT fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *needs, fmi3Boolean *ends, fmi3Boolean *nominals,
                                           fmi3Boolean *states, fmi3Boolean *has_next, fmi3Float64 *next)
{
    Instance *s = c;
    double time = INFINITY;
    int status = update(s, "fmi3UpdateDiscreteStates", ends, &time);
    *needs = *nominals = false;
    *states = s->v.new_states;
    *has_next = isfinite(time);
    *next = isfinite(time) ? time : 0.0;
    return status;
}

/* Steps and states */

EXPORT fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 time, fmi3Float64 size, fmi3Boolean no_prior, fmi3Boolean *event,
                             fmi3Boolean *ends, fmi3Boolean *early, fmi3Float64 *reached)
{
    Instance *s = c;
    Answer answer = {false, false, false};
    int status = step(s, "fmi3DoStep", time, size, no_prior, &answer);
    *event = answer.event;
    *ends = answer.ends;
    *early = answer.early;
    *reached = s->v.time;
    return status;
}

EXPORT fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *state) { return get_state(c, "fmi3GetFMUState", state); }
EXPORT fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state) { return set_state(c, "fmi3SetFMUState", state); }
EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *state) { return free_state(c, "fmi3FreeFMUState", state); }

EXPORT fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const Reference unknowns[], size_t n, const Reference knowns[],
                                               size_t m, const fmi3Float64 seed[], size_t n_seed, fmi3Float64 sensitivity[],
                                               size_t n_sensitivity)
{
    Instance *s = c;
    CHECK("fmi3GetDirectionalDerivative", IN(INITIALIZATION) | IN(EVENT) | IN(STEP) | IN(CONTINUOUS) | IN(TERMINATED));
    (void)knowns, (void)n_seed, (void)n_sensitivity;
    for (size_t i = 0; i < n; i++)
        sensitivity[i] = unknowns[i] == Y && m ? s->v.d * seed[0] : 0.0;
    return fmi3OK;
}

/* Model Exchange */

EXPORT fmi3Status fmi3SetTime(fmi3Instance c, fmi3Float64 time) { return set_time(c, "fmi3SetTime", time); }

EXPORT fmi3Status fmi3SetContinuousStates(fmi3Instance c, const fmi3Float64 x[], size_t n)
{
    (void)n;
    return set_states(c, "fmi3SetContinuousStates", x);
}

EXPORT fmi3Status fmi3GetContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    Instance *s = c;
    (void)n;
    s->v.new_states = false;
    return get_vector(s, "fmi3GetContinuousStates", ALL, s->v.x, x);
}

EXPORT fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, fmi3Float64 dx[], size_t n)
{
    Instance *s = c;
    (void)n;
    return get_vector(s, "fmi3GetContinuousStateDerivatives", ALL, s->v.u - s->v.x, dx);
}

EXPORT fmi3Status fmi3GetEventIndicators(fmi3Instance c, fmi3Float64 z[], size_t n)
{
    Instance *s = c;
    (void)n;
    return get_vector(s, "fmi3GetEventIndicators", ALL, s->v.announce ? 1.0 : s->v.due - s->v.time, z);
}

EXPORT fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    (void)n;
    return get_vector(c, "fmi3GetNominalsOfContinuousStates", ALL, 1.0, x);
}

EXPORT fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n)
{
    Instance *s = c;
    CHECK("fmi3GetNumberOfContinuousStates", s->is_exchange ? ALL | IN(INSTANTIATED) : 0u);
    *n = 1;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n)
{
    Instance *s = c;
    CHECK("fmi3GetNumberOfEventIndicators", s->is_exchange ? ALL | IN(INSTANTIATED) : 0u);
    *n = 1;
    return fmi3OK;
}

EXPORT fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean no_prior, fmi3Boolean *enter, fmi3Boolean *ends)
{
    return complete(c, "fmi3CompletedIntegratorStep", no_prior, enter, ends);
}

/* Not declared; they are there because a library without them is warned of. */
#define UNUSED(function) \
    EXPORT int function(void *c) { return refuse(c, #function, "the FMU does not declare it"); }
UNUSED(fmi3Reset) UNUSED(fmi3EnterConfigurationMode) UNUSED(fmi3ExitConfigurationMode) UNUSED(fmi3EvaluateDiscreteStates)
UNUSED(fmi3GetFloat32) UNUSED(fmi3GetInt8) UNUSED(fmi3GetUInt8) UNUSED(fmi3GetInt16) UNUSED(fmi3GetUInt16)
UNUSED(fmi3GetUInt32) UNUSED(fmi3GetInt64) UNUSED(fmi3GetUInt64) UNUSED(fmi3GetBoolean) UNUSED(fmi3GetString)
UNUSED(fmi3GetBinary) UNUSED(fmi3SetFloat32) UNUSED(fmi3SetInt8) UNUSED(fmi3SetUInt8) UNUSED(fmi3SetInt16)
UNUSED(fmi3SetUInt16) UNUSED(fmi3SetUInt32) UNUSED(fmi3SetInt64) UNUSED(fmi3SetUInt64) UNUSED(fmi3SetBoolean)
UNUSED(fmi3SetString) UNUSED(fmi3SetBinary) UNUSED(fmi3GetAdjointDerivative) UNUSED(fmi3GetIntervalFraction)
UNUSED(fmi3GetShiftFraction) UNUSED(fmi3SetIntervalDecimal) UNUSED(fmi3SetIntervalFraction) UNUSED(fmi3SetShiftDecimal)
UNUSED(fmi3SetShiftFraction) UNUSED(fmi3GetNumberOfVariableDependencies) UNUSED(fmi3GetVariableDependencies)
UNUSED(fmi3SerializedFMUStateSize) UNUSED(fmi3SerializeFMUState) UNUSED(fmi3DeserializeFMUState)
UNUSED(fmi3GetOutputDerivatives) UNUSED(fmi3ActivateModelPartition) UNUSED(fmi3InstantiateScheduledExecution)
