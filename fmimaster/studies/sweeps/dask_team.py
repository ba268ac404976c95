"""Chunks of a sweep as tasks of Dask. A plugin of the workers keeps the processes with FMUs from task to task."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import urandom
from pickle import loads
from queue import Empty, SimpleQueue
from threading import Event, Timer
from typing import Any

from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker

from fmimaster.base.errors import FmimasterError, OptionError
from fmimaster.base.installation import installed_version
from fmimaster.base.text import listed
from fmimaster.session.origin import fingerprint
from fmimaster.studies.sweeps.checked import prepared_for
from fmimaster.studies.sweeps.executors import AHEAD, KeptProcess, Team
from fmimaster.studies.sweeps.work import Chunk, ChunkResult, SweepWork

_IDLE = 60.0
"""[s] After so much wall time without a chunk processes end: the program with the sweep may have been killed."""


class SweepPlugin(WorkerPlugin):  # type: ignore[misc]  # distributed has no types
    """On a worker: processes with the FMUs of a sweep.

    Parameters
    ----------
    work : bytes
        As pickled.
    version
        Of fmimaster, where the sweep was started.
    """

    def __init__(self, name: str, work: bytes, version: str) -> None:
        self.name, self._work, self._version = name, work, version

    def setup(self, worker: Any) -> None:
        """Refuse a worker whose runs would be other ones."""
        if (found := installed_version()) != self._version:
            raise OptionError(
                f"The Dask worker {worker.address} has fmimaster {found}, and the sweep {self._version}. Install the same."
            )
        work: SweepWork = loads(self._work)
        here = fingerprint(work.simulation, [prepared_for(work.simulation, work.names)])
        expected = work.fingerprint
        if differing := [name for name in expected if here.get(name) != expected[name]]:
            raise OptionError(
                f"The Dask worker {worker.address} has another simulation: {listed(differing, 3)} differs. Let it have "
                "the same files."
            )
        self._stop, self._timer = Event(), Timer(_IDLE, self._end_free)
        self._free = SimpleQueue[KeptProcess]()

    def run(self, chunk: Chunk) -> ChunkResult:
        """Make runs, in a thread of the worker."""
        try:
            process = self._free.get_nowait()
        except Empty:
            process = KeptProcess(self._work, self._stop)
        try:
            return process.run(chunk)
        finally:
            self._free.put(process)
            if self._stop.is_set():
                self._end_free()
            else:
                self._timer.cancel()
                self._timer = Timer(_IDLE, self._end_free)
                self._timer.daemon = True
                self._timer.start()

    def teardown(self, worker: Any) -> None:
        """End the processes; those that are busy end by their threads."""
        self._stop.set()
        self._timer.cancel()
        self._end_free()

    def _end_free(self) -> None:
        with suppress(Empty):
            while True:
                self._free.get_nowait().close()


def run_chunk(name: str, chunk: Chunk) -> ChunkResult:
    """On a worker: a task."""
    plugin: Any = get_worker().plugins[name]  # a SweepPlugin
    found: ChunkResult = plugin.run(chunk)
    return found


class DaskTeam(Team):
    """Gives chunks to a cluster. A context manager, which ends the processes of the sweep there."""

    def __init__(self, client: Client, work: SweepWork) -> None:
        self._client = client
        self._name = f"fmimaster-sweep-{urandom(8).hex()}"
        self._futures: dict[Future, Chunk] = {}
        self._done = SimpleQueue[Future]()
        self._register(work)
        self.places = self._room()

    def _room(self) -> int:
        """Chunks for all threads of the workers."""
        threads: Any = self._client.nthreads()
        places: int = AHEAD * max(1, sum(threads.values()))
        return places

    def _register(self, work: SweepWork) -> None:
        plugin = SweepPlugin(self._name, work.pickled(), installed_version())
        try:
            self._client.register_plugin(plugin, name=self._name)
        except FmimasterError:
            self._unregister()
            raise
        except Exception as error:  # whatever a worker says
            self._unregister()
            raise OptionError(
                f"The Dask workers cannot make runs: {type(error).__name__}: {error}. Install the same version of "
                "fmimaster there, and the modules of the simulation."
            ) from error

    @property
    def pending(self) -> int:
        return len(self._futures)

    def give(self, chunk: Chunk) -> None:
        key = f"{self._name}-{chunk.first}-{chunk.end}-{urandom(4).hex()}"
        future = self._client.submit(run_chunk, self._name, chunk, key=key, pure=False)
        self._futures[future] = chunk
        future.add_done_callback(self._done.put)

    def results(self, seconds: float) -> Sequence[ChunkResult]:
        found = []
        with suppress(Empty):
            future = self._done.get(timeout=seconds)
            while True:
                found += self._of(future, self._futures.pop(future))
                future = self._done.get_nowait()
        self.places = self._room() if found else self.places
        return found

    def _of(self, future: Future, chunk: Chunk) -> list[ChunkResult]:
        """The result of a chunk; none if its halves are to be made again."""
        try:
            return [future.result()]
        except FmimasterError:
            raise
        except KilledWorker as error:
            if len(chunk.values) == 1:
                return [ChunkResult.lost(chunk.first, f"Its Dask workers were lost: {error}")]
            middle = (chunk.first + chunk.end) // 2
            self.give(chunk.part(chunk.first, middle))
            self.give(chunk.part(middle, chunk.end))
            return []
        except Exception as error:
            raise OptionError(
                f"The Dask cluster has ended the sweep: {type(error).__name__}: {error}."
            ) from error

    def __enter__(self) -> DaskTeam:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # the cluster may be lost
            self._client.cancel([*self._futures], force=True)
        self._unregister()

    def _unregister(self) -> None:
        with suppress(Exception):
            self._client.unregister_worker_plugin(self._name)
