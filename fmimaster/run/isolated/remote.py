"""The process of an FMU on another machine, as the process of the run sees it: it stands for one on this machine."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, NoReturn

from fmimaster import kernel
from fmimaster.apart.connection import (
    MOST,
    Address,
    HostConnection,
    LinkRole,
    MessageKind,
    NoHostError,
    connected,
    data_of,
    new_session,
    refuse_windows,
    take_secret,
)
from fmimaster.apart.plain import DamagedError, error_of
from fmimaster.apart.streams import wait
from fmimaster.base.codec import as_bytes
from fmimaster.base.errors import FmimasterError, FmuLostError, InputError, OptionError
from fmimaster.base.installation import installed_version
from fmimaster.base.text import bytes_in_words
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.run.isolated.host import Started
from fmimaster.run.isolated.loss import Loss
from fmimaster.run.isolated.memory import Receiver
from fmimaster.run.isolated.packed import MOST_FILE, PART, measured, packed
from fmimaster.system.model import Source

STARTING_TIMEOUT = 60.0
"""Time in s in which a host answers before the FMU is loaded, and takes the next part of its file."""
_ENDING_TIMEOUT = 5.0
"""Time in s in which a host says how a process has ended."""
_EXAMPLE = bytes(ffi.buffer(ffi.new("fm_request *", (1, 2, 3.0, 4.0))))
_LOOK = 20_000
"""Time in us after which the kernel looks for a host that has not answered."""
_CUT = "was lost with the connection to its host"


def identity() -> dict[str, Any]:
    """What must be the same on both sides: they share the structs of the kernel."""
    header = (Path(kernel.__file__).parent / "kernel.h").read_bytes()
    return {
        "fmimaster": installed_version(),
        "kernel.h": sha256(header).hexdigest(),
        "layout": [ffi.sizeof("fm_message"), _EXAMPLE.hex()],
        "largest message": MOST,
    }


class RemoteExit(NamedTuple):
    """How a process has ended, as :class:`fmimaster.apart.exit.Exit` has it."""

    how: str
    signal: str = ""
    loss: Loss = Loss.ENDED
    damage: str = ""
    done: int = -1
    """How many requests of the last message were done; -1 if that is not known."""
    function: int = 0
    """Address of the name of the function that was called."""


class RemoteProcess:
    """The process of an FMU on another machine, with the methods of :class:`fmimaster.apart.process.Process`.

    Parameters
    ----------
    addresses : sequence of str
        The first that can be reached is used.
    started : Started
    link : cdata
        fm_link that gets the socket for steps.

    Raises
    ------
    FmuLostError
        If no address can be reached.
    OptionError
        If a host has another version or another secret, or something else listens there.
    """

    pid = None
    """Its number means nothing on this machine."""

    def __init__(self, addresses: Sequence[str], started: Started, link: Any) -> None:
        self._end: RemoteExit | None = None
        self._lock = threading.RLock()
        self._link = link
        self._answers = deque[bytes]()
        self.channel = self
        self.log, self.output = _Part(), _Part()
        self.address, self._connection, self._steps = _first(started.planned.name, addresses)
        link.socket = self._steps.give_to_kernel(_LOOK)
        try:
            self._start(started.planned.source, started)
        except BaseException:
            self.close()
            raise

    # The start

    def _start(self, source: Source, started: Started) -> None:
        connection = self._connection
        connection.send_data(MessageKind.IDENTITY, identity())
        self._compare(self._told(MessageKind.IDENTITY))
        with packed(source) as file:
            size, digest = measured(file)
            if size > MOST_FILE:
                raise OptionError(
                    f"'{source}' has {bytes_in_words(size)}, more than a host takes ({bytes_in_words(MOST_FILE)})."
                )
            connection.send_data(
                MessageKind.FMU, {"name": source.path.stem, "size": size, "sha256": digest}
            )
            if self._told(MessageKind.NEEDED).get("needed") is True:
                while part := file.read(PART):
                    self._send(MessageKind.FILE, part)
        self._send(MessageKind.START, as_bytes(started))
        token = self._told(MessageKind.STARTED).get("token")
        if type(token) is not int or not 0 <= token < 1 << 64:
            raise self._damaged("an answer without a token")
        self.token: int = token

    def _compare(self, theirs: Mapping[str, Any]) -> None:
        mine = identity()
        if differing := [key for key in mine if mine[key] != theirs.get(key)]:
            key = differing[0]
            raise OptionError(
                f"The host at {self.address} has another fmimaster: '{key}' is {theirs.get(key)!r} there and {mine[key]!r} "
                "here. Install the same version on both machines."
            )
        self._connection.most = MOST

    def _send(self, kind: MessageKind, content: bytes) -> None:
        try:
            self._connection.send(kind, content, STARTING_TIMEOUT)
        except OSError:
            self._expected(MessageKind.ENDED)  # why the host takes no more

    def _told(self, kind: MessageKind) -> Mapping[str, Any]:
        try:
            return data_of(self._expected(kind))
        except DamagedError as error:
            raise self._damaged(str(error)) from error

    def _expected(self, kind: MessageKind) -> bytes:
        """The next message of the host, as it is started; an error that it sends is raised."""
        until = monotonic() + STARTING_TIMEOUT
        try:
            while (message := self._connection.next()) is None:
                if (left := until - monotonic()) <= 0.0:
                    raise OptionError(
                        f"The host at {self.address} has not answered within {STARTING_TIMEOUT:g} s."
                    )
                wait([self._connection], left)
            if message[0] is MessageKind.REFUSED:
                self._refused(message[1])
        except EOFError:
            raise OptionError(
                f"The host at {self.address} has closed the connection before the FMU was started."
            ) from None
        except DamagedError as error:
            raise self._damaged(str(error)) from error
        if message[0] is not kind:
            raise self._damaged(f"{message[0].name} where {kind.name} was expected")
        return message[1]

    def _damaged(self, what: str) -> OptionError:
        return OptionError(f"The host at {self.address} has sent what was not expected: {what}.")

    def _refused(self, content: bytes) -> NoReturn:
        error = error_of(content)
        if not isinstance(error, FmimasterError):
            raise OptionError(f"The host at {self.address} has failed: {error}") from error
        self.mark(error)
        raise error

    # As a process

    def wait_for_start(self) -> None:
        """It has started."""

    def waiting(self, *_: object) -> RemoteProcess:
        """What waits for it: all that it sends comes through one connection."""
        return self

    @property
    def end(self) -> RemoteProcess:
        """The channel itself, where :class:`Process` has its end."""
        return self

    def ready(self, seconds: float) -> list[RemoteProcess]:
        """Wait for so many seconds; returns itself if there is an answer, or none will come."""
        if not (self._answers or self._end):
            self._pump(seconds)
        return [self] if self._answers or self._end else []

    def send(self, message: Any, seconds: float | None = None) -> None:
        """Send a request in Python, and its arguments."""
        with self._lock:
            self._connection.send(
                MessageKind.REQUEST, as_bytes(message), seconds or STARTING_TIMEOUT
            )

    def receive(self) -> bytes | None:
        """The next answer to a request in Python, if it has come.

        Raises
        ------
        EOFError
            If the process has ended.
        """
        self._pump(0.0)
        if self._answers:
            return self._answers.popleft()
        if self._end is not None:
            raise EOFError
        return None

    def take_log(self, receiver: Receiver, n: int) -> None:
        """Take messages for the log until there were so many: they come through another connection than the answer that
        says how many there are."""
        until = monotonic() + STARTING_TIMEOUT
        while receiver.n_received < n and self._end is None:
            self._pump(_ENDING_TIMEOUT)
            receiver.receive()
            if monotonic() > until:
                raise DamagedError("fewer messages for the log than it said")

    def tell(self, message: Any, loss: Loss, damage: str) -> tuple[Loss, str]:
        """Where in a message the process has ended, and why; what is given is another reason."""
        end = self.kill()
        message.done, message.function = end.done if end.done >= 0 else message.n, end.function
        return (loss, damage) if loss is not Loss.ENDED else (end.loss, end.damage)

    def mark(self, error: BaseException) -> None:
        """Let an error say where it was."""
        if isinstance(error, InputError):
            error.args = (f"At {self.address}: {error.args[0]}",)

    def read_output(self) -> bytes:
        """What it has printed since the last call."""
        self._pump(0.0)
        return self.output.read_all()

    def ended(self) -> RemoteExit | None:
        """How it has ended; None if it runs."""
        self._pump(0.0)
        if self._end is None and self._link.is_closed:
            self._await_end()  # how comes through the other connection
        return self._end

    def kill(self) -> RemoteExit:
        """Have it ended, for any thread."""
        with self._lock:
            if self._end is None:
                with suppress(OSError):
                    self._connection.send(MessageKind.END, b"", 1.0)
                return self._await_end()
            return self._end

    def _await_end(self) -> RemoteExit:
        until = monotonic() + _ENDING_TIMEOUT
        while self._end is None and (left := until - monotonic()) > 0.0:
            self._pump(left)
        return self._end or self._ended(RemoteExit(_CUT, loss=Loss.CUT))

    def _ended(self, end: RemoteExit) -> RemoteExit:
        self._end = end
        self._connection.shut()
        self._steps.shut()
        return end

    def _pump(self, seconds: float) -> None:
        """Take what has come; wait for it at most so many seconds."""
        with self._lock:
            if self._end is not None:
                return
            wait([self._connection], seconds)
            try:
                while self._end is None and (message := self._connection.next()) is not None:
                    self._take(*message)
            except EOFError:
                self._ended(RemoteExit(_CUT, loss=Loss.CUT))
            except DamagedError as error:
                self._ended(RemoteExit("", loss=Loss.DAMAGED, damage=str(error)))

    def _take(self, kind: MessageKind, content: bytes) -> None:
        if kind is MessageKind.ANSWER:
            self._answers.append(content)
        elif kind is MessageKind.LOG:
            self.log.content += content
        elif kind is MessageKind.OUTPUT:
            self.output.content += content
        elif kind is MessageKind.ENDED:
            self._ended(_exit_of(data_of(content)))
        else:
            raise DamagedError(f"a message {kind.name}")

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self._steps.close()


class _Part:
    """A part of what comes, with the methods of the end of a pipe."""

    is_at_end = False

    def __init__(self) -> None:
        self.content = bytearray()

    def read_all(self) -> bytes:
        content = bytes(self.content)
        self.content.clear()
        return content

    def close(self) -> None:
        """Nothing is open."""


def _exit_of(data: Mapping[str, Any]) -> RemoteExit:
    how, signal, damage = (data.get(key) for key in ("how", "signal", "damage"))
    done, function = data.get("done"), data.get("function")
    if not (
        (isinstance(how, str) and isinstance(signal, str) and isinstance(damage, str))
        and (isinstance(done, int) and isinstance(function, int))
        and (0 <= done <= lib.FM_MOST_REQUESTS and 0 <= function < 1 << 64)
    ):
        raise DamagedError("an end without its facts")
    loss = Loss.DAMAGED if damage else Loss.ENDED
    return RemoteExit(how, signal, loss, damage, done, function)


def _first(name: str, addresses: Sequence[str]) -> tuple[Address, HostConnection, HostConnection]:
    """Connections for control and for steps to the first address that can be reached."""
    refuse_windows()
    secret, failed = take_secret(), []
    for text in addresses:
        address, session = Address.of(text, "isolate"), new_session()
        try:
            control = connected(address, secret, session, LinkRole.CONTROL)
            try:
                steps = connected(address, secret, session, LinkRole.STEPS)
            except BaseException:
                control.close()
                raise
            return address, HostConnection(control), HostConnection(steps)
        except NoHostError as error:
            failed.append(f"{address}: {error}")
    how = f"has no host ({'; '.join(failed)})"
    raise FmuLostError(
        f"'{name}' {how}. Start one there: fmimaster host --listen HOST:PORT.",
        how=how,
        instance=name,
        function="",
    )
