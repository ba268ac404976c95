"""FMUs written in Python, systems of them, and programs as text: no compiler, no file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from math import ulp
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from guard import Guarded
from numpy.typing import NDArray

from fmimaster.algorithms import Algorithm, Jacobi
from fmimaster.algorithms.assemble import ProgramsRequest, assemble
from fmimaster.algorithms.settling import Settling
from fmimaster.base.errors import CallError
from fmimaster.fmu.instance import (
    Instance,
    Signal,
    StepAnswer,
    Transfer,
    UpdateAnswer,
)
from fmimaster.plan.layout import Group
from fmimaster.plan.make import PlanRequest, make_plan
from fmimaster.plan.plan import Plan, tolerance_of_run
from fmimaster.plan.policy import EventUse
from fmimaster.program.bond_powers import bond_measures
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.run.choice import choose_executor
from fmimaster.run.executor import Backend, InitialTimes, Outcome
from fmimaster.run.rows import Counted
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.clocks import Intervals, Qualifier
from fmimaster.system.declarations import Capabilities, EventDeclaration, EventPolicy, Version
from fmimaster.system.description import PowerBond, SystemDescription
from fmimaster.system.model import (
    Causality,
    DataType,
    DependencyKind,
    Initial,
    Model,
    Variability,
    Variable,
)
from fmimaster.system.resolve import resolve
from fmimaster.system.states import FmiCall, State

Connections = Iterable[str | tuple[str, Mapping[str, Any]]]
"""``"a.y -> b.u"``, or that with the factor and offset of :meth:`SystemBuilder.connect`."""


class Logged(NamedTuple):
    """One call of an instance."""

    call: FmiCall
    what: Any
    """Name → value of what was set or got; (time, size) of a step; arguments of other calls."""


class PythonFmu:
    """An FMU as a few functions; stands for the file, its model and its instances.

    Parameters
    ----------
    inputs, states, parameters : name → start value
    outputs : name → function of the values
        The values ``v`` are attributes: ``v.u``, ``v.x``, and ``v.t`` for the time.
    step : function of the values and the step size
        Changes states; is at the begin of the step. ``v.course("u", time)`` is the input as it goes on over the step.
        What it returns, if anything, is what ``DoStep`` says; an early return leaves the states where it ended.
    update : function of the values
        What ``UpdateDiscreteStates`` does. Input clocks are active until then: ``v.tick``.
    depends : output → inputs
        Outputs that are not in it depend on nothing; in both modes, unless ``initial_depends`` is given.
    dependency_kinds : output → input → DependencyKind
        Of the dependencies, where they are declared.
    undeclared
        Outputs of which the FMU does not say on what they depend.
    attributes : name → attributes of the Variable
        A clock has the type CLOCK; as an output its function says whether it is active.
    partials : output → input → partial derivative, or a function of the values that returns it
        What ``GetDirectionalDerivative`` knows; the capability goes with it.
    events, event_policy
        Of the Model.
    capabilities
        Of the Model.
    """

    def __init__(
        self,
        name: str = "unit",
        *,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Callable[[Any], Any]] | None = None,
        states: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        step: Callable[[Any, float], StepAnswer | None] | None = None,
        depends: Mapping[str, Iterable[str]] | None = None,
        initial_depends: Mapping[str, Iterable[str]] | None = None,
        dependency_kinds: Mapping[str, Mapping[str, DependencyKind]] | None = None,
        undeclared: Iterable[str] = (),
        update: Callable[[Any], UpdateAnswer | None] | None = None,
        attributes: Mapping[str, Mapping[str, Any]] | None = None,
        events: Iterable[EventDeclaration] = (),
        event_policy: EventPolicy | None = None,
        partials: Mapping[str, Mapping[str, Any]] | None = None,
        intervals: Mapping[str, Callable[[Any], Fraction | float | None]] | None = None,
        **capabilities: Any,
    ) -> None:
        self.partials = partials or {}
        self.intervals = intervals or {}
        """Clock → its next interval in s by the values, as a fraction or as a double; None: it is not yet known."""
        if partials is not None:
            capabilities["provides_directional_derivatives"] = True
        self.outputs = dict(outputs or {})
        self.step = step or (lambda v, h: None)
        self.update = update or (lambda v: None)
        self.instances: list[PythonInstance] = []
        self.fails_at: int | None = None
        """Number of the call that fails, counted from 1; of the instance's calls, whatever they are."""
        self.status = "Error"
        """What it then returns; a step may also be told ``"NaN"``, ``"Terminate"``, ``"Terminate within"``."""
        starts = {**(parameters or {}), **(inputs or {}), **(states or {})}
        self.starts = starts
        kinds: list[tuple[str, Causality, Variability, Initial]] = []
        for n in parameters or {}:
            kinds.append((n, Causality.PARAMETER, Variability.FIXED, Initial.EXACT))
        for n in inputs or {}:
            kinds.append((n, Causality.INPUT, Variability.CONTINUOUS, Initial.EXACT))
        for n in states or {}:
            kinds.append((n, Causality.LOCAL, Variability.CONTINUOUS, Initial.EXACT))
        for n in self.outputs:
            kinds.append((n, Causality.OUTPUT, Variability.CONTINUOUS, Initial.CALCULATED))
        variables = []
        for reference, (n, causality, variability, initial) in enumerate(kinds):
            variable = Variable(n, reference, DataType.FLOAT64, causality, variability, initial)
            if n in starts:
                variable = replace(variable, start=(starts[n],))
            given = dict((attributes or {}).get(n, {}))
            if (
                "type" in given
                and not given["type"].is_float
                and variability is not Variability.FIXED
            ):
                given.setdefault("variability", Variability.DISCRETE)
            if causality is Causality.INPUT:
                updated = capabilities.get("provides_intermediate_update", False)
                given.setdefault("intermediate_update", updated)
            variables.append(replace(variable, **given))
        undeclared = frozenset(undeclared)
        every = frozenset(inputs or {})

        def dependencies(said: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
            return {
                o: every if o in undeclared else frozenset(said.get(o, ())) for o in self.outputs
            }

        self.model = Model(
            name=name,
            fmi_version=Version("3.0"),
            variables=tuple(variables),
            capabilities=replace(
                Capabilities(
                    can_get_and_set_fmu_state=True,
                    can_handle_variable_communication_step_size=True,
                ),
                **capabilities,
            ),
            dependencies=dependencies(depends or {}),
            initial_dependencies=dependencies(initial_depends or depends or {}),
            dependency_kinds=dependency_kinds or {},
            assumed_dependencies=undeclared,
            assumed_initial_dependencies=undeclared,
            events=tuple(events),
            event_policy=event_policy,
        )

    def instantiate(self, name: str, *_options: object) -> Instance:
        """A new instance, owned as FmuFile owns its instances. Every call that FMI does not allow fails."""
        self.instances.append(PythonInstance(self, name))
        return Guarded(self.instances[-1])

    def abandon(self) -> None:
        """There is no file."""

    def free_instances(self) -> None:
        """Free all instances, as FmuFile does."""
        for instance in self.instances:
            instance.free()

    def close(self) -> None:
        """Free all instances, as FmuFile does."""
        self.free_instances()


class PythonInstance(Instance):
    """An instance of a :class:`PythonFmu`: keeps a log of its calls, and evaluates outputs when they are read."""

    def __init__(self, fmu: PythonFmu, name: str) -> None:
        super().__init__(name, fmu.model)
        self.fmu = fmu
        self.log: list[Logged] = []
        self.frees = 0
        self._initialized = False
        self.told: list[float] = []
        """Times at which it was told how its inputs go on."""
        self.values = SimpleNamespace(t=0.0, course=self.course)
        self._courses: dict[str, Callable[[float], float]] = {}
        self._places: dict[int, dict[str, Any]] = {}
        self._variables = {v.value_reference: v for v in fmu.model.variables}
        for variable in fmu.model.variables:
            if variable.name in fmu.starts:
                start = fmu.starts[variable.name]
                value = np.full(variable.shape, start) if variable.shape else start
                setattr(self.values, variable.name, value)

    # What tests ask

    def called(self, call: FmiCall) -> list[Any]:
        """What was said in each call of that kind."""
        return [logged.what for logged in self.log if logged.call is call]

    def was_set(self, name: str) -> list[Any]:
        """All values that a variable has been set to."""
        sets = (FmiCall.SET_INPUT, FmiCall.SET_START, FmiCall.SET_STRUCTURAL, FmiCall.SET_TRIGGER)
        return [what[name] for call, what in self.log if call in sets and name in what]

    def course(self, name: str, time: float) -> float:
        """The input at a time in the present step: its polynomial, if it was given one."""
        if name in self._courses:
            return self._courses[name](time)
        return getattr(self.values, name)  # type: ignore[no-any-return]

    # As an instance

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        variables = [self._variables[r] for r in references]
        assert all(v.type is kind for v in variables)

        def read() -> None:
            said = {v.name: self._value(v.name) for v in variables}
            values[:] = _flat(said.values(), len(values), values.dtype)
            self._call(FmiCall.GET_CLOCK if kind is DataType.CLOCK else FmiCall.GET, said)

        return read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        variables = [self._variables[r] for r in references]
        assert all(v.type is kind for v in variables)

        def write() -> None:
            at, said = 0, {}
            for v in variables:
                part = values[at : at + v.size]
                at += v.size
                said[v.name] = part.reshape(v.shape).copy() if v.shape else part.item()
            for name, value in said.items():
                setattr(self.values, name, value)
                self._courses.pop(name, None)
            self._call(self._kind_of_set(variables), said)

        return write

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        outputs, inputs = ([self._variables[r].name for r in part] for part in (unknowns, knowns))

        def partial_of(output: str, name: str) -> float:
            known = self.fmu.partials.get(output, {}).get(name, 0.0)
            return float(known(self.values) if callable(known) else known)

        def derive() -> None:
            self._call(
                FmiCall.GET_DIRECTIONAL_DERIVATIVE, dict(zip(inputs, seed.tolist(), strict=True))
            )
            for k, output in enumerate(outputs):
                sensitivity[k] = sum(
                    partial_of(output, name) * change
                    for name, change in zip(inputs, seed.tolist(), strict=True)
                )

        return derive

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        names = [self._variables[r].name for r in references]

        def set_polynomials(time: float, signal: Signal) -> None:
            def component(k: int, tau: float) -> float:
                return float(signal(tau, 0)[k])

            self.told.append(time)
            for k, name in enumerate(names):
                self._courses[name] = partial(component, k)
            values = {name: getattr(self.values, name) for name in names}
            for name, value in zip(names, signal(time, 0), strict=True):
                assert values[name] == value  # the value was set before

        return set_polynomials

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        names = tuple(self._variables[c].name for c in clocks)

        def ask() -> None:
            self._call(FmiCall.GET_INTERVAL, names)
            told = [self.fmu.intervals.get(n, lambda _: None)(self.values) for n in names]
            answers.qualifier[:] = [
                Qualifier.NOT_YET_KNOWN if t is None else Qualifier.CHANGED for t in told
            ]
            for at, t in enumerate(told):
                if isinstance(t, Fraction):
                    answers.counter[at], answers.resolution[at] = t.numerator, t.denominator
                elif t is not None:
                    answers.seconds[at], answers.resolution[at] = t, 0

        return ask

    def shift(self, clock: int) -> Fraction:
        self._call(FmiCall.GET_SHIFT, self._variables[clock].name)
        return Fraction(0)

    def set_interval(self, clock: int, interval: Fraction) -> None:
        self._call(FmiCall.SET_INTERVAL, {self._variables[clock].name: interval})

    def set_shift(self, clock: int, shift: Fraction) -> None:
        self._call(FmiCall.SET_SHIFT, {self._variables[clock].name: shift})

    def enter_configuration_mode(self) -> None:
        self._call(FmiCall.ENTER_CONFIGURATION_MODE, ())

    def exit_configuration_mode(self) -> None:
        self._call(FmiCall.EXIT_CONFIGURATION_MODE, ())

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        self.values.t = start
        self._call(FmiCall.ENTER_INITIALIZATION_MODE, (start, stop, tolerance))

    def enter_step_mode(self) -> None:
        self._call(
            FmiCall.ENTER_STEP_MODE if self._initialized else FmiCall.EXIT_INITIALIZATION_MODE, ()
        )
        self._initialized = True

    def enter_event_mode(self) -> None:
        self._call(
            FmiCall.ENTER_EVENT_MODE if self._initialized else FmiCall.EXIT_TO_EVENT_MODE, ()
        )
        self._initialized = True

    def update_discrete_states(self) -> UpdateAnswer:
        self._call(FmiCall.UPDATE_DISCRETE_STATES, ())
        answer = self.fmu.update(self.values)
        for v in self.model.with_causality(Causality.INPUT):
            if v.type is DataType.CLOCK:
                setattr(self.values, v.name, False)
        return answer or UpdateAnswer()

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        answer = self._call(FmiCall.DO_STEP, (time, size))
        if answer == "Discard":
            return StepAnswer(time, discarded=True)
        # a time that it has named itself may differ by rounding from the end of the step
        assert abs(time - self.values.t) <= 4 * ulp(time)
        self.values.t = time
        if answer == "Terminate within":
            size /= 2
        said = self.fmu.step(self.values, size)
        self.values.t = time + size
        if said is not None:
            if said.early:
                self.values.t = said.last_successful_time
            return said
        if answer == "NaN":
            for name in self.fmu.starts:
                setattr(self.values, name, float("nan"))
        ends = answer in ("Terminate", "Terminate within")
        return StepAnswer(self.values.t, terminate=True) if ends else None

    def save(self, place: int) -> None:
        self._call(FmiCall.GET_FMU_STATE, place)
        self._places[place] = dict(vars(self.values))

    def restore(self, place: int) -> None:
        self._call(FmiCall.SET_FMU_STATE, place)
        vars(self.values).update(self._places[place])

    def terminate(self) -> None:
        self._call(FmiCall.TERMINATE, ())

    def free(self) -> None:
        self.frees += 1

    def _value(self, name: str) -> Any:
        if name in self.fmu.outputs:
            return self.fmu.outputs[name](self.values)
        return getattr(self.values, name)

    def _kind_of_set(self, variables: Sequence[Variable]) -> FmiCall:
        if variables[0].causality is Causality.STRUCTURAL_PARAMETER:
            return FmiCall.SET_STRUCTURAL
        if variables[0].type is DataType.CLOCK:
            return FmiCall.SET_TRIGGER
        entered = any(c is FmiCall.ENTER_INITIALIZATION_MODE for c, _ in self.log)
        is_input = variables[0].causality is Causality.INPUT
        return FmiCall.SET_INPUT if is_input and entered else FmiCall.SET_START

    def _call(self, call: FmiCall, what: Any) -> str | None:
        """Log the call; what a step shall answer, if this is the one that fails."""
        self.log.append(Logged(call, what))
        if len(self.log) != self.fmu.fails_at:
            return None
        if call is FmiCall.DO_STEP and self.fmu.status not in ("Error", "Fatal"):
            return self.fmu.status
        raise CallError(
            f"{call.value} of '{self.name}' returned {self.fmu.status}",
            instance=self.name,
            function=call.value,
            status=self.fmu.status,
            time=self.values.t,
        )


# Systems of them ------------------------------------------------------------------------------------------------------


def describe(
    units: Mapping[str, PythonFmu],
    connections: Connections = (),
    start_values: Mapping[str, Any] | None = None,
    shared_events: Mapping[str, Sequence[str]] | None = None,
    **experiment: Any,
) -> SystemDescription:
    """A description of instances of these FMUs; the source of each is ``<component>.fmu``."""
    builder = SystemBuilder("system")
    for name in units:
        builder.add(name, f"{name}.fmu")
    for connection in connections:
        text, options = (connection, {}) if isinstance(connection, str) else connection
        source, target = text.split(" -> ")
        builder.connect(source, target, **options)
    for name, value in (start_values or {}).items():
        builder.set(name, value)
    for name, members in (shared_events or {}).items():
        builder.share_event(name, *members)
    return builder.build(**experiment)


def plan_of(
    units: Mapping[str, PythonFmu],
    connections: Connections = (),
    start_values: Mapping[str, Any] | None = None,
    *,
    outputs: Sequence[str] = (),
    allow_lossy_conversions: bool = False,
    shared_events: Mapping[str, Sequence[str]] | None = None,
    use: EventUse | None = None,
    tolerance: float | None = None,
    power_bonds: Sequence[PowerBond] = (),
) -> Plan:
    """The plan of a system of these FMUs."""
    models = {name: unit.model for name, unit in units.items()}
    resolved = resolve(
        describe(units, connections, start_values, shared_events),
        models,
        allow_lossy_conversions=allow_lossy_conversions,
        power_bonds=power_bonds,
    )
    request = PlanRequest(
        outputs=outputs, use=use or EventUse(), tolerance=tolerance_of_run(tolerance, None)
    )
    return make_plan(resolved, request)


MOST_PLACES = 16
"""For FMU states: more than any program of the tests uses."""


class Bench:
    """A system on an executor, to be driven by hand."""

    backend = Backend.REFERENCE
    """Which executor; the fixture ``each_executor`` changes it."""

    def __init__(
        self,
        units: Mapping[str, PythonFmu],
        connections: Connections = (),
        start_values: Mapping[str, Any] | None = None,
        *,
        algorithm: Algorithm | None = None,
        experiment: InitialTimes | None = None,
        n_buffers: int = 0,
        history: int = 0,
        hooks: Sequence[Hook] = (),
        settling: Settling | None = None,
        **options: Any,
    ) -> None:
        self.plan = plan_of(units, connections, start_values, **options)
        request = ProgramsRequest(settling or Settling(), measures=bond_measures(self.plan))
        self.programs = assemble(self.plan, algorithm or Jacobi(), request)
        guarded = [unit.instantiate(name) for name, unit in units.items()]
        self.instances = {name: unit.instances[-1] for name, unit in units.items()}
        self.executor = choose_executor(self.plan, self.backend)(
            self.plan,
            guarded,
            experiment or InitialTimes(0.0, 1.0),
            n_places=MOST_PLACES,
            n_buffers=max(n_buffers, self.programs.n_buffers),
            history=max(history, self.programs.history),
            hooks=[*self.programs.hooks, *hooks],
        )

    def initialize(self) -> Outcome:
        """Bring all instances to Step Mode at the start."""
        return self.run(self.programs.initialize)

    def run(self, program: Program | str, begin: float = 0.0, end: float | None = None) -> Outcome:
        """Run a program, or one that is written as text."""
        if isinstance(program, str):
            program = parse(program, self.plan)
        return self.executor.run(program, begin, begin if end is None else end)

    def counted(self, kind: Counted) -> dict[str, int]:
        """How often each instance was called so."""
        return dict(zip(self.instances, self.executor.calls[kind].tolist(), strict=True))

    def value(self, name: str) -> Any:
        """An output in the store."""
        instance, _, output = name.partition(".")
        index = list(self.instances).index(instance)
        kind, slot = self.plan.layout.slots[index, Group.OUTPUTS, output]
        values = self.executor.store.values[kind][slot]
        return values.copy() if len(values) > 1 else values[0]

    def read_at(self, instance: str) -> float:
        """When the outputs of an instance in the store were read, in s."""
        return float(self.executor.store.read[list(self.instances).index(instance)])


# Programs as text -----------------------------------------------------------------------------------------------------


def parse(text: str, plan: Plan, name: str = "attempt") -> Program:
    """A program from the text of its instructions, one a line; instances by number or by name; ``#`` begins a comment."""
    kinds = {kind.__name__.upper(): kind for kind in Instruction.__subclasses__()}
    names = {instance.name: i for i, instance in enumerate(plan.instances)}
    instructions = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            kind = kinds[words[0]]
            given = zip(fields(kind), words[1:], strict=False)
            instructions.append(kind(*(_operand(f.name, str(f.type), w, names) for f, w in given)))
    return Program(name, tuple(instructions))


def _operand(name: str, kind: str, word: str, instances: Mapping[str, int]) -> Any:
    if name == "instance" and word in instances:
        return instances[word]
    if word.startswith("("):
        return tuple(int(part) for part in word.strip("()").split(",") if part.strip())
    if kind in ("Group", "State"):
        return {"Group": Group, "State": State}[kind][word.upper()]
    if word == "none":
        return None
    if word in ("true", "false"):
        return word == "true"
    return float(word) if kind.startswith("float") else int(word)


def _flat(values: Iterable[Any], size: int, dtype: Any) -> NDArray[Any]:
    flat = np.empty(size, dtype=dtype)
    elements = [e for value in values for e in np.asarray(value, dtype=dtype).ravel()]
    flat[:] = elements
    return flat
