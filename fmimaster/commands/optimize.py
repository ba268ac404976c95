"""``fmimaster optimize``: search the trigger sequence with the smallest error, by simulations."""

from __future__ import annotations

import logging
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count as numbers
from typing import Any, TypeVar

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.modes import AlongLine
from fmimaster.base.errors import FmimasterError, OptionError
from fmimaster.base.files import given_path
from fmimaster.base.text import aligned, count, section
from fmimaster.commands import settings
from fmimaster.commands.running import check_outputs
from fmimaster.commands.text import note, tell, write, write_json
from fmimaster.configure.named import among, setting_text
from fmimaster.studies.optimization.sequence_search import FoundSequence, Method, SequenceSearch
from fmimaster.studies.optimization.signature import Candidate, Signature
from fmimaster.studies.optimization.trial import stale_arcs
from fmimaster.studies.optimization.weights import Fuzzy, Propagated
from fmimaster.system.ssp_annotations import SEQUENCE, write_sequence
from fmimaster.system.ssp_copy import check_copy, copy_with_annotation

T = TypeVar("T")

_METHODS: Mapping[str, type[Method]] = {
    "signature": Signature,
    "propagated": Propagated,
    "fuzzy": Fuzzy,
}


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation, the method, and the outputs."""
    settings.add_arguments(parser)
    add = parser.add_argument
    names = ", ".join(_METHODS)
    add("--method", default="signature", metavar="NAME", help=f"{names} (default: signature)")
    verified = "number of sequences with the best predictions that are simulated (method signature; default: 5)"
    add("--verify", type=int, metavar="K", help=verified)
    micro = "internal step size of a component in s (method fuzzy); can be repeated"
    add("--micro-step", nargs=2, action="append", metavar=("NAME", "H"), help=micro)
    keep = "folder for the results of all runs; a second search with the same folder simulates only the missing runs"
    add("--keep-runs", metavar="DIR", help=keep)
    copy = "copy of the SSP or SSD with the sequence as an annotation"
    add("--write", metavar="FILE", help=copy)
    add("--json", action="store_true", help="print the result as JSON")
    add("--no-progress", action="store_true", help="do not show the present run")


def run(arguments: Namespace) -> int:
    """Search, print the result, and write the copy."""
    method = _method(arguments)
    if arguments.write:
        check_copy(arguments.system, arguments.write)
    check_outputs({"--write": arguments.write}, [arguments.system, arguments.input])
    if arguments.algorithm is None:
        arguments.algorithm, arguments.mode = "gauss-seidel", arguments.mode or AlongLine.name
    search = SequenceSearch(
        settings.simulation(arguments),
        method,
        folder=None if arguments.keep_runs is None else given_path(arguments.keep_runs),
        tell=(lambda _: None) if arguments.no_progress or arguments.quiet else told(),
    )
    if isinstance(method, Signature) and not arguments.no_progress:
        note(arguments, [f"at most {count(method.trials(search.groups.arcs), 'simulation')}"])
    found = searched(search, search.run)
    if arguments.json:
        note(arguments, [NOISE] if found.ranks_noise else [])
        write_json(facts(found, search))
    else:
        write(page(found, search))
    if arguments.write:
        text = write_sequence(found.components)
        copy = copy_with_annotation(arguments.system, arguments.write, SEQUENCE.type, text)
        note(arguments, [f"the sequence is in an annotation of {copy}"])
        folder = search.prepared.description.source
        if copy.suffix.lower() == ".ssd" and folder is not None:
            folder = folder if folder.is_dir() else folder.parent
            if copy.absolute().parent != folder.absolute():
                note(
                    arguments,
                    [f"its component paths are relative to its folder: move it to {folder}"],
                )
    return 0


def searched(search: SequenceSearch, run: Callable[[], T]) -> T:
    """Run a search; if it is interrupted, its results so far are printed.

    Raises
    ------
    FmimasterError
        If the search does; what it has found is printed first.
    """
    try:
        with _each_message_once():
            return run()
    except (FmimasterError, KeyboardInterrupt):
        with _each_message_once():
            found = search.so_far()
        if found is not None:
            tell(["the search was stopped; result of the runs so far:"])
            tell(page(found, search))
        elif search.weights:
            tell(["the search was stopped; the weights found so far are:"])
            rows = [(f"{c}.{i}", f"{w:.4g}") for (c, i), w in search.weights.items()]
            tell(aligned(rows))
        raise


def _method(arguments: Namespace) -> Method:
    kind = _METHODS[among("method", arguments.method, _METHODS)]
    if arguments.verify is not None and kind is not Signature:
        raise OptionError(
            f"--verify: the method {arguments.method} does not simulate predicted sequences. Leave it out."
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
    """A function that shows the next run with its number."""
    number = numbers(1)
    return lambda text: tell([f"run {next(number)}: {text}"])


@contextmanager
def _each_message_once() -> Iterator[None]:
    """Log each message once: all runs of a search give the same messages."""
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


LARGE = 0.1
"""A relative error above which predictions are not reliable."""

NOISE = (
    "These errors are as large as the outputs themselves: the order of the sequences is noise, and the one that was found "
    "may be worse than others. Use a smaller step size."
)


def facts(found: FoundSequence, search: SequenceSearch) -> dict[str, Any]:
    """The result as plain data."""
    return {
        "system": search.prepared.description.system.name,
        "method": repr(search.method),
        "algorithm": setting_text(found.algorithm),
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
        "ranksNoise": found.ranks_noise,
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
    """The result as lines of text."""
    name = search.prepared.description.system.name
    runs = count(search.simulations, "simulation")
    lines = [
        f"{name}, {setting_text(found.algorithm)}, method {type(search.method).__name__.lower()}, {runs}"
    ]
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
    if found.ranks_noise:
        lines += [f"  {NOISE}"]
    elif least is not None and least > LARGE:
        lines += [
            "  Even the smallest of these errors is large. Predictions are valid for small errors: use a smaller "
            "step size."
        ]
    chosen = stale_arcs(found.candidates[0].sequence, found.weights)
    label = found.groups.label
    weights = [
        (label(a), "->", label(b), f"{w:.4g}", "stale" if (a, b) in chosen else "fresh")
        for (a, b), w in sorted(found.weights.items(), key=lambda item: (-item[1], item[0]))
    ]
    lines += section("Weights: cost of stale inputs", aligned(weights))
    lines += section(
        "Connections about which nothing is known",
        aligned([(label(a), "->", label(b)) for a, b in found.unknown]),
    )
    words = shlex.join(options(found.algorithm, found.components))
    return [*lines, *section("To use it", [f"  {words}"])]


def options(algorithm: GaussSeidel, components: Iterable[str]) -> list[str]:
    """The options of the command line that set an algorithm and a sequence."""
    return ["--algorithm", setting_text(algorithm), "--sequence", ",".join(components)]


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
    """A number, or words if it is not known."""
    return "-" if value is None else f"{value:.4g}"
