"""``fmimaster optimize``: search the trigger sequence with the smallest error, by simulations."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from fmimaster.algorithms import LINEAR
from fmimaster.commands import settings
from fmimaster.commands.optimize_page import facts, page
from fmimaster.commands.running import check_outputs
from fmimaster.commands.text import note, tell, write, write_json
from fmimaster.errors import FmimasterError, OptionError
from fmimaster.given_path import given_path
from fmimaster.named.text import among
from fmimaster.optimization.fuzzy import Fuzzy
from fmimaster.optimization.propagated import Propagated
from fmimaster.optimization.sequence_search import Method, SequenceSearch
from fmimaster.optimization.signature import Signature
from fmimaster.system.ssp_copy import check_copy, copy_with_annotation
from fmimaster.system.ssp_sequence import ANNOTATION, write_sequence
from fmimaster.text import aligned, count

T = TypeVar("T")

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
        tell=_ignore if arguments.no_progress or arguments.quiet else told(),
    )
    if isinstance(method, Signature) and not arguments.no_progress:
        note(arguments, [f"at most {count(method.trials(search.groups.arcs), 'simulation')}"])
    found = searched(search, search.run)
    if arguments.json:
        write_json(facts(found, search))
    else:
        write(page(found, search))
    if arguments.write:
        text = write_sequence(found.components)
        copy = copy_with_annotation(arguments.system, arguments.write, ANNOTATION, text)
        note(arguments, [f"the sequence is in an annotation of {copy}"])
        folder = search.prepared.description.source
        if copy.suffix.lower() == ".ssd" and folder is not None:
            folder = folder if folder.is_dir() else folder.parent
            if copy.absolute().parent != folder.absolute():
                note(
                    arguments,
                    [f"it names its components relative to its folder: move it to {folder}"],
                )
    return 0


def searched(search: SequenceSearch, run: Callable[[], T]) -> T:
    """What a search comes to; what it has found until then is printed if it is broken off.

    Raises
    ------
    FmimasterError
        As the search does, but after that.
    """
    try:
        with _each_message_once():
            return run()
    except (FmimasterError, KeyboardInterrupt):
        with _each_message_once():
            found = search.so_far()
        if found is not None:
            tell(["the search was stopped; the runs until then show:"])
            tell(page(found, search))
        elif search.weights:
            tell(["the search was stopped; the weights found until then are:"])
            rows = [(f"{c}.{i}", f"{w:.4g}") for (c, i), w in search.weights.items()]
            tell(aligned(rows))
        raise


def _method(arguments: Namespace) -> Method:
    kind = _METHODS[among("method", arguments.method, _METHODS)]
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
