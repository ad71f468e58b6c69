"""Train a quadruped to follow a joystick by reinforcement learning on many robots at once.

    python examples/train_go1.py [--output output]       pip install 'featherweight[learning,demo,render,robots]'

The robot is Unitree's Go1 with the task of MuJoCo Playground (`featherweight.environments.Go1Joystick`), and the algorithm is
PPO (ppo.py) in NumPy. The task is easier than in MuJoCo Playground in three ways: commands are at most 1 m/s, joints have no
dry friction, and the cost of low feet is a quarter. The same seed gives the same bits on any number of threads. The picture is
train_go1.png, and the animation train_go1.gif.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # sums in matrix products depend on it

import gymnasium
import numpy as np
from pictures import film, output_folder, picture_of_walking
from ppo import PPO, Settings

from featherweight.environments import joystick_commands

GO1 = "featherweight.environments:featherweight/Go1Joystick-v0"
ROBOTS, STEPS = 512, 2_000_000
EASIER = {"commands": (1.0, 0.4, 1.0), "dry_friction": False, "reward_weights": {"feet_clearance": -0.5}}
SETTINGS = Settings(
    steps=16,
    epochs=5,
    minibatch=1024,
    discount=0.97,
    rate=1e-3,
    entropy=0.01,
    sigma=0.6,
    last_sigma=0.05,  # the policy shall walk without noise
    greatest_gradient=1.0,
    hidden=(128, 128),
)
WAY = ((3.0, (0.7, 0.0, 0.0)), (3.0, (0.5, 0.0, 0.6)), (2.0, (0.0, 0.3, 0.0)), (1.0, (0.0, 0.0, 0.0)))  # duration [s], command


def learn(robots=ROBOTS, steps=STEPS, settings=SETTINGS, seed=0, told=print, **how):
    """Return the trained policy and the progress of the training."""
    envs = gymnasium.make_vec(GO1, num_envs=robots, autoreset_mode="SameStep", **EASIER, **how)
    ppo = PPO(envs, settings, seed)
    return ppo, ppo.learn(steps, told)


def walk(ppo, robots=32, way=WAY):
    """Follow commands, with the mean actions of the policy.

    Return the commands (times, 3), the velocities (times, robots, 3), the motion (times, nq) of a robot that does not fall, if
    there is one, the robots that fell (robots,), and the environments.
    """
    envs = gymnasium.make_vec(GO1, num_envs=robots, autoreset_mode="Disabled", command_wait=np.inf, **EASIER)
    o, _ = envs.reset(seed=1)
    commands, velocities, motion, fallen = [], [], [], np.zeros(robots, bool)
    for seconds, command in way:
        joystick_commands(envs)[:] = command
        for _ in range(round(seconds / envs.dt)):
            o, _, terminated, _, info = envs.step(ppo.act(o))
            fallen |= terminated
            commands.append(command)
            velocities.append(np.stack([info[f"{name}_velocity"] for name in ("forward", "sideways", "turn")], axis=-1))
            motion.append(envs.simulation.q)
    return np.array(commands), np.array(velocities), np.array(motion)[:, fallen.argmin()], fallen, envs


def beside(q):
    """Return a camera that follows the robot."""
    return (q[0] + 0.9, q[1] - 1.3, 0.8), (q[0], q[1], 0.2)


def main():
    output = output_folder(__doc__)
    ppo, progress = learn()
    commands, velocities, motion, fallen, envs = walk(ppo)
    settled = np.arange(len(commands)) % 50 >= min(25, len(commands) // 2)  # the second half of each second
    off = np.abs(velocities - commands[:, None])[settled].mean(axis=(0, 1))
    print(f"{fallen.sum()} of {len(fallen)} robots fall; ", end="")
    print(f"mean velocity errors are {off[0]:.2f} m/s forward, {off[1]:.2f} m/s sideways and {off[2]:.2f} rad/s.")
    picture_of_walking(output / "train_go1.png", progress, commands, velocities, envs.dt)
    shown = motion[:: max(1, round(1.0 / (10.0 * envs.dt)))]
    film(output / "train_go1.gif", envs.simulation.robot, shown, beside, 10.0, (288, 192))


if __name__ == "__main__":
    main()
