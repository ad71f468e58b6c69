"""Train a small policy to reach targets, by gradients through the dynamics.

    python examples/learn_through_dynamics.py [--output output]        pip install 'featherweight[demo,torch]'

An arm of two rods in a vertical plane moves its tip to targets by torques. Many episodes run in parallel, by semi-implicit
steps of `forward_dynamics` and `integrate`, which PyTorch differentiates. Adam follows the gradient of the cost (Degrave et al.
2019). The picture is learn_through_dynamics.png.
"""

import time

import torch
from pictures import output_folder, picture_of_reaching

import featherweight as fw
from featherweight.torch import wrap

EPISODES, STEPS, H = 32, 50, 0.02  # H [s]
TORQUE = torch.tensor([15.0, 4.0], dtype=torch.float64)  # largest torques [N m]; horizontal rods need 10 and 2.5


def arm():
    """Return the arm, which hangs down at q = 0."""
    rod, end = fw.Inertia(1.0, (0.0, 0.0, -0.25), (0.02, 0.0, 0.0, 0.02, 0.0, 1e-4)), fw.Pose(p=(0.0, 0.0, -0.5))
    shoulder = fw.Joint("shoulder", fw.JointType.CONTINUOUS, None, "upper", axis=(0.0, 1.0, 0.0))
    elbow = fw.Joint("elbow", fw.JointType.CONTINUOUS, "upper", "lower", end, (0.0, 1.0, 0.0))
    bodies, frames = [fw.Body("upper", rod), fw.Body("lower", rod)], [fw.Frame("tip", "lower", end)]
    return fw.build(fw.describe(bodies, [shoulder, elbow], frames=frames, name="arm"))


class Reaching:
    """Episodes of an arm and a policy that observes angles, velocities, and the position of the target."""

    def __init__(self, robot, seed=0):
        torch.manual_seed(seed)
        self.accelerate, self.move = wrap(robot.forward_dynamics), wrap(robot.integrate)
        self.placement = wrap(robot.frame_placement("tip"))
        last = torch.nn.Linear(64, 2)
        last.weight.data *= 0.1  # small at first: gradients of fast motions are useless
        layers = torch.nn.Linear(10, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), last
        self.policy = torch.nn.Sequential(*layers, torch.nn.Tanh()).double()

    def tip(self, q):
        """Return the position of the tip (..., 2) in the plane [m]."""
        return self.placement(q)[..., [0, 2], 3]

    def random(self, episodes):
        """Return random initial configurations and velocities, and targets within the workspace."""
        q, goal = ((torch.rand(episodes, 2, dtype=torch.float64) - 0.5) * 3.0 for _ in range(2))
        return q, torch.zeros_like(q), self.tip(goal)

    def rollout(self, q, v, target, steps=STEPS):
        """Return tip positions (steps, episodes, 2), and velocities and torques of the same shape."""
        passed = []
        for _ in range(steps):
            tip = self.tip(q)
            tau = TORQUE * self.policy(torch.cat([q.cos(), q.sin(), 0.1 * v, target, target - tip], dim=-1))
            v = v + H * self.accelerate(q, v, tau)
            q = self.move(q, H * v)
            passed.append((self.tip(q), v, tau))
        return map(torch.stack, zip(*passed, strict=True))

    def cost(self, q, v, target):
        tip, v, tau = self.rollout(q, v, target)
        off = (tip - target).square().sum(-1).add(1e-4).sqrt()  # a smooth distance
        return off.mean() + 5e-3 * v.square().mean() + 1e-5 * tau.square().mean()

    def learn(self, updates=200, told=print):
        """Train the policy; return the mean cost of the episodes at each update."""
        adam, costs, begun = torch.optim.Adam(self.policy.parameters(), lr=3e-3), [], time.perf_counter()
        rate = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.05, updates)
        for k in range(updates):
            cost = self.cost(*self.random(EPISODES))
            adam.zero_grad()
            cost.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
            adam.step()
            rate.step()
            costs.append(cost.item())
            if told and k % 50 == 49:
                told(f"{k + 1:4d} updates {time.perf_counter() - begun:5.1f} s   cost {costs[-1]:.3f}")
        return costs


def main():
    output = output_folder(__doc__)
    reaching = Reaching(arm())
    costs = reaching.learn()
    with torch.no_grad():
        q, v, target = reaching.random(200)
        tip, _, _ = reaching.rollout(q, v, target)
    off = (tip - target).norm(dim=-1)
    begin, end = 100 * off[0].mean(), 100 * off[-1].mean()
    print(f"{len(q)} new targets: mean distance {begin:.0f} cm, {end:.1f} cm after {H * STEPS:.1f} s.")
    picture_of_reaching(output / "learn_through_dynamics.png", costs, H * torch.arange(1, STEPS + 1), off[:, :40], tip, target)


if __name__ == "__main__":
    main()
