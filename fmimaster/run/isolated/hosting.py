"""The process of an isolated FMU, as the process of the run sees it: its start, messages to it, its loss, and its end."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from fmimaster.apart.exit import HowEnded
from fmimaster.apart.plain import DamagedError, decoded, error_of
from fmimaster.apart.process import Process
from fmimaster.apart.streams import pipe
from fmimaster.base.errors import FmuLostError
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.library import FmuFile
from fmimaster.inputs.polynomial import MOST_COEFFICIENTS
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import InstancePlan
from fmimaster.run.isolated.host import Hosted, Started, serve
from fmimaster.run.isolated.loss import (
    FREEING_TIMEOUT,
    LOADING_TIMEOUT,
    Deadline,
    Limits,
    Loss,
    PresentCall,
    lost_error,
)
from fmimaster.run.isolated.memory import (
    OwnArrays,
    Receiver,
    SharedMemory,
    close_wakers,
    wakers,
)
from fmimaster.run.native.header import LentMemory
from fmimaster.system.model import DataType, Variable

if TYPE_CHECKING:
    from fmimaster.run.isolated.remote import RemoteProcess

log = logging.getLogger("fmimaster")

_NEVER = Deadline(inf)
_PERIOD = 1.0
"""Time in s after which a host that has not answered is looked at."""

T = TypeVar("T")

SENDING_TIMEOUT = 30.0
"""Time in s in which an answer that is announced must come. One that does not was written elsewhere: the FMU has replaced
the descriptor."""


class HostedInstance(Instance):
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
        addresses: Sequence[str] = (),
    ) -> None:
        super().__init__(planned.name, planned.model)
        self._limits = limits
        self._options = options
        self._inputs = frozenset(v.value_reference for v in inputs)
        self._names: dict[int, str] = {}
        """Functions of the FMU by the addresses of their names in the host."""
        self._calling = "instantiation"
        self._deadline = _NEVER
        self._posted = 0
        """The message to which the deadline belongs."""
        self._lost: FmuLostError | None = None
        self._error: BaseException | None = None
        self._lent = LentMemory()
        self._remotes: dict[tuple[Group, DataType, tuple[int, ...]], Any] = {}
        """Variables → what reads or sets them."""
        self._is_freed = False
        self._memory = (OwnArrays if addresses else SharedMemory).new()
        self._events: Sequence[int] = ()
        self._process: Process | RemoteProcess
        self._remote: RemoteProcess | None = None
        """Its process, if that is on another machine."""
        try:
            self._share(sum(v.size for v in inputs))
            started = Started(
                planned,
                tuple(inputs),
                replace(options, update_callback=None, partition_callbacks=None, call_log=None),
                options.call_log is not None,
                log.getEffectiveLevel(),
                n_places,
                limits.memory,
            )
            if addresses:
                self._start_there(started, addresses)
            else:
                self._start(started, file.folder)
        except BaseException:
            self._memory.close()
            close_wakers(self._events)
            raise

    def load(self) -> None:
        """Load the library and make the instance; it can be abandoned meanwhile.

        Raises
        ------
        ModelError
            If the FMU cannot be loaded or instantiated.
        FmuLostError
            If its process ends meanwhile.
        """
        try:
            own_time = self._own_time(max(LOADING_TIMEOUT, self._limits.call_timeout or 0.0))
            self._names = self._answer(dict[int, str], own_time, "instantiate")
        except BaseException as error:
            self.free()
            if self._remote is not None:
                self._remote.mark(error)
            raise

    def _share(self, n_inputs: int) -> None:
        """The memory that both processes see from the start, and the table of functions."""
        memory = self._memory
        self._rooms = [memory.allocate(ffi.sizeof("fm_message"))] + [
            memory.allocate(8 * n_inputs * MOST_COEFFICIENTS) for _ in range(2)
        ]
        (begin, length, at), *rooms = self._rooms
        part = self._lent.lent(memory.part(begin, length))
        derivatives, coefficients = (
            memory.array(room, np.float64, n_inputs * MOST_COEFFICIENTS) for room in rooms
        )
        self._now = np.array([np.nan, inf])
        self.isolated = self._lent.made(
            "fm_isolated",
            message=ffi.cast("fm_message *", ffi.from_buffer(part) + at),
            derivatives=derivatives,
            coefficients=coefficients,
            at=self._now,
            kept_from=self._now[1:],
            n_inputs=n_inputs,
            look=lib.fm_python_look,
            self=self._lent.lent(ffi.new_handle(self)),
        )
        self._events = wakers(memory.name)
        self.isolated.wakers.asked, self.isolated.wakers.answered = self._events
        self.table = ffi.new("fm_instance *")
        lib.fm_isolated_table(self.isolated, self.table)
        self._function = ffi.new("const char **")

    def _start(self, started: Started, folder: Path) -> None:
        receiving, sending = pipe()
        rooms = self._rooms[1], self._rooms[2]
        hosted = Hosted(started, folder, self._memory.name, self._rooms[0], rooms)
        try:
            self._process = Process(
                serve,
                (hosted,),
                descriptors=[sending, *self._memory.descriptors],
                memory_limit=started.memory_limit,
            )
        except BaseException:
            receiving.close()
            raise
        finally:
            os.close(sending)
        token, calls = self._process.token, self._options.call_log
        self._receiver = Receiver(self.name, receiving, token, calls)

    def _start_there(self, started: Started, addresses: Sequence[str]) -> None:
        """Start the process by a host on another machine."""
        from fmimaster.run.isolated.remote import RemoteProcess  # few runs need it

        link = self.isolated.link = self._lent.made("fm_link")
        process = self._process = self._remote = RemoteProcess(addresses, started, link)
        self._receiver = Receiver(self.name, process.log, process.token, self._options.call_log)

    # Messages

    def look(self) -> bool:
        """Log what the host has sent; returns whether it is lost. Called by the kernel while it waits."""
        try:
            self._log()
        except DamagedError as error:
            self._lose_damaged(error)
            return True
        message, link = self.isolated.message, self.isolated.link
        if link and link.is_damaged:
            self._lose_damaged(DamagedError("a message that is not what was asked for"))
            return True
        asked = message.asked.count
        if asked == message.answered.count:
            return False
        if self._posted != asked:  # the first look at this message
            self._posted = asked
            timeout = self._limits.call_timeout
            process = self._process.pid if message.is_crowded else None
            self._deadline = _NEVER if timeout is None else Deadline(timeout, process)
        return self._is_lost()

    def _log(self) -> None:
        self._receiver.receive()
        if self._remote is not None:
            self._remote.take_log(self._receiver, self.isolated.message.logged)
        self._receiver.print(self._process.read_output())

    def give_up(self, error: BaseException) -> None:
        """End the process in the middle of a call, because of an error of this process, which the call then raises."""
        self._error = error
        end = self._process.kill()
        with suppress(Exception):
            self._lose(end)
        self.isolated.is_lost = 1

    def _is_lost(self) -> bool:
        end = self._process.ended()
        if end is None and self._deadline.has_passed:
            self._lose(self._process.kill(), Loss.LATE)
        elif end is not None:
            self._lose(end)
        return self._lost is not None

    def _lose_damaged(self, error: DamagedError) -> FmuLostError:
        return self._lose(self._process.kill(), Loss.DAMAGED, str(error))

    def _lose(self, end: HowEnded, loss: Loss = Loss.ENDED, damage: str = "") -> FmuLostError:
        """Keep the error of this and all later calls."""
        with suppress(DamagedError):
            self._receiver.receive()
        self._receiver.print(self._process.read_output(), is_last=True)
        self.isolated.is_lost = 1
        message, where = self.isolated.message, ""
        if self._remote is not None:
            loss, damage = self._remote.tell(message, loss, damage)
            where = f" at {self._remote.address}"
        call = PresentCall(message, self._calling, self._names, self.clock())
        self._lost = lost_error(self.name, self.model, call, self._limits, end, loss, damage, where)
        return self._lost

    def raise_failure(self) -> NoReturn:
        """Raise the error of the last call that failed."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._lost is not None:
            raise self._lost
        self._received(Any)  # it was sent before the call returned
        raise self._lose_damaged(DamagedError("a value where an error was announced"))

    def _check(self, status: int) -> None:
        if status > lib.FM_WARNING or status < 0:
            self.raise_failure()

    def _ask(self, kind: type[T], name: str, *arguments: Any) -> T:
        """A call in Python in the host, whose answer has this type."""
        timeout = self._limits.call_timeout
        deadline = _NEVER if timeout is None else Deadline(timeout)
        return self._answer(kind, deadline, name, *arguments)

    def _own_time(self, seconds: float) -> Deadline:
        """A deadline that a loaded machine does not trip."""
        self._process.wait_for_start()
        return Deadline(seconds, self._process.pid)

    def _answer(self, kind: type[T], deadline: Deadline, name: str, *arguments: Any) -> T:
        self._mark_time()
        self._calling = name
        try:
            self._drop_errors()
            if name != "instantiate":  # for which the host waits at its start
                self._check(lib.fm_isolated_talk(self.isolated))
            self._deadline = deadline
            patience = None if deadline is _NEVER else max(deadline.left, 0.0)
            with suppress(OSError):  # it has ended: that is found out below
                self._process.channel.send((name, arguments), patience)
            answer: T = self._received(kind)
            return answer
        finally:
            lib.fm_isolated_talked(self.isolated)
            self._calling = ""
            self._deadline = _NEVER
            self._posted = 0

    def _drop_errors(self) -> None:
        """Errors that nobody has raised are no answers: of several FMUs that fail at the same time, one ends the run."""
        try:
            while self._process.channel.receive() is not None:
                pass
        except EOFError:
            pass  # it has ended: that is found out at the call
        except DamagedError as error:
            raise self._lose_damaged(error) from error

    def _received(self, kind: Any) -> Any:
        """What comes through the channel next, of this type; raises what the host has raised."""
        try:
            is_value, content = decoded(tuple[bool, bytes], self._content())
            if is_value:
                return decoded(kind, content)
            error = error_of(content)
        except DamagedError as damage:
            raise self._lose_damaged(damage) from damage
        raise error

    def _content(self) -> bytes:
        """What comes through the channel next; what the host logs meanwhile is logged."""
        process, channel = self._process, self._process.channel.end
        waiting = process.waiting(self._receiver.end)
        sending: Deadline | None = None
        while True:
            left = min(self._deadline.left, _PERIOD)
            ready = waiting.ready(max(left, 0.0))
            self._log()
            if channel in ready:
                sending = None
                try:
                    if (content := process.channel.receive()) is not None:
                        self._log()
                        return content
                except EOFError:
                    self._lose(process.kill())
            elif not self._is_lost() and self._is_announced:
                sending = sending or self._own_time(SENDING_TIMEOUT)
                if sending.has_passed:
                    raise DamagedError("nothing where an answer was announced")
            if self._lost is not None:
                raise self._lost

    @property
    def _is_announced(self) -> bool:
        """Whether the host has said that it answers."""
        message = self.isolated.message
        is_done: bool = message.asked.count == message.answered.count
        return is_done and self._calling != "instantiate"

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
                self._answer(type(None), self._own_time(FREEING_TIMEOUT), "free")
        except FmuLostError as error:
            log.warning("%s", str(error))  # a record that keeps the error keeps this instance
        except Exception as error:
            log.warning("'%s' cannot be freed: %s", self.name, str(error))
        finally:
            self._process.kill()
            with suppress(DamagedError):
                self._receiver.receive()
            self._receiver.print(self._process.read_output(), is_last=True)
            self._process.close()
            self._receiver.close()
            self._memory.close()
            close_wakers(self._events)


@ffi.def_extern("fm_python_look", error=1)  # type: ignore[untyped-decorator]
def _look(handle: Any) -> int:
    instance: HostedInstance = ffi.from_handle(handle)
    try:
        return int(instance.look())
    except BaseException as error:  # of a log handler: it ends the run as in one process
        instance.give_up(error)
        return 1
