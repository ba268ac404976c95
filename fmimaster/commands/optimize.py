"""``fmimaster optimize``: search the trigger sequence with the smallest error, by simulations."""

from __future__ import annotations

import logging
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any, TypeVar

from fmimaster.algorithms import LINEAR, MODES, GaussSeidel, Mode
from fmimaster.commands import settings
from fmimaster.commands.event_settings import plain_name
from fmimaster.commands.running import check_outputs
from fmimaster.commands.text import aligned, count, section, tell, write, write_json
from fmimaster.errors import FmimasterError, OptionError, did_you_mean
from fmimaster.fmu.output import fmu_output_to_log
from fmimaster.given_path import given_path
from fmimaster.optimization.fuzzy import Fuzzy
from fmimaster.optimization.propagated import Propagated
from fmimaster.optimization.sequence_search import FoundSequence, Method, SequenceSearch
from fmimaster.optimization.signature import Candidate, Signature
from fmimaster.optimization.trial import stale_arcs
from fmimaster.program.polynomial import HOLD
from fmimaster.system.ssp_copy import check_copy, copy_with_annotation
from fmimaster.system.ssp_sequence import ANNOTATION, write_sequence

HELP = "Search the trigger sequence with the smallest error, by simulations with some of them."

T = TypeVar("T")

LARGE = 0.1
"""A relative error above which no prediction can be trusted."""

_METHODS: Mapping[str, type[Method]] = {
    "signature": Signature,
    "propagated": Propagated,
    "fuzzy": Fuzzy,
}


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation, the method, and where the answer goes."""
    settings.add_arguments(parser)
    add = parser.add_argument
    names = ", ".join(_METHODS)
    add("--method", default="signature", metavar="NAME", help=f"{names} (signature, if left out)")
    verified = "how many of the best predicted sequences are simulated (signature; 5, if left out)"
    add("--verify", type=int, metavar="K", help=verified)
    micro = "step size in s inside of a component (fuzzy); can be repeated"
    add("--micro-step", nargs=2, action="append", metavar=("NAME", "H"), help=micro)
    keep = "folder for the results of all runs; a second search with it makes the missing runs only"
    add("--keep-runs", metavar="DIR", help=keep)
    copy = "copy of the SSP or SSD with the sequence as an annotation"
    add("--write", metavar="FILE", help=copy)
    add("--json", action="store_true", help="print the answer as JSON")
    add("--no-progress", action="store_true", help="do not show which run is made")


def run(arguments: Namespace) -> int:
    """Search, print what was found, and write the copy."""
    method = _method(arguments)
    if arguments.write:
        check_copy(arguments.system, arguments.write)
    check_outputs({"--write": arguments.write}, [arguments.system, arguments.input_file])
    if arguments.algorithm is None:
        arguments.algorithm, arguments.mode = "gauss-seidel", arguments.mode or LINEAR.name
    search = SequenceSearch(
        settings.simulation(arguments),
        method,
        folder=None if arguments.keep_runs is None else given_path(arguments.keep_runs),
        tell=_ignore if arguments.no_progress else told(),
    )
    if isinstance(method, Signature) and not arguments.no_progress:
        tell([f"at most {count(method.trials(search.groups.arcs), 'simulation')}"])
    found = searched(search, search.run)
    _show(found, search, arguments.json)
    if arguments.write:
        text = write_sequence(found.components)
        copy = copy_with_annotation(arguments.system, arguments.write, ANNOTATION, text)
        tell([f"the sequence is in an annotation of {copy}"])
        folder = search.prepared.description.source
        if copy.suffix.lower() == ".ssd" and folder is not None:
            folder = folder if folder.is_dir() else folder.parent
            if copy.absolute().parent != folder.absolute():
                tell([f"it names its components relative to its folder: move it to {folder}"])
    return 0


def searched(search: SequenceSearch, run: Callable[[], T]) -> T:
    """What a search comes to; what it has found until then is printed if it is broken off.

    Raises
    ------
    FmimasterError
        As the search does, but after that.
    """
    try:
        with fmu_output_to_log(), _each_message_once():
            return run()
    except (FmimasterError, KeyboardInterrupt):
        with _each_message_once():
            found = search.so_far()
        if found is not None:
            tell(["the search was broken off; this is what the runs until then tell:"])
            tell(page(found, search))
        elif search.weights:
            tell(["the search was broken off; these weights were found until then:"])
            rows = [(f"{c}.{i}", f"{w:.4g}") for (c, i), w in search.weights.items()]
            tell(aligned(rows))
        raise


def _method(arguments: Namespace) -> Method:
    known = {plain_name(name): kind for name, kind in _METHODS.items()}
    kind = known.get(plain_name(arguments.method))
    if kind is None:
        raise OptionError(
            f"There is no method '{arguments.method}'.{did_you_mean(arguments.method, _METHODS)} There are "
            f"{', '.join(_METHODS)}."
        )
    if arguments.verify is not None and kind is not Signature:
        raise OptionError(
            f"--verify: the method {arguments.method} verifies nothing. Leave it out."
        )
    if arguments.micro_step is not None and kind is not Fuzzy:
        raise OptionError(
            f"--micro-step: the method {arguments.method} needs no micro steps. Leave it out."
        )
    if kind is Fuzzy:
        return Fuzzy({name: _size(size) for name, size in arguments.micro_step or ()})
    if kind is Signature and arguments.verify is not None:
        return Signature(arguments.verify)
    return kind()


def _size(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"--micro-step {text}: expected a number in s.") from None


def told() -> Callable[[str], None]:
    """A function that tells which run is made next, with its number."""
    made = 0

    def tell_next(text: str) -> None:
        nonlocal made
        made += 1
        tell([f"run {made}: {text}"])

    return tell_next


def _ignore(_text: str) -> None:
    pass


@contextmanager
def _each_message_once() -> Iterator[None]:
    """Log each message once: the runs of a search give the same ones."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        return record.levelno < logging.WARNING or not (text in seen or seen.add(text))  # type: ignore[func-returns-value]

    log = logging.getLogger("fmimaster")
    log.addFilter(is_new)
    try:
        yield
    finally:
        log.removeFilter(is_new)


