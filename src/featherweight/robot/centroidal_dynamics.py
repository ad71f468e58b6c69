"""The centroidal momentum of a robot (Orin, Goswami and Lee 2013), and the motion of its centre of mass.

Momenta are (linear, angular) about the centre of mass, in the world's axes. They are the momenta of the bodies, without rotors
(armature). A robot without mass raises ValueError at the first access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..algorithms import centroidal, centroidal_rates, energy
from ..algorithms.mechanisms import on_spanning_tree as of_mechanisms
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import ComposedProgram, CoreShape, Input, Output
from .arguments import A, Argument, Q, V
from .compiled_member import compiled
from .spanning_motion import motion_parts, of_spanning_tree, rate_along_velocity
from .system import NotDefinedError, System


@compiled
def center_of_mass(robot: System) -> CompiledFunction:
    """The centre of mass of the moving bodies (3) in the world [m]. A robot without mass raises ValueError.

    For example:

        x, y, z = robot.center_of_mass(q)
    """
    require_center(robot, "center_of_mass")
    return center_of_mass.bind(robot, energy.center_of_mass, (Q,), Output("center", (3,)))


@compiled
def center_of_mass_jacobian(robot: System) -> CompiledFunction:
    """The matrix J (3, nv) for which J v is the velocity of the centre of mass in the world.

    For example:

        velocity = robot.center_of_mass_jacobian(q) @ v
    """
    require_center(robot, "center_of_mass_jacobian")
    return center_of_mass_jacobian.bind(robot, energy.center_of_mass_jacobian, (Q,), Output("J", (3, robot.nv)))


@compiled
def centroidal_map(robot: System) -> CompiledFunction:
    """Function of q: the matrix A (6, nv) for which A v is the centroidal momentum [kg m/s, kg m²/s].

    For example:

        A = robot.centroidal_map(q)
        A @ v  # as robot.centroidal_momentum(q, v)
    """
    return _centroidal(centroidal_map, robot, centroidal.centroidal_map, (Q,), (6, robot.nv))


@compiled
def centroidal_map_rate(robot: System) -> CompiledFunction:
    """Function of q, v: the rate A' (6, nv) of `centroidal_map` along the motion.

    The algorithms are rates of composite inertias ("composite") and forward differentiation of the map ("forward"); the
    default is the one with fewer operations. With loops, A' follows from that of the spanning tree and the Jacobian of the
    tree's velocities ("projection").

        rate = robot.centroidal_map(q) @ a + robot.centroidal_map_rate(q, v) @ v  # of the momentum
    """
    if robot.closed:
        return _projected_map_rate(robot)
    own = _centroidal(centroidal_map_rate, robot, centroidal_rates.centroidal_map_rate, (Q, V), (6, robot.nv))
    source = centroidal_map(robot)
    if source.too_large or source.execution == "rolled":
        return own
    program = rate_along_velocity(source.program, "centroidal_map_rate", "map_rate", centroidal_map_rate.__doc__)
    return cheapest({"composite": own, "forward": CompiledFunction(program, robot.execution)})


def _projected_map_rate(robot: System) -> CompiledFunction:
    n, doc = len(robot.model.tree.parent), centroidal_map_rate.__doc__ or ""
    require_center(robot, "centroidal_map_rate")
    inputs = [Input(name, (6, n)) for name in ("spanning_A", "spanning_rate")]
    inputs += [Input(name, (n, robot.nv)) for name in ("G", "G_dot")]
    parts = (
        *motion_parts(robot),
        of_spanning_tree(robot, centroidal.centroidal_map, "q", Output("spanning_A", (6, n))),
        of_spanning_tree(robot, centroidal_rates.centroidal_map_rate, "qv", Output("spanning_rate", (6, n))),
        robot.bind("projected", of_mechanisms.projected_map_rate, inputs, (Output("map_rate", (6, robot.nv)),)).program,
    )
    program = ComposedProgram("centroidal_map_rate", parts, ("map_rate",), doc)
    return CompiledFunction(program, robot.execution, "projection")


@compiled
def centroidal_momentum(robot: System) -> CompiledFunction:
    """Function of q, v: the centroidal momentum (6) [kg m/s, kg m²/s].

    The algorithms use the velocities of the bodies ("bodies") or the centroidal map ("map"). The second is cheaper in
    `together` with a function that computes the map.

        linear, angular = np.split(robot.centroidal_momentum(q, v), 2)
    """
    kernels = {"bodies": centroidal.centroidal_momentum, "map": centroidal.centroidal_momentum_by_map}
    return _cheapest(centroidal_momentum, robot, kernels, (6,))


@compiled
def centroidal_momentum_rate(robot: System) -> CompiledFunction:
    """Function of q, v, a: the rate A a + A' v (6) of the centroidal momentum [N, N m].

    It equals the sum of gravity and external wrenches about the centre of mass.

        rate = robot.centroidal_momentum_rate(q, v, a)  # force [N] and moment [N m] on the whole robot
    """
    kernel = centroidal_rates.centroidal_momentum_rate
    return _centroidal(centroidal_momentum_rate, robot, kernel, (Q, V, A), (6,))


@compiled
def centroidal_bias(robot: System) -> CompiledFunction:
    """Function of q, v: A' v (6), the rate of the centroidal momentum when joint accelerations are zero [N, N m]."""
    return _centroidal(centroidal_bias, robot, centroidal_rates.centroidal_bias, (Q, V), (6,))


