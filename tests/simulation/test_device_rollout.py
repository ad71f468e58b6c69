"""Rollouts on a device, which is this machine here: the states of a rollout without one, bit for bit."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sass import tool

import featherweight as fw
from engine.backends.cuda import host_device
from engine.backends.cuda.host_device import Array, HostDevice, seen
from featherweight.engine.backends.cuda.code import assembly
from featherweight.engine.backends.cuda.emit_repetition import emit_repetition
from featherweight.engine.backends.cuda.target import NVIDIA
from featherweight.engine.backends.llvm.ir import Type
from featherweight.engine.traced import Traced
from featherweight.model.generators import chain
from featherweight.model.types import Fluid
from featherweight.simulation import fleet
from featherweight.simulation.device_steps import repeated_step
from oracles.robots import example
from oracles.trees import tree
from simulation.plain_python import ROUNDED
from simulation.scenes import HINGE, SLIDE, X, Y, Z, cart, solid_ball

pytestmark = pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")

INTEGRATORS = ("semi-implicit", "rk4")
FREE_FLIGHT: dict[str, Any] = {"shapes": False, "joints": fw.JointOptions(limits=False, friction=False)}


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    """Device 0 is this machine, whose own steps round operations one by one, as those between functions on a device."""
    monkeypatch.setattr(fleet, "WORK_ON_ROBOTS", ROUNDED)
    return host_device.install(monkeypatch)


def damped() -> fw.Robot:
    """Hinges and a rail with damping, springs and little effort."""
    passive: list[dict[str, Any]] = [
        {"damping": 0.3, "effort": 0.8},
        {"stiffness": 30.0, "rest": 0.2, "effort": 0.5},
        {"damping": 0.1, "stiffness": 5.0},
    ]
    bodies = [fw.Body(f"body{k}", solid_ball(1.0 + k, 0.2)) for k in range(3)]
    joints = [
        fw.Joint(f"joint{k}", kind, f"body{k - 1}" if k else "world", f"body{k}", axis=axis, placement=placed, **more)
        for k, (kind, axis, more) in enumerate(zip((HINGE, SLIDE, HINGE), (Y, X, Z), passive, strict=True))
        for placed in [fw.Pose(p=(0.1, 0.2, 0.3 * k))]
    ]
    return fw.build(fw.describe(bodies, joints))


ROBOTS: dict[str, Callable[[], fw.Robot]] = {
    "panda": lambda: example("panda"),
    "hyq": lambda: example("hyq"),
    "damped": damped,
    "prismatic": lambda: fw.build(chain(2, joint="prismatic")),
    "depth one": lambda: tree("depth_one")[1],
    "all joints": lambda: fw.build(tree("roots")[0]),
}


def free(robot: fw.Robot, integrator: str = "semi-implicit", **more: Any) -> fw.Simulation:
    return fw.Simulation(robot, 1e-3, integrator, **FREE_FLIGHT | more)


def states(robot: fw.Robot, robots: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng, robots), 0.3 * rng.standard_normal((robots, robot.nv))


def forces(robot: fw.Robot, steps: int, robots: int = 3) -> Any:
    return np.random.default_rng(1).standard_normal((robots, steps, robot.nv))


def there(*arrays: Any) -> Any:
    return [Array(x) for x in arrays]


# what it gives


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", ROBOTS)
def test_the_states_are_those_of_this_machine(name: str, integrator: str) -> None:
    robot = ROBOTS[name]()
    sim = free(robot, integrator)
    q, v = states(robot)
    tau = forces(robot, 100)
    expected = sim.rollout(q, v, tau=tau, every=9)
    arrays = sim.rollout(*there(q, v), tau=Array(tau), every=9)
    for x, y, size in zip(arrays, expected, (robot.nq, robot.nv), strict=True):
        assert x.shape == (3, 12, size)
        np.testing.assert_array_equal(seen(x), y)


def test_numpy_arrays_go_to_the_device_and_come_back() -> None:
    robot = damped()
    sim = free(robot)
    q, v = states(robot)
    tau = forces(robot, 10)
    for given in ({"tau": tau}, {"tau": tau[:1]}, {"steps": 10}):
        expected = sim.rollout(q, v, every=4, **given)
        for x, y in zip(sim.rollout(q, v, every=4, device="cuda", **given), expected, strict=True):
            assert type(x) is np.ndarray
            np.testing.assert_array_equal(x, y)
    for x, y in zip(sim.rollout(q, steps=5, device="cuda:0"), sim.rollout(q, steps=5, device="cpu"), strict=True):
        np.testing.assert_array_equal(x, y)


def test_one_robot_and_one_tau_for_all() -> None:
    robot = damped()
    sim = free(robot)
    q, v = states(robot)
    tau = forces(robot, 10)
    for first, more in ((there(q[0], v[0]), {"tau": Array(tau[:1])}), (there(q[0]), {"steps": 10})):
        single = sim.rollout(*first, **more)
        expected = sim.rollout(q[0], v[0] if len(first) > 1 else None, **({"tau": tau[:1]} if "tau" in more else more))
        for x, y in zip(single, expected, strict=True):
            np.testing.assert_array_equal(seen(x), y)
    for x, y in zip(sim.rollout(*there(q, v), tau=Array(tau[:1])), sim.rollout(q, v, tau=tau[:1]), strict=True):
        np.testing.assert_array_equal(seen(x), y)


def test_forces_are_cut_to_efforts() -> None:
    robot = damped()
    q, v = states(robot)
    most = np.array([0.8, 0.5, np.inf])
    tau = np.array([[[3.0, -4.0, 2.0]] * 20])
    cut = np.clip(tau, -most, most)
    strong, weak = (free(robot, "rk4").rollout(*there(q, v), tau=Array(x)) for x in (tau, cut))
    for x, y in zip(strong, weak, strict=True):
        np.testing.assert_array_equal(seen(x), seen(y))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_single_precision(integrator: str) -> None:
    """Rounding of 50 steps, of numbers near one."""
    robot = example("hyq")
    sim = free(robot, integrator)
    q, v = (x.astype(np.float32) for x in states(robot))
    tau = forces(robot, 50).astype(np.float32)
    expected = sim.rollout(q.astype(float), v.astype(float), tau=tau.astype(float))
    for x, y in zip(sim.rollout(*there(q, v), tau=Array(tau)), expected, strict=True):
        assert seen(x).dtype == np.float32
        np.testing.assert_allclose(seen(x), y, rtol=0, atol=2e-5 * np.abs(y).max())
    for x, y in zip(sim.rollout(q, v, tau=tau, device="cuda"), expected, strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, y, rtol=0, atol=2e-5 * np.abs(y).max())
    mixed = sim.rollout(Array(q), Array(v.astype(float)), steps=2)
    assert {seen(x).dtype for x in mixed} == {np.dtype(np.float64)}


def test_a_robot_that_is_not_finite_is_alone_with_it() -> None:
    robot = fw.build(tree("roots")[0])
    sim = free(robot, "rk4")
    q, v = states(robot, 4)
    tau = forces(robot, 6, 4)
    sound = [seen(x) for x in sim.rollout(*there(q, v), tau=Array(tau))]
    v[1, 0], tau[2, 3, 2] = np.nan, np.inf  # a joint without an effort
    for x, y in zip(sim.rollout(*there(q, v), tau=Array(tau)), sound, strict=True):
        np.testing.assert_array_equal(seen(x)[[0, 3]], y[[0, 3]])
        assert not np.isfinite(seen(x)[1, -1]).all()
        np.testing.assert_array_equal(seen(x)[2, :4], y[2, :4])
        assert not np.isfinite(seen(x)[2, -1]).all()


def test_the_simulation_stays_where_it_is(device: HostDevice) -> None:
    robot = damped()
    sim = free(robot)
    q, v = states(robot)
    sim.step()
    before = sim.q, sim.v, sim.time
    sim.rollout(Array(q), Array(v), steps=7)
    np.testing.assert_array_equal(before[0], sim.q)
    np.testing.assert_array_equal(before[1], sim.v)
    assert before[2] == sim.time
    assert len(device.launches) == 1  # of all steps


def test_few_steps() -> None:
    """None at all, and fewer than there are from one state that is kept to the next."""
    robot = damped()
    q, v = states(robot)
    for steps, every in ((0, 1), (2, 5)):
        for given in ({"steps": steps}, {"tau": Array(forces(robot, steps))}):
            arrays = free(robot).rollout(*there(q, v), every=every, **given)
            for x, y in zip(arrays, (q, v), strict=True):
                np.testing.assert_array_equal(seen(x), y[:, None])
    for x, y in zip(free(robot).rollout(q, v, tau=forces(robot, 0), device="cuda"), (q, v), strict=True):
        np.testing.assert_array_equal(x, y[:, None])


# what is refused


def refused(sim: fw.Simulation, message: str, error: type[Exception] = NotImplementedError, **given: Any) -> None:
    q, v = states(sim.robot)
    with pytest.raises(error, match=message):
        sim.rollout(**{"q": Array(q), "v": Array(v), "steps": 3, **given})


def test_what_acts_beside_joint_forces_is_refused_by_name() -> None:
    limited = cart(lower=-1.0, upper=1.0)
    refused(
        fw.Simulation(limited, 1e-3),
        r"leave out what acts \(Simulation\(..., joints=featherweight.JointOptions\(limits=False\)\)\), or roll out on this",
    )
    touching = fw.Simulation(limited, 1e-3, ground=fw.Plane(), spheres=[fw.ContactSphere("cart", 0.05, (0.0, 0.0, 1.0))])
    refused(touching, r"\(Simulation\(..., shapes=False and no spheres, joints=featherweight.JointOptions\(limits=False\)\)\)")
    refused(
        fw.Simulation(cart(friction=0.1), 1e-3), r"\(Simulation\(..., joints=featherweight.JointOptions\(friction=False\)\)\)"
    )


def test_robots_and_steps_that_devices_do_not_have() -> None:
    refused(free(damped(), "midpoint"), "damped|integrator='midpoint' is not on devices; take 'semi-implicit' or 'rk4'")
    refused(free(fw.build(fw.robots.four_bar())), "is of robots without loops and couplings; roll out on this machine")
    rolled = fw.build(chain(2), execution="rolled")
    refused(free(rolled), "is of robots whose forward_dynamics is traced, and this one's is not")
    swimming = fw.build(dataclasses.replace(chain(2), fluid=Fluid(1000.0)))
    refused(free(swimming), "has no drag, and this robot is in a fluid")


def test_arguments_that_devices_do_not_have() -> None:
    sim = free(damped())
    refused(sim, "takes no control; give joint forces tau", control=Array(np.zeros((1, 3, 1))))
    refused(sim, "takes no external_forces", external_forces=Array(np.zeros((1, 3, 3, 6))))


def test_robots_that_fail_or_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = free(damped())
    monkeypatch.setattr(sim, "_on_failure", "stop")
    refused(sim, "on_failure must be 'raise'")
    monkeypatch.setattr(sim, "_on_failure", "raise")
    monkeypatch.setattr(sim, "_fleet", type("Fleet", (), {"varied": {"friction": np.ones((3, 1))}}))
    refused(sim, r"is of robots alike; call vary\(\) without arguments first")


def test_arrays_of_wrong_shapes_places_and_types() -> None:
    robot = damped()
    sim = free(robot)
    q, v = states(robot)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"q": Array(q[:, :2])}, ValueError, r"q must have shape \(robots, 3\); got \(3, 2\)"),
        ({"v": Array(v[None])}, ValueError, r"v must have shape \(robots, 3\); got \(1, 3, 3\)"),
        ({"v": Array(v[:2])}, ValueError, "q and v must be of as many robots"),
        ({"tau": Array(v)}, ValueError, r"tau of a rollout must have shape \(3 or 1, 3, 3\); got \(3, 3\)"),
        ({"tau": Array(np.zeros((3, 4, 3)))}, ValueError, r"tau of a rollout must have shape \(3 or 1, 3, 3\)"),
        ({"steps": None}, ValueError, "a rollout needs steps="),
        ({"steps": -1}, ValueError, "steps must be at least 0"),
        ({"every": 0}, ValueError, "every must be at least 1"),
        ({"v": v}, TypeError, "rollout: q is on a device and v is not"),
        ({"q": q + 0j, "v": v, "device": "cuda"}, TypeError, "rollout: q must hold real numbers; got dtype complex128"),
        ({"q": Array(q.astype(">f8"))}, TypeError, "rollout: q holds >f8, which devices do not compute with"),
        ({"device": "cuda:1"}, ValueError, "q is on CUDA device 0; got device='cuda:1'"),
        ({"device": "gpu"}, ValueError, 'device must be "cpu", "cuda" or "cuda:N"'),
        ({"q": q * np.nan, "v": v, "device": "cuda"}, ValueError, "q must be finite numbers"),
    ]
    for given, error, message in wrong:
        refused(sim, message, error, **given)


# for devices


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_assembler_takes_the_kernel(integrator: str, tmp_path: Path) -> None:
    assembler = tool("ptxas")
    if assembler is None:
        pytest.skip("ptxas is not on this machine")
    r = repeated_step(free(example("panda"), integrator)._model)
    traces = [Traced(stage.program, bounded=False).trace for stage in r.stages]
    path = tmp_path / "kernel.ptx"
    path.write_bytes(assembly(emit_repetition(r, traces, Type("double", 1), True, NVIDIA), (9, 0)))
    command = [str(assembler), "-v", "-arch=sm_90", str(path), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "0 bytes spill stores, 0 bytes spill loads" in done.stderr + done.stdout
