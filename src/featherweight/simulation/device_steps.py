"""Steps in which nothing touches as programs that a device repeats: the kernels of `smooth_motion`, in the same order.

semi-implicit    load, a, u = v + h (a + w x v), and where u leads
rk4              four rounds, each of load, a, the rates k of coordinates and their sums, and where these lead
"""

from __future__ import annotations

from typing import Any

from ..engine.backends.cuda.repetition import ConstantTable, Repetition, Stage, StepInput, numbers_of
from ..engine.program import Input, KernelProgram, Output
from .forces import Springs, spring_force
from .smooth_motion import RUNGE_KUTTA_ROUNDS, runge_kutta_numbers, runge_kutta_round
from .step_model import StepModel


def repeated_step(model: StepModel) -> Repetition:
    """A step of a robot without loops: from q and v, zero unless given, under joint forces tau, cut to efforts.

    Raises NotImplementedError for an integrator that has none.
    """
    made = {"semi-implicit": _semi_implicit, "rk4": _runge_kutta}.get(model.integrator)
    if made is None:
        raise NotImplementedError(
            f"{model.robot.name}: integrator={model.integrator!r} is not on devices; "
            "take 'semi-implicit' or 'rk4', or roll out on this machine"
        )
    return made(model)


def _tau(model: StepModel) -> tuple[StepInput, ...]:
    least, most = model.robot.effort_bounds
    return (StepInput("tau", numbers_of(least), numbers_of(most)),)


def _semi_implicit(model: StepModel) -> Repetition:
    robot, h = model.robot, model.h
    tables = ConstantTable("h", ((h,),)), ConstantTable("none", ((0.0,) * robot.nv,))
    stages = [
        *_accelerated(model, h),
        Stage(robot.step_functions.free_velocity.program, ("v", "a", "h"), ("u",)),
        Stage(robot.step_functions.advance.program, ("q", "u", "none", "h"), ("q", "v")),
    ]
    return Repetition("rollout", ("q", "v"), _tau(model), tables, (), tuple(stages))


def _runge_kutta(model: StepModel) -> Repetition:
    robot, h = model.robot, model.h
    rows = tuple(runge_kutta_numbers(h, k) for k in range(RUNGE_KUTTA_ROUNDS))
    rates, rate = [], "v"
    if model.curved_rate:
        rates, rate = [Stage(model.curved_rate.program, ("u", "v"), ("k",), fused=False)], "k"
    stages = [
        *_accelerated(model, 0.0),
        *rates,
        Stage(_round_program(robot.nv), ("w", "a", rate, "K", "A", "numbers"), ("v", "u", "K", "A"), fused=False),
        Stage(robot.step_functions.integrate.program, ("x", "u"), ("q",)),
    ]
    first = Stage(_start_program(model), ("q", "v"), ("x", "w", "u", "K", "A"))
    return Repetition("rollout", ("q", "v"), _tau(model), (ConstantTable("numbers", rows),), (first,), tuple(stages), len(rows))


def _accelerated(model: StepModel, ahead: float) -> list[Stage]:
    """The acceleration at q and v, with springs `ahead` seconds on."""
    robot = model.moving if model.integrator == "semi-implicit" else model.robot
    program = robot.forward_dynamics.program
    if not model.passive:
        return [Stage(program, ("q", "v", "tau"), ("a",))]
    robot, s = model.robot, model.forces.springs
    numbers: Any = (numbers_of(x) for x in (s.damping, s.stiffness, s.rest, s.slack, s.ahead))
    places: Any = (tuple(map(int, x)) for x in (s.at, s.quaternion, s.axis, s.turning))
    linear: Any = (), (), (), ()
    springs = Springs(*numbers, *places, *linear)
    arrays = Input("q", (robot.nq,)), Input("v", (robot.nv,)), Input("tau", (robot.nv,))
    passive = KernelProgram("passive_forces", add_passive_forces, (springs, ahead), arrays, (Output("load", (robot.nv,)),))
    return [Stage(passive, ("q", "v", "tau"), ("load",), fused=False), Stage(program, ("q", "v", "load"), ("a",))]


def _start_program(model: StepModel) -> KernelProgram:
    nq, nv = model.robot.nq, model.robot.nv
    results = Output("x", (nq,)), *(Output(name, (nv,)) for name in ("w", "u", "K", "A"))
    return KernelProgram("start", start_step, (), (Input("q", (nq,)), Input("v", (nv,))), results)


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
