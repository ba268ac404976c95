"""Solvers of Model Exchange FMUs as text: ``"cvode"``, ``"dormand-prince:relative=1e-8"``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fmimaster.base.errors import OptionError
from fmimaster.configure.named.text import among, choice, defaults_of, option_name, settings_of

if TYPE_CHECKING:
    from fmimaster.fmu.model_exchange.cvode import Jacobian
    from fmimaster.fmu.model_exchange.integrator import Integrator

SOLVERS: Mapping[str, tuple[str, str]] = {
    option_name(kind): (module, kind)
    for kind, module in (("DormandPrince", "one_step"), ("Euler", "one_step"), ("Cvode", "cvode"))
}
"""Name → its module in ``fmimaster.fmu.model_exchange`` and its class."""


def solver(text: str, where: str = "solver") -> Integrator:
    """The solver of that name. Settings are its fields.

    Raises
    ------
    OptionError

    Examples
    --------
    >>> solver("cvode:relative=1e-8").relative
    1e-08
    """
    name, _, settings = text.partition(":")
    module, class_name = SOLVERS[among("solver", name, SOLVERS)]
    kind: type[Integrator] = getattr(
        import_module(f"fmimaster.fmu.model_exchange.{module}"), class_name
    )
    return kind(**settings_of(where, name, defaults_of(kind), settings, {"jacobian": _jacobian}))


def _jacobian(text: str) -> Jacobian:
    from fmimaster.fmu.model_exchange.cvode import Jacobian

    return choice(Jacobian, "Jacobian", text)


def solvers(given: object) -> Any:
    """A setting ``solver`` with texts replaced by the solvers that they name.

    Parameters
    ----------
    given : text, Integrator, or mapping of names of components, or globs, to texts or Integrators

    Raises
    ------
    OptionError
    """
    if isinstance(given, str):
        return solver(given)
    if isinstance(given, Mapping):
        return {name: solver(one) if isinstance(one, str) else one for name, one in given.items()}
    return given


def solver_by_component(texts: list[str]) -> Integrator | dict[str, Integrator] | None:
    """The setting ``solver`` from texts ``NAME`` and ``COMPONENT=NAME`` of the command line.

    Raises
    ------
    OptionError
        If a solver is given twice.
    """
    found: dict[str, Integrator] = {}
    for text in texts:
        name, equals, kind = text.partition("=")
        if not equals or ":" in name:  # an equals sign after a colon belongs to a setting
            name, kind = "*", text
        if name in found:
            whose = "for all components" if name == "*" else f"for '{name}'"
            raise OptionError(f"--solver {text}: a solver {whose} was given already. Give it once.")
        found[name] = solver(kind, "--solver")
    return found["*"] if [*found] == ["*"] else found or None
