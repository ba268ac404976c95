"""An FMU in a process of its own, as an instance."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart.process import Exit, Process
from fmimaster.errors import FmuLostError
from fmimaster.fmu.instance import InstanceOptions, Signal, StepAnswer, UpdateAnswer
from fmimaster.fmu.library import FmuFile
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import InstancePlan
from fmimaster.program.polynomial import MOST_COEFFICIENTS, Polynomials
from fmimaster.run.isolated.host import Hosted, serve
from fmimaster.run.isolated.memory import SharedMemory
from fmimaster.run.isolated.messages import Receiver
from fmimaster.run.native.header import STATES
from fmimaster.run.native.instances import READ
from fmimaster.run.native.isolated import RemoteInstance
from fmimaster.system.model import DataType, Variable
from fmimaster.system.states import State

log = logging.getLogger("fmimaster")

LOADING_TIMEOUT = 30.0
"""Wall time in s in which an FMU must be loaded and instantiated, unless the deadline for calls is longer."""

FREEING_TIMEOUT = 5.0
"""Wall time in s in which an FMU must be freed; then its process is ended."""

_GIB = 1 << 30

_CALLS = {
    lib.FM_REQUEST_DERIVE: "GetDirectionalDerivative",
    lib.FM_REQUEST_STEP: "DoStep",
    lib.FM_REQUEST_SAVE: "GetFMUState",
    lib.FM_REQUEST_RESTORE: "SetFMUState",
}
"""Request → function, for hosts that call in Python."""


_TALKS = {
    "instantiate": "instantiation",
    "free": "FreeInstance",
    "serialized": "SerializeFMUState",
    "deserialize": "DeserializeFMUState",
    "reset": "Reset",
    "transfer": "the transfer of text",
}
"""Request through the channel → function, or what the host does."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process of an FMU may take."""

    call_timeout: float | None = None
    """Wall time in s of a call; None for no limit."""
    memory: int | None = None
    """Bytes that the FMU may allocate; None for no limit."""


