"""The host of an isolated FMU: a process that does what the process of the run requests.

Steps and values are requested through shared memory and served in C (``kernel/host.c``); all else comes as a Python
call through the channel.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart.exit import crash_of
from fmimaster.apart.plain import encoded, plain_error
from fmimaster.apart.server import Channel
from fmimaster.base.data import dataclass
from fmimaster.fmu.around import Act, complete
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.library import FmuFile
from fmimaster.inputs.polynomial import MOST_COEFFICIENTS
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment, make_layout
from fmimaster.plan.links import Links
from fmimaster.plan.plan import InstancePlan, Instances, Plan
from fmimaster.plan.visits import Visits
from fmimaster.run.executor import make_store
from fmimaster.run.isolated.memory import OwnArrays, Sender, SentCalls, SharedMemory, wakers
from fmimaster.run.native.entries import make_entry
from fmimaster.run.native.fmu_entry import make_update_callback
from fmimaster.run.native.header import Context, LentMemory, derivative_fields
from fmimaster.run.native.instances import READ, KernelEntry
from fmimaster.run.rows import Registers
from fmimaster.system.clocks import Intervals
from fmimaster.system.declarations import Interface
from fmimaster.system.model import DataType, Variable

Room = tuple[int, int, int]
"""A place in shared memory."""

_LINE_BUFFERED = 1
"""_IOLBF of <stdio.h> on Linux and macOS."""
_NOT_BUFFERED = 4
"""_IONBF of <stdio.h> on Windows, whose C library has no buffers of lines."""


class Started(NamedTuple):
    """What an instance is made from, wherever its process is."""

    planned: InstancePlan
    inputs: tuple[Variable, ...]
    """Continuous inputs that are connected."""
    options: InstanceOptions
    logs_calls: bool
    log_level: int
    n_places: int
    """Largest number of FMU states that are saved at the same time."""
    memory_limit: int | None


@dataclass(frozen=True, slots=True)
class Hosted:
    """What a host is started for."""

    started: Started
    folder: Path
    """The unpacked FMU."""
    memory: str
    """Name of the shared memory."""
    message: Room
    polynomials: tuple[Room, Room]
    """For derivatives, and for coefficients."""


def serve(channel: Channel, descriptors: list[int], hosted: Hosted) -> None:
    """Serve until the process of the run frees the instance, or ends."""
    messages, *memory = descriptors
    host = Host(channel, SharedMemory.of_run(hosted.memory, memory), messages, hosted)
    host.serve()


def serve_linked(channel: Channel, descriptors: list[int], hosted: Hosted) -> None:
    """The same for a run on another machine: the last descriptor is the socket through which it asks for steps."""
    messages, *memory, link = descriptors
    host = Host(channel, OwnArrays.of_run(hosted.memory, memory), messages, hosted)
    host.host.link = host.made("fm_link", socket=link)
    host.serve()


class Host(LentMemory):
    """The instance, and what C needs to call it. Calls that are not defined here are made on the instance."""

    def __init__(
        self, channel: Channel, memory: SharedMemory, messages: int, hosted: Hosted
    ) -> None:
        super().__init__()
        self._channel = channel
        self._memory = memory
        self._hosted = hosted
        self._transfers: dict[int, tuple[Callable[[], None], NDArray[Any]]] = {}
        """Of text and binaries, by their numbers."""
        self._intervals: list[tuple[Intervals, Callable[[], None]]] = []
        """Of clocks, by their numbers."""
        self._by_reference: dict[int, Variable] = {}
        self._segments: list[Any] = []
        self._sizes: list[int] = []
        self._derivatives: list[Any] = []
        begin, length, at = hosted.message
        part = self.lent(memory.part(begin, length))
        self.message = ffi.cast("fm_message *", ffi.from_buffer(part) + at)
        self.host = self.made("fm_host", message=self.message)
        self.host.wakers.asked, self.host.wakers.answered = wakers(hosted.memory)
        self._sender = Sender(messages, channel.token, self._count)
        log = logging.getLogger("fmimaster")
        log.addHandler(self._sender)
        log.setLevel(hosted.started.log_level)
        _keep_no_output()
        self._file: FmuFile | None = None
        self._instance: Instance
        self._entry: KernelEntry

    def _count(self) -> None:
        self.message.logged += 1

    def serve(self) -> None:
        """Do what is requested, in C as long as it can be done there."""
        is_first = True
        while True:
            status = lib.FM_OK if is_first else lib.fm_host_serve(self.host)
            if self._has_lost_run:
                return
            is_talk = is_first or (
                self.message.n > 0 and self.message.requests[self.message.n - 1].what == lib.FM_TALK
            )
            answer: tuple[bool, bytes]
            try:
                name, arguments = self._channel.receive() if is_talk else ("", ())
                if status != lib.FM_OK:
                    self._raise_failure(status)
                answer = True, encoded(getattr(self, name)(*arguments))
            except Exception as error:
                if (crash := crash_of(error)) is not None:
                    crash.repeat()
                answer = False, plain_error(error)
            if is_talk and not is_first:  # the answer itself comes through the channel
                lib.fm_host_answer(self.host, status)
            self._channel.send(encoded(answer))
            if not is_talk:  # an error, which the answer announces
                lib.fm_host_answer(self.host, lib.FM_ERROR)
            is_first = False
            if is_talk and name == "free":
                return

    @property
    def _has_lost_run(self) -> bool:
        """Whether there is a link that has ended."""
        link = self.host.link
        if link and link.is_damaged:
            sys.stderr.write("The host of the FMU got a message that does not fit it, and ends.\n")
        return bool(link) and bool(link.is_damaged or link.is_closed)

    def _raise_failure(self, status: int) -> None:
        request = self.message.requests[self.message.done]
        address = ffi.cast("char *", self.message.function)
        function = ffi.string(address).decode() if self.message.function else ""
        self._entry.raise_failure(function, status, request.size)

    # Requests from the channel

    def instantiate(self) -> dict[int, str]:
        """Load the FMU and make its instance; returns the names of its functions by their addresses here."""
        started = self._hosted.started
        planned, options = started.planned, started.options
        self._file = FmuFile.unpacked(planned.source, self._hosted.folder, planned.model)
        if started.logs_calls:
            options = replace(options, call_log=SentCalls(self._sender))
        elif options.polynomial_inputs:
            options = replace(options, update_callback=make_update_callback())
        if planned.model.interface is Interface.SCHEDULED_EXECUTION:
            from fmimaster.run.native.scheduled import make_partition_callbacks  # few FMUs need it

            options = replace(options, partition_callbacks=make_partition_callbacks())
        self._instance = self._file.instantiate(planned.name, options)
        return self._make_entry()

    def _make_entry(self) -> dict[int, str]:
        """What the kernel needs to call an instance: the plan of a system that has it alone."""
        planned, inputs, *_ = self._hosted.started
        n_places = self._hosted.started.n_places
        layout = make_layout([{Group.CONTINUOUS: inputs}] if inputs else [{}])
        plan = Plan(Instances([planned]), Links(), (0,), Visits(), Visits(), layout, {}, (), {})
        store, registers = make_store(plan, 0, 0), Registers(1, n_places, 0, 0.0)
        at = self.message
        registers.at = _doubles(ffi.addressof(at, "at"))
        registers.kept_from = _doubles(ffi.addressof(at, "kept_from"))
        context = Context(plan, store, registers)
        places = np.zeros(max(n_places, 1), np.uintp)
        self._entry = make_entry(context, 0, self._instance, places, {})
        self._context = context
        n, courses = sum(v.size for v in inputs), store.courses
        derivatives, coefficients = (
            self._memory.array(room, np.float64, n * MOST_COEFFICIENTS)
            for room in self._hosted.polynomials
        )
        self.fill(
            self.host,
            instance=self._entry.entry,
            references=[v.value_reference for v in inputs],
            n_inputs=n,
            n_places=n_places,
            n_coefficients=MOST_COEFFICIENTS,
            values=derivatives,
            source_values=coefficients,
            source_degree=courses.degree,
            source_centre=courses.centre,
            source_coefficients=courses.coefficients[0],
        )
        return {
            int(ffi.cast("uintptr_t", name)): ffi.string(name).decode()
            for version in (lib.fm_fmi2_name, lib.fm_fmi3_name)
            for k in range(lib.FM_FUNCTIONS)
            if (name := version(k))
        }

    def bind(
        self, group: Group, kind: DataType, references: Sequence[int], n: int, room: Room
    ) -> int:
        """Make a call ready that reads or sets variables; returns its number."""
        number = len(self._segments)
        if kind.dtype == object:
            values = np.full(n, "" if kind is DataType.STRING else b"", dtype=object)
            make = self._instance.getter if group in READ else self._instance.setter
            self._transfers[number] = make(kind, references, values), values
            self._append(ffi.NULL, 0)
            return number
        values = self._memory.array(room, kind.dtype, n)
        n_variables, own = len(references), list(references)
        call = self.made("fm_segment", n=n_variables, size=n, references=own, values=values)
        segment = Segment(kind, 0, n, self._variables(references))
        self._entry.bind(call[0], group, segment, values)
        self._append(call, values.nbytes)
        return number

    def _append(self, segment: Any, size: int) -> None:
        self._segments.append(segment)
        self._sizes.append(size)
        n = len(self._segments)
        self.fill(self.host, segments=self._segments, sizes=self._sizes, n_segments=n)

    def bind_derivative(
        self, unknowns: Sequence[int], knowns: Sequence[int], sizes: tuple[int, int], rooms: Any
    ) -> int:
        """Make the call ready that computes a directional derivative; returns its number."""
        seed, sensitivity = (
            self._memory.array(room, np.float64, n) for room, n in zip(rooms, sizes, strict=True)
        )
        fields = derivative_fields(unknowns, knowns, sensitivity, seed)
        call = self.made("fm_derivative", **fields)
        self._entry.bind_derivative(call[0], self._variables(unknowns), self._variables(knowns))
        self._derivatives.append(call)
        n = len(self._derivatives)
        self.fill(self.host, derivatives=self._derivatives, n_derivatives=n)
        return n - 1

    def _variables(self, references: Sequence[int]) -> tuple[Variable, ...]:
        if not self._by_reference:
            self._by_reference.update(
                (v.value_reference, v) for v in self._hosted.started.planned.model.variables
            )
        return tuple(self._by_reference[reference] for reference in references)

    def transfer(self, number: int, values: list[Any] | None) -> list[Any]:
        """Read text or binaries, or set them to values."""
        act, here = self._transfers[number]
        if values is not None:
            here[:] = values
        act()
        return list(here)

    def bind_intervals(self, clocks: Sequence[int]) -> int:
        """Make a call ready that asks for the intervals of clocks; returns its number."""
        answers = Intervals.of(len(clocks))
        self._intervals.append((answers, self._instance.intervals(clocks, answers)))
        return len(self._intervals) - 1

    def intervals(self, number: int) -> Intervals:
        """Ask for intervals."""
        answers, ask = self._intervals[number]
        ask()
        return answers

    def messages(self) -> tuple[str, ...]:
        """What the FMU has logged last."""
        return self._entry.messages()

    def free(self) -> None:
        """Free the instance, unload its library."""
        if self._file is not None:
            self._file.close()


def _keep_no_output() -> None:
    """Let the C library write what the FMU prints at once: it would be lost in a crash."""
    if sys.platform == "win32":
        c, how = ctypes.CDLL("ucrtbase"), _NOT_BUFFERED
        c.__acrt_iob_func.restype = ctypes.c_void_p
        stream = ctypes.c_void_p(c.__acrt_iob_func(1))
    else:
        c, how = ctypes.CDLL(None), _LINE_BUFFERED
        name = "__stdoutp" if sys.platform == "darwin" else "stdout"
        stream = ctypes.c_void_p.in_dll(c, name)
    c.setvbuf(stream, None, how, ctypes.c_size_t(0))


def _forwarded(name: str) -> Act:
    def call(self: Host, *arguments: Any) -> Any:
        return getattr(self._instance, name)(*arguments)

    return call


complete(Host, _forwarded)
REQUESTS = frozenset(name for name in vars(Host) if not name.startswith("_")) - {"serve"}
"""Calls in Python that a run may request."""


def _doubles(address: Any) -> NDArray[np.float64]:
    """A double of the message as an array of one element."""
    return np.frombuffer(ffi.buffer(address, ffi.sizeof("double")), np.float64)
