"""``fmimaster host``: run FMUs for simulations on other machines."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from fmimaster.commands.text import write

_LOOPBACK = "127.0.0.1"
_HELP = """The run and its host share a secret, in the file that FMIMASTER_SECRET_FILE
names, or in FMIMASTER_SECRET. Everyone who knows it can run programs on this
machine."""


def add_arguments(parser: ArgumentParser) -> None:
    """Where it listens."""
    parser.epilog = _HELP
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=f"{_LOOPBACK}:0",
        help="address and port; port 0 is any free one (default: %(default)s)",
    )
    parser.add_argument(
        "--unencrypted",
        action="store_true",
        help="allow an address that other machines can reach, although nothing is encrypted",
    )


def run(arguments: Namespace) -> int:
    """Listen until Ctrl-C."""
    from fmimaster.apart.connection import SECRET, SECRET_FILE, Address, take_secret
    from fmimaster.run.isolated.listening import Listener  # a help page needs none of these

    secret, address = take_secret(), Address.of(arguments.listen, "--listen")
    for name in (SECRET, SECRET_FILE):
        os.environ.pop(name, None)  # FMUs need not know it
    listener = Listener(address, secret, unencrypted=arguments.unencrypted)
    try:
        write([f"Listens at {listener.address}. Ctrl-C ends it, and all FMUs."])
        listener.serve()
    finally:
        listener.close()
    return 0
