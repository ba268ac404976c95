"""Bad input gets a message that says what, where, what was expected and what to do; its words are read here.

All of it goes through the command line, with files on disk. A command that fails has exit status 2 and shows no
traceback: :attr:`Outcome.error` asserts both.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import fmpy
import pytest
from command_line import Outcome, changed, reference, system
from event_fmus import EXTRA, manifest

from fmimaster.results.results import Results
from fmimaster.system.description import SharedEvent
from fmimaster.system.ssp_events import write_shared_events

Run = Callable[..., Outcome]


@pytest.fixture
def dahlquist() -> Path:
    return reference("fmi3/Dahlquist.fmu")


@pytest.fixture
def upper() -> Path:
    return reference("fmi2/TwoMassUpper.fmu")


@pytest.fixture
def feedthrough() -> Path:
    return reference("fmi3/Feedthrough.fmu")


@pytest.fixture(params=["fmi2", "fmi3"])
def faulty(request: pytest.FixtureRequest) -> Path:
    return reference(f"{request.param}/Faulty.fmu")


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_missing_file_is_named_with_the_near_one(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    shutil.copy(dahlquist, tmp_path / "engine.fmu")
    message = run("simulate", tmp_path / "engin.fmu").error
    assert f"'{tmp_path / 'engin.fmu'}' does not exist. Did you mean 'engine.fmu'?" in message


def test_a_missing_folder_is_told(run: Run, tmp_path: Path) -> None:
    assert "does not exist, nor does its folder" in run("info", tmp_path / "no" / "a.fmu").error


def test_a_file_of_another_kind_is_no_system(run: Run, tmp_path: Path) -> None:
    (tmp_path / "system.txt").write_text("hello", encoding="utf-8")
    message = run("simulate", tmp_path / "system.txt").error
    assert (
        "is not a system. Expected an SSP archive (.ssp), an SSD (.ssd), an FMU (.fmu)" in message
    )


def test_what_is_not_a_zip_is_told_with_how_it_begins(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.fmu").write_text("<html>not found</html>", encoding="utf-8")
    message = run("simulate", tmp_path / "a.fmu").error
    assert "is not a zip archive, as an FMU or SSP archive must be" in message
    assert "<html>not found" in message


def test_a_git_lfs_pointer_is_recognised(run: Run, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:12ab\nsize 123456\n"
    (tmp_path / "a.fmu").write_text(pointer, encoding="utf-8")
    message = run("simulate", tmp_path / "a.fmu").error
    assert (
        "is a Git LFS pointer, not the file itself (123,456 bytes). Run 'git lfs pull'" in message
    )


def test_a_truncated_archive_is_told(run: Run, dahlquist: Path, tmp_path: Path) -> None:
    (tmp_path / "a.fmu").write_bytes(dahlquist.read_bytes()[:-100])
    assert "is a damaged or incomplete zip archive" in run("simulate", tmp_path / "a.fmu").error


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
@pytest.mark.parametrize("command", ["simulate", "info", "plan", "validate"])
@pytest.mark.parametrize("name", ["a.fmu", "a.ssp", "a.ssd"])
def test_a_named_pipe_is_refused_and_not_waited_for(
    run: Run, tmp_path: Path, command: str, name: str
) -> None:
    os.mkfifo(tmp_path / name)
    outcome = run(command, tmp_path / name)
    said = outcome.out if command == "validate" else outcome.error
    assert f"'{tmp_path / name}' is a named pipe, expected a file" in said


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_named_pipe_in_an_unpacked_fmu_is_not_waited_for(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "a"
    with zipfile.ZipFile(dahlquist) as archive:
        archive.extractall(folder)
    (folder / EXTRA).parent.mkdir(parents=True)
    os.mkfifo(folder / EXTRA)
    (folder / "sources" / "buildDescription.xml").unlink()
    os.mkfifo(folder / "sources" / "buildDescription.xml")
    assert run("simulate", folder).status == 0
    (folder / "modelDescription.xml").unlink()
    os.mkfifo(folder / "modelDescription.xml")
    assert "has no SystemStructure.ssd" in run("simulate", folder).error


def test_an_archive_without_model_description_is_no_fmu(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    path = changed(dahlquist, tmp_path / "a.fmu", name=lambda n: f"folder/{n}")
    message = run("simulate", path).error
    assert "has no modelDescription.xml, so it is not an FMU" in message
    assert "must not be packed with a folder around it" in message


def test_malformed_xml_is_located(run: Run, dahlquist: Path, tmp_path: Path) -> None:
    path = changed(
        dahlquist, tmp_path / "a.fmu", description=lambda t: t.replace("</ModelVariables>", "")
    )
    message = run("simulate", path).error
    assert "a.fmu/modelDescription.xml, line " in message
    assert "malformed XML" in message


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE a SYSTEM "http://localhost:1/a.dtd">',
    ],
    ids=["expansion", "file", "network"],
)
def test_entities_are_never_resolved(
    run: Run, dahlquist: Path, tmp_path: Path, doctype: str
) -> None:
    def with_entity(text: str) -> str:
        head, mark, rest = text.partition("<fmiModelDescription")
        return head + doctype + mark + rest.replace('modelName="Dahlquist"', 'modelName="&b;"', 1)

    path = changed(dahlquist, tmp_path / "a.fmu", description=with_entity)
    message = run("simulate", path).error
    assert "has a document type" in message
    assert "Remove the DOCTYPE line" in message
    assert "root:" not in message


@pytest.mark.parametrize("name", ["../outside.txt", "a/../../outside.txt", "/tmp/outside.txt"])
def test_an_archive_entry_that_points_outside_is_refused(
    run: Run, dahlquist: Path, tmp_path: Path, name: str
) -> None:
    path = changed(dahlquist, tmp_path / "a.fmu", members={name: b"!"})
    message = run("simulate", path).error
    assert (
        f"has a member named '{name}', which is not a relative path inside the archive" in message
    )
    assert "Nothing was unpacked" in message
    assert not list(tmp_path.rglob("outside.txt"))
    assert not Path("/tmp/outside.txt").exists()


def test_an_input_file_that_is_no_table_is_located(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    (tmp_path / "u.csv").write_text('"time","u"\n0,1\n1,x\n', encoding="utf-8")
    message = run("simulate", dahlquist, "--input-file", tmp_path / "u.csv").error
    assert "u.csv', line 3: column 'u' has 'x'; expected a number" in message


def test_a_column_of_the_input_file_that_is_no_input_is_told(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    (tmp_path / "u.csv").write_text('"time","u_y"\n0,1\n', encoding="utf-8")
    message = run("simulate", upper, "--input-file", tmp_path / "u.csv").error
    assert "Column 'u_y'" in message
    assert "is not an open input of the system. Did you mean" in message


# FMUs that cannot be run here -----------------------------------------------------------------------------------------


def _binary(fmu: Path) -> str:
    """Name of the shared library in a reference FMU."""
    with zipfile.ZipFile(fmu) as archive:
        ours = tuple(f"binaries/{name}/" for name in (fmpy.platform, fmpy.platform_tuple))
        [name] = [n for n in archive.namelist() if n.startswith(ours) and not n.endswith("/")]
    return name


def test_without_a_binary_for_this_platform_those_that_are_there_are_listed(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    beos = "binaries/x86_64-beos"
    path = changed(upper, tmp_path / "a.fmu", name=lambda n: re.sub("^binaries/[^/]*", beos, n))
    message = run("simulate", path).error
    assert (
        f"has no binary for this platform, expected {fmpy.platform} or {fmpy.platform_tuple}"
        in message
    )
    assert "it has x86_64-beos" in message


OTHERS = [
    ({"linux": "linux32", "win32": "win32"}, "A library of 32 bit cannot be loaded by Python of"),
    ({"linux": "win64", "win32": "linux64"}, "; export it for "),
]


@pytest.mark.skipif(sys.platform not in ("linux", "win32"), reason="names of two systems")
@pytest.mark.parametrize(("names", "told"), OTHERS)
def test_what_the_fmu_has_instead_of_a_binary_is_told_with_the_way_out(
    run: Run, upper: Path, tmp_path: Path, names: dict[str, str], told: str
) -> None:
    there = names[sys.platform]
    moved = changed(
        upper, tmp_path / "a.fmu", name=lambda n: re.sub("binaries/[^/]*", f"binaries/{there}", n)
    )
    message = run("simulate", moved).error
    assert f"; it has {there}." in message
    assert told in message
    assert "It has C sources; build a binary from them: " in message
    without = changed(upper, tmp_path / "b.fmu", name=lambda n: n.replace("binaries/", "extra/"))
    message = run("simulate", without).error
    assert "; it has no binary. It has C sources" in message


@pytest.mark.skipif(sys.platform != "win32", reason="DLLs")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b"KERNEL32.dll", b"KERNELXY.dll", "needs 'KERNELXY.dll', which is neither beside it nor"),
        (b"KERNEL32.dll", b"msvcr999.dll", "it belongs to the Microsoft Visual C++ Redistributab"),
        (b"KERNEL32.dll", b"msvcp90d.dll", "export the FMU as release, not for debugging"),
        (
            b"PE\0\0\x64\x86",
            b"PE\0\0\x64\xaa",
            "The file is for AArch64, this machine needs x86-64",
        ),
        (b"PE\0\0\x64\x86", b"PE\0\0\x4c\x01", "The file is for x86, this machine needs x86-64"),
        (b"MZ", b"XX", "The file is no library for Windows, this machine needs x86-64"),
    ],
)
def test_a_dll_that_cannot_be_loaded_is_told_with_the_reason(
    run: Run, upper: Path, tmp_path: Path, old: bytes, new: bytes, told: str
) -> None:
    name = _binary(upper)
    with zipfile.ZipFile(upper) as archive:
        library = archive.read(name)
    assert old in library
    path = changed(upper, tmp_path / "a.fmu", members={name: library.replace(old, new, 1)})
    message = run("simulate", path).error
    assert "cannot be loaded on this machine: " in message
    assert told in message
    assert "whose own DLLs are installed; install what is missing" in message


@pytest.mark.skipif(sys.platform != "win32", reason="one DLL of each name in a process")
def test_a_dll_of_the_name_of_another_one_is_warned_of(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    name = _binary(upper)
    with zipfile.ZipFile(upper) as archive:
        library = archive.read(name)
    first = tmp_path / "KERNELXY.dll"
    first.write_bytes(library)
    loaded = ctypes.CDLL(str(first))
    own = name.replace("TwoMassUpper", "KernelXY")
    members = {name: library.replace(b"KERNEL32.dll", b"KERNELXY.dll"), own: library + b"\0"}
    said = run("simulate", changed(upper, tmp_path / "a.fmu", members=members)).err
    assert (
        f"has its own 'KernelXY.dll', but Windows uses another file of this name that is loaded already, '{first}'."
        in said
    )
    assert loaded._handle


def test_a_folder_without_a_library_is_not_listed_as_if_it_had_one(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    name = _binary(upper)
    path = changed(
        upper, tmp_path / "a.fmu", name=lambda n: re.sub("^binaries/.*[/.]", "binaries/beos/", n)
    )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"binaries/{fmpy.platform}/", "")
    assert "; it has beos." in run("simulate", path).error
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"binaries/{fmpy.platform}/static.a", "")
    assert (
        f"; it has beos, {fmpy.platform} without '{Path(name).name}'."
        in run("simulate", path).error
    )


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() == "aarch64", reason="patches an ELF header"
)
def test_a_library_for_another_processor_is_told_with_both(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    name = _binary(upper)
    with zipfile.ZipFile(upper) as archive:
        library = bytearray(archive.read(name))
    assert library[:4] == b"\x7fELF"
    library[18:20] = (183).to_bytes(2, "little")  # e_machine
    path = changed(upper, tmp_path / "a.fmu", members={name: bytes(library)})
    message = run("simulate", path).error
    assert "cannot be loaded on this machine" in message
    assert "The file is for AArch64, this machine needs " in message
    assert f"Expected a library for {fmpy.platform_tuple}" in message


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a C compiler")
def test_a_missing_shared_library_is_told_in_the_words_of_the_loader(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    def compile_library(name: str, code: str, *options: str) -> Path:
        (tmp_path / "a.c").write_text(code, encoding="utf-8")
        shared = ["cc", "-shared", "-fPIC", "-o", name, "a.c", *options]
        subprocess.run(shared, cwd=tmp_path, check=True)
        return tmp_path / name

    stub = compile_library("libgfortran_of_old.so", "int f(void) { return 0; }")
    needs = ["-Wl,--no-as-needed", "-L.", "-lgfortran_of_old"]
    library = compile_library("b.so", "int f(void); int g(void) { return f(); }", *needs)
    content = library.read_bytes()
    stub.unlink()
    path = changed(upper, tmp_path / "a.fmu", members={_binary(upper): content})
    message = run("simulate", path).error
    assert (
        "cannot be loaded on this machine: libgfortran_of_old.so: cannot open shared object"
        in message
    )
    assert "install what is missing" in message


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a C compiler")
def test_a_library_whose_functions_have_a_prefix_is_told(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    """As the sources of modelica/fmi-ls-bus-examples and of 20-sim become, compiled without the options."""
    (tmp_path / "a.c").write_text(
        """
        #ifndef FMI2_FUNCTION_PREFIX
        #define FMI2_FUNCTION_PREFIX TwoMassUpper_
        #endif
        #define PASTE(a, b) a ## b
        #define NAME(prefix, name) PASTE(prefix, name)
        void NAME(FMI2_FUNCTION_PREFIX, fmi2Instantiate)(void) {}""",
        encoding="utf-8",
    )

    def told(*options: str) -> str:
        compile_library = ["cc", "-shared", "-fPIC", "-o", "b.so", "a.c", *options]
        subprocess.run(compile_library, cwd=tmp_path, check=True)
        content = (tmp_path / "b.so").read_bytes()
        path = changed(upper, tmp_path / "a.fmu", members={_binary(upper): content})
        return run("simulate", path).error

    message = told()
    assert "has none of the functions of FMI 2.0" in message
    assert "Their names begin with 'TwoMassUpper_'" in message
    [options] = re.findall('CFLAGS="(.*)" fmpy compile FILE.fmu', message)
    assert "'TwoMassUpper_'" not in told(*options.split())


def test_fmi_1_is_refused_with_the_version(run: Run, upper: Path, tmp_path: Path) -> None:
    path = changed(
        upper,
        tmp_path / "a.fmu",
        description=lambda t: t.replace('fmiVersion="2.0"', 'fmiVersion="1.0"'),
    )
    message = run("simulate", path).error
    assert "is an FMI 1.0 FMU. Expected FMI 2.0 or 3.0" in message


def test_without_co_simulation_it_is_told_what_the_fmu_offers(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    def only_scheduled_execution(text: str) -> str:
        without = re.sub(r"<ModelExchange[^>]*/>", "", text)
        head, _, rest = without.partition("<CoSimulation")
        return f'{head}<ScheduledExecution modelIdentifier="Dahlquist"/>{rest.partition("/>")[2]}'

    path = changed(dahlquist, tmp_path / "a.fmu", description=only_scheduled_execution)
    message = run("simulate", path).error
    assert "the FMU offers Scheduled Execution" in message
    assert "Expected at least one variable of type Clock with causality input" in message


# Systems --------------------------------------------------------------------------------------------------------------


def test_an_unknown_component_is_suggested(run: Run, upper: Path, tmp_path: Path) -> None:
    path = system(tmp_path, {"upper": upper, "lower": upper}, ["upper.x -> lowr.u_x"])
    message = run("simulate", path).error
    assert "connection 'upper.x -> lowr.u_x': there is no element 'lowr'" in message
    assert "Did you mean 'lower'?" in message


def test_an_unknown_connector_is_suggested(run: Run, upper: Path, tmp_path: Path) -> None:
    path = system(tmp_path, {"upper": upper, "lower": upper}, ["upper.x -> lower.ux"])
    message = run("simulate", path).error
    assert "Connection 'upper.x -> lower.ux': component 'lower' has no variable 'ux'." in message
    assert "Did you mean 'u_x'" in message


def test_two_connections_into_one_input_are_both_named(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    routes = ["a.x -> c.u_x", "b.x -> c.u_x"]
    path = system(tmp_path, {"a": upper, "b": upper, "c": upper}, routes)
    message = run("simulate", path).error
    assert (
        "Connection 'b.x -> c.u_x': 'c.u_x' is already fed by Connection 'a.x -> c.u_x'" in message
    )
    assert "Remove one of the two" in message


def test_an_output_connected_to_an_output_is_told(run: Run, upper: Path, tmp_path: Path) -> None:
    path = system(tmp_path, {"a": upper, "b": upper}, ["a.x -> b.x"])
    message = run("simulate", path).error
    assert (
        "Connection 'a.x -> b.x' connects two outputs. Connect an output with an input." in message
    )


def test_incompatible_types_are_told(run: Run, feedthrough: Path, tmp_path: Path) -> None:
    route = "a.String_output -> b.Float64_continuous_input"
    message = run("simulate", system(tmp_path, {"a": feedthrough, "b": feedthrough}, [route])).error
    assert f"Connection '{route}': String to Float64 cannot be converted" in message


def test_a_lossy_conversion_is_told_with_the_option_that_allows_it(
    run: Run, feedthrough: Path, tmp_path: Path
) -> None:
    route = "a.Float64_discrete_output -> b.Int32_input"
    path = system(tmp_path, {"a": feedthrough, "b": feedthrough}, [route])
    message = run("simulate", path).error
    assert f"Connection '{route}': Float64 to Int32 can lose values" in message
    assert "(--allow-lossy-conversions)" in message
    assert run("simulate", path, "--allow-lossy-conversions").status == 0


def test_incompatible_dimensions_are_told(run: Run, feedthrough: Path, tmp_path: Path) -> None:
    route = "a.Float64_vector_output -> b.Float64_continuous_input"
    message = run("simulate", system(tmp_path, {"a": feedthrough, "b": feedthrough}, [route])).error
    assert f"Connection '{route}': shapes differ" in message
    assert "are (3,) and scalar. Connect variables of the same shape." in message


def test_units_of_different_quantities_are_told(run: Run, upper: Path, tmp_path: Path) -> None:
    message = run("simulate", system(tmp_path, {"a": upper, "b": upper}, ["a.v -> b.u_x"])).error
    assert "Connection 'a.v -> b.u_x': m/s (m·s⁻¹) cannot become m (m)" in message


# Events: manifests and what is shared ---------------------------------------------------------------------------------


def with_manifest(fmu: Path, target: Path, inside: str) -> Path:
    return changed(fmu, target, members={EXTRA: manifest(inside)})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            manifest('<Event name="e" scope="private"><Indicator name="y"/></Event>'),
            f"{EXTRA}, line 3: Indicator of event 'e': name='y' is not a variable of the FMU.",
        ),
        (b"<Event", f"{EXTRA}, line 1, column 7: malformed XML"),
        (b'<!DOCTYPE a [<!ENTITY e "f">]><a>&e;</a>', f"{EXTRA}: the document has a document type"),
    ],
    ids=["wrong name", "malformed", "entities"],
)
def test_an_fmu_runs_without_a_broken_manifest_unless_the_run_needs_it(
    run: Run, dahlquist: Path, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = changed(dahlquist, tmp_path / "a.fmu", members={EXTRA: content})
    outcome = run("simulate", path, "--stop-time", "1")
    assert outcome.status == 0
    assert outcome.out == run("simulate", dahlquist, "--stop-time", "1").out
    without = f"warning: '{path}' runs without the layered standard org.fmimaster.fmi-ls-events: "
    assert f"{without}{path}/{reason.removesuffix('.')}" in outcome.err
    for command in ("simulate", "plan"):
        for clock in ("predictive", "early-return"):
            message = run(command, path, "--event-clock", clock).error
            assert f" 'a': Its manifest is ignored: {path}/{reason}" in message
    assert "fmi-ls-events" in run("info", path).out


def test_an_fmu_runs_without_a_layered_standard_that_is_not_known(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    text = manifest("<Any/>").replace(
        b"org.fmimaster.fmi-ls-events", b"org.fmi-standard.fmi-ls-xcp"
    )
    member = "extra/org.fmi-standard.fmi-ls-xcp/fmi-ls-manifest.xml"
    path = changed(dahlquist, tmp_path / "a.fmu", members={member: text})
    outcome = run("simulate", path, "--stop-time", "1")
    assert outcome.status == 0
    warning = (
        f"'{path}' runs without the layered standard org.fmi-standard.fmi-ls-xcp: it is not known."
    )
    assert [line for line in outcome.err.splitlines() if "layered" in line] == [
        f"fmimaster: warning: {warning}"
    ]


def test_a_shared_event_that_a_broken_manifest_declares_is_told_with_the_reason(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    fmu = changed(dahlquist, tmp_path / "a.fmu", members={EXTRA: b"<Event"})
    shared = write_shared_events([SharedEvent("e", (("a", "touch"), ("b", "touch")))])
    path = system(tmp_path / "s", {"a": fmu, "b": fmu})
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            "</ssd:System>", f"<ssd:Annotations>{shared}</ssd:Annotations></ssd:System>"
        ),
        encoding="utf-8",
    )
    message = run("simulate", path).error
    assert "'a' has no event 'touch'. Its manifest is ignored: " in message
    assert f"{EXTRA}, line 1, column 7: malformed XML" in message


@pytest.mark.parametrize(
    ("member", "told"),
    [
        (("b", "tuch"), "'b' has no event 'tuch'. Did you mean 'touch'?"),
        (("c", "touch"), "there is no component 'c'."),
        (
            ("b", "alone"),
            "event 'alone' of 'b' is private, so it does not affect other components.",
        ),
        (("a", "touch"), "'a' is a member twice."),
    ],
)
def test_a_shared_event_that_cannot_be_is_told(
    run: Run, dahlquist: Path, tmp_path: Path, member: tuple[str, str], told: str
) -> None:
    inside = "".join(
        f'<Event name="{name}" scope="{scope}"><Indicator name="x"/></Event>'
        for name, scope in (("touch", "shared"), ("alone", "private"))
    )
    fmu = with_manifest(dahlquist, tmp_path / "a.fmu", inside)
    shared = SharedEvent("impact", (("a", "touch"), member))
    annotations = f"<ssd:Annotations>{write_shared_events([shared])}</ssd:Annotations>"
    path = system(tmp_path / "s", {"a": fmu, "b": fmu})
    path.write_text(
        path.read_text(encoding="utf-8").replace("</ssd:System>", f"{annotations}</ssd:System>"),
        encoding="utf-8",
    )
    message = run("simulate", path).error
    assert message.startswith("Shared event 'impact': ")
    assert told in message


# Parameters and options -----------------------------------------------------------------------------------------------


def test_an_unknown_parameter_is_suggested(run: Run, upper: Path) -> None:
    message = run("simulate", upper, "--start-value", "m11", "1").error
    assert "component 'TwoMassUpper' has no variable 'm11'. Did you mean 'm1'" in message


def test_an_unknown_parameter_of_a_system_is_suggested(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    path = system(tmp_path, {"upper": upper})
    message = run("simulate", path, "--start-value", "upper.M1", "1").error
    assert "component 'upper' has no variable 'M1'. Did you mean 'm1'?" in message


def test_a_misspelt_parameter_in_a_system_description_is_a_warning(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    parameters = """<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>
      <ssv:ParameterSet version="1.0" name="set"><ssv:Parameters>
        <ssv:Parameter name="upper.m11"><ssv:Real value="1"/></ssv:Parameter>
      </ssv:Parameters></ssv:ParameterSet>
    </ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>"""
    outcome = run("simulate", system(tmp_path, {"upper": upper}, parameters=parameters))
    assert outcome.status == 0
    expected = "parameters fit nothing in the system and are ignored. Correct the spelling: 'upper.m11' (did you mean"
    assert f"{expected} 'upper.m1'?)" in outcome.err


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("m1", "heavy", "'heavy' is not a value of type Float64"),
        ("inputOrder", "0.5", "'0.5' is not a value of type Int32"),
        ("inputOrder", "3000000000", "Expected an integer from -2147483648 to 2147483647"),
    ],
)
def test_a_value_that_does_not_parse_is_told(
    run: Run, upper: Path, name: str, value: str, expected: str
) -> None:
    message = run("simulate", upper, "--start-value", name, value).error
    assert f"Start value of '{name}'" in message
    assert expected in message


def test_a_number_of_elements_that_does_not_fit_is_told(run: Run, feedthrough: Path) -> None:
    name = "Float64_vector_input"
    message = run("simulate", feedthrough, "--start-value", name, "1 2").error
    assert name in message
    assert "3" in message


def test_an_output_takes_no_start_value(run: Run, upper: Path) -> None:
    message = run("simulate", upper, "--start-value", "a", "1").error
    assert "takes no start value (causality=output" in message


@pytest.mark.parametrize("size", ["0", "-1e-3"])
def test_a_step_size_must_be_positive(run: Run, dahlquist: Path, size: str) -> None:
    message = run("simulate", dahlquist, "--step-size", size).error
    assert f"Step size {size} s: expected a positive number." in message


def test_a_step_size_above_the_span_is_told(run: Run, dahlquist: Path) -> None:
    message = run("simulate", dahlquist, "--step-size", "2", "--stop-time", "1").error
    assert "The step size 2 s is larger than the whole span of 1 s." in message


def test_a_step_size_that_is_no_number_is_told(run: Run, dahlquist: Path) -> None:
    message = run("simulate", dahlquist, "--step-size", "fine").error
    assert "'fine' is not a time in s, such as 0.01 or '1/60'. There is no step rule" in message


def test_an_fmu_that_cannot_vary_its_step_is_not_asked_to(run: Run, faulty: Path) -> None:
    message = run("simulate", faulty, "--step-size", "0.3", "--stop-time", "1").error
    assert "The span of 1 s is not a multiple of the step size 0.3 s" in message
    assert "'Faulty' cannot take a shorter last step" in message
    assert "Choose a step size that divides the span." in message


def test_an_unknown_algorithm_is_suggested_and_all_are_listed(run: Run, dahlquist: Path) -> None:
    message = run("simulate", dahlquist, "--algorithm", "jakobi").error
    assert "There is no algorithm 'jakobi'. Did you mean 'Jacobi'? There are Jacobi, " in message


def test_an_unknown_output_variable_is_suggested(run: Run, upper: Path) -> None:
    message = run("simulate", upper, "--output-variable", "X").error
    assert "Output variable 'X' fits no variable. Did you mean 'x'?" in message


def test_a_folder_that_does_not_exist_is_told_before_the_run(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    outcome = run("simulate", dahlquist, "--output-file", tmp_path / "no" / "a.csv")
    assert "cannot be written: its folder does not exist" in outcome.error
    assert "steps" not in outcome.err


# During the run -------------------------------------------------------------------------------------------------------


def _prefix(fmu: Path) -> str:
    return fmu.parent.name


@pytest.mark.parametrize(("fault", "status"), [(3, "Error"), (4, "Fatal")])
def test_a_failed_step_is_told_with_the_words_of_the_fmu(
    run: Run, faulty: Path, fault: int, status: str
) -> None:
    fault_values = ["--start-value", "fault", fault, "--start-value", "faultTime", "0.5"]
    message = run("simulate", faulty, *fault_values).error
    prefix = _prefix(faulty)
    assert (
        f"{prefix}DoStep of 'Faulty' returned {prefix}{status} at t = 0.5 s (step 0.1 s)" in message
    )
    assert (
        f"Messages of the FMU:\n  Faulty: Faulty: told to return {status} at t = 0.5 s." in message
    )


def test_a_failed_step_names_the_steps_that_an_fmu_suggests_that_needs_equal_ones(
    run: Run, faulty: Path
) -> None:
    fault_values = ["--start-value", "fault", 3, "--start-value", "faultTime", "0.5"]
    times = ["--stop-time", "1", "--step-size"]
    message = run("simulate", faulty, *fault_values, *times, "0.25").error
    assert "It suggests steps of 0.1 s, and may not do others" in message
    assert "--component-step-size Faulty=0.1" in message
    assert "It suggests" not in run("simulate", faulty, *fault_values, *times, "0.1").error


def test_a_discarded_step_is_told_with_the_words_of_the_fmu(run: Run, faulty: Path) -> None:
    fault_values = ["--start-value", "fault", "2", "--start-value", "faultTime", "0.5"]
    message = run("simulate", faulty, *fault_values).error
    assert "DoStep of 'Faulty' was discarded at t = 0.5 s (step 0.1 s)" in message
    assert "Use a smaller step size, or one that a float holds exactly" in message
    assert "Messages of the FMU:\n  Faulty: Faulty: told to return Discard at t = 0.5 s." in message


def test_nan_in_an_output_is_named_with_its_time(run: Run, faulty: Path) -> None:
    fault_values = ["--start-value", "fault", "5", "--start-value", "faultTime", "0.5"]
    message = run("simulate", faulty, *fault_values).error
    assert "Output 'x' is NaN at t = 0.6 s." in message
    assert "(--allow-nan)" in message
    assert run("simulate", faulty, *fault_values, "--allow-nan").status == 0


def test_a_failure_at_initialization_is_told_with_the_words_of_the_fmu(
    run: Run, faulty: Path
) -> None:
    message = run("simulate", faulty, "--start-value", "fault", "6").error
    prefix = _prefix(faulty)
    assert (
        f"{prefix}ExitInitializationMode of 'Faulty' returned {prefix}Error at t = 0 s" in message
    )
    assert "told to return Error at the end of Initialization Mode" in message


@pytest.mark.parametrize("fault", [2, 3, 4, 5])
def test_results_until_the_failure_are_written(
    run: Run, faulty: Path, tmp_path: Path, fault: int
) -> None:
    fault_values = ["--start-value", "fault", fault, "--start-value", "faultTime", "0.5"]
    table, figure = tmp_path / "a.csv", tmp_path / "a.png"
    outcome = run("simulate", faulty, *fault_values, "--output-file", table, "--plot", figure)
    assert outcome.status == 2
    assert Results.read(table).time.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert figure.stat().st_size > 0
    assert f"6 rows written to {table}" in outcome.err
    assert outcome.err.index("rows written") < outcome.err.index("fmimaster: error:")


def test_two_instances_of_an_fmu_that_allows_one_are_told(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    once = '<CoSimulation canBeInstantiatedOnlyOncePerProcess="true"'
    path = changed(
        dahlquist,
        tmp_path / "once.fmu",
        description=lambda t: t.replace("<CoSimulation", once, 1),
    )
    twice = system(tmp_path / "s", {"a": path, "b": path})
    message = run("simulate", twice, "--isolate", "none").error
    assert "'b' would be the second instance of" in message
    assert "the first is 'a'" in message
