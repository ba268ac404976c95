"""Where the runs of a sweep are made: in this process, or in processes of their own."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from queue import SimpleQueue
from threading import Event

from fmimaster.apart.plain import DamagedError, decoded, encoded, error_of, plain_error
from fmimaster.apart.process import Process
from fmimaster.apart.server import Channel
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FmimasterError, OptionError
from fmimaster.base.memory import usable_cores
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.studies.sweeps.work import Chunk, ChunkResult, SweepWork, Worker

_TRIES = 2
"""How often a run that has ended its process is made, each time in a new one."""
_LOOK = 0.1
"""[s] After so much wall time a thread notices that the sweep was ended."""
_MOST_OUTPUT = 400
"""Letters of what was printed last that an error has."""
_RUN, _RESULT, _ERROR = b"r", b"a", b"e"
"""What a message of a worker is."""
AHEAD = 2
"""Chunks for each worker: the next one is there when one is ready."""


class Team(ABC):
    """Workers of one sweep, to which chunks are given."""

    places: int
    """Chunks that can be given at one time."""

    @property
    @abstractmethod
    def pending(self) -> int:
        """Chunks that were given, and whose results have not come."""

    @abstractmethod
    def give(self, chunk: Chunk) -> None:
        """Let a worker make the runs of a chunk."""

    @abstractmethod
    def results(self, seconds: float) -> Sequence[ChunkResult]:
        """Wait so long at most until some chunks are ready.

        Raises
        ------
        FmimasterError
            If the system cannot be simulated there.
        """


class SweepExecutor(ABC):
    """Where the runs of a sweep are made."""

    @abstractmethod
    def team(self, work: SweepWork) -> AbstractContextManager[Team]:
        """Workers, which end with the ``with``."""


@dataclass(frozen=True)
class ThisProcess(TypedArguments, SweepExecutor):
    """Make the runs in this process, one after the other. An FMU that crashes ends the program."""

    @contextmanager
    def team(self, work: SweepWork) -> Iterator[Team]:
        """One worker, which works while its results are waited for."""
        with Worker(work) as worker:
            yield _Alone(worker)


class _Alone(Team):
    places = 1

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._given = deque[Chunk]()

    @property
    def pending(self) -> int:
        return len(self._given)

    def give(self, chunk: Chunk) -> None:
        self._given.append(chunk)

    def results(self, seconds: float) -> Sequence[ChunkResult]:
        return [self._worker.run(self._given.popleft())]


@dataclass(frozen=True)
class Processes(TypedArguments, SweepExecutor):
    """Make the runs in processes of their own on this machine.

    A run that ends its process, by a crash of an FMU, is made a second time in a new one. If that ends as well, the run has
    an error, and the others go on.

    Parameters
    ----------
    workers : int, optional
        How many processes. Default: one for each core.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise OptionError(f"The number of workers is {self.workers}; expected 1 or more.")

    @contextmanager
    def team(self, work: SweepWork) -> Iterator[Team]:
        """A thread for each process."""
        workers, pickled, stop = self.workers or usable_cores(), work.pickled(), Event()
        kept = SimpleQueue[KeptProcess]()
        every = [KeptProcess(pickled, stop) for _ in range(workers)]
        for one in every:
            kept.put(one)
        with ThreadPoolExecutor(workers, thread_name_prefix="sweep") as pool:
            try:
                yield _Pool(pool, kept, AHEAD * workers)
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                for one in every:
                    one.close()


class _Pool(Team):
    def __init__(
        self, pool: ThreadPoolExecutor, kept: SimpleQueue[KeptProcess], places: int
    ) -> None:
        self._pool, self._kept, self.places = pool, kept, places
        self._futures: set[Future[ChunkResult]] = set()

    @property
    def pending(self) -> int:
        return len(self._futures)

    def give(self, chunk: Chunk) -> None:
        self._futures.add(self._pool.submit(self._run, chunk))

    def _run(self, chunk: Chunk) -> ChunkResult:
        """In a thread."""
        process = self._kept.get()
        try:
            return process.run(chunk)
        finally:
            self._kept.put(process)

    def results(self, seconds: float) -> Sequence[ChunkResult]:
        done, self._futures = wait(self._futures, seconds, FIRST_COMPLETED)
        return [future.result() for future in done]


