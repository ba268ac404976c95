"""A simulation to a given accuracy: it is run again with shorter steps until the results have it."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from fmimaster.base.errors import Interrupted, SimulationError
from fmimaster.base.files import given_path, refuse_to_overwrite
from fmimaster.configure.settings import Settings
from fmimaster.fmu.load import Loader
from fmimaster.front.accuracy_reach import common, in_words, judged_columns, reach
from fmimaster.front.single_run import judge, measured, simulated
from fmimaster.prepare.preparation import prepare
from fmimaster.prepare.structures import structures_of
from fmimaster.results.files import write_table
from fmimaster.results.results import Results
from fmimaster.session.launch import OutputFile, files_read
from fmimaster.session.work_thread import ProgressCallback, silent, unanswered


def accurate(
    simulation: Settings, progress: ProgressCallback | None, output_file: OutputFile
) -> Results:
    """Run again with shorter steps until the results are accurate; the last results are written to the file."""
    with Loader() as loader:
        prepared = prepare(simulation, loader)
        structures = structures_of(simulation, prepared, partial(prepare, loader=loader))
    every = [prepared] if structures is None else structures.prepared
    choice = common([s.choice for s in every if s.choice is not None])
    if isinstance(output_file, str | os.PathLike):
        output_file = given_path(output_file).absolute()
        refuse_to_overwrite(output_file, files_read(simulation, prepared))
    found: tuple[str, ...] = ()

    def single(settings: Settings) -> Results:
        nonlocal found
        # shorter steps in the next run may remove a problem of this run
        shown = unanswered(progress or silent)
        ran = measured(simulated(replace(settings, strict=False), shown), is_small=True)
        found = ran.found
        return ran.results

    results = None
    try:
        size = min(s.schedule.rule.exact_size for s in every)
        reached = reach(simulation, choice, size, judged_columns([s.plan for s in every]), single)
        results = reached.results
    except SimulationError as error:  # Interrupted, too
        results = error.results
        raise
    except KeyboardInterrupt:
        raise Interrupted("Interrupted between two simulations.") from None
    finally:
        if output_file is not None and results is not None and results.rows:
            write_table(results, output_file)
    missed = () if reached.is_enough else (in_words(reached),)
    judge(simulation, (*found, *reached.own_steps.limits, *missed), reached.results)
    return reached.results
