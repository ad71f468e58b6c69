"""Tests of rollouts on a device, emulated by this machine: states equal those without a device bitwise, with contacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from engine.backends.cuda import host_device
from engine.backends.cuda.host_device import Array, HostDevice, needs_fma, seen
from engine.backends.cuda.ptx_text import assert_rounded_as_here
from featherweight.engine.backends.cuda.code import assembly
from featherweight.engine.backends.cuda.device_array import DeviceArray
from featherweight.engine.backends.cuda.device_loop import DeviceLoop
from featherweight.model.generators import chain
from featherweight.simulation import fleet
from simulation.made import made
from simulation.scenes import HINGE, NOTHING, SLIDE, X, Y, Z, cart, corners, free_bodies, solid_ball, solid_box

pytestmark = [needs_fma, pytest.mark.filterwarnings("ignore:.*bodies overlap at the start")]

SIDES = (0.4, 0.3, 0.2)


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    return host_device.install(monkeypatch)


def box(**more: Any) -> fw.Simulation:
    """Return a box above the ground."""
    robot = free_bodies(solid_box(2.0, SIDES))
    return fw.Simulation(robot, 2e-3, ground=fw.Plane(), spheres=corners("body0", SIDES), **more)


def arm(integrator: str = "semi-implicit") -> fw.Simulation:
    """Return hinges and a rail with damping, springs, limits, dry friction and low efforts; the last link hits the ground."""
    passive: list[dict[str, Any]] = [
        {"damping": 0.3, "effort": 0.8, "lower": -0.2, "upper": 0.3},
        {"stiffness": 30.0, "rest": 0.2, "effort": 0.5},
        {"damping": 0.1, "stiffness": 5.0, "dry_friction": 0.05},
    ]
    bodies = [fw.Body(f"body{k}", solid_ball(1.0 + k, 0.2)) for k in range(3)]
    joints = [
        fw.Joint(f"joint{k}", kind, f"body{k - 1}" if k else "world", f"body{k}", axis=axis, placement=placed, **more)
        for k, (kind, axis, more) in enumerate(zip((HINGE, SLIDE, HINGE), (Y, X, Z), passive, strict=True))
        for placed in [fw.Pose(p=(0.1, 0.2, 0.3 * k))]
    ]
    robot = fw.build(fw.describe(bodies, joints))
    return fw.Simulation(
        robot, 2e-3, integrator, ground=fw.Plane(point=(0.0, 0.0, 0.6)), spheres=[fw.ContactSphere("body2", 0.1)]
    )


def bars() -> fw.Simulation:
    """Return a loop of bars."""
    return fw.Simulation(fw.build(fw.robots.four_bar()), 2e-3)


SIMULATIONS: dict[str, Callable[[], fw.Simulation]] = {
    "box": box,
    "arm": arm,
    "rk4": lambda: arm("rk4"),
    "midpoint": lambda: arm("midpoint"),
    "loop": bars,
}


def states(sim: fw.Simulation, robots: int = 3) -> tuple[Any, Any]:
    """Return moving states near the ground."""
    rng = np.random.default_rng(0)
    q = np.tile(sim.robot.start(), (robots, 1))
    if sim.robot.nq == 7:
        q[:, 2] = 0.12 + 0.01 * np.arange(robots)
    if sim.robot.closed:
        q = sim.robot.random_configuration(rng=rng, size=robots)
    return q, 0.5 * rng.standard_normal((robots, sim.robot.nv))


def forces(sim: fw.Simulation, steps: int, robots: int = 3) -> Any:
    return np.random.default_rng(1).standard_normal((robots, steps, sim.robot.nv))


def there(*arrays: Any) -> Any:
    return [Array(x) for x in arrays]


def assert_alike(sim: fw.Simulation, q: Any, v: Any, **named: Any) -> None:
    """Check that rollouts here, there with NumPy arrays, and there with arrays of the device are bitwise equal."""
    expected = sim.rollout(q, v, **named)
    arrays: Any = {name: Array(x) if isinstance(x, np.ndarray) else x for name, x in named.items()}
    results: Any = sim.rollout(q, v, device="cuda", **named), sim.rollout(*there(q, v), **arrays), expected
    for x, y, z in zip(*results, strict=True):
        assert type(x) is np.ndarray and type(y) is DeviceArray and x.dtype == y.dtype == np.float64
        np.testing.assert_array_equal(x, z)
        np.testing.assert_array_equal(seen(y), z)


# results


@pytest.mark.parametrize("name", SIMULATIONS)
def test_the_states_are_those_of_this_machine(name: str) -> None:
    sim = SIMULATIONS[name]()
    q, v = states(sim)
    tau = forces(sim, 100)
    assert_alike(sim, q, v, tau=tau, every=9)
    sim.reset(q, v)
    for k in range(100):
        sim.step(tau[:, k])
    if name == "box":
        assert set(sim.contacts_of_many().robot) == {0, 1, 2}
    elif name != "loop":
        assert sim.limit_forces.any()


LYING = """<mujoco><option timestep="0.004" cone="{cone}"/><worldbody><geom type="plane" size="0 0 1"/>
<body pos="0 0 .13"><freejoint/><geom type="box" size=".2 .15 .1" mass="2"/>
<body pos=".2 0 0"><joint axis="0 1 0" range="-5 5"/><geom type="capsule" size=".05" fromto="0 0 0 .3 0 0" mass=".5"/></body>
</body></worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_the_law_of_an_mjcf_file(cone: str) -> None:
    sim = fw.Simulation(fw.load(LYING.format(cone=cone)))
    q, v = np.tile(sim.q, (3, 1)), 0.5 * np.random.default_rng(0).standard_normal((3, sim.robot.nv))
    assert_alike(sim, q, v, steps=80, every=8)
    sim.reset(q, v)
    sim.step(steps=80)
    assert set(sim.contacts_of_many().robot) == {0, 1, 2} and sim.limit_forces.any()