class StoppedError(Exception):
    """The sweep was ended while a chunk was made."""


class KeptProcess:
    """A process that makes runs. It is started for the first chunk, and again if it has ended.

    Parameters
    ----------
    work : bytes
        As pickled.
    stop
        Set when it shall make no further runs.
    """

    def __init__(self, work: bytes, stop: Event) -> None:
        self._work, self._stop = work, stop
        self._process: Process | None = None
        self._output = ""
        self._lost: dict[int, int] = {}
        """Run → how often it has ended the process."""

    def run(self, chunk: Chunk) -> ChunkResult:
        """Make the runs of a chunk, whatever happens to the process.

        Raises
        ------
        FmimasterError
            If the system cannot be simulated.
        """
        return ChunkResult.joined([*self._parts(chunk)])

    def _parts(self, chunk: Chunk) -> Iterator[ChunkResult]:
        while chunk.values:
            found = self._asked(chunk)
            if isinstance(found, ChunkResult):
                yield found
                return
            run, how = found
            self._lost[run] = self._lost.get(run, 0) + 1
            error = f"The process of the run {how}{self._output}."
            yield from self._parts(chunk.part(chunk.first, run))
            if self._lost[run] == _TRIES:
                yield ChunkResult.lost(run, error)
            else:
                yield from self._parts(chunk.part(run, run + 1))  # alone, so that it ends no other
            chunk = chunk.part(run + 1, chunk.end)

    def _asked(self, chunk: Chunk) -> ChunkResult | tuple[int, str]:
        """The result of a chunk; or the run that was made when the process ended, and how it ended."""
        if self._process is None:
            self._process = Process(serve, (self._work,))
        process, run, damage = self._process, -1, ""
        self._output = ""
        with suppress(OSError):  # it has ended
            process.channel.send(chunk)
        waiting = process.waiting()
        while not damage:
            end = process.ended()
            try:
                while (message := process.channel.receive()) is not None:
                    kind, content = message[:1], message[1:]
                    if kind == _RUN:
                        run = min(max(decoded(int, content), chunk.first), chunk.end - 1)
                    elif kind == _ERROR:
                        raise error_of(content)
                    else:
                        return _fitting(decoded(ChunkResult, content), chunk)
            except EOFError:
                pass
            except DamagedError as error:
                damage = f"sent a damaged answer ({error}) and was ended"
            self._hear(process)
            if end is not None or damage:
                break
            if self._stop.is_set():
                raise StoppedError
            waiting.ready(_LOOK)
        end = process.kill()
        self._hear(process)
        self.close()
        how = damage or end.how
        if run < 0:
            raise OptionError(f"A process for runs {how} before the first one{self._output}.")
        return run, how

    def _hear(self, process: Process) -> None:
        """Take what was printed, so that no FMU waits for that; its end is for errors."""
        text = process.read_output().decode("utf-8", "replace").strip()
        if text:
            self._output = f"; it had printed: {text[-_MOST_OUTPUT:]}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.close()
            self._process = None


def _fitting(found: ChunkResult, chunk: Chunk) -> ChunkResult:
    """What a process has answered, if it can be the result of a chunk: foreign code runs in that process."""
    runs = len(chunk.values)
    fits = found.first == chunk.first and len(found.errors) == len(found.warnings) == runs
    if not fits or found.scalars.shape != (runs, len(found.names)):
        raise DamagedError("the result of other runs")
    return found


def serve(channel: Channel, _: list[int], work: bytes) -> None:
    """In the process: make the runs of one chunk after the other, until there is none."""
    with Worker(pickle.loads(work)) as worker:
        while True:
            chunk: Chunk = channel.receive()
            try:
                found = worker.run(chunk, lambda run: channel.send(_RUN + encoded(run)))
            except FmimasterError as error:
                channel.send(_ERROR + plain_error(error))
            else:
                channel.send(_RESULT + encoded(found))
