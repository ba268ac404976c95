"""The main entry point: a system and how to simulate it, as one value that can be planned and run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TextIO

from fmimaster.fmu.load import Loader
from fmimaster.preparation import Prepared, prepare
from fmimaster.results.csv import CsvWriter
from fmimaster.results.facts import write_facts
from fmimaster.results.results import Results
from fmimaster.session import Progress, Session, silent
from fmimaster.settings import Settings


@dataclass(frozen=True)
class Simulation(Settings):
    """A system and how to simulate it. The settings are those of :class:`fmimaster.settings.Settings`.

    Examples
    --------
    >>> from fmimaster import Simulation, reference_path
    >>> simulation = Simulation(reference_path("fmi3/Dahlquist.fmu"), stop_time=1, step_size="1/10")
    >>> results = simulation.run()
    >>> round(float(results["x"][-1]), 6)
    0.367879
    """

    def prepare(self) -> Prepared:
        """Everything that is known before an FMU is instantiated: the plan, the programs, the times.

        Raises
        ------
        InputError, ProgramError
        """
        with Loader() as loader:
            return prepare(self, loader)

    def run(
        self,
        progress: Progress | None = None,
        *,
        output_file: str | os.PathLike[str] | TextIO | None = None,
    ) -> Results:
        """Simulate.

        Parameters
        ----------
        progress
            Called now and then.
        output_file : path or text stream
            A CSV file to which the rows are written during the run; they are not kept then, but the last block of
            them, so that a run of any length needs little memory. What is kept is each event, and each step that is not
            one of many alike: some hundred bytes for each.

        Raises
        ------
        InputError, ProgramError
            Before anything is simulated.
        SimulationError
            If the run cannot be ended; its ``results`` hold all rows until then.
        """
        with Loader(logging_on=self.fmi_logging) as loader:
            prepared = prepare(self, loader)
            if output_file is None:
                return Session(prepared, loader, self).run(progress or silent)
            with CsvWriter(output_file) as writer:
                run = Session(prepared, loader, self, writer)
                try:
                    return run.run(progress or silent)
                finally:
                    if isinstance(output_file, str | os.PathLike):
                        write_facts(output_file, run.events, run.steps)


_P = ParamSpec("_P")


def _running(make: Callable[_P, Simulation]) -> Callable[_P, Results]:
    @wraps(make, updated=())  # help() and editors show the settings
    def simulate(*args: _P.args, **kwargs: _P.kwargs) -> Results:
        """Simulate a system: ``Simulation(system, ...).run()`` with the settings of :class:`Simulation`.

        Examples
        --------
        >>> from fmimaster import reference_path, simulate
        >>> results = simulate(reference_path("systems/two-mass-b1-mixed.ssp"), stop_time=0.1)
        >>> results.names[:3]
        ('upper.x', 'upper.v', 'upper.a')
        """
        return make(*args, **kwargs).run()

    return simulate


simulate = _running(Simulation)
