"""The runs of a sweep on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.installation import optional
from fmimaster.base.memory import usable_cores
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.studies.sweeps.executors import SweepExecutor, Team
from fmimaster.studies.sweeps.work import SweepWork

_LONGEST_CONNECTION = "20s"
_LONGEST_WITHOUT_WORKERS = 120
"""[s] A cluster that has just been asked for may need some time."""


@dataclass(frozen=True)
class Dask(TypedArguments, SweepExecutor):
    """Make the runs on a Dask cluster: each thread of its workers has a process with the FMUs.

    The workers need the same version of fmimaster, and the files of the system at the same paths. A chunk whose worker is
    lost is made again by another one.

    Parameters
    ----------
    scheduler : address, or ``distributed.Client``
        Of a cluster that is there, as ``"tcp://host:8786"``. Default: a small one in this process.
    workers : int, optional
        Runs at the same time in the cluster in this process. Default: one for each core.
    """

    scheduler: Any = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.scheduler is not None:
            raise OptionError(
                "A cluster that is there has its own workers. Leave workers (--workers) out."
            )
        if self.workers is not None and self.workers < 1:
            raise OptionError(f"The number of workers is {self.workers}; expected 1 or more.")

    @contextmanager
    def team(self, work: SweepWork) -> Iterator[Team]:
        """What gives chunks to the cluster."""
        optional("distributed", "dask", "A sweep on Dask")
        from fmimaster.studies.sweeps.dask_team import DaskTeam  # imports distributed

        with ExitStack() as opened:
            client = self.scheduler
            if client is None or isinstance(client, str):
                client = opened.enter_context(_client(client, self.workers or usable_cores()))
            try:
                client.wait_for_workers(1, timeout=_LONGEST_WITHOUT_WORKERS)
            except TimeoutError:
                raise OptionError(
                    f"The Dask scheduler {client.scheduler.address} has no workers. Start some: dask worker "
                    f"{client.scheduler.address}"
                ) from None
            yield opened.enter_context(DaskTeam(client, work))


@contextmanager
def _client(address: str | None, workers: int) -> Iterator[Any]:
    distributed = optional("distributed", "dask", "A sweep on Dask")
    if address is None:
        # threads are enough: each has its process with FMUs
        here = distributed.LocalCluster(
            n_workers=1, threads_per_worker=workers, processes=False, dashboard_address=None
        )
        with here, distributed.Client(here, set_as_default=False) as client:
            yield client
        return
    try:
        client = distributed.Client(address, set_as_default=False, timeout=_LONGEST_CONNECTION)
    except (OSError, ValueError, TypeError) as error:
        raise OptionError(
            f"There is no Dask scheduler at '{address}' ({error}). Give the address that it prints when it starts, such as "
            "tcp://host:8786."
        ) from None
    with client:
        yield client
