"""Functions of a robot's frames: placements and motions, in the world or relative to another frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, cast

from ..algorithms import frames, relative_frames
from ..engine.function import CompiledFunction
from ..engine.program import CoreShape, Input, KernelProgram, Output, Program
from ..model.types import WORLD, AnyFrame, Frame
from ..names import hint
from .camera_placement import CameraPlacement
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

    member: Any
    in_world: Callable[..., None]
    relative: Callable[..., None]  # takes another frame: the ground, if it also serves in the world
    inputs: tuple[str, ...]
    core: CoreShape  # shape of one frame's result
    classical: int | None = None  # for accelerations, as in `Written`

    def written(self, reference: int) -> int | frames.Written:
        return reference if self.classical is None else frames.Written(reference, self.classical)


class FrameFunctions(System):
    """A system with functions of its frames.

    `frame` is the name of a frame, or a `featherweight.Frame` that you create, on any link of the file or on the ground. For a
    sequence of k frames, results have an additional first axis of length k. Motions are (linear, angular). `reference` selects
    their axes and point:

        "local"                 the frame's axes, at its origin
        "local_world_aligned"   the world's axes, at the frame's origin
        "world"                 the world's axes, for the point of the body at the world's origin

    With `relative_to`, another frame replaces the world: the result is the motion that an observer fixed to that frame sees,
    and its axes replace the world's axes above. Joints that carry both frames then have no effect.

    All functions raise ValueError for an unknown frame and for an unknown reference.
    """

    def frame_placement(self, frame: Frames, relative_to: AnyFrame | None = None) -> CompiledFunction:
        """Function of q: the frame in the world, a homogeneous matrix (4, 4), or (k, 4, 4) for k frames.

        `relative_to`, if given, is a frame that replaces the world. The derivative consists of local tangents: (linear,
        angular) velocities in the frame's own axes (6, nv), or (k, 6, nv).
        """
        member, kernels = FrameFunctions.frame_placement, (frames.frame_placement, relative_frames.relative_placement)
        return self._of_frames(FrameKernel(member, *kernels, ("q",), (4, 4)), frame, None, relative_to)

    def frame_jacobian(self, frame: Frames, reference: str = ALIGNED, relative_to: AnyFrame | None = None) -> CompiledFunction:
        """Function of q: the matrix J (6, nv), or (k, 6, nv), for which J v is the (linear, angular) velocity of the frame.

        `reference` is "local" (the frame's axes), "local_world_aligned" (the frame's origin, the world's axes) or "world" (the
        world's origin and axes). `relative_to`, if given, is a frame that replaces the world.
        """
        member, kernels = FrameFunctions.frame_jacobian, (frames.frame_jacobian, relative_frames.relative_jacobian)
        return self._of_frames(FrameKernel(member, *kernels, ("q",), (6, self.nv)), frame, reference, relative_to)

    def frame_jacobian_rate(
        self, frame: Frames, reference: str = ALIGNED, relative_to: AnyFrame | None = None
    ) -> CompiledFunction:
        """Function of q, v: the rate J' (6, nv), or (k, 6, nv), of the frame's Jacobian.

        The arguments are those of `frame_jacobian`. J' v is `frame_bias_acceleration`. If the robot has loops, J' includes the
        rate of the dependent joints' velocities.
        """
        member = FrameFunctions.frame_jacobian_rate
        if self.closed:
            J = self.frame_jacobian(frame, reference, relative_to)
            key = (member.__name__, id(J))
            return self._kept(
                key,
                lambda: CompiledFunction(
                    rate_along_velocity(J.program, member.__name__, member.__name__, member.__doc__), self.execution
                ),
            )
        kernels = relative_frames.jacobian_rate, relative_frames.jacobian_rate
        kernel = FrameKernel(member, *kernels, ("q", "v"), (6, self.nv))
        return self._of_frames(kernel, frame, reference, relative_to)

    def frame_velocity(self, frame: Frames, reference: str = ALIGNED, relative_to: AnyFrame | None = None) -> CompiledFunction:
        """Function of q, v: the frame's (linear, angular) velocity (6), or (k, 6), with the arguments of `frame_jacobian`."""
        member, kernels = FrameFunctions.frame_velocity, (frames.frame_velocity, relative_frames.relative_velocity)
        return self._of_frames(FrameKernel(member, *kernels, ("q", "v"), (6,)), frame, reference, relative_to)

    def frame_acceleration(
        self, frame: Frames, reference: str = ALIGNED, relative_to: AnyFrame | None = None
    ) -> CompiledFunction:
        """Function of q, v, a: the frame's spatial acceleration (6), or (k, 6), (linear, angular).

        The arguments are those of `frame_jacobian`. In the references "local" and "world", the result is J a + J' v. In
        "local_world_aligned", it is the "local" acceleration in the world's axes; there, J a + J' v is
        `frame_classical_acceleration`, the acceleration of the frame's origin as a point. Gravity is not included: an
        accelerometer measures the classical acceleration minus gravity.
        """
        return self._acceleration(FrameFunctions.frame_acceleration, 0, frame, reference, relative_to)

    def frame_classical_acceleration(
        self, frame: Frames, reference: str = ALIGNED, relative_to: AnyFrame | None = None
    ) -> CompiledFunction:
        """Function of q, v, a: the acceleration of the frame's origin as a point, and the angular acceleration: (6), or (k, 6).

        The arguments are those of `frame_jacobian`. In the reference "local_world_aligned", the result is J a + J' v. In
        "world", it is the acceleration of the body's point at the world's origin.
        """
        return self._acceleration(FrameFunctions.frame_classical_acceleration, 1, frame, reference, relative_to)

    def frame_bias_acceleration(
        self, frame: Frames, reference: str = ALIGNED, relative_to: AnyFrame | None = None
    ) -> CompiledFunction:
        """Function of q, v: the velocity-product acceleration J' v (6), or (k, 6), for the Jacobian J of the same arguments."""
        member = FrameFunctions.frame_bias_acceleration
        kernels = frames.frame_bias_acceleration, relative_frames.relative_bias_acceleration
        return self._of_frames(FrameKernel(member, *kernels, ("q", "v"), (6,)), frame, reference, relative_to)

    def camera_placement(self, camera: str) -> CameraPlacement:
        """Function of q (..., nq): the placement of a camera of the file in the world, homogeneous matrices (..., 4, 4).

        The camera looks along -z; x points right and y up in its image. Cameras that track a body or have a target follow it.
        Raises ValueError for an unknown camera.
        """
        return CameraPlacement(self, camera)

    @cached_property
    def joint_jacobian_rate(self) -> CompiledFunction:
        """Function of q, v: the rate (6, n) of `joint_jacobian`."""
        output = Output("J_dot", (6, len(self.model.tree.parent)))
        return self._function(FrameFunctions.joint_jacobian_rate, relative_frames.joint_jacobian_rate, ("q", "v"), output)

    # how they are made

    def _acceleration(
        self, member: Any, classical: int, frame: Frames, reference: str, relative_to: AnyFrame | None
    ) -> CompiledFunction:
        kernels = frames.frame_acceleration, relative_frames.relative_acceleration
        kernel = FrameKernel(member, *kernels, ("q", "v", "a"), (6,), classical)
        return self._of_frames(kernel, frame, reference, relative_to)

    def _of_frames(
        self, kernel: FrameKernel, frame: Frames, reference: str | None, relative_to: AnyFrame | None
    ) -> CompiledFunction:
        single = isinstance(frame, AnyFrame) or not isinstance(frame, Iterable)
        every: tuple[Any, ...] = tuple(cast("Iterable[Any]", (frame,) if single else frame))
        if not isinstance(frame, list | tuple) and not all(isinstance(x, AnyFrame) for x in every):
            how = f'{kernel.member.__name__}("hand") gives a function, which is called with {", ".join(kernel.inputs)}'
            raise TypeError(f"{self.name}: a frame is a name or a featherweight.Frame; got {frame!r}: {how}")
        if reference is not None and not (isinstance(reference, str) and reference in REFERENCES):
            meant = hint(reference, REFERENCES)
            raise ValueError(f"reference must be one of {', '.join(REFERENCES)}; got {reference!r}{meant}")

        def make() -> CompiledFunction:
            chosen = kernel.in_world if relative_to is None else kernel.relative
            other = GROUND if relative_to is None else relative_to
            others = (self.placements([other]),) if chosen is kernel.relative else ()
            written = () if reference is None else (kernel.written(REFERENCES[reference]),)
            core, count = kernel.core, len(every)
            output = Output(kernel.member.__name__, core if single else (count, *core), (count, *core))
            if core == (4, 4):
                output = output._replace(along=placement_tangents(count, output.shape[:-2]))
            more = (self.placements(every), *others, *written)
            return self._function(kernel.member, chosen, kernel.inputs, output, more)

        return self._kept((kernel.member.__name__, single, every, reference, relative_to), make)

    def _kept(self, key: tuple[Any, ...], make: Callable[[], CompiledFunction[Any]]) -> CompiledFunction:
        if key not in self._of_names:
            self._of_names[key] = make()
        return self._of_names[key]

    @cached_property
    def _of_names(self) -> dict[tuple[Any, ...], CompiledFunction[Any]]:
        return {}


def placement_tangents(count: int, batch: CoreShape) -> Program:
    """Return the velocities of frames in their own axes (*batch, 6), given homogeneous matrices and their rates."""
    inputs = Input("placement", (count, 4, 4)), Input("rate", (count, 4, 4))
    output = Output("velocity", (*batch, 6), (count, 6))
    return KernelProgram("placement_tangent", frames.placement_tangent, (), inputs, (output,))
