"""What the stages of one robot work with: numbers, arrays, and calls of its functions."""

from __future__ import annotations

from typing import Any, NamedTuple


class RobotNumbers(NamedTuple):
    """What never changes."""

    integrator: int
    looped: bool  # loops can open
    joined: bool  # velocities of all joints follow from those of some, by S
    driven: bool  # drives have stiffness or damping, which a semi-implicit step takes at its end
    looks_back: bool  # the contact problem needs the velocities before the step
    step: float  # [s]
    closed_at: float  # [m, rad] residual at which loops are closed
    gravity: float  # [m/s²]
    least_energy: float  # [J]
    max_penetration: float  # [m]


class MotionArrays(NamedTuple):
    """Configurations (nq,), velocities and forces (nv,) of a step."""

    x: Any  # a configuration and a velocity within the step, at which functions are called
    w: Any
    load: Any  # forces there
    accelerated: Any  # and the acceleration
    before: Any  # velocities at the beginning, in `speed_before`
    given: Any  # forces of the user and of drives
    acceleration: Any  # at the beginning of the step
    unpushed: Any  # and that from which changes by impulses are counted
    free: Any  # velocity after the step, where nothing touches
    increment: Any  # from q to where that leads, of "rk4" and "midpoint"
    smooth: Any  # q there
    after: Any  # velocity, in the axes of the start
    displacement: Any
    pushed_load: Any  # with impulses at joints
    pushed: Any  # acceleration
    ahead: Any  # q after the step
    end: Any  # velocity, in the axes of the end
    none: Any  # no displacement
    straight: Any  # q after the step, had nothing been parted
    straight_end: Any
    middle: Any  # of integrators: a configuration, and velocities
    half: Any
    twice: Any
    left: Any  # of the midpoint rule: what its equations lack, and the step from there
    acting: Any  # forces in the middle, and those that stand for the armature with which damping and stiffness are met
    lag: Any
    steps: Any  # (k, nv) of Broyden's method, and its weights
    weights: Any  # (k,)
    struck: Any  # change of velocity by impacts at the beginning, of "rk4" and "midpoint"
    k2: Any
    k3: Any
    k4: Any
    a2: Any
    a3: Any
    a4: Any
    u: Any
    closed: Any  # a configuration after a step of closing loops
    row_velocity: Any  # (n,) of all joints
    row_force: Any
    S: Any  # (n, nv) velocities of all joints for those that are independent


class LoopArrays(NamedTuple):
    """What `StepFunctions.closing_step` says of loops at x."""

    residual: Any  # (rows,) how far they are open
    margins: Any  # negative where they cannot be closed there
    singularity: Any  # ()


class CallsOfRobot(NamedTuple):
    """Functions of the robot, each a `MachineCall`."""

    dynamics: Any  # x, w, load -> accelerated
    dynamics_external: Any  # with forces of the user on bodies
    dynamics_pushed: Any  # with those and impulses: x, w, pushed_load, forces -> pushed
    inverse_dynamics: Any  # x, w, accelerated -> load
    free_velocity: Any  # v, acceleration -> free
    pushed_velocity: Any  # v, pushed -> after
    advance: Any  # q, after, displacement -> x, end
    advance_straight: Any  # q, after, none -> x, straight_end
    integrate: Any  # q, u -> x
    closing: Any  # x -> closed, and LoopArrays
    spanning: Any  # x -> S
    kinetic: Any  # x, w -> energy
    potential: Any  # x -> energy
    placement: Any  # of bodies that may touch
    velocity: Any
    velocity_before: Any
    body_delassus: Any  # of bodies that may touch
    delassus_with_rows: Any  # and of joint rows
    jacobian: Any  # of bodies that may touch
    inverse_matrix: Any  # of the mass matrix
