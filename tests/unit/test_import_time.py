"""Importing the package imports nothing that is slow to import and only some runs need."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("scipy", "matplotlib", "rich")


@pytest.mark.parametrize("module", ["fmimaster", "fmimaster.commands.cli"])
def test_importing_leaves_slow_packages_out(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "fmimaster" in done.stdout.split()
    assert set(done.stdout.split()) & set(SLOW) == set()


@pytest.mark.parametrize("module", ["argparse", "fmimaster.commands"])
def test_ctrl_c_while_the_command_line_is_imported_is_said_in_one_line(module: str) -> None:
    code = f"""
import runpy, sys
class Press:
    def find_spec(self, name, *_):
        if name == "{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Press())
sys.argv = ["fmimaster", "--version"]
runpy.run_module("fmimaster", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "fmimaster: error: Interrupted.\n"


def test_all_public_names_are_there() -> None:
    code = "import fmimaster; print(dir(fmimaster))"
    code += "; from fmimaster import *; print(simulate, fmimaster.Simulation)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "'ZenoError'" in done.stdout
