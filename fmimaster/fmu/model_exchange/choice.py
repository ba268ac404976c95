"""The solver of each Model Exchange FMU of a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Model
from fmimaster.system.notes import listed

ALL = "*"
"""The glob of all components: any other name or glob takes precedence."""


def check_solver(setting: object) -> None:
    """Raise if a setting is neither an integrator nor a mapping of names or globs to integrators.

    Raises
    ------
    OptionError
    """
    if setting is None:
        return
    entries = setting if isinstance(setting, Mapping) else {ALL: setting}
    for name, one in entries.items():
        if isinstance(one, type) and issubclass(one, Integrator):
            raise OptionError(
                f"solver: {one.__name__} is a class. Give an object: {one.__name__}()."
            )
        if not isinstance(one, Integrator) or not isinstance(name, str):
            raise OptionError(
                f"solver: {one!r} is not a solver. Give an object such as Cvode(), its name, such as 'cvode', or a "
                "mapping of components or globs to them."
            )


def chosen_solvers(
    setting: Integrator | Mapping[str, Integrator] | None, models: Mapping[str, Model]
) -> dict[str, Integrator]:
    """Name of a component → its solver, for Model Exchange FMUs for which one is given.

    A name takes precedence over a glob, and any glob over ``*``.

    Parameters
    ----------
    models
        Name of a component → its model.

    Raises
    ------
    OptionError
        If a name or glob fits no Model Exchange FMU, two globs with different solvers fit one, or an FMU lacks the
        directional derivatives that its solver needs.
    """
    if setting is None:
        return {}
    given = setting if isinstance(setting, Mapping) else {ALL: setting}
    exchanged = [n for n, m in models.items() if m.interface is Interface.MODEL_EXCHANGE]
    for pattern in given:
        if not any(fnmatchcase(name, pattern) for name in exchanged):
            raise OptionError(_nothing_fits(pattern, exchanged, models))
    chosen = {
        name: _of_one(name, fitting)
        for name in exchanged
        if (fitting := {p: s for p, s in given.items() if fnmatchcase(name, p)})
    }
    for name, solver in chosen.items():
        if solver.needs_jacobian and models[name].n_states and not has_jacobian(models[name]):
            raise OptionError(
                f"solver: '{name}' provides no directional derivatives of its state derivatives "
                "(providesDirectionalDerivatives). Leave jacobian=directional out, or use jacobian=differences, for this "
                "component."
            )
    return chosen


def has_jacobian(model: Model) -> bool:
    """Whether an FMU provides directional derivatives of its derivatives by the states."""
    can = model.capabilities.provides_directional_derivatives
    return can and jacobian_references(model) is not None


def jacobian_references(model: Model) -> tuple[list[int], list[int]] | None:
    """Value references of the derivatives and of the states; None if one is not declared."""
    derivatives = [model.variable(name) for name in model.state_derivatives]
    states = [d and model.variable(d.derivative_of or "") for d in derivatives]
    if not (all(derivatives) and all(states)):
        return None
    return tuple([v.value_reference for v in side if v] for side in (derivatives, states))  # type: ignore[return-value]


def _of_one(name: str, fitting: Mapping[str, Integrator]) -> Integrator:
    if name in fitting:
        return fitting[name]
    (first, solver), *others = sorted(fitting.items(), key=lambda pair: pair[0] == ALL)
    for other, another in others:
        if another != solver and other != ALL:
            raise OptionError(
                f"solver: '{first}' and '{other}' both fit '{name}', with different solvers. Give '{name}' by its name."
            )
    return solver


def _nothing_fits(pattern: str, exchanged: list[str], models: Mapping[str, Model]) -> str:
    others = [name for name in models if name not in exchanged and fnmatchcase(name, pattern)]
    if not others:
        near = did_you_mean(pattern, exchanged)
        return f"solver: '{pattern}' fits no component.{near} Expected a name or a glob."
    both = any(Interface.MODEL_EXCHANGE in models[name].interfaces for name in others)
    advice = (
        "Choose its Model Exchange interface (interface='ModelExchange', --interface), or leave the solver out."
        if both
        else "Leave it out."
    )
    return (
        f"solver: '{others[0]}' is used for Co-Simulation, and has its own solver. Solvers are for Model Exchange FMUs. "
        + advice
    )


def exchange_notes(models: Mapping[str, Model], solvers: Mapping[str, Integrator]) -> Iterator[str]:
    """Notes about Model Exchange FMUs: who solves their equations, and what going back cannot restore.

    Parameters
    ----------
    models
        Name of a component → its model.
    solvers
        Name of a component → the solver that the user has chosen.
    """
    by_solver: dict[str, list[str]] = {}
    for name, model in models.items():
        if model.interface is Interface.MODEL_EXCHANGE:
            # only Model Exchange needs it
            from fmimaster.fmu.model_exchange.one_step import DormandPrince

            words = solvers.get(name, DormandPrince()).words
            by_solver.setdefault(words, []).append(f"'{name}'")
    for words, names in by_solver.items():
        yield f"Model Exchange: the equations of {listed(names)} are solved by {words}"
    exchanged = (n for n, m in models.items() if m.interface is Interface.MODEL_EXCHANGE)
    copied = [f"'{name}'" for name in exchanged if models[name].capabilities.copies_states]
    if copied:
        yield (
            f"{listed(copied)} cannot save the FMU state (canGetAndSetFMUState): to repeat a step, the continuous states "
            "are restored from copies; a step with an event inside cannot be repeated"
        )
