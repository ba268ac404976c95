"""Units of elements of semantic adaptation: those of the signals that they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fmimaster.system.adaptation import INPUT
from fmimaster.system.description import Endpoint, SystemDescription
from fmimaster.system.model import Model, Unit
from fmimaster.system.wiring import Wiring


def with_units_of_sources(
    description: SystemDescription,
    models: Mapping[str, Model],
    wiring: Wiring,
    unit: Callable[[Endpoint], Unit | None],
) -> dict[str, Model]:
    """The models; all floating point variables of an element have the unit of the source of its input.

    Parameters
    ----------
    unit
        The unit of a variable or of a connector that takes values.
    """
    elements = {name for name, c in description.components() if c.adaptation is not None}

    def source(name: str) -> Endpoint:
        """The source of an element's input; not another element, whose unit is that of its own source."""
        passed = {name}
        while True:
            start = wiring.into(Endpoint(name, INPUT)).start
            if start.element not in elements or start.element in passed:
                return start
            passed.add(name := start.element)

    found = dict(models)
    for name in elements:
        if models[name].variable(INPUT) is None:
            continue
        of_source = unit(source(name))
        variables = (
            replace(v, unit=of_source) if v.type.is_float else v for v in models[name].variables
        )
        found[name] = replace(models[name], variables=tuple(variables))
    return found
