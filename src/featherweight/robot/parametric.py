"""Functions with inertias as arguments: one compilation serves robots that differ only in inertias (domain randomisation)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary

from ..algorithms.contact.constraint_rows import ConstraintRows
from ..checks import CHECKED_LATER, checked
from ..engine.function import CompiledFunction, R, cheapest
from ..engine.program import ComposedProgram, Input, KernelProgram, Output, Program, WrappedProgram, nested, with_kernels
from ..engine.sources import digest
from ..model.inertial_parameters import NAMES, inertia_in_row
from ..model.model import Placed
from ..model.tree import Tree
from ..model.types import JointType
from ..names import UnknownNameError, choose_from
from .inertia_reading import MASSES, reads, with_trees
from .linear_parameters import Chosen, chosen_joints
from .system import System

PARAMETERS, ARMATURE = "parameters", "armature"
Made = dict[tuple[frozenset[str], frozenset[str]], CompiledFunction[Any] | None]  # by bodies and joints


@checked
def parametric(
    robot: System, function: Annotated[CompiledFunction[R], CHECKED_LATER], bodies: Chosen = True, armature: Chosen = True
) -> CompiledFunction[R]:
    """Return a function of this robot with inertias as additional arguments; each state of a batch may have its own.

    One compilation serves all values. The additional arguments follow those of the function: `parameters` (k, 10) of the
    selected bodies, in the order and the frames of `inertial_parameters`, and `armature` (k) of the selected joints, in
    their order. The default selects all bodies, and all joints except floating joints (`robot.armature` has the robot's
    values). A joint with several degrees of freedom has one armature. Bodies and joints that are not selected keep their
    values, which makes the function shorter. For a derivative, the result has the derivatives by its other arguments at
    these inertias.

        dynamics = robot.parametric(robot.forward_dynamics)
        a = dynamics(q, v, tau, parameters, armature)

    The function does not check the values: `identification.inconsistent_bodies` finds physically impossible ones, and
    `identification.random_parameters` generates possible ones. A function that does not depend on inertias is returned
    unchanged.

    Raises ValueError for a function of another robot, for an unknown body or joint, for a CenterOfMass constraint whose
    rows depend on the masses, and for a function that is rolled or too large to be traced.
    """
    robot._require_own(function)
    placed = dict(zip((b.name for b in robot.bodies), robot.model.placed_bodies, strict=True))
    every = placed if bodies is True else () if bodies is False else bodies
    wanted = {every} if isinstance(every, str) else {*every}
    if unknown := wanted - set(placed):
        raise UnknownNameError(f"{robot.name} has no moving body {choose_from(min(unknown), list(placed))}")
    chosen = {j.name for j in chosen_joints(robot, armature)}
    of_functions: WeakKeyDictionary[CompiledFunction[Any], Made] = robot._kept((PARAMETERS,), WeakKeyDictionary)
    made, key = of_functions.setdefault(function, {}), (frozenset(wanted), frozenset(chosen))
    if key not in made:
        made[key] = _parametric(robot, function, placed, *key)
    return made[key] or function


def _parametric(
    robot: System, function: CompiledFunction[R], placed: Mapping[str, Placed], wanted: Collection[str], chosen: Collection[str]
) -> CompiledFunction[R] | None:
    """Return a function with the inertias of bodies and joints as arguments; None for one that does not depend on them."""
    rows = tuple(tuple(range(j.v_slice.start, j.v_slice.stop)) for j in robot.model.joints if j.name in chosen)
    inertias = Inertias(tuple(at for name, at in placed.items() if name in wanted), rows)
    sources = function.alternatives
    programs = {name: _with_inertias(f.program, inertias) for name, f in sources.items()}
    if all(programs[name] is f.program for name, f in sources.items()):
        return None
    sources = {name: f for name, f in sources.items() if f.execution != "rolled" and not f.too_large}
    if not sources:
        raise ValueError(
            f"{robot.name}: {function.name} is rolled or too large to be traced, and parametric needs a trace. Build "
            "one robot for each set of inertias (with_inertial_parameters)"
        )
    functions: dict[str, CompiledFunction[R]] = {
        name: CompiledFunction(programs[name], robot._traced_execution, name) for name in sources
    }
    return cheapest(functions)


def with_armature_as_argument(robot: System, program: Program, joints: Collection[str] | None = None) -> Program:
    """Return a program of the robot with the armature (k) of joints as an argument, in the order of the robot's joints.

    The default is all joints except floating joints, as in `robot.armature`.
    """
    chosen = [j for j in robot.model.joints if (j.type is not JointType.FLOATING if joints is None else j.name in joints)]
    return _with_inertias(program, Inertias((), tuple(tuple(range(j.v_slice.start, j.v_slice.stop)) for j in chosen)))


class Inertias(NamedTuple):
    """The positions of inertial arguments in the tree."""

    bodies: tuple[Placed, ...]
    armatures: tuple[tuple[int, ...], ...]  # the rows of each joint

    @property
    def inputs(self) -> tuple[Input, ...]:
        both = (Input(PARAMETERS, (len(self.bodies), len(NAMES))), Input(ARMATURE, (len(self.armatures),)))
        return tuple(x for x in both if x.size)


def tree_with(tree: Tree, inertias: Inertias, parameters: Sequence[Sequence[Any]], armature: Sequence[Any]) -> Tree:
    """Return the tree with other inertias, scalars of any kind; rows without a body keep their exact zeros."""
    mass, moment, inertia, rotors = (list(x) for x in (tree.mass, tree.moment, tree.inertia, tree.armature))
    for own, placed in zip(parameters, inertias.bodies, strict=True):
        I = inertia_in_row(own, placed)
        mass[placed.row], moment[placed.row], inertia[placed.row] = I
    for x, rows in zip(armature, inertias.armatures, strict=True):
        for row in rows:
            rotors[row] = x
    return tree._replace(mass=mass, moment=moment, inertia=inertia, armature=rotors)


@dataclass(frozen=True)
class ParametricKernel(WrappedProgram):
    """A kernel whose tree takes inertias from arguments; they precede optional arguments."""

    program: KernelProgram
    inertias: Inertias

    @property
    def inputs(self) -> tuple[Input, ...]:
        own = self.program.inputs
        first = tuple(x for x in own if not x.optional)
        return (*first, *self.inertias.inputs, *own[len(first) :])

    @property
    def rollable(self) -> bool:
        return False

    def identity(self) -> tuple[object, ...]:
        """The identity of the kernel without the robot's own inertias."""
        arguments = ((0.0,) * len(NAMES),) * len(self.inertias.bodies), (0.0,) * len(self.inertias.armatures)
        blank = with_trees(self.program, lambda tree: tree_with(tree, self.inertias, *arguments))
        return "parametric", digest(tree_with), self.inertias, blank.identity()

    def flat(self, *inputs: list[Any]) -> list[Any]:
        known = {x.name: values for x, values in zip(self.inputs, inputs, strict=True)}
        parameters = nested(known.get(PARAMETERS, []), (len(self.inertias.bodies), len(NAMES)))
        armature = known.get(ARMATURE, ())
        program = with_trees(self.program, lambda tree: tree_with(tree, self.inertias, parameters, armature))
        return program.flat(*(known[x.name] for x in self.program.inputs))


