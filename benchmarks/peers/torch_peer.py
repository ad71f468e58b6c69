"""Calls from PyTorch compared with calls from NumPy: one state and a batch, values and gradients, eager and compiled.

    python benchmarks/peers/torch_peer.py [--batch 4096] [--seconds 2]

Needs an environment with torch. "PyTorch's own part" is the time of an operator that does nothing: an `autograd.Function` that
returns an argument, or a compiled function that adds one. Compared calls alternate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from measure import machine, markdown, median_times, options

import featherweight
from featherweight.model import generators
from featherweight.torch import wrap

HEADER = ["one call [µs]", "from NumPy", "PyTorch", "beyond ours", "PyTorch's own part"]
BATCHES = ["from NumPy [µs]", "PyTorch [µs]", "NumPy / PyTorch"]


class Nothing(torch.autograd.Function):  # type: ignore[misc]  # PyTorch is not seen
    """Minimal PyTorch function with gradients."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.save_for_backward(*args)
        return args[-1].detach()

    @staticmethod
    def backward(ctx: Any, bar: Any) -> Any:
        return tuple(bar for _ in ctx.saved_tensors)


def gradient(f: Callable[..., Any], args: list[Any]) -> Callable[[], Any]:
    """Return a call that computes the value and the gradients by all arguments."""
    moving, ones = [x.clone().requires_grad_() for x in args], torch.ones_like(args[-1])
    return lambda: torch.autograd.grad(f(*moving), moving, ones)


def added(q: Any, v: Any, tau: Any) -> Any:
    return q + v + tau


def main() -> None:
    given = options(__doc__)
    robot = featherweight.build(generators.chain(7))
    own, f = robot.forward_dynamics, wrap(robot.forward_dynamics)
    compiled, nothing = torch.compile(f, fullgraph=True), torch.compile(added, fullgraph=True)
    rows, batches = [], []
    for batch in ((), (given.batch,)):
        args = [torch.randn(*batch, robot.nv, dtype=torch.float64) for _ in range(3)]
        q, v, tau = (x.numpy() for x in args)
        pullback = own.pullback

        def value(q: Any = q, v: Any = v, tau: Any = tau) -> Any:
            return own(q, v, tau)

        def both(q: Any = q, v: Any = v, tau: Any = tau, pullback: Any = pullback) -> Any:
            return own(q, v, tau), pullback(q, v, tau, tau)

        def called(f: Callable[..., Any], args: list[Any] = args) -> Callable[[], Any]:
            return lambda: f(*args)

        cases = {
            "value": (value, called(f), called(lambda q, v, tau: tau.detach())),
            "value, compiled": (value, called(compiled), called(nothing)),
            "value and backward": (both, gradient(f, args), gradient(Nothing.apply, args)),
            "value and backward, compiled": (both, gradient(compiled, args), gradient(nothing, args)),
        }
        for name, calls in cases.items():
            ours, theirs, floor = (1e6 * t for t in median_times(calls, given.seconds))
            if batch:
                batches.append([name, f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}"])
            else:
                rows.append([name, *(f"{t:.1f}" for t in (ours, theirs, theirs - ours, floor))])
    print(f"{machine()}; PyTorch {torch.__version__}, {torch.get_num_threads()} threads; {own.name}, {robot.nv} joints\n")
    print(markdown(HEADER, rows), end="\n\n")
    print(markdown([f"{given.batch} states", *BATCHES], batches))


if __name__ == "__main__":
    main()