class IsolatedInstance(RemoteInstance):
    """An FMU in a process of its own, its host.

    Calls that only set are collected, and sent with the next one that needs an answer. Outputs that were read after the
    last step are read with the next one. So the FMU gets the calls of an instance in this process, in their order.

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
    ModelError
        If the FMU cannot be loaded or instantiated.
    FmuLostError
        If its process ends meanwhile.
    OptionError
        If this platform cannot isolate FMUs.
    """

    def __init__(
        self,
        planned: InstancePlan,
        inputs: Sequence[Variable],
        file: FmuFile,
        options: InstanceOptions,
        *,
        n_places: int,
        limits: Limits = Limits(),
    ) -> None:
        super().__init__(planned.name, planned.model)
        self._limits = limits
        self._options = options
        self._inputs = frozenset(v.value_reference for v in inputs)
        self._names: dict[int, str] = {}
        """Functions of the FMU by the addresses of their names in the host."""
        self._calling = "instantiation"
        self._deadline = inf
        self._posted = 0
        """The message to which the deadline belongs."""
        self._lost: FmuLostError | None = None
        self._error: BaseException | None = None
        self._kept: list[Any] = []
        self._is_freed = False
        self._memory = SharedMemory.new()
        try:
            self._share(sum(v.size for v in inputs))
            self._start(planned, tuple(inputs), file, options, n_places)
        except BaseException:
            self._memory.close()
            raise
        try:
            self._names = self._answer(
                max(LOADING_TIMEOUT, limits.call_timeout or 0.0), "instantiate"
            )
        except BaseException:
            self.free()
            raise

    def _share(self, n_inputs: int) -> None:
        """The memory that both processes see from the start, and the table of functions."""
        memory, c = self._memory, ffi.new("fm_isolated *")
        self.isolated = c
        self._rooms = [memory.allocate(ffi.sizeof("fm_message"))] + [
            memory.allocate(8 * n_inputs * MOST_COEFFICIENTS) for _ in range(2)
        ]
        (begin, length, at), *rooms = self._rooms
        part = memory.part(begin, length)
        c.message = ffi.cast("fm_message *", ffi.from_buffer(part) + at)
        arrays = [memory.array(room, np.float64, n_inputs * MOST_COEFFICIENTS) for room in rooms]
        c.derivatives, c.coefficients = (ffi.from_buffer("double[]", a) for a in arrays)
        self._now = np.array([np.nan, inf])
        now = ffi.from_buffer("double[]", self._now)
        c.at, c.kept_from = now, now + 1
        self._handle = ffi.new_handle(self)
        c.self, c.look = self._handle, lib.fm_python_look
        self.table = ffi.new("fm_instance *")
        lib.fm_isolated_table(c, self.table)
        self._function = ffi.new("const char **")
        self._kept += [part, *arrays, now]

    def _start(
        self,
        planned: InstancePlan,
        inputs: tuple[Variable, ...],
        file: FmuFile,
        options: InstanceOptions,
        n_places: int,
    ) -> None:
        receiving, sending = os.pipe()
        os.set_blocking(receiving, False)
        self._receiver = Receiver(self.name, receiving, options.call_log)
        hosted = Hosted(
            planned,
            inputs,
            file.folder,
            replace(options, update_callback=None, call_log=None),
            options.call_log is not None,
            log.getEffectiveLevel(),
            n_places,
            self._rooms[0],
            (self._rooms[1], self._rooms[2]),
        )
        try:
            self._process = Process(
                serve,
                (hosted,),
                descriptors=[self._memory.descriptor, sending],
                memory_limit=self._limits.memory,
            )
        except BaseException:
            self._receiver.close()
            raise
        finally:
            os.close(sending)

    # Messages

    def look(self) -> bool:
        """Log what the host has sent; returns whether it is lost. Called by the kernel while it waits."""
        self._receiver.receive()
        self._receiver.print(self._process.read_output())
        message = self.isolated.message
        asked = message.asked.count
        if asked == message.answered.count:
            return False
        if self._posted != asked:  # the first look at this message
            self._posted = asked
            timeout = self._limits.call_timeout
            self._deadline = inf if timeout is None else monotonic() + timeout
        return self._is_lost()

    def _is_lost(self) -> bool:
        end = self._process.ended()
        if end is None and monotonic() >= self._deadline:
            self._lose(self._process.kill(), is_late=True)
        elif end is not None:
            self._lose(end)
        return self._lost is not None

    def _lose(self, end: Exit, is_late: bool = False) -> None:
        """The error of this and all later calls."""
        self._receiver.receive()
        self._receiver.print(self._process.read_output(), is_last=True)
        self.isolated.is_lost = 1
        timeout = self._limits.call_timeout
        how, advice = (
            end.how,
            "Run it with debug_logging (--debug-logging), or ask the FMU's vendor.",
        )
        if is_late:
            limit = (
                max(LOADING_TIMEOUT, timeout or 0.0) if self._calling == "instantiate" else timeout
            )
            how = f"did not answer within {limit:g} s and was ended"
            advice = "If it only needs more time: call_timeout (--call-timeout)."
        elif self._limits.memory is not None:
            advice = (
                f"Allocations beyond its memory limit of {self._limits.memory / _GIB:.3g} GiB fail, which may be the "
                "reason: memory_limit (--memory-limit)."
            )
        function, where = self._present_call()
        self._lost = FmuLostError(
            f"The process of '{self.name}' {how}, in {function}{where}. {advice}",
            how=how,
            signal="" if is_late else end.signal,
            instance=self.name,
            function=function,
            time=self._time(),
        )

    def _time(self) -> float | None:
        return self.clock()

    def _present_call(self) -> tuple[str, str]:
        """The function that was called last, with the time and the step."""
        m, prefix = self.isolated.message, f"fmi{self.model.fmi_version[0]}"
        time = self._time()
        where = "" if time is None else f" at t = {time:.12g} s"
        if self._calling and m.done >= m.n - 1:
            name = _TALKS.get(self._calling, self._calling)
            return (prefix + name if name[0].isupper() else name), where
        request = m.requests[min(m.done, lib.FM_MOST_REQUESTS - 1)]
        name = self._names.get(m.function) or _CALLS.get(request.what, "")
        if request.what == lib.FM_REQUEST_STEP:
            name, where = "DoStep", f"{where} (step {request.size:.6g} s)"
        return prefix + name, where

    def raise_failure(self) -> NoReturn:
        """Raise the error of the last call that failed."""
        if self._lost is not None:
            raise self._lost
        if self._error is None:
            _, self._error = self._received(inf)
        error, self._error = self._error, None
        assert error is not None
        raise error

    def _check(self, status: int) -> None:
        if status > lib.FM_WARNING or status < 0:
            self.raise_failure()

    def _ask(self, name: str, *arguments: Any) -> Any:
        """A call in Python in the host."""
        return self._answer(self._limits.call_timeout or inf, name, *arguments)

    def _answer(self, timeout: float, name: str, *arguments: Any) -> Any:
        self._mark_time()
        self._calling = name
        try:
            if name != "instantiate":  # for which the host waits at its start
                self._check(lib.fm_isolated_talk(self.isolated))
            with suppress(OSError):  # it has ended: that is found out below
                self._process.channel.send((name, arguments))
            self._deadline = monotonic() + timeout
            is_value, value = self._received(self._deadline)
        finally:
            lib.fm_isolated_talked(self.isolated)
            self._calling = ""
            self._deadline = inf
            self._posted = 0
        if not is_value:
            raise value
        return value

    def _received(self, deadline: float) -> tuple[bool, Any]:
        """What comes through the channel next; what it logs meanwhile is logged."""
        process, poll = self._process, select.poll()
        for descriptor in (
            process.channel.fileno(),
            process.report,
            process.output,
            self._receiver.descriptor,
        ):
            poll.register(descriptor, select.POLLIN)
        while True:
            left = deadline - monotonic()
            ready = dict(poll.poll(None if left == inf else max(left, 0.0) * 1000.0 + 1.0))
            self._receiver.receive()
            self._receiver.print(process.read_output())
            for descriptor in (process.output, self._receiver.descriptor):
                if ready.get(descriptor, select.POLLIN) & ~select.POLLIN:
                    poll.unregister(descriptor)  # closed
            if process.channel.fileno() in ready:
                try:
                    answer: tuple[bool, Any] = process.channel.receive()
                    self._receiver.receive()
                    return answer
                except EOFError:
                    self._lose(
                        process.kill()
                        if process.ended() is None
                        else process.ended() or process.kill()
                    )
            elif self._is_lost():
                pass
            if self._lost is not None:
                raise self._lost

    def _mark_time(self) -> None:
        """The time of this instance for the host, if the reference interpreter executes."""
        time = self.clock()
        self._now[:] = np.nan if time is None else time, self.kept_from()

    # Values

    def remote(self, group: Group, kind: DataType, references: Sequence[int], n: int) -> Any:
        """Variables as the kernel reads or sets them."""
        room = self._memory.allocate(n * kind.dtype.itemsize)
        place = self._memory.array(room, kind.dtype, n)
        number = self._ask("bind", group, kind, tuple(references), n, room)
        remote = ffi.new(
            "fm_remote *", {"owner": self.isolated, "number": number, "bytes": place.nbytes}
        )
        remote.place = ffi.from_buffer(place)
        remote.fresh = self.isolated.change - 1
        self._kept += [place, remote]
        return remote

    def _text(
        self, group: Group, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Callable[[], None]:
        number = self._ask("bind", group, kind, tuple(references), len(values), (0, 0, 0))

        def read() -> None:
            values[:] = self._ask("transfer", number, None)

        def write() -> None:
            self._ask("transfer", number, list(values))

        return read if group in READ else write

    def _accessor(
        self, group: Group, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Callable[[], None]:
        if kind.dtype == object:
            return self._text(group, kind, references, values)
        call = ffi.new("fm_segment *")
        call.self = self.remote(group, kind, references, len(values))
        call.values = here = ffi.from_buffer(values)
        self._kept += [call, here]
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
        places = [
            self._memory.array(room, np.float64, n) for room, n in zip(rooms, sizes, strict=True)
        ]
        number = self._ask("bind_derivative", tuple(unknowns), tuple(knowns), sizes, rooms)
        remote = ffi.new("fm_remote *", {"owner": self.isolated, "number": number})
        remote.place, remote.answer = (ffi.from_buffer(place) for place in places)
        remote.bytes, remote.answer_bytes = (place.nbytes for place in places)
        self._kept += [*places, remote]
        return remote

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Callable[[], None]:
        """A function that calls ``GetDirectionalDerivative``."""
        call = ffi.new("fm_derivative *")
        call.self = self.remote_derivative(unknowns, knowns, len(seed), len(sensitivity))
        call.seed, call.sensitivity = here = (
            ffi.from_buffer("double[]", seed),
            ffi.from_buffer("double[]", sensitivity),
        )
        self._kept += [call, *here]

        def act() -> None:
            self._mark_time()
            self._check(lib.fm_isolated_derive(call))

        return act

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets the connected continuous inputs as polynomials."""
        c, n = self.isolated, len(references)
        degree, centre = np.zeros(1, np.intc), np.zeros(1)
        coefficients = np.zeros((MOST_COEFFICIENTS, n))
        kept = [
            ffi.from_buffer("int[]", degree),
            ffi.from_buffer("double[]", centre),
            ffi.from_buffer("double[]", coefficients),
        ]
        c.source_degree, c.source_centre, c.source_coefficients = kept
        self._kept += kept

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
        said: tuple[str, ...] = self._ask("messages")
        return said

    def save(self, place: int) -> None:
        """Save the FMU state in a place, in the host."""
        self._mark_time()
        self._check(self.table.save(self.isolated, place, self._function))

    def restore(self, place: int) -> None:
        """Restore the FMU state from a place."""
        self._mark_time()
        self._check(self.table.restore(self.isolated, place, self._function))

    def serialized(self) -> bytes:
        """The present FMU state as bytes."""
        state: bytes = self._ask("serialized")
        return state

    def deserialize(self, state: bytes) -> None:
        """Restore a state from bytes."""
        self._ask("deserialize", state)

    def reset(self) -> None:
        """``Reset``."""
        self._ask("reset")

    # The end

    def terminate(self) -> None:
        """``Terminate``."""
        self._enter(State.TERMINATED)

    def abandon(self) -> None:
        """End the process although a call has not returned; for any thread."""
        self._process.kill()

    def free(self) -> None:
        """Free the FMU, and end its process; a second call has no effect. Never raises."""
        if self._is_freed:
            return
        self._is_freed = True
        try:
            if self._lost is None:
                self._answer(FREEING_TIMEOUT, "free")
        except FmuLostError as error:
            log.warning("%s", str(error))  # a record that keeps the error keeps this instance
        except Exception as error:
            log.warning("'%s' cannot be freed: %s", self.name, str(error))
        finally:
            self._process.kill()
            self._receiver.receive()
            self._receiver.print(self._process.read_output(), is_last=True)
            self._process.close()
            self._receiver.close()
            self._memory.close()


@ffi.def_extern("fm_python_look", error=1)  # type: ignore[untyped-decorator]
def _look(instance: Any) -> int:
    return int(ffi.from_handle(instance).look())
