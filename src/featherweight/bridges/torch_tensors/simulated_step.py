"""A step of a simulation as a function of states in tensors, with gradients through contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..arguments import array_state, function_of
from .conversions import numbers, require_on_processor, tensors

if TYPE_CHECKING:
    from ...simulation import Simulation, State
    from ...simulation.step_function import StepFunction


def step(simulation: Simulation, *, contacts: int | None = None) -> SimulatedStep:
    """Return the step of a `Simulation` as a function of states in tensors, with gradients through contact.

        step = featherweight.torch.step(simulation)
        state = step.start(q, v)                            # or step.from_state(simulation.state)
        state = step(state, tau=tau, control=control)
        state.q, state.v, state.activation

    A state (`TensorState`) holds all that the next step reads. In double precision, a step gives the bits of
    `Simulation.advance`; in single precision, q, v and activations are rounded after each step. Leading axes of the state, tau
    (..., nv) and control (..., nu) broadcast; tau and control default to zero. The function uses the robot, step size, ground
    and contact model of the simulation, and its `vary`; it does not change the simulation. All robots of a batch move in one
    call of `Simulation.advance`, also under `torch.func.vmap`.

    `backward` and `torch.func` (grad, vjp, jacrev, jvp, jacfwd) are with respect to q, v, activations, tau and control, by the
    derivatives of `Simulation.derivatives`, on threads. Gradients with respect to configurations are tangent to their manifold,
    as with `wrap`. The memory of a state has no gradient: it only starts the solver of contacts. Second derivatives do not
    work.

    `contacts` is the number of contacts of a robot that states take; the default is that of the simulation now (16
    until it needs more).

    Raises TypeError for an argument that is not a simulation. Calls raise as `Simulation.advance` and `Simulation.derivatives`
    do, and ValueError for wrong shapes and for more contacts than these.
    """
    return SimulatedStep(function_of(simulation, "step", "Simulation", contacts=contacts))


class TensorState(NamedTuple):
    """States of robots in tensors.

    `memory` has the bits of all other numbers that the next step reads, as integers: time, impulses of the last step, overlaps
    that are still being separated, and what sensors remember. It belongs to the simulation that made it.
    """

    q: torch.Tensor  # (..., nq)
    v: torch.Tensor  # (..., nv)
    activation: torch.Tensor  # (..., na) activations of actuators, followed by the states of delays
    memory: torch.Tensor  # (..., words) int32


@dataclass(frozen=True)
class SimulatedStep:
    """A step of a simulation as a function of tensors, made by `featherweight.torch.step`."""

    function: StepFunction

    def start(self, q: torch.Tensor, v: torch.Tensor | None = None) -> TensorState:
        """Return the state of robots at q (..., nq) and v (..., nv), zero by default, as after `Simulation.reset`.

        The pairs of shapes that do not touch are those of the simulation.
        """
        f = self.function
        require_on_processor(f.name, {"q": q})
        given = {"q": q, "v": q.new_zeros(f.sizes["v"]) if v is None else v}
        require_on_processor(f.name, given)
        rest = {"activation": q.new_tensor(f.started.activation), "memory": torch.tensor(f.started.memory)}
        return TensorState(*f.arranged(given | rest, torch))

    def from_state(self, state: State) -> TensorState:
        """Return a `State` of the simulation as tensors. Raises as `Simulation.advance` does for other states."""
        return TensorState(*map(torch.tensor, self.function.arrays(state)))

    def to_state(self, state: TensorState) -> State:
        """Return states (...) or (robots, ...) as a `State`, outside of transformations."""
        return self.function.state([*map(numbers, state)])

    def __call__(self, state: TensorState, tau: torch.Tensor | None = None, control: torch.Tensor | None = None) -> TensorState:
        """Return the state after a step, as `step` describes. Raises TypeError for arguments that are not tensors."""
        f = self.function
        given = array_state(f.name, state, TensorState)._asdict()
        require_on_processor(f.name, {"q": given["q"], "v": given["v"]})
        for name, x in {"tau": tau, "control": control}.items():
            given[name] = state.q.new_zeros(f.sizes[name]) if x is None else x
        require_on_processor(f.name, {name: x for name, x in given.items() if name != "memory"})
        return TensorState(*_Step.apply(f, *f.arranged(given, torch)))


class _Step(torch.autograd.Function):  # type: ignore[misc]
    """The step, whose derivatives are `pushforward` and `pullback` of its function."""

    @staticmethod
    def forward(function: StepFunction, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *state, tau, control = map(numbers, args)
        found = function(state, tau, control)
        return (*tensors(found[:3], args[0].dtype), *tensors(found[3:], torch.int32))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function = inputs[0]
        ctx.mark_non_differentiable(output[3])
        ctx.save_for_backward(*inputs[1:], output[0])
        ctx.save_for_forward(*inputs[1:], output[0])

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor) -> Any:
        *state, tau, control = _Product.apply(ctx.function, "pullback", *ctx.saved_tensors, *bars[:3])
        return None, *state, None, tau, control

    @staticmethod
    def jvp(ctx: Any, _: Any, *rates: torch.Tensor | None) -> Any:
        pairs = zip(ctx.saved_tensors, rates, strict=False)
        given = [torch.zeros_like(x) if rate is None else rate for x, rate in pairs if x.is_floating_point()]
        return *_Product.apply(ctx.function, "pushforward", *ctx.saved_tensors, *given), None

    @staticmethod
    def vmap(info: Any, axes: Any, function: StepFunction, *args: Any) -> Any:
        return _of_all(_Step, info, axes[1:], (function,), args)


class _Product(torch.autograd.Function):  # type: ignore[misc]
    """A product with the derivative of a step, which has no derivative of its own: `pushforward` or `pullback`."""

    @staticmethod
    def forward(function: StepFunction, name: str, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *state, tau, control, after = map(numbers, args[:7])
        found = getattr(function, name)(state, tau, control, after, [*map(numbers, args[7:])])
        return tensors(found, args[0].dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.name = inputs[0].name

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor) -> Any:
        raise NotImplementedError(f"{ctx.name}: second derivatives of a step are not implemented")

    jvp = backward

    @staticmethod
    def vmap(info: Any, axes: Any, function: StepFunction, name: str, *args: Any) -> Any:
        return _of_all(_Product, info, axes[2:], (function, name), args)


def _of_all(kind: Any, info: Any, axes: Any, shared: tuple[Any, ...], args: Any) -> Any:
    """Apply a function to all rows of a batch at once; its axis moves to the front."""
    pairs = zip(args, axes, strict=True)
    given = [x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in pairs]
    found = kind.apply(*shared, *given)
    return found, (0,) * len(found)