@compiled
def centroidal_inertia(robot: System) -> CompiledFunction:
    """Function of q: the rotational inertia (3, 3) of all bodies, with joints locked, about the centre of mass [kg m²].

    It is in the world's axes. The spatial inertia (6, 6) there is block-diagonal: this matrix and the mass.

        I = robot.centroidal_inertia(q)  # (3, 3) [kg m²]
    """
    return _centroidal(centroidal_inertia, robot, centroidal.centroidal_inertia, (Q,), (3, 3))


@compiled
def center_of_mass_velocity(robot: System) -> CompiledFunction:
    """Function of q, v: the velocity of the centre of mass (3) in the world [m/s].

    The algorithms use the velocities of the bodies ("bodies") or the Jacobian of the centre of mass ("jacobian").

        robot.center_of_mass_velocity(q, v)  # (3,) [m/s]
    """
    kernels = {"bodies": centroidal.center_of_mass_velocity, "jacobian": centroidal.center_of_mass_velocity_by_jacobian}
    return _cheapest(center_of_mass_velocity, robot, kernels, (3,))


@compiled
def center_of_mass_acceleration(robot: System) -> CompiledFunction:
    """Function of q, v, a: the acceleration of the centre of mass (3) in the world [m/s²].

    For example:

        force = robot.mass * (robot.center_of_mass_acceleration(q, v, a) - robot.gravity)  # [N], from outside
    """
    kernel = centroidal_rates.center_of_mass_acceleration
    return _centroidal(center_of_mass_acceleration, robot, kernel, (Q, V, A), (3,))


def _cheapest(
    member: compiled[Any], robot: System, kernels: Mapping[str, Callable[..., None]], shape: CoreShape
) -> CompiledFunction:
    """Return the cheapest of several algorithms that take q and v."""
    ways = {name: _centroidal(member, robot, kernel, (Q, V), shape, name) for name, kernel in kernels.items()}
    return cheapest(ways)


def _centroidal(
    member: compiled[Any],
    robot: System,
    kernel: Callable[..., None],
    inputs: Sequence[Argument],
    shape: CoreShape,
    algorithm: str = "",
) -> CompiledFunction:
    name = member.func.__name__
    require_center(robot, name)
    output = Output(name.removeprefix("centroidal_").removeprefix("center_of_mass_"), shape)
    return member.bind(robot, kernel, inputs, output, algorithm=algorithm)


def require_center(robot: System, what: str) -> None:
    """Raise NotDefinedError, a ValueError, if the robot has no centre of mass."""
    robot.require_dynamics(what)
    if not robot.mass > 0.0:
        raise NotDefinedError(
            f"{what} is not defined: {robot.name} has no mass and therefore no centre of mass. Give its bodies masses"
        )