def test_inputs_of_all_kinds() -> None:
    """Check forces on bodies, one row for all robots, single precision, rows with gaps in memory, and no input."""
    sim = box()
    q, v = states(sim)
    pushes = np.random.default_rng(2).standard_normal((3, 20, len(sim.robot.bodies), 6))
    wide = np.concatenate([q, q], axis=1)[:, :7]
    for given in (
        {"external_forces": pushes}, {"external_forces": pushes[:1], "tau": forces(sim, 20)}, {"tau": forces(sim, 20)[:1]},
        {"tau": forces(sim, 20).astype(np.float32)}, {"tau": forces(sim, 20)[:, ::-1]}, {"steps": 20},
    ):  # fmt: skip
        assert_alike(sim, wide, v, every=5, **given)
    for steps, every in ((0, 1), (2, 5)):
        assert_alike(sim, q, v, steps=steps, every=every)
    single = sim.rollout(Array(q[0]), steps=5)
    for x, y in zip(single, sim.rollout(q[0], steps=5), strict=True):
        np.testing.assert_array_equal(seen(x), y)


def test_controls_of_actuators() -> None:
    description = fw.describe(
        [fw.Body("cart", solid_ball(1.0, 0.1))], [fw.Joint("rail", SLIDE, "world", "cart", axis=X, lower=-0.1, upper=0.1)],
        actuators=[fw.Actuator("motor", "rail", gear=2.0)],
    )  # fmt: skip
    sim = fw.Simulation(fw.build(description), 1e-3)
    control = np.sin(np.arange(300.0))[None, :, None] + np.ones((2, 1, 1))
    assert_alike(sim, np.zeros((2, 1)), np.zeros((2, 1)), control=control, every=50)


def test_robots_that_differ() -> None:
    sim = box()
    q, v = states(sim)
    sim.reset(q, v)
    sim.vary(friction=np.array([[0.1], [0.5], [1.0]]))
    assert_alike(sim, q, v, steps=60)
    assert len({x.tobytes() for x in sim.rollout(q, v, steps=60)[0][:, -1]}) == 3


