"""Records of a step: all data that the stages of one robot read and write, and all data of many robots.

A record is a named tuple of arrays, numbers and further records at fixed addresses (`engine.loops.Table`). Compiled functions
access its fields. Each record has a constructor from sizes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Booleans, IntegerMatrix, Integers, Matrix, Shared, Tensor, Tensor4, Vector
from ..collision.collision_scene import CollisionScene, CollisionWork
from ..collision.detection import ContactPoints
from ..contact.compliant.contact_passes import PassWork
from ..contact.contact_model import ContactModel
from ..contact.contact_problem import BodyDelassus, ContactImpulses, ContactKinematics
from ..contact.contact_solver import SolverWorkspace
from ..contact.patches import PatchWork
from ..engine.loops.kernels import MachineCall
from ..robot.tendons.lengths import Lengths
from ..summaries import summarized
from .forces.adhesion import Adhesion
from .forces.damped_lengths import DampedLengths
from .forces.drag import DragParts
from .forces.drive_inputs import DriveLaws
from .forces.free_bodies import FreeBodies
from .forces.implicit_drives import DriveWork
from .forces.laws import Drives, Springs

KEPT_STEPS = 20
"""Number of Broyden steps that the midpoint rule stores before it restarts."""

# numbers in small arrays, whose names say what they are

WITH_CONTROL, WITH_FORCES = range(2)  # `given`: whether there are controls, and forces of the user on bodies
FOUND, NEAR, SOLVED, RESULT, TURNING = range(5)  # `counts` of `TouchingRecord`
RESIDUAL, ALLOWED, NEWTON_STEPS, INTERIOR_STEPS, PARTING, STORED, INEXACT = range(7)  # `report`, as in `SolverReport`
KINETIC, POTENTIAL = range(2)  # `energy` of `StepArrays`
UNTIL, EVERY = range(2)  # `plan` of `FleetStates`


class RobotNumbers(NamedTuple):
    """Constants of a simulation."""

    integrator: int
    looped: bool  # loops can open
    joined: bool  # S maps independent velocities to those of all joints and lengths
    driven: bool  # drives have stiffness or damping, which a semi-implicit step evaluates at its end
    ahead: float  # [s] time after which springs act in a semi-implicit step: its length, or zero with MuJoCo's steps
    settles: bool  # dampers act after impulses
    drives_damp: bool  # those of drives as well
    looks_back: bool  # the contact problem needs the velocities before the step
    step: float  # [s]
    closed_at: float  # [m, rad] greatest residual of closed loops
    gravity: float  # [m/s²]
    least_energy: float  # [J]
    max_penetration: float  # [m]


def zeros_of(kind: Any, size: int, **sizes: Any) -> Any:
    """Return a record of arrays of zeros, of one size or, by the names of fields, of other sizes."""
    return kind(*(np.zeros(sizes.get(name, size)) for name in kind._fields))


class StateAndInputs(NamedTuple):
    """State and inputs of one robot."""

    q: Vector  # (nq,)
    v: Vector  # (nv,)
    tau: Vector  # (nv,) joint forces of the user
    control: Vector  # (nu,)
    external: Matrix  # (bodies, 6) forces of the user on bodies
    given: Booleans  # (2,) WITH_CONTROL, WITH_FORCES
    act: Vector  # (na,) activations of drives


class StagePoint(NamedTuple):
    """A configuration and velocity within the step, for calls of the robot's functions, and the forces there."""

    x: Vector  # (nq,) view of the first coordinates
    w: Vector  # (nv,)
    given: Vector  # (nv,) forces of the user and of drives
    load: Vector  # (nv,) the same with damping and springs
    acceleration: Vector  # (nv,)
    S: Matrix  # (rows, nv) from independent velocities to those of all joints and lengths; no rows if these are the same
    row_velocity: Vector  # (rows,) velocities of all joints and lengths
    row_force: Vector  # (rows,)
    mapped_force: Vector  # (nv,) forces of all joints, mapped to independent ones
    increment: Vector  # (nv,) from q to x
    coordinates: Vector  # (nq + lengths,) x, and lengths there
    control: Vector  # (nu,) with delays applied
    inputs: Vector  # (drives,) inputs of linear laws: controls, or results of activations, muscles and servos
    law: Vector  # (drives,) forces before their limits and gears
    act: Vector  # (na,) activations
    act_rate: Vector  # (na,)
    slopes: Vector  # (drives,) derivatives of inputs by velocities, if dampers act after impulses; or (0,)


