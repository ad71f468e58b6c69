"""Steps in which nothing touches as programs that a device repeats: those of `Stepper`, in the same order of operations.

    semi-implicit    load, a, u = v + h (a + w x v), and where u leads
    rk4              four rounds, each of load, a, the rates k of coordinates and their sums, and where these lead

A round of rk4 with numbers (α, β, γ) adds γ k and γ a to the sums K and A, and goes on at α k + β K from the step's beginning:
by half a step, half a step and a step along the rate that it has found, and at last by a sixth of the step along the sum.
"""

from __future__ import annotations

from typing import Any

from ..algorithms.integration import write_vector
from ..engine.backends.cuda.repetition import ConstantTable, Repetition, Stage, StepInput, numbers_of
from ..engine.program import Input, KernelProgram, Output
from ..model.expansion import CURVED
from ..model.tree import FLOATING, PLANAR
from ..spatial import Vec3
from .forces import Springs, spring_force
from .stepper import Stepper


def repeated_step(stepper: Stepper) -> Repetition:
    """A step of a robot without loops: from q and v, zero unless given, under joint forces tau, cut to efforts.

    Raises NotImplementedError for an integrator that has none.
    """
    made = {"semi-implicit": _semi_implicit, "rk4": _runge_kutta}.get(stepper.integrator)
    if made is None:
        raise NotImplementedError(
            f"{stepper.robot.name}: integrator={stepper.integrator!r} is not on devices; "
            "take 'semi-implicit' or 'rk4', or roll out on this machine"
        )
    return made(stepper)


def _tau(stepper: Stepper) -> tuple[StepInput, ...]:
    most = stepper.robot.effort_limit
    return (StepInput("tau", numbers_of(-most), numbers_of(most)),)


def _semi_implicit(stepper: Stepper) -> Repetition:
    robot, h = stepper.robot, stepper.h
    tables = ConstantTable("h", ((h,),)), ConstantTable("none", ((0.0,) * robot.nv,))
    stages = [
        *_accelerated(stepper, h),
        Stage(robot.step_functions.free_velocity.program, ("v", "a", "h"), ("u",)),
        Stage(robot.step_functions.advance.program, ("q", "u", "none", "h"), ("q", "v")),
    ]
    return Repetition("rollout", ("q", "v"), _tau(stepper), tables, (), tuple(stages))


def _runge_kutta(stepper: Stepper) -> Repetition:
    robot, h = stepper.robot, stepper.h
    rows = (0.5 * h, 0.0, 1.0), (0.5 * h, 0.0, 2.0), (h, 0.0, 2.0), (0.0, h / 6.0, 1.0)
    joints = tuple((CURVED[j.type], j.v_slice.start) for j in robot.joints if j.type in CURVED)
    rates, rate = [], "v"
    if joints:
        rates, rate = [Stage(_rate_program(joints, robot.nv), ("u", "v"), ("k",), fused=False)], "k"
    stages = [
        *_accelerated(stepper, 0.0),
        *rates,
        Stage(_round_program(robot.nv), ("w", "a", rate, "K", "A", "numbers"), ("v", "u", "K", "A"), fused=False),
        Stage(robot.step_functions.integrate.program, ("x", "u"), ("q",)),
    ]
    first = Stage(_start_program(stepper), ("q", "v"), ("x", "w", "u", "K", "A"))
    return Repetition(
        "rollout", ("q", "v"), _tau(stepper), (ConstantTable("numbers", rows),), (first,), tuple(stages), len(rows)
    )


def _accelerated(stepper: Stepper, ahead: float) -> list[Stage]:
    """The acceleration at q and v, with springs `ahead` seconds on."""
    robot = stepper.moving if stepper.integrator == "semi-implicit" else stepper.robot
    program = robot.forward_dynamics.program
    if not stepper.passive:
        return [Stage(program, ("q", "v", "tau"), ("a",))]
    robot, s = stepper.robot, stepper.forces.springs
    springs = Springs(numbers_of(s.damping), numbers_of(s.stiffness), numbers_of(s.rest), tuple(map(int, s.at)))
    arrays = Input("q", (robot.nq,)), Input("v", (robot.nv,)), Input("tau", (robot.nv,))
    passive = KernelProgram("passive_forces", add_passive_forces, (springs, ahead), arrays, (Output("load", (robot.nv,)),))
    return [Stage(passive, ("q", "v", "tau"), ("load",), fused=False), Stage(program, ("q", "v", "load"), ("a",))]


