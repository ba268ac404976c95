"""The solver of an algebraic loop as hooks of a program: one before the sweeps, one after each sweep.

A program solves a loop as follows::

    CALL  begin
    REPEAT
        a sweep: MOVE, SET, GET of its instances, or RESTORE, MOVE, SET, STEP, GET
        CALL  sweep
    UNTIL inf

Unknowns are outputs in the value store. The hooks write the values to try there, and MOVE converts them as any other value.
After a sweep the hooks read its result there. After the last sweep the outputs keep the values from the FMUs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from fmimaster.base.errors import LoopError
from fmimaster.base.text import listed
from fmimaster.loops.anderson import measured
from fmimaster.loops.search import (
    FEW_UNKNOWNS,
    ROUNDINGS,
    Attempts,
    Matrix,
    NoSolution,
    Problem,
    Search,
    Sweep,
    Trial,
    Vector,
    doubtful,
    not_solved,
)
from fmimaster.loops.solver import LoopSolver
from fmimaster.loops.sweep_derivatives import SweepDerivatives
from fmimaster.loops.unknowns import (
    MOST_REMEMBERED,
    At,
    LoopState,
    constraints,
    precision,
    unknowns_of,
)
from fmimaster.plan.graph import Node
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import FunctionHook, Hook, Partials, Solutions, Twin
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

NO_CONSTRAINTS: Mapping[Node, Node] = {}


class LoopHooks:
    """The hooks that solve one loop, and their state from sweep to sweep.

    No state of one execution influences the next one: ``begin`` starts a new solution.

    Parameters
    ----------
    plan : Plan
    outputs : sequence of (instance, output)
        The unknowns.
    solver : LoopSolver
    variables : sequence of (instance, variable)
        All variables of the loop, for messages; the unknowns, if left out.
    assumed : bool
        Whether the loop exists only because an FMU does not declare the dependencies of its outputs.
    residuals : unknown → (instance, output)
        For constraints: outputs of type Float64 that must become 0, with as many elements as their unknowns. A sweep
        gives all other unknowns anew.
    slope : (instance, variable), or None
        For one unknown with a residual: where the derivative of this by that is kept from solution to solution, 0 while
        it is not known. It saves a sweep.
    derivatives : SweepDerivatives or None
        Those of a sweep, if the FMUs provide them; then DERIVE comes before the CALL that ends a sweep.
    group : Group
        Of the unknowns: INITIAL for start values that are unknown.
    what : str
        What is solved, for messages; the algebraic loop of its variables, if left out.
    replayed : bool
        Whether a sweep repeats steps, which some FMUs do not repeat exactly.

    Attributes
    ----------
    begin, sweep : Hook
        To be called before the REPEAT, and at the end of each sweep.
    most : int
        For the REPEAT.
    warnings : tuple of str
        What makes solutions so far doubtful.
    """

    def __init__(
        self,
        plan: Plan,
        outputs: Sequence[Node],
        solver: LoopSolver,
        *,
        variables: Sequence[Node] | None = None,
        assumed: bool = False,
        residuals: Mapping[Node, Node] = NO_CONSTRAINTS,
        slope: Node | None = None,
        derivatives: SweepDerivatives | None = None,
        group: Group = Group.OUTPUTS,
        what: str = "",
        replayed: bool = False,
    ) -> None:
        self.solver = solver
        self.unknowns = u = unknowns_of(plan, outputs, variables=variables, group=group)
        self.variables = sorted(
            f"{plan.instances[i].name}.{name}" for i, name in variables or outputs
        )
        self.what = what or f"algebraic loop of {listed(self.variables)}"
        self.assumed = assumed
        self.derivatives = derivatives
        self.residuals = constraints(plan, u, residuals, group)
        self._slope = (
            None if slope is None else plan.layout.slots[slope[0], Group.OUTPUTS, slope[1]][1]
        )
        self.most = solver.most_passes(u.size)
        self.plain = u.size + 1 if assumed else 0
        self._precision = precision(plan, [*(variables or ()), *outputs], replayed=replayed)
        relative = max(solver.relative, ROUNDINGS * self._precision)
        self.state = LoopState.of(u.size, solver.remembered(u.size), relative)
        # a sweep of steps costs much, and most loops of steps are solved at the start before
        self._measures = not replayed and solver.bounded is None
        self._search: Search | None = None
        self._has_asked = False
        self._slots = plan.layout.slots
        self.begin: Hook = _Begin(self)
        self.sweep: Hook = _Sweep(self)

    def holding(self, outputs: Sequence[Node]) -> Hook:
        """A hook that restores the tried values of these outputs after an instance was read within the sweep."""
        slots = [self._slots[i, Group.OUTPUTS, name] for i, name in outputs]
        places = {
            (kind is DataType.FLOAT64, k) for kind, s in slots for k in range(s.start, s.stop)
        }
        u = self.unknowns
        chosen = [k for k, slot in enumerate(u.slots.tolist()) if (k < u.doubles, slot) in places]

        def hold(store: ValueStore) -> None:
            held = u.get(store)
            held[chosen] = self.state.x[chosen]
            u.put(store, held)

        # not in C: it is needed only where an instance with a cut output is read twice in a sweep
        return FunctionHook(f"what is assumed in the loop of {self.name}", hold)

    # What the hooks do

    def start(self, store: ValueStore) -> None:
        """A new solution begins."""
        self._from(self.unknowns.get(store))
        self._search = self.solver.solve(self._problem(self._jacobian_before(store)))
        self._put_trial(store, next(self._search))

    def _from(self, values: Vector) -> None:
        self.state.begin(values)
        self._search = None
        if self.derivatives is not None:
            self.derivatives.begin()

    def swept(self, store: ValueStore) -> bool:
        """Read the result of the sweep; return whether another one is needed."""
        if (
            self.state.counts[At.STAGE] == 1
        ):  # the sweeps of the twin in C, up to this one, have not converged
            self.state.counts[At.STAGE] = 2
            self._search = self._continued()
            return self._next(store, None)
        if self.state.counts[At.STAGE] == 3:
            self.state.counts[At.STAGE] = 2
            attempts = Attempts(self._problem())
            residual = (self.unknowns.get(store) - self.state.x) / self.unknowns.nominal
            self._search = measured(attempts, self.state.x.copy(), residual)
            return self._next(store, None)
        if self._search is None:
            self._search = self.solver.solve(self._problem(self._jacobian_before(store)))
            next(self._search)  # the sweep started with these values
        self.state.counts[At.SWEEPS] += 1
        self.state.counts[At.TOTAL] += 1
        with np.errstate(over="ignore", invalid="ignore"):
            residual = (self.unknowns.get(store) - self.state.x) / self.unknowns.nominal
        for k, slot in self.residuals.items():
            residual[k] = store.values[DataType.FLOAT64][slot]
        return self._next(store, Sweep(self.state.x.copy(), residual, self._jacobian()))

    def _next(self, store: ValueStore, sweep: Sweep | None) -> bool:
        """Continue the search with the result of a sweep, or start it; return whether another sweep is needed."""
        assert self._search is not None
        try:
            # the search itself checks for values that are not finite
            with np.errstate(over="ignore", invalid="ignore"):
                trial = next(self._search) if sweep is None else self._search.send(sweep)
        except StopIteration as end:
            self._keep(store, end.value.jacobian)
            self._solved(self.unknowns.get(store), end.value.singular_value)
            return False
        except NoSolution as failure:
            raise self._error(failure, store) from None
        return self._put_trial(store, trial)

    def _jacobian_before(self, store: ValueStore) -> Matrix | None:
        """The Jacobian of the last solution, if it is kept and known."""
        if self._slope is None:
            return None
        slope = store.values[DataType.FLOAT64][self._slope] * self.unknowns.nominal
        return slope.reshape(1, 1) if slope[0] else None

    def _keep(self, store: ValueStore, jacobian: Matrix | None) -> None:
        """Keep the Jacobian for the next solution."""
        if self._slope is not None and jacobian is not None:
            store.values[DataType.FLOAT64][self._slope] = jacobian[0] / self.unknowns.nominal

    def _problem(self, jacobian: Matrix | None = None) -> Problem:
        return Problem(
            self.state.u0.copy(),
            self.unknowns.nominal,
            self.state.relative,
            self.solver.absolute,
            has_derivatives=self.derivatives is not None,
            constrained=frozenset(self.residuals),
            jacobian=jacobian,
            precision=self._precision,
            plain=self.plain,
            is_first=self._measures and not self.state.counts[At.SOLUTIONS],
        )

    def _continued(self) -> Search:
        counts = self.state.counts
        return self.solver.go_on(
            self._problem(),
            int(counts[At.SWEEPS]),
            self.state.best_u,
            self.state.best_residual
            if self.state.sizes[1] < inf
            else np.full(len(self.state.x), inf),
            overflowed=bool(counts[At.OVERFLOWED]),
        )

    def _put_trial(self, store: ValueStore, trial: Trial) -> bool:
        self._put(store, trial.u)
        if trial.derive and self.derivatives is not None:
            self.derivatives.ask()
            self._has_asked = True
        return True

    def _jacobian(self) -> Matrix | None:
        """The Jacobian of the last sweep, relative to nominal values; None if its derivatives were not requested."""
        if self.derivatives is None or not self._has_asked:
            return None
        self._has_asked = False
        nominal = self.unknowns.nominal
        change = self.derivatives.jacobian() * nominal / nominal[:, np.newaxis]
        return np.asarray(change - np.eye(len(nominal)), np.float64)

    def _put(self, store: ValueStore, values: Vector) -> None:
        self.unknowns.put(store, values)
        # what the FMUs get: an unknown of type Float32 has been rounded
        self.state.x[:] = (
            self.unknowns.get(store) if self.unknowns.doubles < self.unknowns.size else values
        )

    def _solved(self, given: Vector, singular_value: float) -> None:
        self.state.note_solution()
        self.state.sizes[2] = min(self.least, singular_value)
        self._from(given)  # if the REPEAT continues for another reason, it starts from here

    def twin(self, name: str) -> Twin | None:
        """The same in C for Anderson acceleration; after it the hook in Python is called."""
        solver, u = self.solver, self.unknowns
        if self._problem().newton_comes_first or solver.remembered(u.size) > MOST_REMEMBERED:
            return None
        return Twin(
            name,
            numbers={
                "n": u.size,
                "doubles": u.doubles,
                "depth": solver.remembered(u.size),
                "most": solver.anderson_limit(self.plain),
                "plain": self.plain,
                "bounded": solver.bounded is not None,
                "measures": self._measures and u.size <= FEW_UNKNOWNS and not self.plain,
                "absolute": solver.absolute,
            },
            arrays={
                "slots": u.slots,
                "nominal": u.nominal,
                **vars(self.state),
            },
            hooks={"later": _InPython(self)},
        )

    # What users read

    @property
    def name(self) -> str:
        """The loop, for listings."""
        return listed(self.unknowns.names, 3)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes solutions so far doubtful."""
        return doubtful(self.what, self.least)

    @property
    def least(self) -> float:
        """Smallest singular value of a Jacobian at a solution so far, by this hook or by its twin."""
        return float(self.state.sizes[2])

    def _error(self, failure: NoSolution, store: ValueStore) -> LoopError:
        residuals = failure.residual * self.unknowns.nominal
        for k in self.residuals:
            residuals[k] = failure.residual[k]
        return not_solved(
            self.what,
            failure,
            loop=self.variables,
            values=dict(zip(self.unknowns.names, failure.u.tolist(), strict=True)),
            residuals=dict(zip(self.unknowns.names, residuals.tolist(), strict=True)),
            sweeps=int(self.state.counts[At.SWEEPS]),
            time=store.interval[1],
            assumed=self.assumed,
        )


