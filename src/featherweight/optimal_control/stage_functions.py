"""Compiled functions of the knots of one stage: next states, rows, and the derivatives of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from ..algorithms import knots as kernels
from ..array_types import Array
from ..contact.factors.branches import padded
from ..engine.derivative_program import JacobianProgram
from ..engine.function import CompiledFunction
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ..model.expansion import CURVED
from ..robot.constraints.operational_space import OperationalSpace
from ..robot.dynamics_derivatives import analytic
from ..robot.inverse_kinematics.tasks import TargetSlot
from ..simulation.smooth_motion import write_curved_rates
from .spans import LONGEST, RK4, ROOT, SEMI_IMPLICIT, Span, System
from .stage_rows import A_SLOPES, BY_STEP, FORCE_SLOPES, StageRows
from .step_curvature import StepCurvature
from .terms import PARAMETERS, Added

FIRST = ("q", "v", "u", "h", LONGEST, ROOT, PARAMETERS)  # the order of arguments


class StageFunctions:
    """The functions of the knots of a span, or of the end (None), which has neither controls nor a next knot.

    `terms` are those of tasks, whose targets have `slots`, and then others, whose parameters begin at `first` by name.
    """

    def __init__(
        self, system: System, span: Span | None, slots: Sequence[TargetSlot], terms: Sequence[Added], first: Mapping[str, int]
    ) -> None:
        self.system, self.end, self.free = system, span is None, span is not None and span.free
        self.impact, contacts = (span.impact, span.contacts) if span else (False, ())
        self.space: OperationalSpace | None = system.robot.operational_space(contacts) if contacts else None
        self.of_terms = StageRows(system, span, slots, terms, first, self.space.size if self.space else 0)
        self.rows = self.of_terms.size

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the entries in the lower triangle of the cost's Hessian that may be nonzero."""
        if self.system.exact and not self.end:
            width = 2 * self.system.robot.nv + self.system.controls
            return tuple((i, j) for i in range(width) for j in range(i + 1))
        return self.of_terms.places

    # dynamics

    @cached_property
    def _dynamics(self) -> tuple[tuple[Program, ...], tuple[tuple[str, str], ...]]:
        """Programs that compute acceleration and force from q, v, u and h, and the names of their results."""
        return self._dynamics_with(self._accelerating)

    @cached_property
    def _dynamics_by_factors(self) -> tuple[tuple[Program, ...], tuple[tuple[str, str], ...]]:
        """The same programs, with the algorithm for the acceleration that its derivatives contain."""
        if self.space is None:
            return self._dynamics_with(self._loaded(self.system.robot.forward_dynamics.alternatives["crba-ltdl"].program))
        own = self.space.constrained_dynamics.alternatives["ltl"].program
        return self._dynamics_with(self._loaded(own.given("target")))

    def _dynamics_with(self, accelerating: Program) -> tuple[tuple[Program, ...], tuple[tuple[str, str], ...]]:
        robot, drives = self.system.robot, self.system.drives
        if self.end or self.system.simulated:
            return (), ()
        state = () if all(d.alone for d in drives) else (self.system.q, Input("v", (robot.nv,)))
        drive = KernelProgram(
            "drive", kernels.joint_forces, (drives,), (Input("u", (len(drives),)), *state), (Output("tau", (robot.nv,)),),
        )  # fmt: skip
        if self.space is None:
            return (drive, *self._step, accelerating, *self._felt), ((accelerating.outputs[0].name, "a"),)
        if self.impact:
            inputs, n = (Input("after", (robot.nv,)), Input("v", (robot.nv,))), robot.nv
            jump = KernelProgram("jump", kernels.jump, (), inputs, (Output("a", (n,)),))
            return (drive, *self._hit, jump), ()
        return (drive, *self._step, *self._target, accelerating, *self._felt), (("acceleration", "a"),)

    @property
    def _step(self) -> tuple[Program, ...]:
        """The program for the length of a free step; an impact has the root of the step after it, for its costs."""
        inputs = Input(LONGEST, ()), Input(ROOT, ())
        return (KernelProgram("h", kernels.free_step, (), inputs, (Output("h", ()),)),) * (self.free and not self.impact)

    @property
    def _accelerating(self) -> Program:
        """The program for the acceleration, from q, v and tau, and from the target of contacts."""
        if self.space is None:
            return self._loaded(self.system.robot.forward_dynamics.program)
        return self._loaded(self.space.constrained_dynamics.program.given("target"))

    def _loaded(self, dynamics: Program) -> Program:
        """Return a function of q, v and tau with passive forces, which semi-implicit steps evaluate at their end."""
        system = self.system
        return system.passive.beside(dynamics, system.robot, system.integrator == SEMI_IMPLICIT)

    def _loaded_slopes(self, slopes: Program, names: tuple[str, ...]) -> Program:
        """Return the function for the derivatives of one or two quantities by q, v and tau, with passive forces."""
        system = self.system
        if not system.passive.exist:
            pairs = zip((y.name for y in slopes.outputs), names, strict=True)
            return RenamedProgram(slopes, tuple(pairs))
        return system.passive.slopes_beside(slopes, names, system.robot, system.integrator == SEMI_IMPLICIT)

    @property
    def _felt(self) -> tuple[Program, ...]:
        """The joint forces at the end of a step, if they differ from those at its beginning."""
        n, drives = self.system.robot.nv, self.system.drives
        if not self.of_terms.armature:
            return ()
        return (
            KernelProgram(
                kernels.FELT,
                kernels.felt_forces,
                (drives,),
                (Input("tau", (n,)), Input("a", (n,))),
                (Output(kernels.FELT, (n,)),),
            ),
        )

    @cached_property
    def _target(self) -> tuple[Program, ...]:
        """The target that brings contacts to rest after the step."""
        assert self.space is not None
        shapes = Output("placements", (len(self.space.contacts), 4, 4)), Output("gains", (2,))
        gains = KernelProgram("gains", kernels.rest_after_step, (), (Input("h", ()),), shapes)
        return gains, self.space.stabilization.program

    @cached_property
    def _hit(self) -> tuple[Program, ...]:
        """The velocity after an impact at all contacts."""
        assert self.space is not None
        none = KernelProgram("no_rebound", kernels.no_rebound, (), (Input("h", ()),), (Output("restitution", ()),))
        return none, RenamedProgram(self.space.impact.program, (("velocity", "after"),))

    @cached_property
    def _dynamics_slopes(self) -> tuple[Program, ...]:
        """Programs for the derivatives of acceleration and force."""
        robot = self.system.robot
        if self.space is None:
            return (self._loaded_slopes(analytic(robot.forward_dynamics_derivatives).program, A_SLOPES),)
        if self.impact:
            n = robot.nv
            inputs = Input("dafter_dq", (n, n)), Input("dafter_dv", (n, n))
            slopes = KernelProgram("jump_slopes", kernels.jump_slopes, (), inputs, tuple(Output(x, (n, n)) for x in A_SLOPES))
            return JacobianProgram(self._hit[1], "", ("q", "v")), slopes
        return (self._loaded_slopes(analytic(self.space.stabilized_derivatives).program, (*A_SLOPES, *FORCE_SLOPES)),)

    @property
    def steps(self) -> bool:
        """Return whether the knots are steps of the Runge-Kutta method; impacts and the end are not."""
        return self.system.integrator == RK4 and not self.impact and not self.end

    @property
    def _later_stages(self) -> tuple[Program, ...]:
        """States q_i and v_i of stages 2 to 4 of the Runge-Kutta method, with rates of displacements, and accelerations.

        Contacts keep the target of the first stage, which brings them to rest over the whole step.
        """
        n, drive, dynamics = self.system.robot.nv, self._dynamics[0][0], self._accelerating
        v, a, parts = Input("v", (n,)), dynamics.outputs[0].name, list[Program]()
        rates = v, Input(a, (n,))
        for i, part in ((2, 0.5), (3, 0.5), (4, 1.0)):
            results = Output(f"v_{i}", (n,)), Output(f"displacement_{i}", (n,))
            parts.append(KernelProgram(f"stage_{i}", kernels.stage_state, (part,), (v, Input("h", ()), *rates), results))
            parts += [self._rate(i), *self._moved_and_closed(f"_{i}"), at_stage(i, drive), at_stage(i, dynamics)]
            rates = Input(f"rate_{i}", (n,)), Input(f"{a}_{i}", (n,))
        return tuple(parts)

    def _rate(self, i: int) -> Program:
        """Return the program for the rate of the displacement at a stage."""
        n, turning = self.system.robot.nv, tuple((CURVED[j.type], j.v_slice.start) for j in self.system.curved)
        state = Input(f"displacement_{i}", (n,)), Input(f"v_{i}", (n,))
        return KernelProgram(f"rate_{i}", write_curved_rates, (turning,), state, (Output(f"rate_{i}", (n,)),))

    @property
    def _change(self) -> tuple[Program, ...]:
        """The velocity after a step, and the displacement along it, from the acceleration at its beginning."""
        if not self.steps:
            return (self._next_velocity,)
        n, a = self.system.robot.nv, self._accelerating.outputs[0].name
        names = "v", "rate_2", "rate_3", "rate_4", a, f"{a}_2", f"{a}_3", f"{a}_4"
        inputs = [Input(name, (n,)) for name in names]
        results = Output("velocity", (n,)), Output("displacement", (n,))
        return *self._later_stages, KernelProgram("change", kernels.runge_kutta, (), (Input("h", ()), *inputs), results)

    @property
    def _next_velocity(self) -> Program:
        """The velocity after a semi-implicit step or an impact, and the displacement along it."""
        n = self.system.robot.nv
        inputs = Input("v", (n,)), Input("a", (n,)), Input("h", ())
        outputs = Output("velocity", (n,)), Output("displacement", (n,))
        return KernelProgram("next_velocity", kernels.next_velocity, (self.impact,), inputs, outputs)

    def _moved(self, stage: str = "") -> RenamedProgram:
        """Return the program for the configuration after a step, or at a stage of it."""
        integrate = self.system.robot.step_functions.integrate.program
        names = ("v", f"displacement{stage}"), (integrate.outputs[0].name, f"q{stage}" if stage else "ahead")
        return RenamedProgram(integrate, names)

    def _moved_and_closed(self, stage: str = "") -> tuple[Program, ...]:
        """Return the programs for the same configuration, with loops closed by Newton steps, which move no independent joint.

        A Newton step leaves an error of fourth order in the step; "rk4" takes two, which leave one of eighth order.
        """
        moved, closing = self._moved(stage), self.system.robot.step_functions.closing_step
        if closing is None:
            return (moved,)
        place, count = moved.outputs[0].name, 2 if self.system.integrator == RK4 else 1
        names = [f"opened{stage}_{k}" for k in range(count)] + [place]
        opened = RenamedProgram(moved, ((place, names[0]),))
        return opened, *(RenamedProgram(closing.program, (("q", x), ("ahead", y))) for x, y in pairwise(names))

    # compiled functions

    @cached_property
    def step(self) -> CompiledFunction[Any]:
        """Function of q, v, u, h and parameters: the next q and v, and the rows; for the end and simulations, the rows."""
        if self.end or self.system.simulated:
            return self.only_rows
        dynamics, also = self._dynamics
        parts = (*dynamics, *self._change, *self._moved_and_closed(), *self.of_terms.values)
        return self._compiled(ComposedProgram("step", parts, ("ahead", "velocity", "rows"), "", also, FIRST))

    @cached_property
    def only_rows(self) -> CompiledFunction[Any]:
        """Function of those of q, v, u, h and parameters on which the rows depend: the rows."""
        dynamics, also = self._dynamics
        return self._compiled(ComposedProgram("rows", (*dynamics, *self.of_terms.values), ("rows",), "", also, FIRST))

    @cached_property
    def forces(self) -> CompiledFunction[Any] | None:
        """Function of q, v, u and h: the contact forces, or impulses; None without contacts."""
        if self.space is None:
            return None
        dynamics, also = self._dynamics
        result = "impulse" if self.impact else "force"
        return self._compiled(ComposedProgram("forces", dynamics, (result,), "", also, FIRST))

    @cached_property
    def slopes(self) -> CompiledFunction[Any]:
        """Function of the arguments of `step`, and of slopes and curvatures of rows: D, blocks, gradient and Hessian.

        For steps of the Runge-Kutta method and of a simulation, it does not return D.
        """
        n = self.system.robot.nv
        laws: tuple[Input, ...] = Input("slope", (self.rows,)), Input("stiffness", (self.rows,))
        if self.of_terms.second:
            laws = (*laws, Input(*self.of_terms.second[-1].outputs[0][:2]))
        width = 2 * n + self.system.controls
        entries = len(self.places)
        newton = KernelProgram(
            "gauss_newton", kernels.gauss_newton, (self.places,), (Input("row_slopes", (self.rows, width)), *laws),
            (Output("gradient", (width,)), Output("hessian", (entries,))),
        )  # fmt: skip
        parts, results = (*self._by_step, *self.of_terms.slopes, *self.of_terms.second, newton), ["gradient", "hessian"]
        if self.end or self.system.simulated:
            return self._compiled(ComposedProgram("end_slopes", parts, tuple(results), first=FIRST))
        dynamics, also = self._dynamics_by_factors
        slopes = self._dynamics_slopes
        columns = [Input(x, (n,)) for x in BY_STEP[: 2 * self.free]]
        if self.steps and self.system.free:
            given, whole = (Input("h", ()), *columns), Output("by_step", (2 * n,))
            parts = (*parts, KernelProgram(whole.name, kernels.column_of_step, (), given, (whole,)))
            results.append(whole.name)
        if self.steps:
            every = (*dynamics, *slopes, *parts)
            return self._compiled(ComposedProgram("slopes", every, tuple(results), "", also, FIRST))
        blocks = self.system.blocks if self.system.integrator == SEMI_IMPLICIT else ()
        inputs = [Input("h", ()), *(Input(name, (n, n)) for name in A_SLOPES)]
        whole = Output("motion", (self.system.rows, padded(width)))
        outputs = [Output("slopes", (n, 2 * n + len(self.system.drives))) if self.system.free else whole]
        before: tuple[Program, ...] = ()
        if blocks:
            before = (self._next_velocity, JacobianProgram(self._moved(), "", ("q", "displacement")))
            inputs += [Input("dahead_dq", (n, n)), Input("dahead_ddisplacement", (n, n))]
            outputs.append(Output("curved", (2 * sum(size * size for _, size in blocks),)))
        motion = KernelProgram(
            "motion_slopes", kernels.motion_slopes, (blocks, self.system.drives, self.impact), tuple(inputs), tuple(outputs)
        )
        names, steps = (*(y.name for y in outputs), *results), (*dynamics, *slopes, *before, motion)
        if self.system.free:
            given = (Input("h", ()), *(Input(y.name, y.shape) for y in outputs), *columns)
            rows = KernelProgram("motion_with_step", kernels.motion_with_step, (blocks,), given, (whole,))
            names, parts = (whole.name, *results), (*parts, rows)
        return self._compiled(ComposedProgram("slopes", (*steps, *parts), names, "", also, FIRST))

    @cached_property
    def curvature(self) -> CompiledFunction[Any]:
        """Function of the arguments of `step` and a costate: second derivatives, at `places`, of its product with x'."""
        dynamics, also = self._dynamics
        moved, target = (self._next_velocity, self._moved()), () if self.space is None or self.impact else self._target
        parts = StepCurvature(self.system, self.space, self.impact, self.free, (dynamics, also), target, moved)
        every = (*dynamics, *self._dynamics_slopes, *parts.programs(self.places))
        return self._compiled(ComposedProgram("curvature", every, ("curvature",), "", also, FIRST))

    @property
    def _by_step(self) -> tuple[Program, ...]:
        """The derivatives of the next state and of the rows by the root of a free step."""
        if not self.free:
            return ()
        dynamics, also = self._dynamics
        parts = (*dynamics, *self._change, self._moved(), *self.of_terms.values)
        return (JacobianProgram(ComposedProgram("by_step", parts, ("ahead", "velocity", "rows"), "", also), "", (ROOT,)),)

    # derivatives of a Runge-Kutta step (`runge_kutta`)

    @property
    def target_size(self) -> int:
        """The number of rows of contacts with a target."""
        return self.space.size if self.steps and self.space else 0

    @cached_property
    def stages(self) -> CompiledFunction[Any]:
        """Function of q, v, u and h: states at all stages, derivatives of curved blocks, and the target and its derivatives."""
        robot, n, later = self.system.robot, self.system.robot.nv, (2, 3, 4)
        sizes = {"q": robot.nq, "v": n, "tau": n}
        names = [[x, *(f"{x}_{i}" for i in later)] for x in sizes]
        results = [Output(f"stage_{x}", (4, size)) for x, size in sizes.items()]
        parts: list[Program] = []
        if self.system.blocks:
            parts = [JacobianProgram(x, "", tuple(y.name for y in x.inputs)) for x in map(self._rate, later)]
            ends = (*(f"_{i}" for i in later), "")
            parts += [JacobianProgram(self._moved(x), "", ("q", f"displacement{x}")) for x in ends]
            given = [Input(y.name, y.shape) for x in parts for y in x.outputs]
            numbers = Output("links", (14 * sum(size * size for _, size in self.system.blocks),))
            parts.append(KernelProgram("links", kernels.links, (self.system.blocks,), tuple(given), (numbers,)))
        whole = [y.name for y in results] + ["links"] * bool(parts)
        if self.space is not None:
            parts.append(JacobianProgram(self.space.stabilization.program, "", ("q", "v")))
            given = [Input(y.name, y.shape) for y in parts[-1].outputs]
            rows = Output("target_slopes", (self.target_size, padded(2 * n + len(self.system.drives))))
            parts.append(KernelProgram("target_slopes", kernels.side_by_side, (), tuple(given), (rows,)))
            names.append(4 * ["target"])
            sizes["target"], whole = self.target_size, [*whole, "stage_target", "target_slopes"]
            results.append(Output("stage_target", (4, self.target_size)))
        for own, y, size in zip(names, results, sizes.values(), strict=True):
            parts.append(KernelProgram(y.name, kernels.stacked, (), tuple(Input(x, (size,)) for x in own), (y,)))
        dynamics, also = self._dynamics
        return self._compiled(ComposedProgram("stages", (*dynamics, *self._change, *parts), tuple(whole), "", also, FIRST))

    @cached_property
    def accelerations(self) -> CompiledFunction[Any]:
        """Function of q, v, tau, and the target of contacts: derivatives of the acceleration by q, v, u, and the target."""
        n, drives = self.system.robot.nv, self.system.drives
        parts = [*self._dynamics_slopes]
        if self.space is not None:
            dynamics = self.space.constrained_dynamics.alternatives["ltl"].program.given("target")
            slopes = analytic(self.space.forward_dynamics_derivatives).program.given("target")
            names = (*A_SLOPES, *FORCE_SLOPES)
            parts = [self._loaded_slopes(slopes, names), JacobianProgram(self._loaded(dynamics), "", ("target",))]
        given = [Input(y.name, y.shape) for x, count in zip(parts, (3, 1), strict=False) for y in x.outputs[:count]]
        long = padded(2 * n + len(drives))
        y = Output("acceleration_slopes", (n, long + padded(self.target_size)))
        parts.append(KernelProgram(y.name, kernels.acceleration_slopes, (drives, long), tuple(given), (y,)))
        return self._compiled(ComposedProgram("accelerations", tuple(parts), (y.name,)))

    def _compiled(self, program: Program) -> CompiledFunction[Any]:
        return CompiledFunction(program, "traced")


def called(function: CompiledFunction[Any], known: Mapping[str, Array]) -> Any:
    """Return the result of a function for arguments given by name."""
    return function(*(known[x.name] for x in function.program.inputs))


def called_by_name(function: CompiledFunction[Any], known: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a function by their names, for arguments by theirs."""
    results, names = called(function, known), [y.name for y in function.program.outputs]
    return dict(zip(names, results if len(names) > 1 else (results,), strict=True))


def at_stage(i: int, program: Program) -> Program:
    """Return a function of the state at a stage of the Runge-Kutta method, whose results have its number as well."""
    return RenamedProgram(program, tuple((x, f"{x}_{i}") for x in ("q", "v", "tau", *(y.name for y in program.outputs))))
