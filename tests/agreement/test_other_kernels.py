"""The kernel built in other ways: with sanitizers it is silent, and if one instruction is wrong the tests notice.

They take minutes, so they have the mark ``thorough``: ``make thorough``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from kernels import FOLDER, Build, TestServer, build, compiler, replaced

from fmimaster.run.native.header import OPERATIONS

HERE = Path(__file__).parent
EXECUTORS = "tests/unit/test_executors.py"
AT_EVENTS = "tests/unit/test_executors_at_events.py"
INPUTS = "tests/unit/test_inputs.py"
KINDS = "tests/unit/test_kinds_of_inputs.py"
CORRECTIONS = "tests/unit/test_corrections.py"
REAL_FMUS = "tests/agreement/test_real_fmus.py"
TICKS = "tests/agreement/test_ticks.py"
"""Clocks that tick."""
PARTITIONS = "tests/agreement/test_partitions.py"
"""Model partitions of Scheduled Execution."""
TEXTS = "tests/agreement/test_texts.py"
"""Text and binaries, which are objects of Python."""
THREADS = f"{REAL_FMUS}::test_threads_change_no_bit"
AGREEMENT = (EXECUTORS, AT_EVENTS, INPUTS, KINDS, CORRECTIONS, REAL_FMUS, TEXTS, TICKS, PARTITIONS)
"""The tests of each instruction, which both executors must pass, and those of the agreement on real FMUs."""

CALLS = "tests/agreement/test_fmi_calls.py"
FUSED = "tests/agreement/test_fused.py"
"""The tests of the FMI calls that are made, with fused instructions and without."""

EXCHANGE = "tests/agreement/test_model_exchange.py"
"""The steps of integrators."""

LOOPS = "tests/unit/test_loops_in_c.py"
"""The solver of algebraic loops, which is no instruction."""
CONTROLLER = "tests/unit/test_pid_in_c.py"
"""The step-size controller, which is none either."""
NUMBERS = "tests/unit/test_numbers.py"
"""Numbers as text, and text as numbers."""
WATCH = "tests/unit/test_watch_in_c.py"
"""What ends stretches of steps for event clocks."""
OBSERVER = "tests/unit/test_observer_in_c.py"
"""The same for events that FMUs execute themselves."""
GROWTH = "tests/unit/test_growth.py"
"""Ranges of rows."""
LINK = "tests/agreement/test_link.py"
"""Messages over a socket."""
ELEMENTS = "tests/unit/test_elements_in_c.py"
"""Elements of semantic adaptation."""


@pytest.fixture(scope="module")
def quick_build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """All objects, compiled in a moment. Each worker of pytest-xdist has its own."""
    return build(tmp_path_factory.mktemp("kernel"), "-O0")


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    server = TestServer()
    yield server
    server.close()


WRONG = {
    EXECUTORS: {
        "SET": ("return transfer(k, c, &c->set);", "return FM_RAN;"),
        "SET after MOVE": ("return set(k, c + 1);", "return FM_RAN;"),
        "SET of polynomials": ("k->follows[i] = 1;", "k->follows[i] = 0;"),
        "GET": ("k->read[c->instance] = k->at[c->instance];", "k->read[c->instance] = k->begin;"),
        "STEP": ("return c->step.end == 1.0 ? k->end : ", "return "),
        "STEP that ends early": ("k->terminate |= answer->terminate;", ""),
        "SAVE": (
            "k->place_at[place] = here;",
            "k->place_at[place] = k->end;",
        ),
        "RESTORE": (
            "k->at[i] = k->place_at[place];",
            "k->at[i] = k->begin;",
        ),
        "KEEP": ("copy_all(k, &k->buffers[c->keep.buffer], k->outputs, k->read);", "FM_OK;"),
        "RECALL": ("fm_copy_outputs(k, k->outputs, copy->outputs);", "FM_OK;"),
        "REVERT": ("k->read[c->instance] = copy->read[c->instance];", ""),
        "REMEMBER": (
            "for (int b = k->n_history - 1; b > 0 && status == FM_OK; b--)",
            "for (int b = 1; b < 1; b++)",
        ),
        "REMEMBER of a buffer": ("status == FM_OK && c->remember.buffer < 0", "status == FM_OK"),
        "FORGET": ("k->history[b].read[i] = NAN;", "k->history[b].read[i] = 0.0;"),
        "REPEAT": (
            "p->count >= p->repeat->repeat.least &&",
            "p->count > p->repeat->repeat.least &&",
        ),
        "REPEAT bounded": (
            "p->repeat->repeat.bounded && p->count ==",
            "p->repeat->repeat.bounded && p->count >",
        ),
        "UNTIL": ("value > k->nominals[t][i] ? value", "value < k->nominals[t][i] ? value"),
        "MODE": (
            "instance->enter(instance->self, state,",
            "instance->enter(instance->self, FM_STEP_MODE,",
        ),
        "SAMPLE": (
            "same = row > 0 && k->times[row - 1] == k->end;",
            "same = 0;",
        ),
        "a watch": ("if (!watches[i].is_quiet(", "if (0 && !watches[i].is_quiet("),
        "a watch for changes": (
            "return *(const double *)now == *(const double *)before;",
            "return !memcmp(now, before, 8);",
        ),
    },
    AT_EVENTS: {
        "MOVE": (
            "value = m->factor * value + m->offset;",
            "value = m->factor * (value + m->offset);",
        ),
        "FIT": ("(work[i + 1] - work[i])", "(work[i] - work[i + 1])"),
        "STEP with a limit": ("fmin(end_of(k, c), k->limit)", "end_of(k, c)"),
        "STEP that returns early": ("k->limit = k->at[i] = reached;", "k->at[i] = reached;"),
        "STEP that asks for an event": ("if (answer->event && c->step.has_event_mode)", "if (0)"),
        "STEP that is discarded": (
            "k->requests[i] = 1;\n    } else if",
            "} else if",
        ),
        "STEP that stops outside": ("here - outside <= named", "here - 1e9 <= named"),
        "STEP that stops at its start": (
            "named <= here + near ? here",
            "named < here - near ? here",
        ),
        "STEP that stops at its end": ("if (named >= there - near)", "if (named == there)"),
        "STEP discarded at its end": (
            "fmin(reached, there - fm_same(there, there - here))",
            "reached",
        ),
        "STEP discarded in Event Mode": (
            "!c->step.may_return_early || c->step.has_event_mode || isnan",
            "!c->step.may_return_early || isnan",
        ),
        "ALIGN": ("if (k->at[c->instance] <= k->limit)", "if (1)"),
        "ALIGN that fails": ("if (k->at[c->instance] > k->limit) {", "if (0) {"),
        "RESTORE of who has not moved": (
            "return k->stepped[c->instance] != k->place_stepped[c->restore.place];",
            "return k->stepped[c->instance] >= 0 || c->restore.place;",
        ),
        "UNTIL with a limit": (
            "p->limit_before) <= near",
            "p->limit_before) <= 1e9 * near",
        ),
        "UNTIL with updates": ("&& !k->wants_another)", ")"),
        "REPEAT with a limit": ("k->limit = p->limit_at_first;", "k->limit = k->end;"),
        "REPEAT after a request": (
            "memcpy(k->requests, p->requests_at_first, (size_t)k->n_instances);",
            "memset(k->requests, 0, (size_t)k->n_instances);",
        ),
        "REPEAT in a REPEAT": ("k->wants_another = p->wanted_at_first;", ""),
        "RECALL of a limit": (
            "k->limit = fmin(k->kept_limit[c->recall.buffer], k->end);",
            "k->limit = k->end;",
        ),
        "RECALL in a later execution": (
            "fmin(k->kept_limit[c->recall.buffer], k->end)",
            "k->kept_limit[c->recall.buffer]",
        ),
        "RECALL of requests": (
            "memcpy(k->requests, k->kept_requests + (size_t)c->recall.buffer * n, n);",
            "",
        ),
        "UPDATE": ("k->next_events[c->instance] = answer.next_event_time;", ""),
        "UPDATE that wants another one": ("k->wants_another |= answer.wants_update;", ""),
        "TICK": ("k->active[c->tick.trigger] = 1;", "k->active[0] = 1;"),
        "MOVE of triggers": ("*t->active |= *t->sources[s];", "*t->active = *t->sources[s];"),
        "MOVE of what comes along": (
            "if (!*t->active) continue; for (int m = 0;",
            "for (int m = 0;",
        ),
        "SET of triggers": ("*t->active = 0;", ""),
        "SET of counters": ("*t->counter + 1u", "*t->counter + 0u"),
        "GET of clocks": (
            "status = fm_get_clocks(k, c);",
            "status = k->fits > 1 ? fm_get_clocks(k, c) : FM_RAN;",
        ),
        "SET of triggers that are shown": ("*t->shown = 1;", "*t->shown = 0;"),
        "GET of clocked outputs": ("if (is_any_active(v))", "if (is_any_active(v) || 1)"),
        "GET of output clocks that are added": (
            "g->active[s][i] |= now[i];",
            "g->active[s][i] = now[i];",
        ),
        "GET of intervals": ("if (v->clock && !*v->clock)", "if (v->clock)"),
        "GET of intervals that have changed": (
            "if (v->answer.qualifiers[i] != FM_CHANGED)",
            "if (v->answer.qualifiers[i] == FM_UNCHANGED)",
        ),
        "MODE without clocks": (
            "memset(c->mode.clocks[i].active, 0, c->mode.clocks[i].n);",
            "c->mode.clocks[i].active[0] |= 0;",
        ),
        "CALL": ("c->call.hook->call(c->call.hook->self, k);", "FM_OK;"),
        "CALL that asks for another pass": ("k->wants_another |= status == FM_AGAIN;", ""),
        "FIT with a near point": (
            "(samples[at - 1] - before)",
            "(before - samples[at - 1])",
        ),
        "MODE that is counted": ("k->events[c->instance]++;", "k->events[c->instance] += 0;"),
    },
    INPUTS: {
        "FIT that is held": ("k->begin + wanted->held *", "k->end + wanted->held *"),
        "FIT of a mean": (
            "coefficients[p * stride] / (p + 1.0);",
            "coefficients[p * stride] / (p + 2.0);",
        ),
        "FIT that is adaptive": (
            "if (error < errors[best])",
            "if (error > errors[best])",
        ),
        "FIT by route": (
            "wanted->points, derivatives = wanted->derivatives",
            "wanted->points, derivatives = f->inputs[0].derivatives",
        ),
        "FIT through the history": (
            "double time = copy->read[j], distance",
            "double time = f->copies[0]->read[j], distance",
        ),
        "FIT of a line": ("- value) / (time - newest);", "- value) / (newest - time);"),
    },
    KINDS: {
        "FIT that is compensated": (
            "(now - given_from[last]) / length",
            "length / (now - given_from[last])",
        ),
        "FIT of a half": (
            "weight = 2.0 / (p + 2.0);",
            "weight = 1.0 / (p + 2.0);",
        ),
        "FIT that is late": ("k->begin + p->wanted->late *", "k->end + p->wanted->late *"),
    },
    CORRECTIONS: {
        "CORRECT": ("d->seed[u] = *input - before;", "d->seed[u] = before - *input;"),
        "CORRECT after a polynomial": (
            "fm_evaluate(k->coefficients[i], taken,",
            "fm_evaluate(k->coefficients[i] + 1, taken,",
        ),
        "CORRECT by differences": (
            "d->sensitivity[o] += d->partials",
            "d->sensitivity[o] -= d->partials",
        ),
        "DERIVE": ("d->seed[u] = 1.0;", "d->seed[u] = 2.0;"),
        "DERIVE of what varies": ("*p->wanted != FM_EVERYTHING && !p->varies[u]", "!p->varies[u]"),
    },
    TICKS: {
        "a stretch over ticks": ("is_after = ahead && ahead->numbers[i] >= 0;", "is_after = 0;"),
        "an interval that ends a stretch": (
            "if (ahead->intervals[i].qualifiers[clock] == FM_CHANGED)",
            "if (0)",
        ),
        "a row of clocked values": ("if (same && v->is_compared)", "if (same)"),
    },
    TEXTS: {
        "MOVE of text": ("fm_copy_objects(k, v->target, v->source, 1);", "FM_OK;"),
        "GET of text": (
            "if (is_new(s->texts, i, objects[i]))",
            "if (0 && is_new(s->texts, i, objects[i]))",
        ),
        "GET of text that went back": ("object != known->object || size", "object == 0 || size"),
        "SET of text": (
            "if (objects[i] != s->texts->known[i].object)",
            "if (objects[i] && !s->texts->known[i].object)",
        ),
        "SAMPLE of text": ("return k->objects.sample(k->objects.self);", "return FM_OK;"),
        "UNTIL with text": (
            "if (fm_objects_differ(k, before[t], k->outputs[t], n))",
            "if (memcmp(before[t], k->outputs[t], n * sizeof(void *)))",
        ),
        "copies of text": (
            "return memcmp(target, source, n * sizeof(void *)) ?",
            "return n < 2 && memcmp(target, source, n * sizeof(void *)) ?",
        ),
    },
    PARTITIONS: {
        "a second tick": ("m->activated[clock] = *m->now;", ""),
        "values that are given again": ("!(*s->memory.is_set && c->version ==", "!(c->version >"),
        "values that are read before a set": ("if (c->version != *s->version)", "if (0)"),
        "the interval of a countdown": ("copy_interval(segment->intervals, i, told, place);", "{}"),
        "output clocks": ("[s->output_places[i]] |= now[i];", "[s->output_places[i]] &= now[i];"),
    },
    THREADS: {
        "PARALLEL": (
            "status = parallel(k, c);\n                c += c->parallel.count;",
            "status = parallel(k, c);",
        ),
    },
}
"""Tests that notice it → what is wrong → the text that is right, and a wrong one."""
"""Instruction → a text that stands in one place of the kernel's sources, and what makes it wrong."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("tests", "instruction"), [(tests, name) for tests, wrong in WRONG.items() for name in wrong]
)
def test_one_wrong_instruction_is_noticed(
    tests: str, instruction: str, quick_build: Build, server: TestServer, tmp_path: Path
) -> None:
    kernel = quick_build.with_text_replaced(tmp_path, *WRONG[tests][instruction])
    # the interpreter is as it was
    run = server.run(kernel, tests, "--as-written", "-k", "not reference")
    assert run.status == 1, run.output[-2000:]
    assert "1 failed" in run.output


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong", "tests"),
    [
        ("*values++ = **source++;", "*values++ = **source;", FUSED),
        ("case FM_FIT: fm_fit_inputs(k, c); return FM_RAN;", "case FM_FIT: return FM_RAN;", FUSED),
        (
            "return fm_failed(r.status) ? step_answered(k, v->of, there, &r) : FM_RAN;",
            "return FM_RAN;",
            FUSED,
        ),
        ("int status = step_answered(k, v->of, there, r);", "int status = FM_RAN;", FUSED),
        (
            "return v->at == 1.0 ? k->end : end_of(k, v->of);",
            "return v->at == 1.0 ? k->end : k->end;",
            FUSED,
        ),
        ("k->stepped[i] = k->steps[i] += n;", "k->stepped[i] = k->steps[i];", FUSED),
        ("catch_up(k, calls, v, 1);", "catch_up(k, calls, v, 0);", FUSED),
        ("int row = k->n_rows; k->times[row] = k->end;", "int row = k->n_rows;", FUSED),
        ("v->rows + (size_t)row * v->stride, v->source,", "v->rows, v->source,", FUSED),
        ("group && group < groups && end - i >= FM_GROUP", "group && group < groups", GROWTH),
        ("(t->first + (i - 1) * t->step)", "(t->first + i * t->step)", FUSED),
        ("!others && group && group", "group && group", GROWTH),
        ("rows - l->width, k->times[first - 1]", "rows, k->times[first - 1]", GROWTH),
        ("is_last ? end - s->time : s->part;", "s->part;", EXCHANGE),
        (
            "return FM_AGAIN; } take(x, s->time, s->states);",
            "take(x, s->time, s->states); }",
            EXCHANGE,
        ),
        ("v->kind == FM_FUSED_STEP || v->kind ==", "v->kind ==", FUSED),
        ("k->measuring = 0; *answered = 0;", "*answered = 0;", EXECUTORS),
        ("if (!move->moves[m].plain ||", "if (", FUSED),
        (
            "k->read[v->instance] = k->at[v->instance]; return transfer",
            "(void)k; return transfer",
            FUSED,
        ),
        ("k->stepped[i] = ++k->steps[i];", "k->stepped[i] = k->steps[i];", FUSED),
        ("k->kept_from[i] >= here, here,", "1, here,", FUSED),
        ("if (k->has_saved) fm_forget_saved(k); } v =", "} v =", FUSED),
        ("return has_stopped(r, fm_as_written(k, v->of)); /*", "return (void)r, FM_OK; /*", FUSED),
        (
            "return has_stopped(r, fm_fail(k, v->of, status, v->fmu->names[which]));",
            "return (void)r, FM_OK;",
            FUSED,
        ),
        ("has_saved(k, v->of);", "", FUSED),
        ("if (!has_moved(k, v->of)) return FM_OK;", "", FUSED),
        ("has_restored(k, v->of);", "", FUSED),
        ("if (is_noted && plain->remember)", "if (0)", FUSED),
        ("if (r->stopped != FM_RAN) return r->stopped;", "", FUSED),
        ("*state ? fmu->functions[FM_FREE_STATE] : 0;", "0;", FUSED),
        (
            "FM_UNLIKELY(k->fits) && v->of->set.group == k->continuous_group",
            "0",
            f"{CALLS}::test_steps_and_inputs",
        ),
        (
            "k->read[v->instance] = k->at[v->instance]; return FM_RAN;",
            "return FM_RAN;",
            f"{CALLS}::test_steps_and_inputs",
        ),
        (
            "!k->has_saved || k->kept_from[v->instance] >= here",
            "1",
            f"{CALLS}::test_fmus_are_told_that_no_earlier_state_is_restored_where_that_is_so",
        ),
        (
            "k->stepped[c->instance] = ++k->steps[c->instance];",
            "k->stepped[c->instance] = k->steps[c->instance];",
            f"{CALLS}::test_going_back",
        ),
        (
            "if (v->sources) k->degree[v->instance] = -1; if (k->degree[v->instance] >= 0 || k->follows[v->instance]) "
            "return set",
            "if (k->degree[v->instance] >= 0 || k->follows[v->instance]) return set",
            f"{REAL_FMUS}::test_steps_in_parallel_before_the_first_event",
        ),
    ],
)
def test_wrong_fused_instructions_are_noticed(
    right: str, wrong: str, tests: str, quick_build: Build, server: TestServer, tmp_path: Path
) -> None:
    kernel = quick_build.with_text_replaced(tmp_path, right, wrong)
    run = server.run(kernel, tests)
    assert run.status == 1, run.output[-2000:]
    assert "1 failed" in run.output


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("upper[p * kept + used] = product;", "upper[p * kept + used] = -product;"),
        ("rows[n + i] = rows[i];", "rows[i] = rows[i];"),
        ("allowed += d->relative[i] * fabs(d->x[i]);", ""),
    ],
)
def test_a_wrong_solver_of_loops_is_noticed(
    right: str, wrong: str, quick_build: Build, server: TestServer, tmp_path: Path
) -> None:
    kernel = quick_build.with_text_replaced(tmp_path, right, wrong)
    run = server.run(kernel, LOOPS, "-k", "random_loops")
    assert run.status == 1, run.output[-2000:]
    assert "1 failed" in run.output


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("e1, before[0], before[1], x[0]", "e1, before[1], before[1], x[0]"),
        ("before[1] = before[0];", ""),
        ("(largest_error, d->reject_above,", "(largest_error, 1e9,"),
        ("source = d->first_codes[limiting]", "source = d->first_codes[0]"),
        ("if (*steps >= d->many)", "if (0)"),
        ("FM_SLIVER * (*end - begin)", "1e-15 * (*end - begin)"),
        (
            "|| (stopped = accept(k, commit))) { *attempted",
            "|| (i && (stopped = accept(k, commit)))) { *attempted",
        ),
        ("codes[i] = code;", "codes[i] = 0;"),
    ],
)
def test_a_wrong_controller_is_noticed(
    right: str, wrong: str, quick_build: Build, server: TestServer, tmp_path: Path
) -> None:
    kernel = quick_build.with_text_replaced(tmp_path, right, wrong)
    run = server.run(kernel, CONTROLLER)
    assert run.status == 1, run.output[-2000:]
    assert "1 failed" in run.output