# What is printed ------------------------------------------------------------------------------------------------------


def _show(found: FoundSequence, search: SequenceSearch, as_json: bool) -> None:
    if as_json:
        write_json(facts(found, search))
    else:
        write(page(found, search))


def facts(found: FoundSequence, search: SequenceSearch) -> dict[str, Any]:
    """What was found as plain data."""
    return {
        "system": search.prepared.description.system.name,
        "method": repr(search.method),
        "algorithm": repr(found.algorithm),
        "sequence": list(found.components),
        "cost": found.cost,
        "base": list(found.base),
        "baseCost": found.base_cost,
        "options": options(found.algorithm, found.components),
        "candidates": [
            candidate_facts(c) | {"sequence": list(found.groups.components(c.sequence))}
            for c in found.candidates
        ],
        "solvedTogether": [list(m) for m in found.groups.members.values() if len(m) > 1],
        "weights": [
            {"source": a, "target": b, "weight": w} for (a, b), w in sorted(found.weights.items())
        ],
        "unknown": [{"source": a, "target": b} for a, b in found.unknown],
        "failures": list(map(str, search.runs.failures.values())),
    }


def candidate_facts(candidate: Candidate) -> dict[str, Any]:
    """A candidate as plain data."""
    names = {
        "sequence": "sequence",
        "predicted": "predictedError",
        "measured": "error",
        "predicted_difference": "predictedDifference",
        "difference": "difference",
    }
    return {names[key]: value for key, value in asdict(candidate).items()}


def page(found: FoundSequence, search: SequenceSearch) -> list[str]:
    """What was found, for a person."""
    name = search.prepared.description.system.name
    runs = count(search.simulations, "simulation")
    lines = [f"{name}, {algorithm_words(found.algorithm)}, {_method_words(search.method)}, {runs}"]
    lines += section("Sequence", [f"  {', '.join(found.components)}"])
    rows = [
        ("", "components", "cost"),
        ("found", ", ".join(found.components), f"{found.cost:.4g}"),
        ("before", ", ".join(found.base), f"{found.base_cost:.4g}"),
    ]
    lines += section("Cost: total weight of stale inputs", aligned(rows))
    if isinstance(search.method, Signature):
        lines += section(
            "Errors, relative to the size of the outputs", aligned(_candidate_rows(found))
        )
    least = found.candidates[0].measured
    if least is not None and least > LARGE:
        lines += [
            "  Even the best of these errors is large. Predictions hold for small ones: use a smaller step size."
        ]
    chosen = stale_arcs(found.candidates[0].sequence, found.weights)
    label = found.groups.label
    weights = [
        (label(a), "->", label(b), f"{w:.4g}", "stale" if (a, b) in chosen else "fresh")
        for (a, b), w in sorted(found.weights.items(), key=lambda item: (-item[1], item[0]))
    ]
    lines += section("Weights: what it costs if the inputs are stale", aligned(weights))
    lines += section(
        "Connections about which nothing is known",
        aligned([(label(a), "->", label(b)) for a, b in found.unknown]),
    )
    words = shlex.join(options(found.algorithm, found.components))
    return [*lines, *section("To use it", [f"  {words}"])]


def options(algorithm: GaussSeidel, components: Iterable[str]) -> list[str]:
    """The options of the command line that set an algorithm and a sequence."""
    words = ["--algorithm", "gauss-seidel", "--mode", _mode_words(algorithm.mode)]
    words += ["--levels"] * algorithm.levels
    if algorithm.inputs != HOLD:
        words += ["--inputs", f"{algorithm.inputs.points},{algorithm.inputs.derivatives}"]
    return [*words, "--sequence", ",".join(components)]


def _mode_words(mode: Mode) -> str:
    """A mode as the command line takes it."""
    usual = MODES[mode.name]
    given = ((f.name, getattr(mode, f.name)) for f in fields(type(mode)))  # type: ignore[arg-type]
    changed = [f"{name}={value}" for name, value in given if value != getattr(usual, name)]
    return mode.name + (f":{','.join(changed)}" if changed else "")


def algorithm_words(algorithm: GaussSeidel) -> str:
    """An algorithm in short words."""
    inputs = algorithm.inputs
    more = "" if inputs == HOLD else f", inputs {inputs.points},{inputs.derivatives}"
    return f"Gauss-Seidel, mode {_mode_words(algorithm.mode)}{more}"


def _method_words(method: Method) -> str:
    name = next(name for name, kind in _METHODS.items() if isinstance(method, kind))
    return f"method {name}"


def _candidate_rows(found: FoundSequence) -> list[tuple[str, ...]]:
    """A table of candidates, with a head."""
    rows = [
        (
            ", ".join(map(found.groups.label, c.sequence)),
            number(c.predicted),
            number(c.measured),
        )
        for c in found.candidates
    ]
    return [("sequence", "predicted", "simulated"), *rows]


def number(value: float | None) -> str:
    """A number, or that it is not known."""
    return "-" if value is None else f"{value:.4g}"
