"""Users' own robots as Gymnasium environments: registered, single, and in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

import featherweight as fw  # noqa: E402
from featherweight import gym  # noqa: E402
from robots.cart_poles import WHEEL, cart_pole, too_far, upright  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    gym.register("own/CartPole-v0", cart_pole(), gym.RobotTask(reward=upright, ends=too_far), max_episode_steps=40)


@pytest.mark.filterwarnings("ignore:.*infinity.*")
def test_a_robot_of_ones_own_is_an_environment() -> None:
    env = gymnasium.make("own/CartPole-v0")
    assert env.spec.max_episode_steps == 40
    assert env.action_space == gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32) and env.observation_space.shape == (4,)
    check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(np.zeros(2, np.float32))
    assert reward == pytest.approx(-np.cos(observation[1])) and not terminated and not truncated
    assert info == {"reward": reward, "simulation_failed": False}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_many_are_as_gymnasium_runs_them_one_by_one(mode: AutoresetMode) -> None:
    ours = gymnasium.make_vec("own/CartPole-v0", num_envs=3, autoreset_mode=mode, max_episode_steps=9)
    theirs = SyncVectorEnv([lambda: gymnasium.make("own/CartPole-v0", max_episode_steps=9)] * 3, autoreset_mode=mode)
    assert isinstance(ours, gym.RobotVectorEnv)
    rng, ends = np.random.default_rng(0), np.zeros(2, int)
    np.testing.assert_allclose(ours.reset(seed=3)[0], theirs.reset(seed=3)[0], rtol=1e-12)
    for _ in range(40):
        actions = rng.uniform(-1.0, 1.0, (3, 2)).astype(np.float32)
        a, b = ours.step(actions), theirs.step(actions)
        for x, y in zip(a[:4], b[:4], strict=True):
            np.testing.assert_allclose(np.asarray(x, float), y, rtol=1e-9, atol=1e-9)
        ends += [a[2].sum(), a[3].sum()]
        if "final_obs" in a[4]:
            for x, y in zip(a[4]["final_obs"][a[4]["_final_obs"]], b[4]["final_obs"][b[4]["_final_obs"]], strict=True):
                np.testing.assert_allclose(np.asarray(x, float), y, rtol=1e-9, atol=1e-9)
    assert (ends > 0).all()


URDF = """<robot name="cart_pole">
  <link name="rail"/>
  <link name="cart"><inertial><origin xyz="0 0 -0.3"/><mass value="1"/>{inertia}</inertial></link>
  <link name="pole"><inertial><origin xyz="0 0 -0.3"/><mass value="1"/>{inertia}</inertial></link>
  <joint name="slide" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
    <limit effort="20" velocity="9" lower="-9" upper="9"/></joint>
  <joint name="hinge" type="continuous"><parent link="cart"/><child link="pole"/><axis xyz="0 1 0"/>
    <limit effort="0.5" velocity="9"/></joint>
