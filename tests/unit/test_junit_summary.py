"""The summary of tests that were run by another Python, from the report of pytest."""

from __future__ import annotations

from pathlib import Path

import junit_summary  # type: ignore[import-not-found]
import pytest
from junit_summary import FAILED, LOST, Outcome

REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_good[1.5]" time="1.4" />
<testcase classname="tests.unit.test_a.TestB" name="test_bad" time="1">
  <failure message="assert 1 == 2&#10;more">E</failure>
</testcase>
<testcase classname="tests.unit.test_a" name="test_bad_end"><failure message="E" /></testcase>
<testcase classname="tests.unit.test_a" name="test_bad_end"><error message="failed on teardown" /></testcase>
<testcase classname="tests.cli.test_c" name="test_x"><skipped message="no fork there" /></testcase>
<testcase classname="tests.cli.test_c" name="test_y"><skipped message="no fork there" /></testcase>
<testcase classname="" name="tests.cli.test_d"><error message="collection failure">ImportError</error></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.xml"
    path.write_text(REPORT, encoding="utf-8")
    return path


def test_counts_failures_and_reasons_of_skips(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Outcome("tests/cli/test_c.py::test_hangs", FAILED, LOST)
    assert junit_summary.show([*junit_summary.read(report), lost]) == 1
    assert (
        capsys.readouterr().out
        == """
Failed:
  tests.unit.test_a.TestB.test_bad: assert 1 == 2
  tests.unit.test_a.test_bad_end: failed on teardown
  tests.cli.test_d: collection failure
  tests/cli/test_c.py::test_hangs: has ended Python, or hung

Skipped:
     2  no fork there

            passed  failed  skipped  seconds
tests/cli        0       2        2        0
tests/unit       1       2        0        2

1 passed, 4 failed, 2 skipped
"""
    )


@pytest.mark.parametrize(
    ("cases", "status"),
    [
        ('<testcase classname="tests.unit.test_a" name="test_b" />', 0),
        (
            '<testcase classname="tests.unit.test_a" name="test_b"><skipped message="" /></testcase>',
            1,
        ),
        ("", 1),
    ],
)
def test_success_is_tests_that_pass_and_none_that_fails(
    cases: str, status: int, tmp_path: Path
) -> None:
    path = tmp_path / "report.xml"
    path.write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
    assert junit_summary.show(junit_summary.read(path)) == status
