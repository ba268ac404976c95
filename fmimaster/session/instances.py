"""The instances of a run: in this process, or in processes of their own."""

from __future__ import annotations

from fmimaster.configure.settings import Settings
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.plan.layout import Group
from fmimaster.prepare.preparation import Prepared
from fmimaster.system.description import Component


def make_instance(
    prepared: Prepared,
    i: int,
    component: Component,
    options: InstanceOptions,
    loader: Loader,
    settings: Settings,
    n_places: int,
) -> Instance:
    """The instance number i of a run, with this number of places for its states."""
    planned = prepared.plan.instances[i]
    if planned.name not in prepared.isolated:
        return loader.instantiate(component, planned.name, options)
    from fmimaster.run.isolated.instance import IsolatedInstance  # few runs need it
    from fmimaster.run.isolated.loss import Limits

    segments = prepared.plan.layout.segments(i, Group.CONTINUOUS)
    file, options = loader.file(component.source, component.interface), loader.options(options)
    instance = IsolatedInstance(
        planned,
        [variable for segment in segments for variable in segment.variables],
        file,
        options,
        n_places=n_places + 1,  # one for the replay of a journal
        limits=Limits(settings.call_timeout, settings.memory_limit),
    )
    loader.own(instance)
    instance.load()
    return instance