</robot>""".format(inertia='<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/>')


def test_a_file_is_an_environment_in_every_way_of_running_many(tmp_path: Path) -> None:
    """Check that single environments, sync and async vectors give the same results for the same seeds and actions."""
    path = tmp_path / "cart_pole.urdf"
    path.write_text(URDF)
    gym.register("own/File-v0", path, gym.RobotTask(reward=upright, ends=too_far), max_episode_steps=5)
    outcomes = []
    for mode in ("vector_entry_point", "sync", "async"):
        envs = gymnasium.make_vec("own/File-v0", num_envs=2, vectorization_mode=mode)
        envs.reset(seed=4)
        steps = [envs.step(np.full((2, 2), 0.3, np.float32))[:4] for _ in range(7)]
        outcomes.append([np.stack(x) for x in zip(*steps, strict=True)])
        envs.close()
        envs.close()  # closing twice is allowed
    assert outcomes[0][3].any()  # the time limit
    for other in outcomes[1:]:
        for x, y in zip(outcomes[0], other, strict=True):
            np.testing.assert_allclose(np.asarray(x, float), y, rtol=1e-9, atol=1e-9)


def test_many_are_drawn_one_by_one() -> None:
    """Check that each environment has a picture, as in Gymnasium, which equals that of the single environment."""
    envs = gymnasium.make_vec("featherweight/Hopper-v0", num_envs=2, render_mode="rgb_array", size=(40, 30))
    alone = gymnasium.make("featherweight/Hopper-v0", render_mode="rgb_array", width=40, height=30)
    envs.reset(seed=3)
    alone.reset(seed=3)
    first, second = envs.render()
    np.testing.assert_array_equal(first, alone.render())
    assert first.shape == second.shape == (30, 40, 3) and first.dtype == np.uint8 and np.ptp(first) > 0
    assert envs.render_mode == "rgb_array" and "rgb_array" in envs.metadata["render_modes"]
    filmed = gymnasium.make("featherweight/Hopper-v0", render_mode="rgb_array", width=40, height=30, camera_name="track")
    filmed.reset(seed=3)
    assert (filmed.render() != first).any()  # Gymnasium's hopper.xml has this camera
    quiet = gymnasium.make_vec("featherweight/Hopper-v0", num_envs=2)
    assert quiet.render() is None
    with pytest.raises(ValueError, match="rgb_array"):
        gymnasium.make_vec("featherweight/Hopper-v0", num_envs=2, render_mode="human")


def test_some_begin_anew_by_a_mask() -> None:
    envs = gymnasium.make_vec("own/CartPole-v0", num_envs=3, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    moved = envs.step(np.ones((3, 2), np.float32))[0]
    observation, _ = envs.reset(seed=[7, 8, 9], options={"reset_mask": np.array([False, True, False])})
    np.testing.assert_array_equal(observation[[0, 2]], moved[[0, 2]])
    np.testing.assert_array_equal(observation[1], gymnasium.make("own/CartPole-v0").reset(seed=8)[0])


def test_a_body_that_moves_freely_comes_to_rest_on_the_floor() -> None:
    """Check that a fixed root becomes free and gets a floor below it; the motion starts at the given position."""
    ball = fw.Shape("skin", "ball", fw.ShapeType.SPHERE, (0.1,))
    bodies = [fw.Body("ball", fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.004, 0.0, 0.0, 0.004, 0.0, 0.004))), fw.Body("arm", WHEEL)]
    hinge = fw.Joint("hinge", fw.JointType.REVOLUTE, "ball", "arm", axis=(1.0, 0.0, 0.0), effort=1.0)
    robot = fw.describe(bodies, [hinge], name="ball", shapes=[ball])
    home: dict[str, float | Sequence[float]] = {"root_joint": [0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0], "hinge": 3.0}
    gym.register(
        "own/Ball-v0", robot, gym.RobotTask(frame_skip=50, reset_noise_scale=0.0), base="floating", ground=True, q=home
    )
    env = gymnasium.make("own/Ball-v0")
    q = env.reset(seed=0)[0][:8]
    np.testing.assert_allclose(q, [0.0, 0.0, 0.15, 1.0, 0.0, 0.0, 0.0, 3.0])  # quaternions in MuJoCo's order
    heights = [env.step(np.zeros(1, np.float32))[0][2] for _ in range(10)]
    assert heights[-1] == pytest.approx(0.1, abs=1e-3)
    description = env.unwrapped.vector.task.xml_file
    with pytest.raises(ValueError, match="leave out ground"):
        gym.register("own/Ball-v1", description, gym.RobotTask(), ground=True)
    with pytest.raises(ValueError, match="one root body that is fixed"):
        gym.register("own/Ball-v1", description, gym.RobotTask(), base="floating")
    for old, here in {"floating": "base=", "floor": "ground", "home": "q", "drives": "actuators"}.items():
        with pytest.raises(TypeError, match=rf"register has no argument '{old}'; here it is {here}"):
            gym.register("own/Ball-v1", description, gym.RobotTask(), **{old: True})  # type: ignore[arg-type]


def test_actions_may_be_target_positions() -> None:
    """Check that stiff drives hold a heavy cart at its target, with a step for which a controller with these gains would
    diverge.
    """
    cart = replace(cart_pole(effort=np.inf), timestep=0.02)
    limited = replace(cart, joints=tuple(replace(j, lower=-1.0, upper=1.0) if j.name == "slide" else j for j in cart.joints))
    gym.register("own/Held-v0", limited, gym.RobotTask(frame_skip=1), actuators=fw.PD(1e5, 1e4, joints=["slide"]))
    env = gymnasium.make("own/Held-v0")
    assert (env.action_space.low, env.action_space.high) == (-1.0, 1.0)
    env.reset(seed=0)
    for _ in range(100):
        seen = env.step(np.array([0.5], np.float32))[0]
    assert seen[0] == pytest.approx(0.5, abs=1e-3)


def test_a_free_root_without_a_place_begins_on_the_floor() -> None:
    """Check that the lowest shape touches the floor for any home of the other joints; a given position is kept, or
    refused below the floor.
    """
    foot = fw.Shape("sole", "foot", fw.ShapeType.SPHERE, (0.05,), fw.Pose(p=(0.0, 0.0, -0.6)))
    trunk = fw.Shape("skin", "trunk", fw.ShapeType.BOX, (0.2, 0.2, 0.1))
    inertia = fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
    hip = fw.Joint("hip", fw.JointType.REVOLUTE, "trunk", "foot", axis=(0.0, 1.0, 0.0), effort=1.0)
    robot = fw.describe([fw.Body("trunk", inertia), fw.Body("foot", inertia)], [hip], name="hopper", shapes=[foot, trunk])
    heights = []
    for k, angle in enumerate((0.0, np.pi / 3)):
        still = gym.RobotTask(reset_noise_scale=0.0)
        gym.register(f"own/Leg-v{k}", robot, still, base="floating", ground=True, q={"hip": angle})
        envs = gymnasium.make_vec(f"own/Leg-v{k}", num_envs=3, autoreset_mode="SameStep")
        qpos = envs.reset(seed=0)[0][:, :8]
        heights.append(qpos[0, 2])
        assert (qpos == qpos[0]).all()
        assert not envs.step(np.zeros((3, 1), np.float32))[4]["simulation_failed"].any()
    np.testing.assert_allclose(heights, [0.65, 0.35], atol=1e-9)
    below = {"root_joint": [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]}
    gym.register("own/Leg-v2", robot, gym.RobotTask(), base="floating", ground=True, q=below)
    with pytest.raises(ValueError, match=r"shapes in one another: the shape 'sole' on 'foot' and .*'floor'.* by 0\.15 m.*q="):
        gymnasium.make_vec("own/Leg-v2", num_envs=3)


def test_a_robot_deep_in_the_floor_fails_at_once() -> None:
    """Check that the episode terminates without a call of the solver, so that such robots do not slow a fleet."""
    ball = fw.Shape("skin", "ball", fw.ShapeType.SPHERE, (0.1,))
    bodies = [fw.Body("ball", fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.004, 0.0, 0.0, 0.004, 0.0, 0.004)))]
    gym.register("own/Sunk-v0", fw.describe(bodies, [], shapes=[ball]), gym.RobotTask(), base="floating", ground=True)
    envs = gymnasium.make_vec("own/Sunk-v0", num_envs=2, autoreset_mode="Disabled")
    envs.reset(seed=0)
    qpos, qvel = np.tile([0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0], (2, 1)), np.zeros((2, 6))
    qpos[1, 2] = -0.4
    envs.set_state(qpos, qvel)
    _, _, terminated, _, info = envs.step(np.zeros((2, 0), np.float32))
    assert info["simulation_failed"].tolist() == terminated.tolist() == [False, True]
    assert envs.simulation.solver["newton_steps"] <= 1  # those of the resting ball
    assert envs.simulation.solver["interior_steps"] == 0


def test_what_is_no_robot_for_an_environment_is_refused() -> None:
    with pytest.raises(ValueError, match=r"joints without an effort: slide\. Give description\.actuators"):
        gym.register("own/Other-v0", cart_pole(effort=np.inf), gym.RobotTask())
    with pytest.raises(TypeError, match=r"featherweight\.read"):
        gym.register("own/Other-v0", fw.build(cart_pole()), gym.RobotTask())  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        gym.register("own/Other-v0", "nowhere.urdf", gym.RobotTask())
    assert "own/Other-v0" not in gymnasium.registry
