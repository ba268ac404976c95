"""Many runs of a simulation with other start values, on all cores or on a cluster, in a data set that can be continued."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.studies.sweeps.design import Choices as Choices
    from fmimaster.studies.sweeps.design import Design as Design
    from fmimaster.studies.sweeps.design import FullGrid as FullGrid
    from fmimaster.studies.sweeps.design import LatinHypercube as LatinHypercube
    from fmimaster.studies.sweeps.design import Range as Range
    from fmimaster.studies.sweeps.design import Sobol as Sobol
    from fmimaster.studies.sweeps.design_table import DesignTable as DesignTable
    from fmimaster.studies.sweeps.executors import Processes as Processes
    from fmimaster.studies.sweeps.executors import SweepExecutor as SweepExecutor
    from fmimaster.studies.sweeps.executors import ThisProcess as ThisProcess
    from fmimaster.studies.sweeps.on_dask import Dask as Dask
    from fmimaster.studies.sweeps.sweep import SweepProgress as SweepProgress
    from fmimaster.studies.sweeps.swept import SweptRuns as SweptRuns
else:
    __getattr__, __dir__ = public_names(__name__)
