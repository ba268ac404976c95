"""A host for FMUs of runs on other machines: each FMU gets a process of its own, for which a thread speaks to the run.

Steps do not pass through this process: the process of the FMU has the socket for them.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

from fmimaster.apart.connection import (
    MOST,
    PATIENCE,
    Address,
    HostConnection,
    LinkRole,
    MessageKind,
    data_of,
    greeted,
    refuse_windows,
)
from fmimaster.apart.exit import Exit
from fmimaster.apart.plain import DamagedError, plain_error
from fmimaster.apart.process import Process
from fmimaster.apart.streams import pipe, wait
from fmimaster.base.codec import from_bytes
from fmimaster.base.errors import FileError, FmimasterError, OptionError
from fmimaster.base.own_folder import OwnFolder
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.library import NOT_NEEDED
from fmimaster.kernel._kernel import ffi
from fmimaster.plan.plan import InstancePlan
from fmimaster.run.isolated.host import REQUESTS, Hosted, Started, serve_linked
from fmimaster.run.isolated.memory import SharedMemory
from fmimaster.run.isolated.packed import MOST_FILE
from fmimaster.run.isolated.remote import STARTING_TIMEOUT, identity
from fmimaster.system.archive import open_archive
from fmimaster.system.model import Source

log = logging.getLogger("fmimaster")

_MOST_GREETING = 32
"""Connections that have not greeted yet, at one time; further ones are closed."""
_PERIOD = 1.0
_HASH = re.compile("[0-9a-f]{64}")


class Listener:
    """Listens for runs, and serves their FMUs until it is closed.

    Parameters
    ----------
    address : Address
        Port 0 is any free one.
    secret : bytes
    unencrypted : bool
        Whether an address that other machines can reach is wanted, although nothing is encrypted.

    Raises
    ------
    OptionError
        If it cannot listen there, or must not.
    """

    def __init__(self, address: Address, secret: bytes, *, unencrypted: bool = False) -> None:
        refuse_windows()
        self._secret = secret
        self._greeting = threading.Semaphore(_MOST_GREETING)
        self._lock = threading.Lock()
        self._waiting: dict[bytes, tuple[LinkRole, socket.socket, float]] = {}
        """Session → the first of its two connections, and until when it waits."""
        self._served: dict[int, _Served] = {}
        self._is_closed = False
        self._socket = _listening(address, unencrypted)
        self.address = Address(*self._socket.getsockname()[:2])
        self._folder = OwnFolder()

    def serve(self) -> None:
        """Take connections, until an exception such as Ctrl-C, or until it is closed."""
        self._socket.settimeout(_PERIOD)
        while not self._is_closed:
            self._drop_late()
            try:
                connection, who = self._socket.accept()
            except OSError:
                continue
            if not self._greeting.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._greet, args=(connection, who), daemon=True).start()

    def _drop_late(self) -> None:
        """Close connections whose second one does not come."""
        with self._lock:
            for session, (_, connection, until) in list(self._waiting.items()):
                if self._is_closed or monotonic() > until:
                    connection.close()
                    del self._waiting[session]

    def _greet(self, connection: socket.socket, who: Any) -> None:
        """Find out whether it is a run, and serve it when both of its connections are there."""
        found = None
        try:
            with suppress(OSError):
                found = greeted(connection, self._secret)
        finally:
            self._greeting.release()
        if found is None:
            log.warning("A connection from %s was closed: it did not know the secret.", who[0])
            connection.close()
            return
        role, session = found
        with self._lock:
            if (other := self._waiting.pop(session, None)) is None:
                self._waiting[session] = role, connection, monotonic() + PATIENCE
                return
        both = {role: connection, other[0]: other[1]}
        if len(both) < len(LinkRole) or self._is_closed:
            connection.close()
            other[1].close()
            return
        served = _Served(both[LinkRole.CONTROL], both[LinkRole.STEPS], self._folder.path, who[0])
        with self._lock:
            self._served[id(served)] = served
        try:
            served.serve()
        finally:
            with self._lock:
                del self._served[id(served)]

    def close(self) -> None:
        """End all processes, and remove all files."""
        self._is_closed = True
        self._socket.close()
        until = monotonic() + PATIENCE
        while monotonic() < until:
            with self._lock:
                served = list(self._served.values())
            if not served:
                break
            for one in served:
                one.stop()
            served[0].has_ended.wait(_PERIOD)
        self._drop_late()
        self._folder.remove()


def _listening(address: Address, unencrypted: bool) -> socket.socket:
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
        if not (unencrypted or ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback):
            raise OptionError(
                f"--listen {address.machine}: other machines can reach this address, and nothing is encrypted. "
                "Listen on 127.0.0.1 and reach it through a tunnel of ssh; or, in a network where everybody may read "
                "everything, add --unencrypted."
            )
        return socket.create_server((str(place[0]), address.port), family=family)
    except OSError as error:
        raise OptionError(
            f"--listen {address.machine}:{address.port}: {error.strerror or error}. Choose another address or port."
        ) from error


class _Served:
    """One FMU of a run."""

    def __init__(
        self, control: socket.socket, steps: socket.socket, folder: Path, who: str
    ) -> None:
        self._control, self._steps = HostConnection(control), HostConnection(steps)
        self._folder, self._who = folder, who
        self._unpacked: OwnFolder | None = None
        self._process: Process | None = None
        self.has_ended = threading.Event()

    def stop(self) -> None:
        """Have it ended, for any thread."""
        self._control.shut()

    def serve(self) -> None:
        """From the start of the FMU to its end. Never raises."""
        name = "an FMU"
        try:
            self._tell(MessageKind.IDENTITY, identity())
            if data_of(self._expected(MessageKind.IDENTITY)) != identity():
                self._expected(MessageKind.END)  # the run says why; it closes the connection
            self._control.most = MOST
            source = self._take_file()
            name = self._start(source)
            log.info("'%s' of %s runs.", name, self._who)
            self._relay()
        except (EOFError, OSError):
            pass  # the run has gone
        except Exception as error:
            if isinstance(error, DamagedError):
                error = OptionError(f"The host got {error}, and has closed the connection.")
            elif not isinstance(error, FmimasterError):
                log.exception("'%s' of %s has ended by an error.", name, self._who)
            with suppress(OSError):
                self._control.send(MessageKind.REFUSED, plain_error(error), PATIENCE)
        finally:
            self._close()
            log.info("'%s' of %s has ended.", name, self._who)

    def _close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.close()
            self._messages.close()
            self._memory.close()
        self._control.close()
        self._steps.close()
        if self._unpacked is not None:
            self._unpacked.remove()
        self.has_ended.set()

    def _tell(self, kind: MessageKind, data: Any) -> None:
        self._control.send_data(kind, data)

    def _expected(self, kind: MessageKind) -> bytes:
        until = monotonic() + STARTING_TIMEOUT
        while (message := self._control.next()) is None:
            if (left := until - monotonic()) <= 0.0:
                raise DamagedError(f"nothing where {kind.name} was expected")
            wait([self._control], left)
        if message[0] is not kind:
            raise DamagedError(f"{message[0].name} where {kind.name} was expected")
        return message[1]

    # The start

    def _take_file(self) -> Source:
        """The file of the FMU, which is kept by its hash."""
        data = data_of(self._expected(MessageKind.FMU))
        name, size, digest = data.get("name"), data.get("size"), str(data.get("sha256"))
        is_hash = _HASH.fullmatch(digest)
        if not is_hash or type(size) is not int or not isinstance(name, str):
            raise DamagedError("no name, size and hash of a file")
        if not 0 < size <= MOST_FILE:
            raise FileError(f"The FMU has {size} bytes. Expected at most {MOST_FILE}.")
        letters = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:100]
        path = self._folder / f"{digest}" / f"{letters or 'FMU'}.fmu"
        is_known = path.is_file()
        self._tell(MessageKind.NEEDED, {"needed": not is_known})
        if not is_known:
            self._write(path, size, digest)
        return Source(path)

    def _write(self, path: Path, size: int, digest: str) -> None:
        path.parent.mkdir(exist_ok=True)
        part, found, left = path.with_suffix(f".{id(self)}"), sha256(), size
        try:
            with part.open("xb") as file:
                while left > 0:
                    content = self._expected(MessageKind.FILE)[: left + 1]
                    found.update(content)
                    file.write(content)
                    left -= len(content)
            if left or found.hexdigest() != digest:
                raise FileError("The FMU that has come has not the hash that was announced.")
            os.replace(part, path)
        except OSError as error:
            raise FileError(
                f"The FMU cannot be kept: {error.strerror}. Make room in {path.parent}."
            ) from error
        finally:
            with suppress(OSError):
                part.unlink()

    def _start(self, source: Source) -> str:
        """Start the process of the FMU; returns the name of the instance."""
        started = _started(self._expected(MessageKind.START))
        self._unpacked = OwnFolder()
        with open_archive(source) as archive:
            archive.unpack(self._unpacked.path, NOT_NEEDED)
        memory = self._memory = SharedMemory.new()
        room = memory.allocate(ffi.sizeof("fm_message"))
        self._part = memory.part(room[0], room[1])
        self._message = ffi.cast("fm_message *", ffi.from_buffer(self._part) + room[2])
        planned = replace(started.planned, source=source)
        started = started._replace(planned=planned)
        hosted = Hosted(started, self._unpacked.path, memory.name, room, (room, room))
        self._messages, sending = pipe()
        try:
            self._process = Process(
                serve_linked,
                (hosted,),
                descriptors=[sending, *memory.descriptors, self._steps.give_to_kernel(0)],
                memory_limit=started.memory_limit,
            )
        finally:
            os.close(sending)
        self._process.wait_for_start()
        self._steps.close()  # the process has it; when that ends, the run finds it closed
        self._tell(MessageKind.STARTED, {"token": self._process.token})
        return planned.name

    # While it runs

    def _relay(self) -> None:
        process, control = self._process, self._control
        assert process is not None
        waiting = process.waiting(self._messages, control)
        while (end := process.ended()) is None:
            waiting.ready(None)
            try:
                self._send_what_has_come(process)
                self._heed_requests(process)
            except DamagedError as error:
                self._say(process.kill(), str(error))
                return
        self._send_what_has_come(process, is_last=True)
        self._say(end)

    def _send_what_has_come(self, process: Process, is_last: bool = False) -> None:
        """Answers of the process, behind what it has logged and printed before."""
        answers = []
        with suppress(EOFError):
            while (answer := process.channel.receive()) is not None:
                answers.append(answer)
        for kind, read in (
            (MessageKind.LOG, self._messages.read_all),
            (MessageKind.OUTPUT, process.read_output),
        ):
            while content := read():
                self._control.send(kind, content)
                if not is_last:
                    break
        for answer in answers:
            self._control.send(MessageKind.ANSWER, answer)

    def _heed_requests(self, process: Process) -> None:
        while (message := self._control.next()) is not None:
            kind, content = message
            if kind is MessageKind.END:
                process.kill()
                return
            if kind is not MessageKind.REQUEST:
                raise DamagedError(f"{kind.name} where a request was expected")
            request = _read(content)
            if not (isinstance(request, tuple) and len(request) == 2):
                raise DamagedError("what is no request")
            name, arguments = request
            if (
                not isinstance(name, str)
                or name not in REQUESTS
                or not isinstance(arguments, tuple)
            ):
                raise DamagedError("a request that is not known")
            with suppress(OSError):  # it has ended
                process.channel.send((name, arguments), STARTING_TIMEOUT)

    def _say(self, end: Exit, damage: str = "") -> None:
        """How the process has ended, and in which request."""
        self._tell(
            MessageKind.ENDED,
            {
                "how": end.how,
                "signal": end.signal,
                "damage": damage,
                "done": self._message.done,
                "function": self._message.function,
            },
        )


def _started(content: bytes) -> Started:
    """What an instance is made from.

    Raises
    ------
    DamagedError
    """
    found = _read(content)
    kinds = (InstancePlan, tuple, InstanceOptions, bool, int, int, int | None)
    if not isinstance(found, Started) or not all(map(isinstance, found, kinds)):
        raise DamagedError("something else than an instance")
    return found


def _read(content: bytes) -> Any:
    """Plain data of a run.

    Raises
    ------
    DamagedError
    """
    try:
        return from_bytes(content)
    except Exception as error:  # of whatever a stranger has written
        raise DamagedError(f"what is no data ({type(error).__name__}: {error})") from error
