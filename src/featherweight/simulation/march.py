"""Many steps of one robot without Python in between: semi-implicit Euler with contacts, compiled by Numba.

The robot's functions are machine code of their own (`CompiledFunction.address`), called by address. A step that this cannot
take (something that is not finite, deep overlap, a solver that does not converge) is left to the ordinary step, which takes
it or says what is wrong: `march` does what `Simulation.step` does, and nothing else.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .compiling import compiled
from .contact.contact_space import JOINT_MARGIN, resolve
from .contact.detection import find
from .contact.inverse_rows import write_inertia
from .stepper import MOST_PUSHED


@intrinsic  # type: ignore[untyped-decorator]
def call_address(context: Any, address: Any, arguments: Any) -> Any:
    """Call `void f(double **arguments)` at an address, with an address of an array of pointers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = builder.inttoptr(values[0], ir.FunctionType(ir.VoidType(), [pointer]).as_pointer())
        builder.call(function, [builder.inttoptr(values[1], pointer)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


class Functions(NamedTuple):
    """Addresses."""

    forward_dynamics: int
    pushed_dynamics: int
    placement: int
    velocity: int
    integrate: int
    free_velocity: int
    carry: int
    inertia: int  # of bodies that may touch, or 0
    inertia_of_all: int  # with the joint rows, or 0
    jacobian: int  # of bodies that may touch, or 0
    inverse: int  # of the mass matrix


class Springs(NamedTuple):
    """Damping and springs by degree of freedom; `at` is the coordinate's place in q, or -1."""

    damping: Any
    stiffness: Any
    rest: Any
    at: Any


class Rows(NamedTuple):
    """Joint rows: lower limits, then upper ones, then dry friction."""

    dof: Any  # in v
    at: Any  # the coordinate's place in q
    bound: Any
    sign: Any
    dry: Any
    least: Any
    most: Any


class Work(NamedTuple):
    """One robot's arrays."""

    found: Any
    force: Any
    wrench: Any
    joint_impulse: Any
    memory: Any
    joint_memory: Any
    push: Any
    joint_push: Any
    begin: Any  # of the rows of bodies that may touch
    G: Any  # of bodies
    G_of_all: Any
    J: Any
    Minv: Any
    E: Any  # joint rows (rows, nv)
    forces: Any  # (nbodies, 6) external forces
    numbers: Any  # of the bodies that may touch
    joints: Any  # columns of joint rows in v


@compiled
def pointers(arrays: Any) -> Any:
    made = np.empty(len(arrays), np.int64)
    for k, a in enumerate(arrays):
        made[k] = a
    return made


@compiled
def march(
    steps: int, length: Any, deepest: float, q: Any, v: Any, tau: Any, springs: Any, rows: Any, functions: Any, spheres: Any,
    space: Any, space_of_bodies: Any, settings: Any, work: Any,
) -> tuple[int, int, int, int, float]:  # fmt: skip
    """Take up to `steps` steps from (q, v), in place: how many were taken, contacts, sweeps, Newton steps and residual of
    the last.

    Arrays that are only passed by address must be the caller's: Numba frees its own after their last use by name.
    """
    nv, touching = len(v), len(work.numbers)
    load, a, free, moved = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    loaded, pushed_a, after, parted, both = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(2 * nv)
    h = length[0]
    q1 = np.empty(len(q))
    placement, velocity = np.empty((touching, 4, 4)), np.zeros((touching, 6))
    gap, speed = np.full(len(rows.dof), np.inf), np.empty(len(rows.dof))
    dynamics = pointers((q.ctypes.data, v.ctypes.data, load.ctypes.data, a.ctypes.data))
    pushed = pointers((q.ctypes.data, v.ctypes.data, loaded.ctypes.data, work.forces.ctypes.data, pushed_a.ctypes.data))
    freed = pointers((v.ctypes.data, a.ctypes.data, length.ctypes.data, free.ctypes.data))
    changed = pointers((v.ctypes.data, pushed_a.ctypes.data, length.ctypes.data, after.ctypes.data))
    carried = pointers((after.ctypes.data, parted.ctypes.data, length.ctypes.data, both.ctypes.data))
    placed = pointers((q.ctypes.data, placement.ctypes.data))
    speeds = pointers((q.ctypes.data, free.ctypes.data, velocity.ctypes.data))
    inertia = pointers((q.ctypes.data, work.G.ctypes.data))
    inertia_of_all = pointers((q.ctypes.data, work.G_of_all.ctypes.data))
    jacobian = pointers((q.ctypes.data, work.J.ctypes.data))
    inverse = pointers((q.ctypes.data, work.Minv.ctypes.data))
    begin_of_touching = np.empty(len(work.begin), np.int64)
    integrated = pointers((q.ctypes.data, moved.ctypes.data, q1.ctypes.data))
    count = swept = newton = 0
    left = 0.0
    for step in range(steps):
        for i in range(nv):
            load[i] = tau[i] - springs.damping[i] * v[i]
            if springs.at[i] >= 0:
                load[i] -= springs.stiffness[i] * (q[springs.at[i]] + h * v[i] - springs.rest[i])
        call_address(functions.forward_dynamics, dynamics.ctypes.data)
        call_address(functions.free_velocity, freed.ctypes.data)
        for i in range(nv):
            after[i] = free[i]
            parted[i] = 0.0
        count = 0
        if touching > 0:
            call_address(functions.placement, placed.ctypes.data)
            count = find(spheres, placement, settings.margin, work.found)
            for c in range(count):
                if work.found.gap[c] < -deepest:
                    return step, count, swept, newton, left
        near = False
        for r in range(len(rows.dof)):
            speed[r] = rows.sign[r] * free[rows.dof[r]]
            if rows.dry[r]:
                near = True
            else:
                gap[r] = rows.sign[r] * (q[rows.at[r]] - rows.bound[r])
                near |= min(gap[r], gap[r] + h * speed[r]) < JOINT_MARGIN * settings.margin
        if count > 0 or near:
            if touching > 0:
                call_address(functions.velocity, speeds.ctypes.data)
            here, G, shown, begin = space_of_bodies, work.G, 0, work.begin
            if near:
                here, G, shown = space, work.G_of_all, len(rows.dof)
            if near and functions.inertia_of_all != 0:
                call_address(functions.inertia_of_all, inertia_of_all.ctypes.data)
            elif not near and functions.inertia != 0:
                call_address(functions.inertia, inertia.ctypes.data)
            else:
                if touching > 0:
                    call_address(functions.jacobian, jacobian.ctypes.data)
                call_address(functions.inverse, inverse.ctypes.data)
                begin = begin_of_touching
                write_inertia(space.width, work.found, count, work.J, work.Minv, work.E, near, begin, G)
            left, allowed, swept, newton, overlap = resolve(
                here, begin, settings, work.found, count, placement, velocity, G, gap[:shown], speed[:shown], rows.least,
                rows.most, work.wrench, work.force, work.joint_impulse, work.memory, work.joint_memory, work.push,
                work.joint_push,
            )  # fmt: skip
            if not left <= allowed:
                return step, count, swept, newton, left
            for part in range(0 if overlap else 1, 2):  # the displacement first, then the impulses
                for k in range(touching):
                    for i in range(6):
                        work.forces[work.numbers[k], i] = (work.push[k, i] if part == 0 else work.wrench[k, i]) / h
                loaded[:] = load
                for k in range(len(work.joints)):
                    loaded[work.joints[k]] += (work.joint_push[k] if part == 0 else work.joint_impulse[k]) / h
                call_address(functions.pushed_dynamics, pushed.ctypes.data)
                if part == 0:
                    farthest = 1e-300
                    for i in range(nv):
                        parted[i] = h * (pushed_a[i] - a[i])
                        farthest = max(farthest, abs(parted[i]))
                    for i in range(nv):
                        parted[i] *= min(1.0, MOST_PUSHED / farthest)
            call_address(functions.free_velocity, changed.ctypes.data)
        else:
            work.memory[:], work.joint_memory[:] = 0.0, 0.0
        total = 0.0
        call_address(functions.carry, carried.ctypes.data)
        for i in range(nv):
            total += after[i]
            moved[i] = both[i]
        if not isfinite(total):
            return step, count, swept, newton, left
        call_address(functions.integrate, integrated.ctypes.data)
        v[:] = both[nv:]
        q[:] = q1
    return steps, count, swept, newton, left


def marched(simulation: Any, functions: Functions, steps: int, tau: Any) -> int:
    """Take steps of a simulation as far as `march` can; how many."""
    stepper = simulation._stepper
    t, forces, robot = stepper.touching, stepper.forces, stepper.moving
    q, v = simulation._q[0].copy(), simulation._v[0].copy()
    nothing = np.zeros(len(v))
    springs = Springs(forces.damping, forces.stiffness, forces.rest, forces.at) if stepper.passive else Springs(
        nothing, nothing, nothing, np.full(len(v), -1)
    )  # fmt: skip
    column = t.joint_rows[t.space.joint]
    bound = np.concatenate([forces.lower[t.joint_rows[t._lower]], forces.upper[t.joint_rows[t._upper]]])
    bound = np.concatenate([bound, np.zeros(len(column) - len(bound))])
    rows = Rows(column, forces.at[column], bound, t.space.sign, t.space.dry, t._least, t._most)
    size, nv = int(t.inertia.begin[-1]), robot.nv
    whole = size + len(t.joint_rows)
    one: Any = [x[0] for x in (t.force, t.wrench, t.joint_impulse, t.memory, t.joint_memory, t.push, t.joint_push)]
    found = type(t.found)(*(x[0] for x in t.found))
    more = np.empty((size, size)), np.empty((whole, whole)), np.empty((size, nv)), np.empty((nv, nv))
    joints = t.inertia.of_joints(None)[0]
    forces_on_bodies, numbers = np.zeros((len(robot.bodies), 6)), np.array(t.numbers, np.int64)
    arrays: list[Any] = [found, *one, t.inertia.begin, *more, joints, forces_on_bodies, numbers, t.joint_rows]
    work = Work(*arrays)
    done, count, swept, newton, left = march(
        steps, np.array([stepper.h]), stepper.max_penetration, q, v, tau, springs, rows, functions, t.collision, t.space,
        t.space_of_bodies, t.settings, work,
    )  # fmt: skip
    if done:
        simulation._q, simulation._v = q[None], v[None]
        t.count[0], t.sweeps[0], t.newton_steps[0], t.residual[0] = count, swept, newton, left
    return int(done)