class _Begin(Hook):
    def __init__(self, hooks: LoopHooks) -> None:
        self.hooks = hooks
        self.name = f"start of the loop of {hooks.name}"

    def __call__(self, store: ValueStore) -> bool:
        """A new solution begins."""
        self.hooks.start(store)
        return False

    def twin(self, store: ValueStore) -> Twin | None:
        """The same in C."""
        del store
        return self.hooks.twin("start of a loop")


class _InPython(Hook):
    def __init__(self, hooks: LoopHooks) -> None:
        self.hooks = hooks
        self.name = f"solver of the loop of {hooks.name}"

    def __call__(self, store: ValueStore) -> bool:
        """Read the result of the sweep."""
        return self.hooks.swept(store)


class _Sweep(_InPython):
    """The hook at the end of each sweep over a loop."""

    def twin(self, store: ValueStore) -> Twin | None:
        """The same in C for Anderson acceleration."""
        del store
        return self.hooks.twin("sweep of a loop")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the solver."""
        return self.hooks.warnings

    @property
    def solutions(self) -> Solutions:
        """Numbers of solutions and sweeps of the loop."""
        h = self.hooks
        return Solutions(tuple(h.variables), *h.state.of_run)

    def remembered(self) -> tuple[float, ...]:
        """Numbers of solutions and sweeps, and the smallest singular value."""
        h = self.hooks
        return (*h.state.of_run, h.least)

    def remember(self, numbers: tuple[float, ...]) -> None:
        """Continue with these."""
        state = self.hooks.state
        state.go_on(numbers[:-1])
        state.sizes[2] = numbers[-1]

    def forget(self) -> None:
        """Count solutions anew."""
        self.hooks.state.go_on((0, 0, 0))

    def begin_anew(self) -> None:
        """The same, and of all sizes."""
        self.remember((0, 0, 0, inf))

    def partials(self, instance: int) -> Partials | None:
        """Where DERIVE stores the directional derivatives of an instance."""
        derivatives = self.hooks.derivatives
        return None if derivatives is None else derivatives.partials.get(instance)
