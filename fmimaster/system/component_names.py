"""The components of a system that is being built, by name: ``"component.variable"`` must have one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.description import Component, Endpoint


class NamedComponents:
    """Components by their names, which may contain dots.

    A system may have thousands of components: each is found by its name, without a search.
    """

    def __init__(self) -> None:
        self._found: dict[str, Component] = {}
        self._within: dict[str, str] = {}
        """Part of a component's name before a dot → the first component with such a name."""

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Component]:
        return iter(self._found.values())

    def check_new(self, name: str) -> None:
        """Refuse a name that a further component cannot have.

        Raises
        ------
        DescriptionError
            If it is empty, is taken, or could be read as a component and its variable.
        """
        if not name:
            raise DescriptionError("A component has an empty name. Give it a name.")
        if name in self._found:
            raise DescriptionError(f"There is a component '{name}' already. Choose another name.")
        alike = (start for start in _before_dots(name) if start in self._found)
        other = self._within.get(name) or next(alike, None)
        if other is not None:
            raise DescriptionError(
                f"Components '{name}' and '{other}' cannot be distinguished from a component and its "
                "variable. Rename one of them."
            )

    def take(self, component: Component) -> None:
        """Add a component whose name was checked."""
        self._found[component.name] = component
        for start in _before_dots(component.name):
            self._within.setdefault(start, component.name)

    def check_known(self, name: str, where: str) -> None:
        """Refuse a name that no component has; ``where`` begins the message.

        Raises
        ------
        DescriptionError
        """
        if name not in self._found:
            raise DescriptionError(
                f"{where}: there is no component '{name}'.{did_you_mean(name, self._found)}"
            )

    def endpoint(self, name: str, where: str, what: str = "variable") -> Endpoint:
        """The component and the variable, or the event, that ``"component.variable"`` names.

        Raises
        ------
        DescriptionError
            If there is no such component.
        """
        for component in _before_dots(name):
            if component in self._found and len(name) > len(component) + 1:
                return Endpoint(component, name[len(component) + 1 :])
        component, dot, variable = name.partition(".")
        if not (dot and variable) or component in self._found:
            raise DescriptionError(f"{where}: '{name}' is not of the form 'component.{what}'.")
        near = did_you_mean(component, self._found)
        near = near or did_you_mean(name.rpartition(".")[0], self._found)
        raise DescriptionError(f"{where}: there is no component '{component}'.{near}")


def _before_dots(name: str) -> Iterator[str]:
    """The part of a name before each of its dots."""
    at = name.find(".")
    while at >= 0:
        yield name[:at]
        at = name.find(".", at + 1)
