"""Functions of a robot's frames: placements and motions, in the world or relative to another frame.

`frame` is the name of a frame, or a `featherweight.Frame` that you create, on any link of the file or on the ground. For a
sequence of k frames, results have an additional first axis of length k. Motions are (linear, angular). `reference` selects
their axes and point:

    "local"                 the frame's axes, at its origin
    "local_world_aligned"   the world's axes, at the frame's origin
    "world"                 the world's axes, for the point of the body at the world's origin

With `relative_to`, another frame replaces the world: the result is the motion that an observer fixed to that frame sees,
and its axes replace the world's axes above. Joints that carry both frames then have no effect.

A call with a frame alone returns the function, which is compiled once for it; a call with a state as well returns the result:

    hand = robot.frame_jacobian("hand", "local")      J = hand(q)
    J = robot.frame_jacobian("hand", q, reference="local")

Without a state, the reference and the other frame take the places of q and v. mypy does not see that an implementation accepts
the parameters of such an overload.

All functions raise ValueError for an unknown frame and for an unknown reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast, overload
from weakref import WeakKeyDictionary

from ..algorithms import frames, relative_frames
from ..array_types import Array, Numbers
from ..checks import shown
from ..engine.function import CompiledFunction
from ..engine.program import CoreShape, Input, KernelProgram, Output, Program
from ..model.types import WORLD, AnyFrame, Frame
from ..names import knows_keywords, suggestion
from .arguments import A, Argument, Q, V
from .compiled_member import compiled
from .spanning_motion import rate_along_velocity
from .system import System

REFERENCES = {
    "local": frames.LOCAL,
    "local_world_aligned": frames.LOCAL_WORLD_ALIGNED,
    "world": frames.WORLD,
}
ALIGNED = "local_world_aligned"
GROUND = Frame(WORLD, None)

Frames = AnyFrame | Iterable[AnyFrame]


class FrameKernel(NamedTuple):
    """The kernels, inputs and result shape of a function of frames."""

    member: Callable[..., CompiledFunction]  # gives its name and docstring
    in_world: Callable[..., None]
    relative: Callable[..., None]  # takes another frame: the ground, if it also serves in the world
    inputs: tuple[Argument, ...]
    core: CoreShape  # shape of one frame's result
    classical: int | None = None  # for accelerations, as in `Written`

    def written(self, reference: int) -> int | frames.Written:
        return reference if self.classical is None else frames.Written(reference, self.classical)


@overload
def frame_placement(robot: System, frame: Frames, relative_to: AnyFrame | None = ...) -> CompiledFunction: ...
@overload
def frame_placement(robot: System, frame: Frames, q: Numbers, *, relative_to: AnyFrame | None = ...) -> Array: ...
@knows_keywords  # type: ignore[misc]
def frame_placement(
    robot: System, frame: Frames, q: Numbers | AnyFrame | None = None, *, relative_to: AnyFrame | None = None
) -> Any:
    """Function of q: the frame in the world, a homogeneous matrix (4, 4), or (k, 4, 4) for k frames.

    `relative_to`, if given, is a frame that replaces the world. The derivative consists of local tangents: (linear,
    angular) velocities in the frame's own axes (6, nv), or (k, 6, nv).

        T = robot.frame_placement("hand", q)
        position, rotation = T[:3, 3], T[:3, :3]
        hand = robot.frame_placement("hand")  # the function: hand(q), hand.derivative()
    """
    if q is None or isinstance(q, str | Frame):
        return _function(robot, "frame_placement", frame, None, relative_to if q is None else q)
    return _function(robot, "frame_placement", frame, None, relative_to)(q)


@overload
def frame_jacobian(
    robot: System, frame: Frames, reference: str = ..., relative_to: AnyFrame | None = ...
) -> CompiledFunction: ...
@overload
def frame_jacobian(
    robot: System, frame: Frames, q: Numbers, *, reference: str = ..., relative_to: AnyFrame | None = ...
) -> Array: ...
@knows_keywords  # type: ignore[misc]
def frame_jacobian(
    robot: System,
    frame: Frames,
    q: Numbers | str | None = None,
    relative_to: AnyFrame | None = None,
    *,
    reference: str = ALIGNED,
) -> Any:
    """Function of q: the matrix J (6, nv), or (k, 6, nv), for which J v is the (linear, angular) velocity of the frame.

    `reference` is "local" (the frame's axes), "local_world_aligned" (the frame's origin, the world's axes) or "world" (the
    world's origin and axes). `relative_to`, if given, is a frame that replaces the world.

        J = robot.frame_jacobian("hand", q)  # J @ v is robot.frame_velocity("hand", q, v)
    """
    if q is None or isinstance(q, str):
        return _function(robot, "frame_jacobian", frame, reference if q is None else q, relative_to)
    return _function(robot, "frame_jacobian", frame, reference, relative_to)(q)


@overload
def frame_jacobian_rate(
    robot: System, frame: Frames, reference: str = ..., relative_to: AnyFrame | None = ...
) -> CompiledFunction: ...
@overload
def frame_jacobian_rate(
    robot: System, frame: Frames, q: Numbers, v: Numbers, *, reference: str = ..., relative_to: AnyFrame | None = ...
) -> Array: ...
@knows_keywords  # type: ignore[misc]
def frame_jacobian_rate(
    robot: System,
    frame: Frames,
    q: Numbers | str | None = None,
    v: Numbers | AnyFrame | None = None,
    *,
    reference: str = ALIGNED,
    relative_to: AnyFrame | None = None,
) -> Any:
    """Function of q, v: the rate J' (6, nv), or (k, 6, nv), of the frame's Jacobian.

    The arguments are those of `frame_jacobian`. J' v is `frame_bias_acceleration`. If the robot has loops, J' includes the
    rate of the dependent joints' velocities.

        rate = robot.frame_jacobian_rate("hand", q, v) @ v  # as robot.frame_bias_acceleration("hand", q, v)
    """
    return _result(robot, "frame_jacobian_rate", frame, (q, v), reference, relative_to)


@overload
def frame_velocity(
    robot: System, frame: Frames, reference: str = ..., relative_to: AnyFrame | None = ...
) -> CompiledFunction: ...
@overload
def frame_velocity(
    robot: System, frame: Frames, q: Numbers, v: Numbers, *, reference: str = ..., relative_to: AnyFrame | None = ...
) -> Array: ...
@knows_keywords  # type: ignore[misc]
def frame_velocity(
    robot: System,
    frame: Frames,
    q: Numbers | str | None = None,
    v: Numbers | AnyFrame | None = None,
    *,
    reference: str = ALIGNED,
    relative_to: AnyFrame | None = None,
) -> Any:
    """Function of q, v: the frame's (linear, angular) velocity (6), or (k, 6), with the arguments of `frame_jacobian`.

    For example:

        linear, angular = np.split(robot.frame_velocity("hand", q, v), 2)
    """
    return _result(robot, "frame_velocity", frame, (q, v), reference, relative_to)


@overload
def frame_acceleration(
    robot: System, frame: Frames, reference: str = ..., relative_to: AnyFrame | None = ...
) -> CompiledFunction: ...
@overload
def frame_acceleration(
    robot: System,
    frame: Frames,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    *,
    reference: str = ...,
    relative_to: AnyFrame | None = ...,
) -> Array: ...
@knows_keywords  # type: ignore[misc]
def frame_acceleration(
    robot: System,
    frame: Frames,
    q: Numbers | str | None = None,
    v: Numbers | AnyFrame | None = None,
    a: Numbers | None = None,
    *,
    reference: str = ALIGNED,
    relative_to: AnyFrame | None = None,
) -> Any:
    """Function of q, v, a: the frame's spatial acceleration (6), or (k, 6), (linear, angular).

    The arguments are those of `frame_jacobian`. In the references "local" and "world", the result is J a + J' v. In
    "local_world_aligned", it is the "local" acceleration in the world's axes; there, J a + J' v is
    `frame_classical_acceleration`, the acceleration of the frame's origin as a point. Gravity is not included: an
    accelerometer measures the classical acceleration minus gravity.

        robot.frame_acceleration("hand", q, v, a, reference="local")  # J a + J' v
    """
    return _result(robot, "frame_acceleration", frame, (q, v, a), reference, relative_to)


@overload
def frame_classical_acceleration(
    robot: System, frame: Frames, reference: str = ..., relative_to: AnyFrame | None = ...
) -> CompiledFunction: ...
@overload
def frame_classical_acceleration(
    robot: System,
    frame: Frames,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    *,
    reference: str = ...,
    relative_to: AnyFrame | None = ...,
) -> Array: ...
@knows_keywords  # type: ignore[misc]
def frame_classical_acceleration(
    robot: System,
    frame: Frames,
    q: Numbers | str | None = None,
    v: Numbers | AnyFrame | None = None,
    a: Numbers | None = None,
    *,
    reference: str = ALIGNED,
    relative_to: AnyFrame | None = None,
) -> Any:
    """Function of q, v, a: the acceleration of the frame's origin as a point, and the angular acceleration: (6), or (k, 6).

    The arguments are those of `frame_jacobian`. In the reference "local_world_aligned", the result is J a + J' v. In
    "world", it is the acceleration of the body's point at the world's origin.

        measured = robot.frame_classical_acceleration("hand", q, v, a)[:3] - robot.gravity  # as an accelerometer
    """
    return _result(robot, "frame_classical_acceleration", frame, (q, v, a), reference, relative_to)


@overload
def frame_bias_acceleration(
    robot: System, frame: Frames, reference: str = ..., relative_to: AnyFrame | None = ...
) -> CompiledFunction: ...
@overload
def frame_bias_acceleration(
    robot: System, frame: Frames, q: Numbers, v: Numbers, *, reference: str = ..., relative_to: AnyFrame | None = ...
) -> Array: ...
@knows_keywords  # type: ignore[misc]
def frame_bias_acceleration(
    robot: System,
    frame: Frames,
    q: Numbers | str | None = None,
    v: Numbers | AnyFrame | None = None,
    *,
    reference: str = ALIGNED,
    relative_to: AnyFrame | None = None,
) -> Any:
    """Function of q, v: the velocity-product acceleration J' v (6), or (k, 6), for the Jacobian J of the same arguments.

    For example:

        bias = robot.frame_bias_acceleration("hand", q, v)
        A = robot.frame_jacobian("hand", q) @ a + bias  # as robot.frame_classical_acceleration("hand", q, v, a)
    """
    return _result(robot, "frame_bias_acceleration", frame, (q, v), reference, relative_to)


@compiled
def joint_jacobian(robot: System) -> CompiledFunction:
    """The motions of all joints in the world (6, n): one column (linear, angular) for each degree of freedom.

    The columns are the motion subspaces S in world coordinates (Featherstone 2008, section 2.11): the velocities of the
    point at the world's origin. The "world" Jacobian of a body has the columns of the joints that carry the body, and
    zeros elsewhere. If the robot has loops, the joints are those of the spanning tree; `spanning_velocity` returns their
    velocities.

        S = robot.joint_jacobian(q)  # (6, nv) without loops
    """
    output = Output("J", (6, len(robot.model.tree.parent)))
    return joint_jacobian.bind(robot, frames.joint_jacobian, (Q,), output)


@compiled
def joint_jacobian_rate(robot: System) -> CompiledFunction:
    """Function of q, v: the rate (6, n) of `joint_jacobian`."""
    output = Output("J_dot", (6, len(robot.model.tree.parent)))
    return joint_jacobian_rate.bind(robot, relative_frames.joint_jacobian_rate, (Q, V), output)


# how they are made


def _result(robot: System, name: str, frame: Frames, state: tuple[Any, ...], reference: str, other: AnyFrame | None) -> Any:
    """Return the result in a state (q, v) or (q, v, a); or the function, with a reference in place of q, a frame of v."""
    q, v, *acceleration = state
    if q is not None and not isinstance(q, str):
        return _function(robot, name, frame, reference, other)(*state)
    if any(a is not None for a in acceleration):
        raise TypeError(f"Robot.{name}: a needs q and v; write {name}(frame, q, v, a)")
    return _function(robot, name, frame, reference if q is None else q, other if v is None else v)


KERNELS: dict[str, Callable[[System], FrameKernel]] = {
    "frame_placement": lambda robot: FrameKernel(
        frame_placement, frames.frame_placement, relative_frames.relative_placement, (Q,), (4, 4)
    ),
    "frame_jacobian": lambda robot: FrameKernel(
        frame_jacobian, frames.frame_jacobian, relative_frames.relative_jacobian, (Q,), (6, robot.nv)
    ),
    "frame_jacobian_rate": lambda robot: FrameKernel(
        frame_jacobian_rate, relative_frames.jacobian_rate, relative_frames.jacobian_rate, (Q, V), (6, robot.nv)
    ),
    "frame_velocity": lambda robot: FrameKernel(
        frame_velocity, frames.frame_velocity, relative_frames.relative_velocity, (Q, V), (6,)
    ),
    "frame_acceleration": lambda robot: FrameKernel(
        frame_acceleration, frames.frame_acceleration, relative_frames.relative_acceleration, (Q, V, A), (6,), 0
    ),
    "frame_classical_acceleration": lambda robot: FrameKernel(
        frame_classical_acceleration, frames.frame_acceleration, relative_frames.relative_acceleration, (Q, V, A), (6,), 1
    ),
    "frame_bias_acceleration": lambda robot: FrameKernel(
        frame_bias_acceleration, frames.frame_bias_acceleration, relative_frames.relative_bias_acceleration, (Q, V), (6,)
    ),
}


def _function(robot: System, name: str, frame: Frames, reference: str | None, relative_to: Any) -> CompiledFunction:
    """Return the function of a frame or of several; after the first call, this is a search in a dictionary."""
    try:
        kept: CompiledFunction = robot._frame_functions[name, frame, reference, relative_to]
        return kept
    except (KeyError, TypeError):  # a list of frames has no hash
        pass  # errors below have no other error as their context
    made = _made(robot, name, frame, reference, relative_to)
    if isinstance(frame, AnyFrame):
        robot._frame_functions.keep((name, frame, reference, relative_to), made)
    return made


def _made(robot: System, name: str, frame: Frames, reference: str | None, relative_to: Any) -> CompiledFunction:
    if name == "frame_jacobian_rate" and robot.closed:
        J = _function(robot, "frame_jacobian", frame, reference, relative_to)
        rates: WeakKeyDictionary[CompiledFunction, CompiledFunction] = robot._kept((name,), WeakKeyDictionary)
        if J not in rates:
            program = rate_along_velocity(J.program, name, name, frame_jacobian_rate.__doc__)
            rates[J] = CompiledFunction(program, robot.execution)
        return rates[J]
    return _of_frames(robot, KERNELS[name](robot), frame, reference, relative_to)


def _of_frames(
    robot: System, kernel: FrameKernel, frame: Frames, reference: str | None, relative_to: AnyFrame | None
) -> CompiledFunction:
    single = isinstance(frame, AnyFrame) or not isinstance(frame, Iterable)
    every: tuple[Any, ...] = tuple(cast("Iterable[Any]", (frame,) if single else frame))
    name, taken = kernel.member.__name__, ", ".join(x.name for x in kernel.inputs)
    how = f'write {name}("hand", {taken}), or {name}("hand") for the function of {taken}'
    if wrong := [x for x in every if not isinstance(x, AnyFrame)]:
        given = frame if len(wrong) == len(every) else wrong[0]
        raise TypeError(f"{robot.name}: a frame is a name or a featherweight.Frame; got {shown(given)}: {how}")
    if reference is not None and not (isinstance(reference, str) and reference in REFERENCES):
        meant = suggestion(reference, REFERENCES)
        raise ValueError(f"reference must be one of {', '.join(REFERENCES)}; got {reference!r}{meant}")

    if relative_to is not None:
        if isinstance(relative_to, str) and relative_to in REFERENCES and relative_to not in robot._named_frames:
            raise TypeError(f"{robot.name}: {relative_to!r} is a reference, no frame; write reference={relative_to!r}")
        if not isinstance(relative_to, AnyFrame):
            raise TypeError(f"{robot.name}: relative_to is a name or a featherweight.Frame; got {shown(relative_to)}: {how}")

    def make() -> CompiledFunction:
        chosen = kernel.in_world if relative_to is None else kernel.relative
        other = GROUND if relative_to is None else relative_to
        others = (robot.placements([other]),) if chosen is kernel.relative else ()
        written = () if reference is None else (kernel.written(REFERENCES[reference]),)
        core, count = kernel.core, len(every)
        output = Output(kernel.member.__name__, core if single else (count, *core), (count, *core))
        if core == (4, 4):
            output = output._replace(along=placement_tangents(count, output.shape[:-2]))
        more = (robot.placements(every), *others, *written)
        return robot.bind(kernel.member.__name__, chosen, kernel.inputs, (output,), more, doc=kernel.member.__doc__)

    return robot._kept((kernel.member.__name__, single, every, reference, relative_to), make)


def placement_tangents(count: int, batch: CoreShape) -> Program:
    """Return the velocities of frames in their own axes (*batch, 6), given homogeneous matrices and their rates."""
    inputs = Input("placement", (count, 4, 4)), Input("rate", (count, 4, 4))
    output = Output("velocity", (*batch, 6), (count, 6))
    return KernelProgram("placement_tangent", frames.placement_tangent, (), inputs, (output,))
