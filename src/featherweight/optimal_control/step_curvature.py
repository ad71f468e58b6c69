"""Second derivatives of steps, which Newton's method adds to the Hessian of the cost.

A step is x' = g(x, a, h), where the acceleration a and the contact forces f solve equations of motion and of constraints,
E(x, u, a, f, h) = 0. For a cotangent λ of x', the costate, let c = (dg/da)ᵀ λ, and let w be the multipliers with
(dE/d(a, f))ᵀ w = -(c, 0). The second derivatives of λᵀ x' by (x, u, h) are then those of the Lagrange function

    λᵀ g(x, a, h) + wᵀ E(x, u, a, f, h)

along a(x, u, h) and f(x, u, h), whose first derivatives are known. E needs no factorization, so this takes a small part of the
operations that second derivatives of a would take (Singh, Russell and Wensing 2023, for forward dynamics without contacts).

Multipliers of rows that depend on each other are not unique; those of least norm belong to forces of least norm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..algorithms import knots as kernels
from ..algorithms.passive_forces import summed
from ..engine.derivative_program import JacobianProgram, PullbackProgram
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, RenamedProgram
from ..robot.constraints.operational_space import OperationalSpace, programs_of_rows
from ..robot.dynamics_derivatives import analytic
from .passive_forces import LOAD
from .spans import LONGEST, ROOT, SEMI_IMPLICIT, System
from .stage_rows import A_SLOPES, FORCE_SLOPES

AHEAD, VELOCITY = "ahead_bar", "velocity_bar"  # the costate
FREE_SLOPES = "inverse", "force_by_tau"  # derivatives of acceleration and force by joint forces, at an impact


class StepCurvature:
    """The programs for second derivatives of the steps of a span, after those of `dynamics` and their derivatives.

    `moved` are the programs of g without closing loops, which moves no independent joint; `target` are those of the target of
    contacts. `root` says whether the step of the span is free.
    """

    def __init__(
        self,
        system: System,
        space: OperationalSpace | None,
        impact: bool,
        root: bool,
        dynamics: tuple[Sequence[Program], tuple[tuple[str, str], ...]],
        target: Sequence[Program],
        moved: Sequence[Program],
    ) -> None:
        self.system, self.space, self.impact, self.dynamics = system, space, impact, dynamics
        self.target, self.moved, self.implicit = target, moved, system.integrator == SEMI_IMPLICIT
        self.v, self.a = (Input(name, (system.robot.nv,)) for name in "va")
        self.root = (ROOT,) * (root and not impact)
        """The name of the variable that determines the step, if it is free."""
        self.force = ("impulse" if impact else "force",) * (space is not None)
        """The name of the forces of contacts, if there are any."""

    def programs(self, places: tuple[tuple[int, int], ...]) -> tuple[Program, ...]:
        """Return the programs; the last one writes the `curvature` at `places` of the Hessian."""
        system, n = self.system, self.system.robot.nv
        length = Input(LONGEST, ()), Input(ROOT, ())
        h = (KernelProgram("h", kernels.free_step, (), length, (Output("h", ()),)),) * len(self.root)
        step = ComposedProgram("moved", (*h, *self.moved), ("ahead", "velocity"))
        equations = ComposedProgram("equations", (*h, *self._equations()), ("balance", *("slack" for _ in self.force)))
        solved = "a", *self.force
        moved, balanced = ("q", "v", "a", *self.root), ("q", "v", *solved, *self.root)
        by_a = ComposedProgram("by_acceleration", (PullbackProgram(step),), ("a_bar",))
        second = second_derivatives(step, moved), second_derivatives(equations, balanced)
        given = [Input(y.name, y.shape) for program in second for y in program.outputs]
        slopes = A_SLOPES, ("dimpulse_dq", "dimpulse_dv", FORCE_SLOPES[2]) if self.impact else FORCE_SLOPES
        for name, own in zip(solved, slopes, strict=False):
            size = n if name == "a" or self.space is None else self.space.size
            given += [*(Input(x, (size, n)) for x in own), *(Input(f"d{name}_d{x}", (size,)) for x in self.root)]
        s = kernels.StepVariables(moved, balanced, solved, system.drives, system.blocks, n, self.root, system.free)
        output = Output("curvature", (len(places),))
        whole = KernelProgram(output.name, kernels.step_curvature, (s, places), tuple(given), (output,))
        return *self._slopes_by_root(), *self._slopes_of_impact(), by_a, self._multipliers(), *second, whole

    def _slopes_by_root(self) -> Iterator[Program]:
        """Yield the program for derivatives of acceleration and force by the root of a free step."""
        if self.root:
            programs, also = self.dynamics
            solution = ComposedProgram("solution", tuple(programs), ("a", *self.force), "", also)
            yield JacobianProgram(solution, "", (ROOT,))

    def _slopes_of_impact(self) -> Iterator[Program]:
        """Yield the programs for derivatives at an impact by forces that act at the same time; they change no jump."""
        if self.space and self.impact:
            n, m = self.system.robot.nv, self.space.size
            slopes = analytic(self.space.forward_dynamics_derivatives).program.given("target")
            target = KernelProgram("none", kernels.nothing, (), (self.v,), (Output("target", (m,)),))
            tau = KernelProgram("rest", kernels.nothing, (), (self.v,), (Output("tau", (n,)),))
            wanted = tuple(zip((f"d{x}_dtau" for x in ("acceleration", "force")), FREE_SLOPES, strict=True))
            yield ComposedProgram("free_slopes", (tau, target, slopes), FREE_SLOPES, "", wanted)
            zero = Output(FORCE_SLOPES[2], (m, n))
            yield KernelProgram("no_slopes", kernels.nothing, (), (self.v,), (zero,))

    def _multipliers(self) -> Program:
        n, sizes = self.system.robot.nv, [self.space.size for _ in self.force if self.space]
        names = FREE_SLOPES if self.impact else (A_SLOPES[2], FORCE_SLOPES[2])
        given = [Input(name, (size, n)) for name, size in zip(names, (n, *sizes), strict=False)]
        results = Output("balance_bar", (n,)), *(Output("slack_bar", (m,)) for m in sizes)
        return KernelProgram("multipliers", kernels.multipliers, (), (*given, Input("a_bar", (n,))), results)

    def _equations(self) -> Iterator[Program]:
        """Yield the programs of `balance` and `slack`, functions of the state, a, tau, the force of contacts and the step."""
        robot, passive, n = self.system.robot, self.system.passive, self.system.robot.nv
        inverse, vector = robot.inverse_dynamics.program, (Output("still", (n,)),)
        [moved] = inverse.outputs
        if self.impact:
            weight = robot.gravity_force.program
            yield RenamedProgram(weight, ((weight.outputs[0].name, LOAD),))
            yield KernelProgram("still", kernels.nothing, (), (self.v,), vector)
            yield RenamedProgram(inverse, ((moved.name, "moved"), ("v", "still")))
        else:
            load = passive.load(self.implicit) if passive.exist else None
            yield from () if load is None else (load,)
            *ends, dynamics = passive.with_armature_at_end(inverse, robot, self.implicit)
            yield from ends
            yield RenamedProgram(dynamics, ((moved.name, "moved"),))
        given = [Input(LOAD if self.impact or passive.exist else "tau", (n,)), Input("moved", (n,))]
        if self.space:
            yield from self._equations_of_contacts(self.space)
            given.append(Input("pull", (n,)))
        yield KernelProgram("balance", kernels.balance, (), tuple(given), (Output("balance", (n,)),))

    def _equations_of_contacts(self, space: OperationalSpace) -> Iterator[Program]:
        """Yield the programs of joint forces of contacts, and of the residuals of their rows."""
        n, m = self.system.robot.nv, space.size
        pull, rows = programs_of_rows(space)
        given = [Input("rows", (m,))]
        if self.impact:
            yield RenamedProgram(pull, (("force", "impulse"),))
            after = Output("after_jump", (n,))
            yield KernelProgram("after_jump", summed, (), (self.v, self.a), (after,))
            yield RenamedProgram(rows, (("v", "still"), ("a", after.name)))
        else:
            yield pull
            yield rows
            yield from self.target
            given.append(Input("target", (m,)))
        yield KernelProgram("slack", kernels.slack, (), tuple(given), (Output("slack", (m,)),))


def second_derivatives(program: Program, names: tuple[str, ...]) -> Program:
    """Return the program of the derivatives of the cotangents of variables by all of them, named after the program and both."""
    cotangents = ComposedProgram("cotangents", (PullbackProgram(program),), tuple(f"{x}_bar" for x in names))
    pairs = tuple((f"d{x}_bar_d{y}", f"{program.name}_{x}_{y}") for x in names for y in names)
    slopes = JacobianProgram(cotangents, "", names)
    return ComposedProgram(f"curved_{program.name}", (slopes,), tuple(new for _, new in pairs), "", pairs)