def _with_inertias(program: Program, inertias: Inertias) -> Program:
    """Return the program with inertias as arguments after its own, or the same program if it does not depend on them."""
    changed = with_kernels(program, lambda kernel: ParametricKernel(kernel, inertias) if _reads_inertias(kernel) else kernel)
    if changed is program or not inertias.inputs:
        return program
    given = tuple(x.name for x in program.inputs if not x.optional)
    wanted = (*given, *(x.name for x in inertias.inputs))
    taken = [x for x in changed.inputs if not x.optional]
    if tuple(x.name for x in taken) == wanted:
        return changed
    rates = [x for x in inertias.inputs if f"{x.name}_dot" in {y.name for y in taken}]  # inertias do not change along a motion
    still = [KernelProgram("still", stand_still, (), (x,), (Output(f"{x.name}_dot", x.shape),)) for x in rates]
    results = tuple(y.name for y in changed.outputs)
    return ComposedProgram(program.name, (*still, changed), results, program.doc, first=wanted)


def stand_still(x: Sequence[Any], x_dot: Sequence[Any]) -> None:
    """Write zero rates for inertias: results of a traced kernel are zero unless it writes them."""


def _reads_inertias(program: KernelProgram) -> bool:
    """Return whether a kernel depends on the inertias of its tree."""
    if any(isinstance(c, ConstraintRows) and c.of_masses for c in program.constants):
        raise ValueError(
            f"{program.name}: rows of a CenterOfMass constraint depend on the masses, which therefore cannot be arguments. Use "
            "robots of their own (with_inertial_parameters)"
        )
    return reads(program, (*MASSES, "armature"))