def _start_program(stepper: Stepper) -> KernelProgram:
    nq, nv = stepper.robot.nq, stepper.robot.nv
    results = Output("x", (nq,)), *(Output(name, (nv,)) for name in ("w", "u", "K", "A"))
    return KernelProgram("start", start_step, (), (Input("q", (nq,)), Input("v", (nv,))), results)


def _rate_program(joints: tuple[tuple[int, int], ...], nv: int) -> KernelProgram:
    return KernelProgram("rate", write_curved_rates, (joints,), (Input("u", (nv,)), Input("v", (nv,))), (Output("k", (nv,)),))


def _round_program(nv: int) -> KernelProgram:
    inputs = (*(Input(name, (nv,)) for name in ("w", "a", "k", "K", "A")), Input("numbers", (3,)))
    results = tuple(Output(name, (nv,)) for name in ("v", "u", "K", "A"))
    return KernelProgram("round", runge_kutta_round, (), inputs, results)


# kernels


def add_passive_forces(springs: Springs, ahead: float, q: Any, v: Any, tau: Any, load: Any) -> None:
    """The load tau with damping and springs."""
    for i in range(len(springs.damping)):
        spring = springs.damping[i], springs.stiffness[i], springs.rest[i]
        load[i] = tau[i] + spring_force(spring, q[springs.at[i]], v[i], ahead)


def start_step(q: Any, v: Any, results: Any) -> None:
    """What a step of rk4 goes on from: the state, no displacement, and empty sums."""
    x, w, *empty = results
    for k in range(len(q)):
        x[k] = q[k]
    for i in range(len(v)):
        w[i] = v[i]
        for array in empty:
            array[i] = 0.0


def write_curved_rates(joints: Any, u: Any, v: Any, rate: Any) -> None:
    """The rates of coordinates u, v + [u, v]/2 + [u, [u, v]]/12."""
    once, twice = [0.0] * len(v), [0.0] * len(v)
    write_brackets(joints, u, v, once)
    write_brackets(joints, u, once, twice)
    for i in range(len(v)):
        rate[i] = v[i] + 0.5 * once[i] + twice[i] / 12.0


def runge_kutta_round(w: Any, a: Any, k: Any, K: Any, A: Any, numbers: Any, results: Any) -> None:
    """The velocity, displacement and sums after a round, from the velocity w at the step's beginning."""
    velocity, displacement, rates, accelerations = results
    along, of_sum, weight = numbers[0], numbers[1], numbers[2]
    for i in range(len(w)):
        rates[i] = K[i] + weight * k[i]
        accelerations[i] = A[i] + weight * a[i]
        displacement[i] = along * k[i] + of_sum * rates[i]
        velocity[i] = w[i] + (along * a[i] + of_sum * accelerations[i])


def write_brackets(joints: Any, a: Any, b: Any, result: Any) -> None:
    """[a, b] joint by joint, as `integrators.bracket`."""
    for kind, s in joints:
        if kind == PLANAR:
            result[s] = b[s + 2] * a[s + 1] - a[s + 2] * b[s + 1]
            result[s + 1] = a[s + 2] * b[s] - b[s + 2] * a[s]
        else:
            turn = s + 3 if kind == FLOATING else s
            if kind == FLOATING:
                crossed = vector_at(a, turn).cross(vector_at(b, s)), vector_at(b, turn).cross(vector_at(a, s))
                write_vector(crossed[0] - crossed[1], result, s)
            write_vector(vector_at(a, turn).cross(vector_at(b, turn)), result, turn)


def vector_at(x: Any, k: int) -> Vec3:
    return Vec3(x[k], x[k + 1], x[k + 2])