def test_memory_and_contacts_grow_as_needed(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that robots take several launches if memory is short, and that a launch restarts if contacts need more room."""
    sim = box()
    q, v = states(sim, 5)
    expected = sim.rollout(q, v, steps=60)
    with made(DeviceLoop) as loops:
        sim.rollout(q, v, steps=1, device="cuda")
    own = loops[0].own_bytes
    device.free = 4 * own
    device.launches.clear()
    there = sim.rollout(q, v, steps=60, device="cuda")
    assert len(device.launches) == 3
    device.free = 200 * own
    monkeypatch.setattr(fleet, "CAPACITY", 1)
    device.launches.clear()
    again = box().rollout(q, v, steps=60, device="cuda")
    assert len(device.launches) > 1 and not device.memory
    for x, y, z in zip(there, again, expected, strict=True):
        np.testing.assert_array_equal(x, z)
        np.testing.assert_array_equal(y, z)


def test_a_robot_that_fails_is_named_as_on_this_machine() -> None:
    sim = box()
    q, v = states(sim)
    tau = np.zeros((3, 30, 6))
    tau[1, 12, 0], tau[2, 20, 0] = np.inf, np.inf
    with pytest.raises(fw.SimulationError) as here:
        sim.rollout(q, v, tau=tau)
    for call in (lambda: sim.rollout(q, v, tau=tau, device="cuda"), lambda: sim.rollout(*there(q, v), tau=Array(tau))):
        with pytest.raises(fw.SimulationError) as failed:
            call()
        assert str(failed.value) == str(here.value)
        assert (failed.value.robot, failed.value.time) == (here.value.robot, here.value.time)
    assert "in robot 1 of 3" in str(here.value)


def test_the_simulation_stays_where_it_is(device: HostDevice) -> None:
    sim = box()
    q, v = states(sim)
    sim.step()
    before = sim.q, sim.v, sim.time
    sim.rollout(Array(q), Array(v), steps=7)
    np.testing.assert_array_equal(before[0], sim.q)
    np.testing.assert_array_equal(before[1], sim.v)
    assert before[2] == sim.time
    assert len(device.launches) == 1  # a launch for all steps


# refusals


def refused(sim: fw.Simulation, message: str, error: type[Exception] = NotImplementedError, **given: Any) -> None:
    q, v = states(sim)
    with pytest.raises(error, match=message):
        sim.rollout(**{"q": Array(q), "v": Array(v), "steps": 3, **given})


def test_robots_that_devices_do_not_have() -> None:
    rolled = fw.Simulation(fw.build(chain(2), execution="rolled"), **NOTHING)
    refused(rolled, "whose forward_dynamics is traced, which this one's is not; roll out on this machine")
    sim = fw.Simulation(cart(), on_failure="stop")
    refused(sim, "supports only on_failure='raise'")


def test_arrays_of_wrong_shapes_places_and_types() -> None:
    sim = arm()
    q, v = states(sim)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"q": Array(q[:, :2])}, ValueError, r"q must have shape \(robots, 3\); got \(3, 2\)"),
        ({"v": Array(v[None])}, ValueError, r"v must have shape \(robots, 3\); got \(1, 3, 3\)"),
        ({"v": Array(v[:2])}, ValueError, "q and v must have the same number of robots"),
        ({"tau": Array(v)}, ValueError, r"tau of a rollout must have shape \(3 or 1, 3, 3\); got \(3, 3\)"),
        ({"tau": Array(np.zeros((3, 4, 3)))}, ValueError, r"tau of a rollout must have shape \(3 or 1, 3, 3\)"),
        ({"steps": None}, ValueError, "a rollout needs steps="),
        ({"steps": -1}, ValueError, "steps must be at least 0"),
        ({"every": 0}, ValueError, "every must be at least 1"),
        ({"v": v}, TypeError, "rollout: q is on a device and v is not"),
        ({"q": q + 0j, "v": v, "device": "cuda"}, ValueError, "q must be an array of real numbers"),
        ({"q": Array(q.astype(">f8"))}, TypeError, "rollout: q has dtype >f8, which devices do not support"),
        ({"device": "cuda:1"}, ValueError, "q is on CUDA device 0; got device='cuda:1'"),
        ({"device": "gpu"}, ValueError, 'device must be "cpu", "cuda" or "cuda:N"'),
        ({"q": q * np.nan, "v": v, "device": "cuda"}, ValueError, "q must be finite numbers"),
    ]
    for given, error, message in wrong:
        refused(sim, message, error, **given)


# for devices


def test_rounding_of_a_whole_step_is_that_of_this_machine() -> None:
    """Check the rounding of a step; `benchmarks/gpu/step_kernels.py` runs NVIDIA's assembler on it, which takes a minute."""
    sim = box()
    with made(DeviceLoop) as loops:
        sim.rollout(*states(sim), steps=1, device="cuda")
    text = assembly(loops[0].module(), (9, 0), loops=True).decode()
    assert_rounded_as_here(text, 5000)