class RungeKuttaArrays(NamedTuple):
    """Sums of the four stages of the Runge-Kutta rule."""

    rate: Vector  # (nv,) of the coordinates along the increment
    rates: Vector  # (nv,) weighted sum of rates
    accelerations: Vector  # (nv,) weighted sum of accelerations
    once: Vector  # (nv,) workspace for brackets
    twice: Vector
    act_rates: Vector  # (na,) weighted sum of rates of activations
    start_q: Vector  # (nq,) state at the start of a step with contacts in each stage
    start_v: Vector  # (nv,)
    start_act: Vector  # (na,)


class MidpointArrays(NamedTuple):
    """Data of the implicit midpoint rule's iteration."""

    middle: Vector  # (nq + lengths,) coordinates
    half: Vector  # (nv,) velocity at the midpoint
    left: Vector  # (nv,) residual of the equations, then the step
    acting: Vector  # (nv,) forces at the midpoint
    lag: Vector  # (nv,) forces that represent the armature for damping and stiffness
    steps: Matrix  # (k, nv) steps of Broyden's method
    weights: Vector  # (k,)


class StepArrays(NamedTuple):
    """Results of the stages of a step."""

    load: Vector  # (nv,) forces at the start, to which impulses are added
    acceleration: Vector  # (nv,) acceleration at the start
    unpushed: Vector  # (nv,) acceleration without impulses, as reference for those with impulses
    free: Vector  # (nv,) velocity after the step without contacts
    smooth: Vector  # (nq,) configuration after the step without contacts, with "rk4" and "midpoint"
    after: Vector  # (nv,) velocity with impulses, in the axes of the start
    struck: Vector  # (nv,) change of velocity by impacts at the start, with "rk4" and "midpoint"
    displacement: Vector  # (nv,) displacement that separates overlapping bodies
    pushed_load: Vector  # (nv,) load with impulses at joints
    pushed: Vector  # (nv,) acceleration with impulses
    settled: Vector  # (nv,) the same without late forces of free bodies, if dampers act after impulses
    ahead: Vector  # (nq,) configuration after the step
    end: Vector  # (nv,) velocity, in the axes of the end
    none: Vector  # (nv,) zero displacement
    straight: Vector  # (nq,) configuration after the step without displacement
    straight_end: Vector  # (nv,) velocity there
    acting: Vector  # (nv,) forces whose work is bounded
    energy: Vector  # (2,) [J] kinetic and potential energy, results of functions
    gain: Vector  # (1,) g of the midpoint rule: fraction of the velocity that corrects the energy
    act: Vector  # (na,) activations after the step


class JointForces(NamedTuple):
    """Parameters of forces at joints that depend on the state."""

    springs: Springs
    drives: Drives
    driving: DriveWork
    efforts: Shared[Matrix]  # (2, nv) lower and upper bounds of forces
    within: Matrix  # (2, nv) bounds of drives without their share of gravity compensation
    compensating: Shared[Vector]  # (nv,) 1 if gravity compensation is a bounded force of the drive; (0,) without any
    middle_armature: Vector  # (n,) represents damping and stiffness in "rk4" and "midpoint"; (0,) without these
    curved: Shared[IntegerMatrix]  # (k, 2) floating, spherical and planar joints: kind and first row
    laws: Shared[DriveLaws]
    compensation: Vector  # (nv,) gravity compensation, or (0,) without any
    damped: DampedLengths
    free: FreeBodies


class InertiaArguments(NamedTuple):
    """Inertias as arguments of the robot's functions.

    They are needed if robots differ, or if drives or nonlinear springs and dampers add armature.
    """

    parameters: Matrix  # (bodies, 10), or no rows
    base_armature: Vector  # (k,) including that of damping and springs at the step's end
    armature: Vector  # (k,) also including that of drives, and of nonlinear springs and dampers
    own_armature: Vector  # (k,) armature of the joints alone


class LoopArrays(NamedTuple):
    """Results of `closing_step` for loops at x."""

    residual: Vector  # (rows,) residual of the loops
    margins: Vector  # negative where they cannot be closed there
    singularity: Vector  # (1,)
    closed: Vector  # (nq,) a configuration after a step of closing loops
    opened: Vector  # (1,) the greatest residual before loops were closed


class ContactInertiaRecord(NamedTuple):
    """Delassus matrices, by each of the ways to compute them (see `contact_inertia`)."""

    of_bodies: BodyDelassus  # of bodies that may touch
    with_rows: BodyDelassus  # and of joint rows
    of_sets: BodyDelassus  # of the bodies that touch
    by_inverse: BodyDelassus


