"""The dynamics of a robot under contacts and other constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...algorithms import frames
from ...algorithms.contact import constraint_rows, contact_rows
from ...algorithms.contact.constraint_rows import FrameRows, stabilization
from ...algorithms.contact.contact_rows import BranchedRows
from ...algorithms.contact.delassus import efpa, kjr, ltl, pv_osim, pv_osimr
from ...algorithms.contact.operational_space import by_factors as by_factors
from ...algorithms.contact.operational_space import least_norm, recursive
from ...algorithms.contact.operational_space.dense_factors import ReducedRows
from ...array_types import Array
from ...checks import argument, one_of
from ...engine.function import CompiledFunction, R, cheapest
from ...engine.guarded import GuardedProgram
from ...engine.program import ComposedProgram, Input, Output, Program, WithoutLastResult
from ...model.tree import Placements
from ...model.types import Pose
from ...names import SuggestsNames, knows_keywords
from ...summaries import summarized
from ..arguments import DAMPING, TAU, Argument, Q, V
from ..compiled_member import compiled
from ..step_functions import Forest
from ..system import System
from .constrained_slopes import SOLUTION, Constrained, constrained_slopes, motion_of_rows, on_matrices, pull_of_rows
from .constraint import KnownConstraint, ResolvedRows
from .contact import BilateralContact, Resolved
from .redundancy import Independence

if TYPE_CHECKING:
    from ..result_types import ConstrainedDerivatives, ConstrainedDynamics, ImpactDynamics

DELASSUS = {
    "pv-osimr": pv_osimr.pv_osimr,
    "pv-osim": pv_osim.pv_osim,
    "pv-osimr-some": pv_osimr.pv_osimr,
    "efpa": efpa.efpa,
    "kjr": kjr.kjr,
    "ltl": ltl.ltl,
}
ANY_ROWS = {"pv-osim": recursive.pv_osim_rows, "ltl": by_factors.ltl_rows}  # for all constraints
OF_CONTACTS = {"pv-osimr": pv_osimr.pv_osimr, "pv-osimr-some": pv_osimr.pv_osimr, "efpa": efpa.efpa}  # of robots with loops
STRAIN = 1e14  # greatest squared ratio of pivots; with more, the rows are factorized by rotations
LOWER_RANK = (
    "constraint rows depend on each other at this configuration, but not in general. The motion meets the constraints in the "
    "sense of least squares, and of all forces these have the least norm; close to this configuration, they are different"
)


@summarized
class ConstrainedMotion(NamedTuple):
    """The result of forward dynamics under constraints."""

    acceleration: Array  # (..., nv)
    force: Array  # (..., m) forces of the constraint rows: M a + c + g = tau + Jᵀ force
    least_squares: bool  # True if rows are dependent, in any state: forces are those of least norm, targets may not be met


@summarized
class Impact(NamedTuple):
    """The result of impulse dynamics."""

    velocity: Array  # (..., nv) after the impact
    impulse: Array  # (..., m) impulses of the constraint rows: M (velocity - v) = Jᵀ impulse
    least_squares: bool  # as in `ConstrainedMotion`


class OperationalSpace(SuggestsNames):
    """A robot's dynamics along m constraint rows (Khatib 1987): J is their Jacobian, Λ⁻¹ = J M⁻¹ Jᵀ.

    Members are compiled functions, except `forward_dynamics` and `impulse_dynamics`; rows are in the order of `constraints`.
    The default is the algorithm with the fewest operations. `algorithm=` in a call selects another; `.candidates` has the
    counts of all algorithms.

    Where rows depend on each other, all functions give the solution of least squares and least norm: Λ is the pseudo-inverse.
    Calls warn if rows depend on each other at special configurations only. Exported code, devices, bridges to other libraries
    and `derivative` have finite results there, with right accelerations, but with other forces than those of least norm.

        space = robot.operational_space([featherweight.BilateralContact(foot) for foot in ("left_foot", "right_foot")])
        acceleration, force, least_squares = space.forward_dynamics(q, v, tau)
    """

    def __init__(self, robot: System, constraints: tuple[KnownConstraint, ...]) -> None:
        self.robot = robot
        self.constraints = constraints
        self._delassus: dict[str, CompiledFunction[Any]] = {}

    def __repr__(self) -> str:
        return f"<OperationalSpace of {self.robot.name!r}: {', '.join(map(str, self.constraints))}; {self.size} rows>"

    def __reduce__(self) -> tuple[object, ...]:
        return OperationalSpace, (self.robot, self.constraints)

    @property
    def size(self) -> int:
        """The number m of constraint rows."""
        return sum(self._contacts.sizes if self._recursive else self._rows.sizes)

    # constraints

    @cached_property
    def _rows(self) -> ResolvedRows:
        return ResolvedRows(self.robot.model, self.constraints, self.robot._placed, (self.robot.nq, self.robot.nv))

    @cached_property
    def contacts(self) -> tuple[BilateralContact, ...]:
        """The constraints if all are contacts, otherwise none."""
        contacts = tuple(c for c in self.constraints if isinstance(c, BilateralContact))
        return contacts if len(contacts) == len(self.constraints) else ()

    @cached_property
    def _contacts(self) -> Resolved:
        placed = [self.robot._placed(c.frame) for c in self.contacts]
        return Resolved(self.robot.model, self.contacts, placed, self.robot._topology)

    @property
    def _recursive(self) -> bool:
        """True if the recursions for contacts on a tree apply."""
        return bool(self.contacts) and not self.robot.closed

    @property
    def _read(self) -> Any:
        """The constraints in the form that algorithms read."""
        return self._contacts.contacts if self._recursive else self._rows.rows

    @cached_property
    def _independence(self) -> Independence:
        return Independence(self.robot, self.constraints, self._rows, lambda some: self._with(some).jacobian)

    def _with(self, constraints: tuple[KnownConstraint, ...]) -> OperationalSpace:
        """Return the operational space of other constraints of the robot."""
        return self if constraints is self.constraints else OperationalSpace(self.robot, constraints)

    @cached_property
    def _least_squares(self) -> bool:
        return bool(self._independence.report)

    @property
    def dependence(self) -> str:
        """A description of the rows that depend on each other; empty if all rows are independent.

        Rows on one body are compared by their matrices, other rows at configurations in general position. At special
        configurations, for example with stretched legs, further rows may be dependent.
        """
        return self._independence.report

    # functions

    @compiled
    def jacobian(self) -> CompiledFunction:
        """Function of q: J (m, nv), where J v are the velocities along the rows."""
        kernel: Any = contact_rows.contact_jacobian if self._recursive else constraint_rows.row_jacobian
        output, doc = Output("J", (self.size, self.robot.nv)), OperationalSpace.jacobian.__doc__
        return self.robot.bind("contact_jacobian", kernel, (Q,), (output,), (self._read,), doc=doc)

    def jacobians_of_trees(self, forest: Forest) -> CompiledFunction:
        """Function of q: the columns of J of each row's own tree (m, `forest.widest`).

        `algorithms/contact/contact_rows.py` describes them. The function supports contacts of robots without loops.
        """
        kernel, output = contact_rows.contact_jacobians, Output("J", (self.size, forest.widest))
        doc = OperationalSpace.jacobians_of_trees.__doc__
        return self.robot.bind("jacobians_of_trees", kernel, (Q,), (output,), (self._read, forest.begins), doc=doc)

    @knows_keywords
    def delassus(self, algorithm: str = "auto") -> CompiledFunction:
        """Return the function of q that computes J M⁻¹ Jᵀ (m, m); `Robot.delassus` lists the algorithms."""
        if not isinstance(algorithm, str) or algorithm not in self._delassus:
            kernels = self._delassus_kernels
            choices = one_of(("auto", *kernels)).worded(f"auto or one of {', '.join(kernels)}")
            argument("delassus: algorithm", algorithm, choices)
            if algorithm == "auto":
                self._delassus[algorithm] = cheapest({name: self._delassus_by(name, k) for name, k in kernels.items()})
            else:
                self._delassus[algorithm] = self._delassus_by(algorithm, kernels[algorithm])
        return self._delassus[algorithm]

    @property
    def _delassus_kernels(self) -> dict[str, Any]:
        if self._recursive:
            return DELASSUS
        return ANY_ROWS | OF_CONTACTS if self.contacts else ANY_ROWS

    def _delassus_by(self, name: str, kernel: Callable[..., None]) -> CompiledFunction:
        more: tuple[Any, ...] = (self._contacts.contacts if kernel in OF_CONTACTS.values() else self._read,)
        if kernel is pv_osimr.pv_osimr:
            more = (*more, self._branches(name))
        output, doc = Output("delassus", (self.size, self.size)), OperationalSpace.delassus.__doc__
        return self.robot.bind("delassus", kernel, (Q,), (output,), more, doc=doc, algorithm=name)

    def _branches(self, name: str) -> Any:
        c = self._contacts
        return c.branches(c.branching if name == "pv-osimr" else c.some)

    @compiled
    def inertia(self) -> CompiledFunction:
        """Function of q and an optional `damping` μ >= 0: the operational-space inertia Λ = (J M⁻¹ Jᵀ + μ 1)⁻¹ (m, m)."""
        kernels = recursive.inertia_pv_osim, by_factors.inertia, recursive.inertia_pv_osimr
        output = Output("inertia", (self.size, self.size))
        return self._cheapest(OperationalSpace.inertia, kernels, (Q, DAMPING), output, "pv-osim", least_norm.inertia)

    @compiled
    def bias(self) -> CompiledFunction:
        """Function of q, v: β = J' v - J M⁻¹ (c + g) (m), the acceleration along the rows without joint forces."""
        kernels = recursive.bias, by_factors.bias
        return self._cheapest(OperationalSpace.bias, kernels, (Q, V), Output("bias", (self.size,)), "aba")

    @compiled
    def apply_delassus(self) -> CompiledFunction:
        """Function of q, x (m): J M⁻¹ Jᵀ x (m) in Θ(nv + m), without the matrix."""
        kernels, inputs = (recursive.apply, by_factors.apply), (Q, Input("x", (self.size,)))
        return self._cheapest(OperationalSpace.apply_delassus, kernels, inputs, Output("y", (self.size,)), "aba")

    @compiled
    def consistent_inverse(self) -> CompiledFunction:
        """Function of q: the dynamically consistent inverse of J (nv, m), M⁻¹ Jᵀ Λ (Khatib 1987).

        The algorithms are extended force propagators, continued to all joints ("efp"; Wensing, Featherstone and Orin 2012),
        and sparse factors ("ltl").
        """
        kernels = recursive.consistent_inverse, by_factors.consistent_inverse
        output = Output("inverse", (self.robot.nv, self.size))
        again = least_norm.consistent_inverse
        return self._cheapest(OperationalSpace.consistent_inverse, kernels, (Q,), output, "efp", again)

    @compiled
    def null_space_projector(self) -> CompiledFunction:
        """Function of q: N (nv, nv) = 1 - M⁻¹ Jᵀ Λ J, for velocities; Nᵀ is the projector for joint forces."""
        kernels = recursive.null_space_projector, by_factors.null_space_projector
        output = Output("N", (self.robot.nv, self.robot.nv))
        again = least_norm.null_space_projector
        return self._cheapest(OperationalSpace.null_space_projector, kernels, (Q,), output, "efp", again)

    @knows_keywords
    def forward_dynamics(
        self,
        q: npt.ArrayLike,
        v: npt.ArrayLike,
        tau: npt.ArrayLike,
        target: npt.ArrayLike | None = None,
        *,
        damping: npt.ArrayLike | None = None,
        algorithm: str | None = None,
        threads: int | None = None,
    ) -> ConstrainedMotion:
        """Return accelerations (..., nv) and constraint forces (..., m) with J a + J' v = target (..., m), zero by default.

        If rows depend on each other, always or in some states, accelerations meet the target in the sense of least squares,
        and the forces are those of least norm. The function warns of states in which only the rank is lower than in general:
        close to them, forces are different. With `damping` μ >= 0 [m/(N s²), for translations], J a + J' v + μ force = target:
        forces remain bounded near such states, and targets are met approximately (Carpentier, Budhiraja and Mansard 2021).
        """
        if target is None and damping is None and algorithm is None and threads is None:
            a, force, strain = self.constrained_dynamics(q, v, tau)
        else:
            options: dict[str, Any] = {"target": target, "damping": damping, "algorithm": algorithm, "threads": threads}
            given = {name: value for name, value in options.items() if value is not None}
            a, force, strain = self.constrained_dynamics(q, v, tau, **given)
        return ConstrainedMotion(a, force, self._least_squares or _is_infinite(strain))

    @compiled
    def constrained_dynamics(self) -> CompiledFunction[ConstrainedDynamics]:
        """Function of q, v, tau and optional `target` and `damping`: results (nv), (m) of `forward_dynamics`, and a strain.

        The strain is the sum of squares of the ratios of the diagonal entries of J M⁻¹ Jᵀ to its pivots. It is infinite where
        the rows have a lower rank than in general.
        """
        space = self._with(self._independence.constraints)
        out = (Output("acceleration", (self.robot.nv,)), Output("force", (self.size,)), Output("strain", ()))
        inputs = (Q, V, TAU, Input("target", (self.size,), optional=True), DAMPING)
        member = OperationalSpace.constrained_dynamics

        def candidate(name: str, kernel: Callable[..., None], first: Any) -> CompiledFunction[ConstrainedDynamics]:
            constants = (ReducedRows(first, self._independence.reduction),)
            made = member.bind(self.robot, kernel, inputs, out, constants, algorithm=name)
            return self._guarded(made, least_norm.constrained, inputs[:-1])

        r, f = recursive, by_factors
        candidates = {}
        if space.contacts:
            c = space._contacts.contacts
            candidates["pv-osim"] = candidate("pv-osim", r.constrained_pv_osim, c)
            branched = BranchedRows(c, space._branches("pv-osimr-some"))
            candidates["pv-osimr"] = candidate("pv-osimr", r.constrained_pv_osimr, branched)
        candidates["ltl"] = candidate("ltl", f.constrained, space._rows.rows)
        return cheapest(candidates)

    @knows_keywords
    def impulse_dynamics(
        self, q: npt.ArrayLike, v: npt.ArrayLike, restitution: npt.ArrayLike = 0.0, *, threads: int | None = None
    ) -> Impact:
        """Return velocities (..., nv) after an impact at all rows at once, and the impulses (..., m) of the rows.

        Rows with the velocities J v have -restitution J v after the impact (Newton's law); the default restitution is zero.
        Dependent rows are treated as in `forward_dynamics`.
        """
        after, impulse, strain = self.impact(q, v, restitution, threads=threads)
        return Impact(after, impulse, self._least_squares or _is_infinite(strain))

    @compiled
    def impact(self) -> CompiledFunction[ImpactDynamics]:
        """Function of q, v and restitution: velocities (nv) and impulses (m) of `impulse_dynamics`, and a strain."""
        space, inputs = self._with(self._independence.constraints), (Q, V, Input("restitution", ()))
        out = (Output("velocity", (self.robot.nv,)), Output("impulse", (self.size,)), Output("strain", ()))
        constants = (space._rows.rows, self._independence.reduction)
        made = OperationalSpace.impact.bind(self.robot, by_factors.impulse, inputs, out, constants, algorithm="ltl")
        return self._guarded(made, least_norm.impulse, inputs)

    @compiled
    def forward_dynamics_derivatives(self) -> CompiledFunction[ConstrainedDerivatives]:
        """Derivatives of the acceleration (nv) and the constraint forces (m) of `forward_dynamics` by q, v and tau.

        The result is a named tuple of dacceleration_dq, _dv, _dtau (nv, nv) and dforce_dq, _dv, _dtau (m, nv). Derivatives by
        q are with respect to velocities. A given `target` is treated as independent of the state; see
        `stabilized_derivatives`. The derivatives follow from those of the equations of motion and constraint at their
        solution, with one factorization ("ltl"). If rows depend on each other, the function uses forward differentiation of
        `constrained_dynamics`, including its least squares ("forward").
        """
        return self._derivatives(None, OperationalSpace.forward_dynamics_derivatives.__doc__)

    @compiled
    def stabilized_derivatives(self) -> CompiledFunction[ConstrainedDerivatives]:
        """Derivatives as in `forward_dynamics_derivatives`, for the target of `stabilization`, which depends on q and v.

        A function of q, v, tau, placements (contacts, 4, 4) and gains (2).
        """
        return self._derivatives(self.stabilization.program, OperationalSpace.stabilized_derivatives.__doc__)

    def _derivatives(self, target: Program | None, doc: str | None) -> CompiledFunction[ConstrainedDerivatives]:
        kept, reduction = self._with(self._independence.constraints)._rows.rows, self._independence.reduction
        dynamics = self.constrained_dynamics.alternatives["ltl"].program
        assert isinstance(dynamics, GuardedProgram)
        program = constrained_slopes(Constrained(self.robot, dynamics, target, self._rows.rows, kept, reduction), doc or "")
        return CompiledFunction(program, self.robot.execution_of(program), "forward" if reduction.dependent else "ltl")

    # stabilization of contacts

    @compiled
    def placements(self) -> CompiledFunction:
        """Function of q: the contact frames in the world (contacts, 4, 4)."""
        where = self._frames("placements")
        shape = (len(self.contacts), 4, 4)
        return OperationalSpace.placements.bind(self.robot, frames.frame_placement, (Q,), Output("placements", shape), (where,))

    @compiled
    def stabilization(self) -> CompiledFunction:
        """Function of q, v, placements (contacts, 4, 4) and gains (2): a target (m) for `forward_dynamics` (Baumgarte 1972).

        The target is -K (gains[0] error + gains[1] velocity). The error is the deviation of each contact frame from its
        desired placement: the position, and the sine of the angle along the axis, in the frame's axes. With gains (ω², 2 ω),
        errors decay with the time constant 1/ω and without overshoot.
        """
        where = self._frames("stabilization")
        K = tuple(tuple(map(float, (*row[3:], *row[:3]))) for c in self.contacts for row in c.matrix)
        begin = tuple(int(x) for x in np.cumsum([0, *(c.size for c in self.contacts)]))
        constants = (where, FrameRows(K, begin))
        given = (Input("placements", (len(self.contacts), 4, 4)), Input("gains", (2,)))
        output = Output("target", (self.size,))
        return OperationalSpace.stabilization.bind(self.robot, stabilization, (Q, V, *given), output, constants)

    def _frames(self, what: str) -> Placements:
        if not self.contacts:
            others = [str(c) for c in self.constraints if not isinstance(c, BilateralContact)]
            raise ValueError(f"{what} is defined for contacts only; got {', '.join(others)}")
        at = [(self.robot._placed(c.frame), c.pose) for c in self.contacts]
        poses: list[Pose] = [placed.pose @ pose for placed, pose in at]
        return Placements(tuple(p.row for p, _ in at), tuple(p.R for p in poses), tuple(p.p for p in poses))

    # how they are made

    def _guarded(
        self, watched: CompiledFunction[R], again: Callable[..., None], inputs: Sequence[Argument], hidden: bool = False
    ) -> CompiledFunction[R]:
        """Return a function that computes states with a great strain, the last result, by a kernel for rows of any rank.

        `inputs` are arguments of this kernel, besides M and J and, for a function of tau, net forces and J' v. With `hidden`,
        the strain is not a result of the function.
        """
        program, robot, rows = watched.program, self.robot, (self._rows.rows,)
        n, m = robot.nv, self.size
        made = [Output("M", (n, n)), Output("J", (m, n)), Output("net", (n,)), Output("gained", (m,))]
        arguments: tuple[Argument, ...] = (Q, V, TAU)
        if TAU in inputs:
            first = robot.bind("matrices", least_norm.equations, arguments, made, rows).program
        else:
            arguments, made = (Q,), made[:2]
            first = robot.bind("matrices", least_norm.matrices, arguments, made, rows).program
        more = [robot.input(x) for x in inputs if x not in arguments]
        outputs = (*program.outputs[:-1], Output("rank", ()))
        second = on_matrices(robot, SOLUTION, again, [*(Input(*x[:2]) for x in made), *more], outputs)
        careful = ComposedProgram(program.name, (first, second), tuple(y.name for y in outputs), program.doc)
        plain = WithoutLastResult(program) if hidden else program
        guarded = GuardedProgram(plain, program, careful, STRAIN, self._independence.rank, LOWER_RANK, (SOLUTION,))
        return CompiledFunction(guarded, robot.execution, watched.algorithm)

    def _cheapest(
        self,
        member: compiled[Any],
        kernels: Sequence[Callable[..., None]],
        inputs: Sequence[Argument],
        output: Output,
        recursion: str,
        again: Callable[..., None] | None = None,
    ) -> CompiledFunction:
        """Return the cheapest algorithm for these constraints.

        `kernels` are the recursion for contacts, of the name `recursion`, the algorithm by sparse factors for all constraints
        ("ltl"), and the recursion with branches ("pv-osimr"), if there is one. If they also write a strain, `again` is the
        kernel for states with a great strain.
        """
        of_contacts, of_rows, *of_branches = kernels
        outputs = (output, Output("strain", ())) if again else (output,)

        def candidate(name: str, kernel: Callable[..., None], *constants: Any) -> CompiledFunction:
            made = member.bind(self.robot, kernel, inputs, outputs, constants, algorithm=name)
            return self._guarded(made, again, [x for x in inputs if x is not DAMPING], hidden=True) if again else made

        candidates = {}
        if self.contacts:
            c = self._contacts.contacts
            candidates[recursion] = candidate(recursion, of_contacts, c)
            for kernel in of_branches:
                candidates["pv-osimr"] = candidate("pv-osimr", kernel, c, self._branches("pv-osimr-some"))
        candidates["ltl"] = candidate("ltl", of_rows, self._rows.rows)
        return cheapest(candidates)


def _is_infinite(strain: Any) -> bool:
    return bool(strain == math.inf) if isinstance(strain, float) else bool(np.isinf(strain).any())


def programs_of_rows(space: OperationalSpace) -> tuple[Program, Program]:
    """Return the programs of J^T f, a function of q and `force`, and of J a + J' v, a function of q, v and a, for all rows."""
    return pull_of_rows(space.robot, space._rows.rows), motion_of_rows(space.robot, space._rows.rows)
