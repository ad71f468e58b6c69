"""Functions of robots in PyTorch: operators with derivatives of any order, for `torch.compile` and `torch.func`.

    from featherweight.torch import wrap

    forward_dynamics = wrap(robot.forward_dynamics)
    forward_dynamics(q, v, tau).sum().backward()

Calls of one state, without a transformation or a mode, go directly to the machine code.
"""

from .extras import imports_from_extra

with imports_from_extra("torch", "featherweight.torch needs PyTorch", "torch"):
    from .bridges.torch_tensors.optimal_plan import OptimalPlan, TensorPlan, plan
    from .bridges.torch_tensors.simulated_step import SimulatedStep, TensorState, step
    from .bridges.torch_tensors.wrapped import Wrapped, wrap

__all__ = ["OptimalPlan", "SimulatedStep", "TensorPlan", "TensorState", "Wrapped", "plan", "step", "wrap"]