def assert_noticed(server: TestServer, kernel: Path, tests: str) -> None:
    """One of the tests fails with this kernel."""
    run = server.run(kernel, tests)
    assert run.status == 1, run.output[-2000:]
    assert "1 failed" in run.output


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("after[z] - after[dz] * third > 0.0", "after[z] > 0.0"),
        ("p[0] + b1 + b2 + p[3] * horizon", "1.0 + p[0] + p[3] * horizon"),
        ("now > bound &&", "now > 0.0 * bound &&"),
        ("larger_of(size < INFINITY ? size : 0.0, largest[j])", "size"),
        ("if (now - time > nearest) {", "if (now - time > 0.0 * nearest) {"),
        ("(now - before.values[w->indicators[i]])", "now"),
        ("earliest <= w->close * w->step ?", "0 ?"),
        ("earliest <= w->now * w->step)", "0)"),
        ("event = w->events[s];", "event = w->events[0];"),
    ],
)
def test_a_wrong_watch_is_noticed(
    right: str, wrong: str, quick_build: Build, server: TestServer, tmp_path: Path
) -> None:
    assert_noticed(server, quick_build.with_text_replaced(tmp_path, right, wrong), WATCH)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if (n >= FM_LEAST_POINTS)", "if (n >= 2)"),
        ("last = differences[0] * product;", "last = product;"),
        ("expected[0] - expected[2] <=", "expected[0] + expected[2] <="),
        ("if (b > 0 && dz >= 0 && c.slopes[0] != 0.0", "if (0 && c.slopes[0] != 0.0"),
        ("is_above |= start", "is_above = start"),
        ("slot < 0 ? was_due(", "slot < 0 ? 0 * was_due("),
        ("fm_size[d->types[i]]))", "0))"),
    ],
)
def test_a_wrong_observer_is_noticed(
    right: str, wrong: str, quick_build: Build, server: TestServer, tmp_path: Path
) -> None:
    assert_noticed(server, quick_build.with_text_replaced(tmp_path, right, wrong), OBSERVER)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("*e->before = *e->input;", ""),
        ("has_passed(e, t) && !is_beyond(e, t) && !t->is_at->flag", "has_passed(e, t)"),
        ("(nearest(e) - following) * t->sign > 0", "(nearest(e) - following) * t->sign < 0"),
        ("i < e->n_thresholds && e->policy->integer == e->execute", "i < e->n_thresholds"),
        ("e->is_started->flag && (is_fired || find_reached(e, found))", "is_fired"),
    ],
)
def test_a_wrong_element_is_noticed(
    right: str, wrong: str, quick_build: Build, server: TestServer, tmp_path: Path
) -> None:
    assert_noticed(server, quick_build.with_text_replaced(tmp_path, right, wrong), ELEMENTS)


