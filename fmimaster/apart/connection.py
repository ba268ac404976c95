"""Connections to processes on other machines: addresses, the shared secret, and messages of plain data.

Each side proves that it knows the secret, by an answer to a random number of the other one. What follows is neither
encrypted nor signed.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import select
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from enum import IntEnum
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from fmimaster.apart.plain import DamagedError
from fmimaster.apart.streams import End
from fmimaster.base.errors import OptionError

# Addresses and secrets ------------------------------------------------------------------------------------------------

_ADDRESS = re.compile(r"(?:tcp://)?(\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]@]+):([0-9]{1,5})")
_MOST_PORT = 65535


class Address(NamedTuple):
    """Where a host listens."""

    machine: str
    port: int

    def __str__(self) -> str:
        machine = f"[{self.machine}]" if ":" in self.machine else self.machine
        return f"tcp://{machine}:{self.port}"

    @classmethod
    def of(cls, text: str, where: str) -> Address:
        """The address that a text names.

        Raises
        ------
        OptionError
        """
        found = _ADDRESS.fullmatch(text)
        if found is None or int(found[2]) > _MOST_PORT:
            raise OptionError(
                f"{where}: '{text}' is no address. Expected HOST:PORT, such as 127.0.0.1:7000."
            )
        return cls(found[1].strip("[]"), int(found[2]))


def refuse_windows() -> None:
    """Raise OptionError where connections are not possible."""
    if sys.platform == "win32":
        raise OptionError(
            "remote FMUs: not on Windows yet. Run them on this machine: isolate (--isolate)."
        )


SECRET, SECRET_FILE = "FMIMASTER_SECRET", "FMIMASTER_SECRET_FILE"
"""Variables of the environment: the secret, or the file that has it."""
_LEAST_SECRET = 16


def take_secret() -> bytes:
    """The secret of this process.

    Raises
    ------
    OptionError
        If there is none, or one that is short.
    """
    text, file = os.environ.get(SECRET, ""), os.environ.get(SECRET_FILE, "")
    if file and not text:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise OptionError(f"{SECRET_FILE}: '{file}' cannot be read: {error}.") from error
    secret = text.strip().encode()
    if len(secret) < _LEAST_SECRET:
        has = f"has {len(secret)} letters" if secret else "is not set"
        raise OptionError(
            f"The secret that a run and its hosts share {has}. Write {_LEAST_SECRET} letters or more that nobody guesses "
            f"into a file, and name it in the environment of both: {SECRET_FILE}; or set {SECRET}. "
            'python -c "import secrets; print(secrets.token_hex(32))" makes one.'
        )
    return secret


# The greeting ---------------------------------------------------------------------------------------------------------

_MAGIC = b"fmimaster host 1"
_NONCE = _MAC = 32
_SESSION = 16
PATIENCE = 10.0
"""Time in s in which a connection must be made, and in which the other side must greet."""


_LEAST_PATIENCE = 0.001
"""In s; 0 would not wait at all."""


class LinkRole(IntEnum):
    """What a connection is for."""

    CONTROL = 1
    STEPS = 2


class NoHostError(Exception):
    """Nothing can be reached at an address; the text says why."""


def new_session() -> bytes:
    """What the two connections to one FMU have in common."""
    return os.urandom(_SESSION)


def connected(address: Address, secret: bytes, session: bytes, role: LinkRole) -> socket.socket:
    """A connection to a host, which has proved that it knows the secret.

    Raises
    ------
    NoHostError
        If nothing listens there.
    OptionError
        If something else listens there, or its secret is another one.
    """
    try:
        found = socket.create_connection(address, PATIENCE)
    except OSError as error:
        raise NoHostError(error.strerror or str(error)) from error
    try:
        _tune(found)
        _greet(found, address, secret, session, role)
    except BaseException:
        found.close()
        raise
    return found


def _greet(
    host: socket.socket, address: Address, secret: bytes, session: bytes, role: LinkRole
) -> None:
    until = monotonic() + PATIENCE
    other = f"What listens at {address} is no host of fmimaster of this version"
    start = _came(host, len(_MAGIC), until)
    if start and start != _MAGIC:
        raise OptionError(
            f"{other}: it began with {start!r}. Look for the port that 'fmimaster host' has shown."
        )
    theirs = _exactly(host, _NONCE, until) if start else None
    if theirs is None:
        raise NoHostError("it did not greet as a host of fmimaster does")
    mine = os.urandom(_NONCE)
    what = bytes([role]) + session + mine
    host.sendall(_MAGIC + what + _mac(secret, b"run", theirs, what))
    answer = _exactly(host, _MAC, until)
    if answer is None:
        raise NoHostError("it closed the connection")
    if not hmac.compare_digest(answer, _mac(secret, b"host", theirs, what)):
        raise OptionError(
            f"The host at {address} has another secret. Expected the same in {SECRET_FILE} or {SECRET} of both."
        )


def greeted(run: socket.socket, secret: bytes) -> tuple[LinkRole, bytes] | None:
    """In a host: the role and the session of a connection that has come; None if it does not know the secret."""
    _tune(run)
    until, mine = monotonic() + PATIENCE, os.urandom(_NONCE)
    run.settimeout(PATIENCE)
    run.sendall(_MAGIC + mine)
    found = _exactly(run, len(_MAGIC) + 1 + _SESSION + _NONCE + _MAC, until)
    if found is None or not found.startswith(_MAGIC):
        return None
    what, mac = found[len(_MAGIC) : -_MAC], found[-_MAC:]
    knows = hmac.compare_digest(mac, _mac(secret, b"run", mine, what))
    run.sendall(_mac(secret, b"host", mine, what) if knows else bytes(_MAC))
    if not knows or what[0] not in tuple(LinkRole):
        return None
    return LinkRole(what[0]), what[1 : 1 + _SESSION]


def _mac(secret: bytes, side: bytes, nonce: bytes, what: bytes) -> bytes:
    return hmac.digest(secret, side + nonce + what, "sha256")


def _exactly(other: socket.socket, size: int, until: float) -> bytes | None:
    """So many bytes; None if they do not come."""
    content = _came(other, size, until)
    return content if len(content) == size else None


def _came(other: socket.socket, size: int, until: float) -> bytes:
    """What comes until then, at most so many bytes."""
    content = b""
    with suppress(OSError):
        while len(content) < size:
            other.settimeout(max(until - monotonic(), _LEAST_PATIENCE))
            if not (part := other.recv(size - len(content))):
                break
            content += part
    return content


_SILENCE = 5
"""Time in s after which an idle connection is tried, and after which it is tried again."""
_TRIALS = 3
_LOST_AFTER = _SILENCE * (_TRIALS + 1)
"""Time in s after which a connection is lost if nothing is answered."""


def _tune(connection: socket.socket) -> None:
    """Send each message at once, and notice a network that has gone."""
    tcp = socket.IPPROTO_TCP
    connection.setsockopt(tcp, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _SILENCE),
        ("TCP_KEEPINTVL", _SILENCE),
        ("TCP_KEEPCNT", _TRIALS),
        ("TCP_USER_TIMEOUT", _LOST_AFTER * 1000),
    ):
        if (option := getattr(socket, name, None)) is not None:
            connection.setsockopt(tcp, option, value)


# Messages -------------------------------------------------------------------------------------------------------------


class MessageKind(IntEnum):
    """What a message is."""

    IDENTITY = 1
    """Both sides: what must be the same on them."""
    FMU = 2
    """Of the run: name, size and hash of the FMU's file."""
    NEEDED = 3
    """Of the host: whether the file must be sent."""
    FILE = 4
    """Of the run: a part of it."""
    START = 5
    """Of the run: what the instance is made from."""
    STARTED = 6
    """Of the host: with what messages for the log begin."""
    REQUEST = 7
    """Of the run: a call in Python."""
    ANSWER = 8
    """Of the host: its answer."""
    LOG = 9
    """Of the host: messages for the log."""
    OUTPUT = 10
    """Of the host: what the FMU has printed."""
    END = 11
    """Of the run: the process is to be ended."""
    ENDED = 12
    """Of the host: how it has ended."""
    REFUSED = 13
    """Of the host: why it does not go on, an error."""