class TouchingRecord(NamedTuple):
    """Contacts, joint limits and dry friction of one robot."""

    scene: CollisionScene
    pair_of: Shared[Integers]  # (candidates,) the pair of each
    model: ContactModel
    contacts: ContactPoints
    # FOUND contacts, -1 if too many; NEAR: whether joint rows count; SOLVED contacts, RESULT of impulses; TURNING: copies
    counts: Integers
    kinematics: ContactKinematics
    impulses: ContactImpulses
    report: Vector  # (7,) numbers of `SolverReport`: RESIDUAL ...
    deepest: Vector  # (1,) [m] overlap that the next step allows
    workspace: Shared[SolverWorkspace]
    collisions: CollisionWork
    inertia: ContactInertiaRecord
    passes: PassWork
    bodies: Shared[Integers]  # numbers of the bodies that may touch
    dofs: Shared[Integers]  # of joints with limits or friction
    forces: Matrix  # (bodies, 6) on all bodies
    patches: PatchWork


class CallsOfRobot(NamedTuple):
    """Functions of the robot, as machine code with the places of their arguments and results."""

    dynamics: MachineCall  # x, w, load -> acceleration
    dynamics_external: MachineCall  # with forces of the user on bodies
    dynamics_pushed: MachineCall  # with these and impulses: x, w, pushed_load, forces -> pushed
    inverse_dynamics: MachineCall  # x, w, acceleration -> load
    free_velocity: MachineCall  # v, acceleration -> free
    pushed_velocity: MachineCall  # v, pushed -> after
    advance: MachineCall  # q, after, displacement -> x, end
    advance_straight: MachineCall  # q, after, none -> x, straight_end
    integrate: MachineCall  # q, increment -> x
    closing: MachineCall  # x -> LoopArrays
    spanning: MachineCall  # x -> S
    kinetic: MachineCall  # x, w -> energy
    potential: MachineCall  # x -> energy of gravity and its compensation
    compensation: MachineCall  # x -> forces of gravity compensation
    drag_velocity: MachineCall  # x, w -> velocities of all bodies
    drag_placement: MachineCall  # x -> placements of all bodies, if there is wind
    length_placement: MachineCall  # x -> placements of bodies with tendons and frames
    length_jacobian: MachineCall  # x -> their Jacobians
    length_bias: MachineCall  # x, v, `Lengths.bias_acceleration` -> their accelerations
    placement: MachineCall  # placements of bodies that may touch
    velocity: MachineCall
    velocity_before: MachineCall
    body_delassus: MachineCall  # Delassus matrix of bodies that may touch
    delassus_with_rows: MachineCall  # the same with joint rows
    delassus_of_touching: MachineCall  # Delassus matrix of the touching bodies
    jacobian: MachineCall  # Jacobians of bodies that may touch
    inverse_factor: MachineCall  # a factor of the inverse mass matrix
    contact_factor: MachineCall  # q, stiffness of contacts and rows -> factors of articulated inertias
    contact_response: MachineCall  # q, these factors, wrenches, forces at rows -> motions of bodies, speeds of rows
    contact_matrix: MachineCall  # q, stiffness of contacts and rows -> matrix
    contact_loads: MachineCall  # q, wrenches, forces at rows -> joint forces
    contact_motions: MachineCall  # q, velocities -> motions of bodies
    contact_axes: MachineCall  # q -> axes of joints in the world
    impulses_alone: MachineCall  # for robots in vectors: `solve_in_lane` of one robot after the other
    solver: MachineCall | None  # `solve_by_delassus` or `solve_by_passes`, compiled apart; None: both are compiled in


class RobotStages(NamedTuple):
    """All data of one robot for its steps."""

    numbers: Shared[RobotNumbers]
    state: StateAndInputs
    point: StagePoint
    step: StepArrays
    rounds: RungeKuttaArrays
    midpoint: MidpointArrays
    joints: JointForces
    inertias: InertiaArguments
    loops: LoopArrays
    touching: TouchingRecord
    drag: DragParts
    lengths: Lengths
    adhesion: Shared[Adhesion]
    calls: Shared[CallsOfRobot]


class FleetStates(NamedTuple):
    """States of many robots, and numbers of their steps."""

    q: Matrix  # (robots, nq)
    v: Matrix  # (robots, nv)
    active: Booleans  # (robots,) robots that take steps
    taken: Integers  # (robots,) number of steps taken
    steps: Integers  # (robots,) number of steps since the reset, also of robots that have stopped
    set_time: Vector  # (robots,) [s] a time, and the number of steps at which it was set
    set_step: Integers  # (robots,)
    status: Integers  # (robots,) reason why the next step failed, as in `step`
    culprit: Integers  # (robots,) number of the element that made it fail (see `note_failure`)
    symptoms: Matrix  # (robots, 3) numbers that say how
    plan: Integers  # (2,) UNTIL which number steps are taken; EVERY which states are kept
    kept_q: Tensor  # (robots, kept, nq)
    kept_v: Tensor  # (robots, kept, nv)
    last_row: Matrix  # (robots, joint rows) impulses of the last step
    report: Matrix  # (robots, 7) report of the solver
    inexact: Integers  # (robots,) steps since the last reset that ended above the solver's tolerance
    opened: Vector  # (robots,) residual of loops
    deepest: Vector  # (robots,) [m] overlap allowed in the next step
    before_q: Matrix  # (robots, nq) before the last step, if sensors need it, or no rows; NaN before the first step
    before_v: Matrix  # (robots, nv)
    before_act: Matrix  # (robots, na)
    before_given: IntegerMatrix  # (robots, 2) WITH_CONTROL, WITH_FORCES in the last step
    before_control: Matrix  # (robots, nu) its controls
    before_external: Tensor  # (robots, bodies, 6) its forces on bodies
    act: Matrix  # (robots, na) activations of drives
    order: Integers  # (robots,) order in which robots are grouped into vectors
    energy: Vector  # (robots,) [J] result of work on energies
    block: Vector  # the memory of all fields of the state
    kept_blocks: Matrix  # (kept, block) states of a single robot with their contacts


