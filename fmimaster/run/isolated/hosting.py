"""The process of an isolated FMU, as the process of the run sees it: its start, messages to it, its loss, and its end."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Any, NoReturn

import numpy as np

from fmimaster.apart.process import Exit, Process
from fmimaster.errors import FmuLostError
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.library import FmuFile
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import InstancePlan
from fmimaster.program.polynomial import MOST_COEFFICIENTS
from fmimaster.run.isolated.host import Hosted, serve
from fmimaster.run.isolated.loss import LOADING_TIMEOUT, Limits, PresentCall, lost_error
from fmimaster.run.isolated.memory import SharedMemory
from fmimaster.run.isolated.messages import Receiver
from fmimaster.run.native.isolated import RemoteInstance
from fmimaster.system.model import DataType, Variable

log = logging.getLogger("fmimaster")

FREEING_TIMEOUT = 5.0
"""Wall time in s in which an FMU must be freed; then its process is ended."""


class HostedInstance(RemoteInstance):
    """What an isolated FMU needs in all calls: its process, messages to it, and the error if it is lost."""

    def __init__(
        self,
        planned: InstancePlan,
        inputs: Sequence[Variable],
        file: FmuFile,
        options: InstanceOptions,
        *,
        n_places: int,
        limits: Limits,
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
        self._remotes: dict[tuple[Group, DataType, tuple[int, ...]], Any] = {}
        """Variables → what reads or sets them."""
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
            replace(options, update_callback=None, partition_callbacks=None, call_log=None),
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

    def give_up(self, error: BaseException) -> None:
        """End the process in the middle of a call, because of an error of this process, which the call then raises."""
        self._error = error
        end = self._process.kill()
        with suppress(Exception):
            self._lose(end)
        self.isolated.is_lost = 1

    def _is_lost(self) -> bool:
        end = self._process.ended()
        if end is None and monotonic() >= self._deadline:
            self._lose(self._process.kill(), is_late=True)
        elif end is not None:
            self._lose(end)
        return self._lost is not None

    def _lose(self, end: Exit, is_late: bool = False) -> None:
        """Keep the error of this and all later calls."""
        self._receiver.receive()
        self._receiver.print(self._process.read_output(), is_last=True)
        self.isolated.is_lost = 1
        call = PresentCall(self.isolated.message, self._calling, self._names, self.clock())
        self._lost = lost_error(self.name, self.model, call, self._limits, end, is_late)

    def raise_failure(self) -> NoReturn:
        """Raise the error of the last call that failed."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._lost is not None:
            raise self._lost
        _, error = self._received(inf)
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
        self._drop_errors()
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

    def _drop_errors(self) -> None:
        """Errors that nobody has raised are no answers: of several FMUs that fail at the same time, one ends the run."""
        channel, poll = self._process.channel, select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        with suppress(EOFError, OSError):
            while poll.poll(0):
                channel.receive()

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
                    self._lose(process.kill())
            else:
                self._is_lost()
            if self._lost is not None:
                raise self._lost

    def _mark_time(self) -> None:
        """The time of this instance for the host, if the reference interpreter executes."""
        time = self.clock()
        self._now[:] = np.nan if time is None else time, self.kept_from()

    # The end

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
def _look(handle: Any) -> int:
    instance: HostedInstance = ffi.from_handle(handle)
    try:
        return int(instance.look())
    except BaseException as error:  # of a log handler: it ends the run as in one process
        instance.give_up(error)
        return 1
