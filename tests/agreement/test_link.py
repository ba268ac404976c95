"""Messages of the kernel over a socket: values arrive, and bytes that are no message end the link, on both sides."""

from __future__ import annotations

import socket
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fmimaster.run.choice import native_executor

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="not on Windows yet"),
    pytest.mark.skipif(native_executor() is None, reason="the kernel is not built"),
]


class Ends:
    """A run and a host, connected by a pair of sockets, with one segment of n values that each call in the host doubles."""

    def __init__(self, n: int = 3) -> None:
        from fmimaster.kernel._kernel import ffi, lib

        self.ffi, self.lib = ffi, lib
        self.sockets = socket.socketpair()
        for one in self.sockets:
            one.setblocking(True)
        self.kept: list[Any] = []
        self.run = self.new("fm_isolated *")
        self.run.message, self.run.link = self.new("fm_message *"), self.new("fm_link *")
        self.run.link.socket = self.sockets[0].fileno()
        self.run.at = self.run.kept_from = self.new("double[1]")
        self.run.look = self.function("int(*)(void *)", lambda _: 1)
        self.place = np.zeros(n)
        self.remote = self.new("fm_remote *")
        self.remote.owner, self.remote.bytes = self.run, self.place.nbytes
        self.remote.place = ffi.from_buffer(self.place)
        self.remote.fresh = 7
        self.values = np.zeros(n)
        self.segment = self.new("fm_segment *")
        self.segment.self = self.remote
        self.segment.values = ffi.from_buffer(self.values)
        self.there = np.zeros(n)
        segment = self.new("fm_segment *")
        segment.values = ffi.from_buffer(self.there)
        segment.transfer = self.function("int(*)(const fm_segment *)", self.double)
        segment.function = self.new("char[]", b"Transfer")
        self.host = self.new("fm_host *")
        self.host.message, self.host.link = self.new("fm_message *"), self.new("fm_link *")
        self.host.link.socket = self.sockets[1].fileno()
        self.host.segments = self.new("fm_segment *[]", [segment])
        self.host.sizes = self.new("size_t[]", [self.there.nbytes])
        self.host.n_segments, self.host.n_coefficients = 1, 4

    def new(self, *what: Any) -> Any:
        self.kept.append(self.ffi.new(*what))
        return self.kept[-1]

    def function(self, kind: str, act: Any) -> Any:
        self.kept.append(self.ffi.callback(kind, act))
        return self.kept[-1]

    def double(self, _: Any) -> int:
        self.there *= 2.0
        return 0

    def ask(self) -> bytes:
        """Set values and read them, as far as the message: its bytes, which the host does not get."""
        self.sockets[0].shutdown(socket.SHUT_RD)  # no answer comes
        self.values[:] = range(1, 1 + len(self.values))
        self.lib.fm_isolated_set(self.segment)
        assert self.lib.fm_isolated_get(self.segment) == self.lib.FM_ERROR
        return self.sockets[1].recv(1 << 20)

    def serve(self, content: bytes) -> bytes:
        """Let the host have bytes, and no more; returns its answers."""
        self.sockets[0].sendall(content)
        self.sockets[0].shutdown(socket.SHUT_WR)
        while self.lib.fm_host_serve(self.host) == self.lib.FM_OK:
            pass  # it is asked for a call in Python
        try:
            return self.sockets[0].recv(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""

    def take(self, answer: bytes) -> int:
        """Set values and read them, where this is the answer; returns the status."""
        self.sockets[1].sendall(answer)
        self.sockets[1].shutdown(socket.SHUT_WR)
        self.values[:] = range(1, 1 + len(self.values))
        self.lib.fm_isolated_set(self.segment)
        return int(self.lib.fm_isolated_get(self.segment))

    def __enter__(self) -> Ends:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.sockets:
            one.close()


@cache
def exchanged(n: int = 3) -> tuple[bytes, bytes]:
    """A message, and the answer to it."""
    with Ends(n) as ends:
        asked = ends.ask()
    with Ends(n) as ends:
        answer = ends.serve(asked)
        assert ends.host.link.is_closed
        assert not ends.host.link.is_damaged
    return asked, answer


@pytest.mark.parametrize("n", [3, 8000])
def test_values_are_set_and_read(n: int) -> None:
    """Also if they are more than are received at one time."""
    _, answer = exchanged(n)
    with Ends(n) as ends:
        assert ends.take(answer) == ends.lib.FM_OK
        np.testing.assert_array_equal(ends.values, 4.0 * np.arange(1, n + 1))  # by both calls


def changed(content: bytes, at: int, new: bytes, end: int) -> bytes:
    at %= len(content)
    return (content[:at] + new + content[at + len(new) :])[:end]


CHANGES = (
    st.integers(0, 10_000),
    st.binary(min_size=1, max_size=16) | st.sampled_from([b"\xff" * 8, bytes(8), b"\x7f" * 4]),
    st.integers(0, 400) | st.just(10_000),
)


@settings(max_examples=100, deadline=None)
@given(*CHANGES)
def test_a_host_ends_at_what_is_no_message(at: int, new: bytes, end: int) -> None:
    with Ends() as ends:
        ends.serve(changed(exchanged()[0], at, new, end))
        assert ends.host.link.is_closed or ends.host.link.is_damaged


@settings(max_examples=100, deadline=None)
@given(*CHANGES)
def test_a_run_loses_its_fmu_at_what_is_no_answer(at: int, new: bytes, end: int) -> None:
    with Ends() as ends:
        if ends.take(changed(exchanged()[1], at, new, end)) != ends.lib.FM_OK:
            assert ends.run.is_lost or ends.run.message.status


def test_requests_that_do_not_exist_are_refused() -> None:
    asked, _ = exchanged()
    first = asked.index(np.intc(1).tobytes() + np.intc(0).tobytes(), 100)  # FM_REQUEST_SET 0
    for number in (1, -1, 2**31 - 1):
        with Ends() as ends:
            content = changed(asked, first + 4, np.intc(number).tobytes(), len(asked))
            assert ends.serve(content) == b""
            assert ends.host.link.is_damaged