class FleetInputs(NamedTuple):
    """Inputs of many robots; all robots or all steps may share them."""

    tau: Tensor  # (robots or 1, steps or 1, nv)
    control: Tensor  # (robots or 1, steps or 1, nu)
    external: Tensor4  # (robots or 1, steps or 1, bodies, 6)
    given: Booleans  # (2,) WITH_CONTROL, WITH_FORCES


class FleetContacts(NamedTuple):
    """Contacts of the last step of many robots, with a fixed number of places for each robot."""

    counts: Integers  # (robots,)
    candidate: IntegerMatrix  # (robots, capacity)
    point: Tensor  # (robots, capacity, 3)
    gap: Matrix  # (robots, capacity)
    normal: Tensor  # (robots, capacity, 3)
    bodies: Tensor  # (robots, capacity, 2) numbers of a and b, -1 for the world
    solved: Integers  # (robots,) number of contacts in the solver, without those left out of their patch
    force: Tensor  # (robots, capacity, 3) impulses
    turn: Tensor  # (robots, capacity, 3) impulses of friction against spinning and rolling; (robots, capacity, 0) without any
    wrench: Tensor  # (robots, bodies, 6) impulses on bodies that may touch


MOST_GAPS = 1 << 17  # numbers of `FleetGaps` that fit into a processor's cache; reading more would take longer than it saves


class FleetGaps(NamedTuple):
    """Gaps of shapes that collision detection remembers for each of several robots (see `CollisionWork`), or no rows."""

    placement: Tensor  # (robots, shapes, 12)
    travel: Matrix  # (robots, shapes)
    apart_until: Matrix  # (robots, pairs)

    @classmethod
    def of(cls, robots: int, shapes: int, pairs: int) -> FleetGaps:
        """Return the memory of some robots, without rows for a single robot or too many."""
        robots = robots if robots > 1 and robots * (13 * shapes + pairs) <= MOST_GAPS else 0
        return cls(np.zeros((robots, shapes, 12)), np.zeros((robots, shapes)), np.full((robots, pairs), -np.inf))


OF_TENSORS = "yielding", "yielding_rows", "poly", "drives", "shapes", "sizes", "parameters"


class VariedArrays(NamedTuple):
    """Parameters of robots that differ; arrays of shared parameters have no rows."""

    friction: Matrix  # (robots, candidates)
    yielding: Tensor  # (robots, candidates, 12) fields of `Yielding` of contacts
    yielding_rows: Tensor  # (robots, rows, 12)
    damping: Matrix  # (robots, n)
    stiffness: Matrix
    poly: Tensor  # (robots, 4, m)
    drives: Tensor  # (robots, 9, nu)
    lower: Matrix  # (robots, rows) lower bounds of impulses of joint rows
    upper: Matrix
    bound: Matrix  # (robots, rows) limits of joints and lengths
    shapes: Tensor  # (robots, shapes, 3) [m] displacements of the shapes of the scene
    sizes: Tensor  # (robots, shapes, 3) [m] their sizes
    radii: Matrix  # (robots, shapes) [m] radii of the balls around them
    parameters: Tensor  # (robots, bodies, 10)
    armature: Matrix  # (robots, k) including that of damping and springs
    own_armature: Matrix  # (robots, k) armature of the joints alone
    middle_armature: Matrix  # (robots, n)

    @classmethod
    def none(cls) -> VariedArrays:
        """Return arrays without rows."""
        rows: list[Any] = [np.zeros((0,) * (3 if name in OF_TENSORS else 2)) for name in cls._fields]
        return cls(*rows)


@summarized
class FleetArrays(NamedTuple):
    """All data of many robots of one kind."""

    states: FleetStates
    inputs: FleetInputs
    contacts: FleetContacts
    gaps: FleetGaps
    varied: VariedArrays