_HEAD = struct.Struct("<BQ")
MOST = 1 << 31
"""Largest number of bytes of a message."""
_CHUNK = 1 << 20


class HostConnection(End):
    """A connection after the greeting, whose calls do not wait.

    Parameters
    ----------
    connection : socket
        Owned by this object.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.setblocking(False)
        super().__init__(connection.fileno())
        self._came = bytearray()
        self.most = 1 << 16
        """Largest number of bytes of a message that may come; more when both sides are known to be the same."""

    def read(self, size: int) -> bytes:
        """What has come; nothing more will if the connection is lost."""
        try:
            return super().read(size)
        except OSError:
            self.is_at_end = True
            return b""

    def write(self, content: bytes, seconds: float | None) -> None:
        """Write all; what comes meanwhile is kept, so that two sides that write do not wait for each other."""
        patience = inf if seconds is None else seconds
        left, until = memoryview(content), monotonic() + patience
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        while left:
            try:
                left = left[self._socket.send(left) :]
                until = monotonic() + patience
            except BlockingIOError:
                if monotonic() > until:
                    raise TimeoutError("the other side reads nothing") from None
                poll.poll(None if seconds is None else 1000.0 * seconds + 1.0)
                self._came += self.read(_CHUNK)
                if self.is_at_end:
                    raise ConnectionError("the other side has closed the connection") from None

    def send(self, kind: MessageKind, content: bytes, seconds: float | None = None) -> None:
        """Send a message; raises OSError if the other side has gone, or has read nothing for so long."""
        self.write(_HEAD.pack(kind, len(content)) + content, seconds)

    def send_data(self, kind: MessageKind, data: Any) -> None:
        """Send what JSON can hold."""
        self.send(kind, json.dumps(data).encode(), PATIENCE)

    def next(self) -> tuple[MessageKind, bytes] | None:
        """The next message; None if it has not come completely.

        Raises
        ------
        EOFError
            If none will come.
        DamagedError
            If the bytes are no message.
        """
        while True:
            came = self._came
            if len(came) >= _HEAD.size:
                kind, length = _HEAD.unpack_from(came)
                if kind not in tuple(MessageKind) or length > self.most:
                    raise DamagedError(f"a message of kind {kind} with {length} bytes")
                end = _HEAD.size + length
                if len(came) >= end:
                    content = bytes(memoryview(came)[_HEAD.size : end])
                    del came[:end]
                    return MessageKind(kind), content
            if not (part := self.read(_CHUNK)):
                if self.is_at_end:
                    raise EOFError
                return None
            came += part

    def give_to_kernel(self, patience: int) -> int:
        """The socket for the kernel, which waits for what comes; for so many microseconds at one time, 0 without end."""
        self._socket.setblocking(True)
        self._socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, patience)
        )
        return self.fileno()

    def shut(self) -> None:
        """Let both sides find the end of the connection; for any thread."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def data_of(content: bytes) -> Mapping[str, Any]:
    """The data of :meth:`HostConnection.send_data`.

    Raises
    ------
    DamagedError
    """
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedError("text that is no JSON") from error
    if not isinstance(data, dict):
        raise DamagedError("JSON that is no object")
    return data
