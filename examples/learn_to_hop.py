"""Train a leg to hop by reinforcement learning on many robots at once.

    python examples/learn_to_hop.py [--output output]        pip install 'featherweight[learning,demo]'

The task is Gymnasium's Hopper, simulated by `featherweight.Simulation`. The algorithm is PPO (ppo.py) in NumPy. The picture is
learn_to_hop.png.
"""

import gymnasium
import numpy as np
from pictures import output_folder, picture_of_hopping
from ppo import PPO

HOPPER = "featherweight.environments:featherweight/Hopper-v0"
ROBOTS, STEPS = 64, 1_000_000


def learn(robots=ROBOTS, steps=STEPS, settings=None, seed=0):
    """Return the trained policy and the progress of the training."""
    envs = gymnasium.make_vec(HOPPER, num_envs=robots, autoreset_mode="SameStep")
    ppo = PPO(envs, settings, seed)
    return ppo, ppo.learn(steps)


def hops(ppo, robots=32, steps=1000):
    """Run episodes without random actions: returns and lengths (robots,), the first motion (times + 1, nq), dt [s]."""
    envs = gymnasium.make_vec(HOPPER, num_envs=robots, autoreset_mode="Disabled", max_episode_steps=steps)
    o, _ = envs.reset(seed=1)
    alive, total, length, motion = np.ones(robots, bool), np.zeros(robots), np.zeros(robots, int), [envs.simulation.q[0]]
    while alive.any():
        o, reward, terminated, truncated, _ = envs.step(ppo.act(o))
        total += reward * alive
        length += alive
        if alive[0]:
            motion.append(envs.simulation.q[0])
        alive &= ~(terminated | truncated)
    return total, length, np.array(motion), envs.dt


def capsules(robot, q):
    """Return the ends (n, shapes, 2, 3) of a robot's capsules at configurations (n, nq), and their radii (shapes,)."""
    shapes = [s for s in robot.shapes if s.type == "capsule"]
    T = robot.frame_placement([s.body for s in shapes])(q)
    half = [0.5 * s.size[1] * np.array(s.placement.R)[:, 2] for s in shapes]
    ends = np.array([[s.placement.p - h, s.placement.p + h] for s, h in zip(shapes, half, strict=True)])
    return np.einsum("nsij,skj->nski", T[..., :3, :3], ends) + T[:, :, None, :3, 3], [s.size[0] for s in shapes]


def main():
    output = output_folder(__doc__)
    ppo, progress = learn()
    total, length, motion, dt = hops(ppo)
    print(f"Without random actions: return {total.mean():.0f} ± {total.std():.0f}, {length.mean():.0f} of 1000 steps, ", end="")
    print(f"{(motion[-1, 0] - motion[0, 0]) / (dt * (len(motion) - 1)):.2f} m/s.")
    ends, radii = capsules(ppo.envs.simulation.robot, motion)
    picture_of_hopping(output / "learn_to_hop.png", progress, ends[..., [0, 2]], radii, dt)


if __name__ == "__main__":
    main()