def test_every_instruction_is_made_wrong_once() -> None:
    names = {operation.__name__.upper() for operation in OPERATIONS}
    assert names <= {name for wrong in WRONG.values() for name in wrong}


def test_what_is_made_wrong_is_still_in_the_sources() -> None:
    """The tests that need it are not among the default ones."""
    for wrong in WRONG.values():
        for right, other in wrong.values():
            replaced(right, other)


@pytest.mark.thorough
def test_the_sanitizers_find_nothing(tmp_path: Path) -> None:
    library = subprocess.run(
        [compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(library).is_file():
        pytest.skip("the compiler has no address sanitizer")
    # not optimized: compiled in a third of the time, and no access is left out
    flags = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
    kernel = build(tmp_path, *flags).link(tmp_path / "_kernel.so")
    # Python itself leaks at its end; the sanitizer must be there before everything else
    environment = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"}
    server = TestServer(environment)
    # of the runs that are made with each version and with both, the last do
    chosen = "not reference and not twenty and not (two_masses and (fmi2 or fmi3))"
    chosen += " and not (every_kind_of_input and (versions0 or versions1))"
    chosen += " and not large and not subnormal and not distributed"  # of numbers, a few of each kind are enough
    run = server.run(
        kernel,
        *AGREEMENT,
        LOOPS,
        CONTROLLER,
        WATCH,
        OBSERVER,
        ELEMENTS,
        NUMBERS,
        LINK,
        "-k",
        chosen,
    )
    server.close()
    assert run.status == 0, run.output[-6000:]
    assert "passed" in run.output


def pool_with_thread_sanitizer(folder: Path, workers: str) -> subprocess.CompletedProcess[str]:
    """Compile these workers with pool.c and the thread sanitizer, and run them."""
    flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=thread", "-pthread"]

    def made(name: str, *sources: Path) -> subprocess.CompletedProcess[str]:
        command = [compiler(), *flags, f"-I{FOLDER}", "-o", str(folder / name)]
        built = subprocess.run(
            [*command, *map(str, sources)], capture_output=True, text=True, check=False
        )
        if built.returncode:
            return built
        return subprocess.run([folder / name], capture_output=True, text=True, check=False)

    (folder / "nothing.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    if made("nothing", folder / "nothing.c").returncode:
        pytest.skip("there is no thread sanitizer that runs here")
    (folder / "workers.c").write_text(workers, encoding="utf-8")
    return made("pool", HERE / "pool.c", folder / "workers.c", FOLDER / "portable.c")


WORKERS = (FOLDER / "workers.c").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_the_thread_sanitizer_finds_nothing(tmp_path: Path) -> None:
    run = pool_with_thread_sanitizer(tmp_path, WORKERS)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.thorough
def test_the_thread_sanitizer_finds_a_task_that_is_done_too_early(tmp_path: Path) -> None:
    task, done = "pool->task(pool->context, NEXT(ticket));", "atomic_fetch_sub(&pool->left, 1);"
    in_order = f"            {task}\n            {done}\n"
    assert WORKERS.count(in_order) == 1
    swapped = WORKERS.replace(in_order, f"            {done}\n            {task}\n")
    run = pool_with_thread_sanitizer(tmp_path, swapped)
    assert run.returncode != 0
    assert "data race" in run.stderr
