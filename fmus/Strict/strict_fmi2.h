/* The functions of FMI 2.0 over strict.c. */

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }

EXPORT fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                                     const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    (void)guid, (void)resources, (void)visible, (void)logging;
    Instance *s = instantiate(name, type == fmi2ModelExchange);
    s->log = functions->logger;
    s->environment = functions->componentEnvironment;
    return s;
}

EXPORT void fmi2FreeInstance(fmi2Component c) { free_instance(c); }

EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[])
{
    (void)c, (void)on, (void)n, (void)categories;
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
                                      fmi2Boolean has_end, fmi2Real end)
{
    Instance *s = c;
    (void)has_tolerance, (void)tolerance;
    CHECK("fmi2SetupExperiment", IN(INSTANTIATED));
    s->start = start;
    s->has_end = has_end;
    s->end = end;
    return fmi2OK;
}

EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    Instance *s = c;
    return enter_initialization(s, "fmi2EnterInitializationMode", s->start, s->has_end, s->end);
}

EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return exit_initialization(c, "fmi2ExitInitializationMode"); }
EXPORT fmi2Status fmi2Terminate(fmi2Component c) { return terminate(c, "fmi2Terminate"); }

EXPORT fmi2Status fmi2GetReal(fmi2Component c, const Reference r[], size_t n, fmi2Real value[])
{
    return get_reals(c, r, n, value, "fmi2GetReal");
}

EXPORT fmi2Status fmi2SetReal(fmi2Component c, const Reference r[], size_t n, const fmi2Real value[])
{
    return set_reals(c, r, n, value, "fmi2SetReal");
}

EXPORT fmi2Status fmi2GetInteger(fmi2Component c, const Reference r[], size_t n, fmi2Integer value[])
{
    return get_integers(c, r, n, value, "fmi2GetInteger");
}

EXPORT fmi2Status fmi2SetInteger(fmi2Component c, const Reference r[], size_t n, const fmi2Integer value[])
{
    return set_integers(c, r, n, value, "fmi2SetInteger");
}

EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) { return get_state(c, "fmi2GetFMUstate", state); }
EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) { return set_state(c, "fmi2SetFMUstate", state); }
EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) { return free_state(c, "fmi2FreeFMUstate", state); }

EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const Reference unknowns[], size_t n, const Reference knowns[],
                                               size_t m, const fmi2Real seed[], fmi2Real sensitivity[])
{
    Instance *s = c;
    CHECK("fmi2GetDirectionalDerivative", IN(INITIALIZATION) | IN(EVENT) | IN(STEP) | IN(CONTINUOUS) | IN(TERMINATED));
    (void)knowns;
    for (size_t i = 0; i < n; i++)
        sensitivity[i] = unknowns[i] == Y && m ? s->v.d * seed[0] : 0.0;
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const Reference r[], size_t n, const fmi2Integer order[],
                                              const fmi2Real value[])
{
    Instance *s = c;
    CHECK("fmi2SetRealInputDerivatives", s->is_exchange ? 0u : IN(INSTANTIATED) | IN(INITIALIZATION) | IN(STEP));
    (void)order, (void)value;
    for (size_t i = 0; i < n; i++)
        if (r[i] != U)
            return refuse(s, "fmi2SetRealInputDerivatives", "variable %u is no real input", (unsigned)r[i]);
    return fmi2OK;
}

EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real time, fmi2Real size, fmi2Boolean no_prior)
{
    Answer answer = {false, false, false};
    int status = step(c, "fmi2DoStep", time, size, no_prior, &answer);
    return status == OK && answer.ends ? fmi2Discard : (fmi2Status)status;
}

EXPORT fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value)
{
    Instance *s = c;
    CHECK("fmi2GetRealStatus", IN(STEP) | IN(TERMINATED));
    (void)kind;
    *value = s->v.time;
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value)
{
    Instance *s = c;
    CHECK("fmi2GetBooleanStatus", IN(STEP) | IN(TERMINATED));
    (void)kind;
    *value = s->v.ends;
    return fmi2OK;
}

/* Model Exchange */

EXPORT fmi2Status fmi2EnterEventMode(fmi2Component c) { return may_enter_event_mode(c, "fmi2EnterEventMode"); }

EXPORT fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info)
{
    Instance *s = c;
    bool ends = false;
    double next = INFINITY;
    int status = update(s, "fmi2NewDiscreteStates", &ends, &next);
    *info = (fmi2EventInfo){.terminateSimulation = ends,
                            .valuesOfContinuousStatesChanged = s->v.new_states,
                            .nextEventTimeDefined = isfinite(next),
                            .nextEventTime = isfinite(next) ? next : 0.0};
    return status;
}

EXPORT fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c)
{
    return may_leave_event_mode(c, "fmi2EnterContinuousTimeMode", CONTINUOUS);
}

EXPORT fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no_prior, fmi2Boolean *enter, fmi2Boolean *ends)
{
    bool wants = false, terminates = false;
    int status = complete(c, "fmi2CompletedIntegratorStep", no_prior, &wants, &terminates);
    *enter = wants;
    *ends = terminates;
    return status;
}

EXPORT fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { return set_time(c, "fmi2SetTime", time); }

EXPORT fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n)
{
    (void)n;
    return set_states(c, "fmi2SetContinuousStates", x);
}

EXPORT fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n)
{
    Instance *s = c;
    (void)n;
    s->v.new_states = false;
    return get_vector(s, "fmi2GetContinuousStates", ALL, s->v.x, x);
}

EXPORT fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real dx[], size_t n)
{
    Instance *s = c;
    (void)n;
    return get_vector(s, "fmi2GetDerivatives", ALL, s->v.u - s->v.x, dx);
}

EXPORT fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n)
{
    Instance *s = c;
    (void)n;
    return get_vector(s, "fmi2GetEventIndicators", ALL, s->v.announce ? 1.0 : s->v.due - s->v.time, z);
}

EXPORT fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n)
{
    (void)n;
    return get_vector(c, "fmi2GetNominalsOfContinuousStates", ALL | IN(INSTANTIATED), 1.0, x);
}

/* Not used, and not there: a library without them is warned of. */
#define UNUSED(function) \
    EXPORT int function(void *c) { return refuse(c, #function, "the FMU does not declare it"); }
UNUSED(fmi2Reset) UNUSED(fmi2GetBoolean) UNUSED(fmi2GetString) UNUSED(fmi2SetBoolean) UNUSED(fmi2SetString)
UNUSED(fmi2SerializedFMUstateSize) UNUSED(fmi2SerializeFMUstate) UNUSED(fmi2DeSerializeFMUstate)
UNUSED(fmi2GetRealOutputDerivatives) UNUSED(fmi2CancelStep) UNUSED(fmi2GetStatus) UNUSED(fmi2GetIntegerStatus)
UNUSED(fmi2GetStringStatus)
