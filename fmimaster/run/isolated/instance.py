"""An FMU in a process of its own, as an instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.around import ANSWERS, Act, complete
from fmimaster.fmu.instance import Signal, StepAnswer, UpdateAnswer
from fmimaster.fmu.kernel_entry import E, KernelEntries
from fmimaster.inputs.polynomial import MOST_COEFFICIENTS, Polynomials
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group
from fmimaster.run.isolated.hosting import HostedInstance
from fmimaster.run.native.header import STATES
from fmimaster.run.native.instances import READ
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType
from fmimaster.system.states import State


class IsolatedInstance(HostedInstance):
    """An FMU in a process of its own, its host.

    Calls that only set are collected, and sent with the next one that needs an answer. Outputs that were read after the
    last step are read with the next one. So the FMU gets the calls of an instance in this process, in their order. Methods
    that are not defined here are requested by name.

    Parameters
    ----------
    planned : InstancePlan
    inputs : sequence of Variable
        Its connected continuous inputs.
    file : FmuFile
        The unpacked FMU. Its library is not loaded in this process.
    options : InstanceOptions
    n_places : int
        Largest number of FMU states that are saved at the same time.
    limits : Limits

    Raises
    ------
    OptionError
        If this platform cannot isolate FMUs.
    """

    def kernel_entry(self, kernel: KernelEntries[E]) -> E:
        """What the kernel calls it by: requests to its process."""
        return kernel.of_other_process(self)

    # Values

    def remote(self, group: Group, kind: DataType, references: Sequence[int], n: int) -> Any:
        """Variables as the kernel reads or sets them; requested again, they are the same object.

        A step also reads what was read after the step before. If two objects had the same variables, the FMU would be
        read twice where one of them is read no more.
        """
        key = group, kind, tuple(references)
        if found := self._remotes.get(key):
            return found
        room = self._memory.allocate(n * kind.dtype.itemsize)
        place = self._memory.array(room, kind.dtype, n)
        number = self._ask(int, "bind", group, kind, tuple(references), n, room)
        owner, fresh = self.isolated, self.isolated.change - 1
        self._remotes[key] = self._lent.made(
            "fm_remote", owner=owner, number=number, bytes=place.nbytes, place=place, fresh=fresh
        )
        return self._remotes[key]

    def _text(
        self, group: Group, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Callable[[], None]:
        number = self._ask(int, "bind", group, kind, tuple(references), len(values), (0, 0, 0))
        answer: Any = list[str] if kind is DataType.STRING else list[bytes]

        def read() -> None:
            values[:] = self._ask(answer, "transfer", number, None)

        def write() -> None:
            self._ask(answer, "transfer", number, list(values))

        return read if group in READ else write

    def _accessor(
        self, group: Group, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Callable[[], None]:
        if kind.dtype == object:
            return self._text(group, kind, references, values)
        remote = self.remote(group, kind, references, len(values))
        call = self._lent.made("fm_segment", self=remote, values=values)
        transfer = lib.fm_isolated_get if group in READ else lib.fm_isolated_set

        def act() -> None:
            self._mark_time()
            self._check(transfer(call))

        return act

    def getter(
        self, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Callable[[], None]:
        """A function that reads these variables into ``values``."""
        return self._accessor(Group.OUTPUTS, kind, references, values)

    def setter(
        self, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Callable[[], None]:
        """A function that sets these variables from ``values``."""
        group = Group.CONTINUOUS if self._inputs.issuperset(references) else Group.DISCRETE
        return self._accessor(group, kind, references, values)

    def remote_derivative(
        self, unknowns: Sequence[int], knowns: Sequence[int], n_seed: int, n_sensitivity: int
    ) -> Any:
        """A directional derivative as the kernel computes it."""
        sizes = n_seed, n_sensitivity
        rooms = [self._memory.allocate(8 * n) for n in sizes]
        seed, answer = (
            self._memory.array(room, np.float64, n) for room, n in zip(rooms, sizes, strict=True)
        )
        number = self._ask(int, "bind_derivative", tuple(unknowns), tuple(knowns), sizes, rooms)
        return self._lent.made(
            "fm_remote",
            owner=self.isolated,
            number=number,
            place=seed,
            bytes=seed.nbytes,
            answer=answer,
            answer_bytes=answer.nbytes,
        )

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Callable[[], None]:
        """A function that calls ``GetDirectionalDerivative``."""
        remote = self.remote_derivative(unknowns, knowns, len(seed), len(sensitivity))
        call = self._lent.made("fm_derivative", self=remote, seed=seed, sensitivity=sensitivity)

        def act() -> None:
            self._mark_time()
            self._check(lib.fm_isolated_derive(call))

        return act

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets the connected continuous inputs as polynomials."""
        c, n = self.isolated, len(references)
        degree, centre = np.zeros(1, np.intc), np.zeros(1)
        coefficients = np.zeros((MOST_COEFFICIENTS, n))
        self._lent.fill(
            c, source_degree=degree, source_centre=centre, source_coefficients=coefficients
        )

        def set_polynomials(time: float, signal: Signal) -> None:
            assert isinstance(signal, Polynomials)
            orders = len(signal.coefficients)
            derivatives = np.array([signal(time, k) for k in range(orders)])
            degree[0], centre[0] = orders - 1, signal.centre
            coefficients[:orders] = signal.coefficients
            self._mark_time()
            self._check(
                self.table.set_polynomials(
                    c,
                    ffi.NULL,
                    n,
                    orders - 1,
                    ffi.from_buffer("double[]", derivatives),
                    time,
                    self._function,
                )
            )

        return set_polynomials

    # Intervals of clocks

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Callable[[], None]:
        """A function that asks for intervals."""
        number = self._ask(int, "bind_intervals", tuple(clocks))

        def act() -> None:
            found = self._ask(Intervals, "intervals", number)
            for to, values in zip(answers.arrays, found.arrays, strict=True):
                to[:] = values

        return act

    # Modes

    def _enter(self, state: State, experiment: Any = ffi.NULL) -> None:
        self._mark_time()
        self._check(self.table.enter(self.isolated, STATES[state], experiment, self._function))

    def enter_configuration_mode(self) -> None:
        """``EnterConfigurationMode``."""
        self._enter(State.CONFIGURATION_MODE)

    def exit_configuration_mode(self) -> None:
        """``ExitConfigurationMode``."""
        self._enter(State.INSTANTIATED)

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``EnterInitializationMode``; the host has the tolerance from the plan."""
        del tolerance
        experiment = ffi.new("fm_experiment *", (start, stop or 0.0, stop is not None))
        self._enter(State.INITIALIZATION_MODE, experiment)

    def enter_event_mode(self) -> None:
        """``EnterEventMode``, or what leads to it."""
        self._enter(State.EVENT_MODE)

    def enter_step_mode(self) -> None:
        """``EnterStepMode``, or what leads to it."""
        self._enter(State.STEP_MODE)

    def update_discrete_states(self) -> UpdateAnswer:
        """``UpdateDiscreteStates``."""
        answer = ffi.new("fm_update *", (inf, 0, 0))
        self._mark_time()
        self._check(self.table.update(self.isolated, answer, self._function))
        return UpdateAnswer(
            bool(answer.wants_update), bool(answer.terminate), answer.next_event_time
        )

    # Time

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Step from ``time`` by ``size``."""
        answer = ffi.new("fm_answer *")
        self._mark_time()
        status = self.table.do_step(self.isolated, time, size, answer, self._function)
        if status != lib.FM_DISCARD:
            self._check(status)
            return None
        return StepAnswer(
            answer.last_successful_time,
            bool(answer.discarded),
            bool(answer.terminate),
            bool(answer.early),
            bool(answer.event),
            self.messages(),
        )

    def messages(self) -> tuple[str, ...]:
        """The last messages that the FMU has logged, oldest first."""
        return self._ask(tuple[str, ...], "messages")

    def save(self, place: int) -> None:
        """Save the FMU state in a place, in the host."""
        self._mark_time()
        self._check(self.table.save(self.isolated, place, self._function))

    def restore(self, place: int) -> None:
        """Restore the FMU state from a place."""
        self._mark_time()
        self._check(self.table.restore(self.isolated, place, self._function))

    def terminate(self) -> None:
        """``Terminate``."""
        self._enter(State.TERMINATED)


def _asked(name: str) -> Act:
    def ask(self: IsolatedInstance, *arguments: Any) -> Any:
        return self._ask(ANSWERS[name], name, *arguments)

    return ask


complete(IsolatedInstance, _asked)
