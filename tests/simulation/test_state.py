"""Tests of states as values: the future of a state is the same to the bit, wherever it goes on."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

import featherweight as fw
from featherweight.array_types import Array
from simulation.scenes import boxes, pendulum
from simulation.test_plain_python import INTEGRATED, scene, standing
from simulation.test_sensor_history import text as sampled_sensors

STEPS, MORE = 12, 10
FILTER = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="h" axis="0 1 0"/>
  <geom type="capsule" size=".02" fromto="0 0 0 0.1 0 -.3"/></body></worldbody><actuator>
  <general joint="h" dyntype="filter" dynprm="0.5" gainprm="2"/></actuator></mujoco>"""


def moved(sim: fw.Simulation, inputs: dict[str, Array], begin: int, end: int) -> fw.State:
    """Take steps with the inputs (robots, steps, ...) of steps `begin` to `end`; return the state."""
    single = sim.q.ndim == 1
    for k in range(begin, end):
        now: dict[str, Any] = {name: x[0, k] if single else x[:, k] for name, x in inputs.items()}
        sim.step(**now)
    return sim.state


@pytest.mark.parametrize(("name", "integrator"), INTEGRATED)
def test_a_state_goes_on_to_the_same_bits(name: str, integrator: str) -> None:
    """Check the same simulation, copies, another simulation, rollouts and pure steps, alone and in a fleet."""
    warnings.simplefilter("ignore", fw.ModelWarning)  # some begin in the ground
    make, given = scene(name)
    for robots in (1, 3):
        sim = make(integrator, robots)
        inputs = {key: np.asarray(x) for key, x in given(sim, STEPS + MORE).items() if key != "steps"}
        inputs = {key: np.broadcast_to(x, (robots, *x.shape[1:])) for key, x in inputs.items()}
        saved = moved(sim, inputs, 0, STEPS)
        end = moved(sim, inputs, STEPS, STEPS + MORE)
        assert saved != end
        rest: dict[str, Any] = {key: x[:, STEPS:] for key, x in inputs.items()} or {"steps": MORE}
        assert sim.rollout(saved, **rest).final == end
        assert sim.state == end  # a rollout changes nothing
        sim.state = saved
        assert sim.state == saved
        duplicates = [sim, copy.copy(sim), pickle.loads(pickle.dumps(sim))]
        for duplicate in duplicates:
            assert moved(duplicate, inputs, STEPS, STEPS + MORE) == end
        other = make(integrator, robots)
        other.state = pickle.loads(pickle.dumps(saved))
        assert moved(other, inputs, STEPS, STEPS + MORE) == end
        state = saved
        for k in range(STEPS, STEPS + MORE):
            now: dict[str, Any] = {key: x[:, k] for key, x in inputs.items()}
            state = sim.advance(state, **now)
        assert state == end
        if robots > 1:  # a robot of a fleet goes on alone
            alone = make(integrator, 1)
            alone.state = saved[1:2]
            one = {key: x[1:2] for key, x in inputs.items()}
            assert moved(alone, one, STEPS, STEPS + MORE) == end[1:2]


def test_states_of_many_robots_are_indexed_and_assigned() -> None:
    sim = boxes([0.3, 0.05, 0.1])
    sim.run(0.2)
    many = sim.state
    assert len(many) == 3 and many.q.shape == (3, 7) and many[2].q.shape == (7,)
    one = many[1]
    mixed = one.repeated(4)
    mixed[0], mixed[[1, 2]] = many[0], many[2]
    np.testing.assert_array_equal(mixed.q, many.q[[0, 2, 2, 1]])
    for k, i in enumerate((0, 2, 2, 1)):
        assert mixed[k] == many[i]
    assert mixed[np.array([True, False, False, True])] == many[[0, 1]]
    with pytest.raises(ValueError, match="2 robots need 1 state or 2; got 3"):
        mixed[:2] = many
    with pytest.raises(ValueError, match="read-only"):
        many.q[0] = 0.0
    with pytest.raises(ValueError, match="must be that of one robot; it has 3"):
        many.repeated(2)
    with pytest.raises(IndexError):
        many[3]
    sim.state = mixed  # a simulation takes the number of robots of its state
    assert sim.q.shape == (4, 7) and sim.failed.shape == (4,)
    sim.run(0.1)
    for k, i in enumerate((0, 2, 2, 1)):
        alone = boxes([0.3])
        alone.state = many[i]
        assert alone.q.shape == (7,)
        alone.run(0.1)
        assert alone.state == sim.state[k]


def test_robots_of_a_fleet_keep_times_of_their_own() -> None:
    """Check robots that have taken different numbers of steps: each goes on as it would alone."""
    sim = boxes([0.3])
    early = sim.state
    sim.run(0.1)
    many = sim.state.repeated(2)
    many[1] = early
    fleet = boxes([0.3, 0.3])
    fleet.state = many
    fleet.run(0.05)
    for i, begin in enumerate((sim.state, early)):
        assert fleet.state[i] == sim.advance(begin, steps=round(0.05 / sim.dt))
    np.testing.assert_allclose(fleet.state.times, [0.15, 0.05], atol=1e-12)
    assert [fleet.state[i].time for i in range(2)] == fleet.state.times.tolist()
    tau = np.zeros((2, fleet.robot.nv))
    tau[1] = np.nan
    with pytest.raises(fw.SimulationError, match="in robot 1 of 2") as caught:
        fleet.step(tau)
    assert caught.value.time == fleet.state.times[1]


def test_contacts_and_their_room_come_along() -> None:
    """Check a state with more room for contacts than a new simulation has."""
    sim, other = boxes([0.1]), boxes([0.1])
    sim.run(0.05)
    assert len(sim.contacts().points) > 0
    saved = sim.state
    other.state = saved
    for a, b in zip(sim.contacts(), other.contacts(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert other.time == sim.time and other.steps == sim.steps
    np.testing.assert_array_equal(other.contact_forces, sim.contact_forces)
    roomy = saved.with_capacity(4 * saved.layout.capacity)
    assert roomy == saved
    other.state = roomy
    other.run(0.05)
    sim.run(0.05)
    assert other.state == sim.state


def test_activations_belong_to_the_state() -> None:
    """Check MuJoCo's motion from an activation; rollouts from q and v take those of the simulation."""
    robot, m = fw.load(FILTER), mujoco.MjModel.from_xml_string(FILTER)
    sim, data = fw.Simulation(robot), mujoco.MjData(m)
    sim.activation, data.act[:] = [0.8], 0.8
    begin = sim.state
    for _ in range(20):
        mujoco.mj_step(m, data)
    assert begin.activation == 0.8
    many = fw.Simulation(robot, q=np.zeros((3, 1)))
    many.activation = np.full((3, 1), 0.8)
    control = np.zeros((1, 20, 1))
    found = [
        many.rollout(np.zeros((3, 1)), np.zeros((3, 1)), control=control),
        sim.rollout(np.zeros((5, 1)), control=control),
        sim.rollout(begin.repeated(2), control=control),
    ]
    for q, _ in found:
        np.testing.assert_allclose(q[:, -1], data.qpos[0], rtol=1e-6)
    assert abs(data.qpos[0]) > 1.0
    with pytest.raises(ValueError, match="activations are those of 3"):
        many.rollout(np.zeros((2, 1)), control=control)


def test_what_sensors_remember_belongs_to_the_state() -> None:
    sim = fw.Simulation(fw.load(sampled_sensors()))
    for k in range(20):
        sim.step(control=[0.1 * k])
    saved, readings = sim.state, np.array(sim.sensors())
    sim.step(control=[5.0])
    assert saved != sim.state and (np.array(sim.sensors()) != readings).any()
    later, after = sim.state, np.array(sim.sensors())
    sim.state = saved
    np.testing.assert_array_equal(sim.sensors(), readings)
    sim.step(control=[5.0])
    assert sim.state == later
    np.testing.assert_array_equal(sim.sensors(), after)
    other = fw.Simulation(fw.load(sampled_sensors()), q=np.zeros((3, 2)))
    other.state = saved.repeated(3)
    other.step(control=[5.0])
    np.testing.assert_array_equal(other.sensors(), np.tile(after, (3, 1)))


def test_rollouts_store_samples_of_sensors() -> None:
    """Check the last state of a rollout, whose sensors remember the same as after steps, and the states in between."""
    sim = fw.Simulation(fw.load(sampled_sensors()), q=np.zeros((2, 2)), on_failure="stop")
    sim.run(0.04, control=[0.5])
    controls = np.random.default_rng(0).normal(size=(2, 9, 1))
    tau = np.zeros((1, 9, 2))
    tau[0, 7] = np.nan
    given: list[dict[str, Any]] = [{"control": controls}, {"control": controls[:1]}, {"control": controls, "tau": tau}]
    for inputs in given:
        found, q = sim.rollout(sim.state, every=2, **inputs), [sim.q]
        twin = copy.copy(sim)
        twin.state = sim.state
        for k in range(9):
            now: dict[str, Any] = {name: np.broadcast_to(x[:, k], (2, x.shape[2])) for name, x in inputs.items()}
            twin.step(**now)
            q += [twin.q] if k % 2 else []
        assert found.final == twin.state
        np.testing.assert_array_equal(found.q, np.swapaxes(q, 0, 1))
        np.testing.assert_array_equal(found.failed, twin.failed)
        assert found.failed.all() == ("tau" in inputs)


def test_sensors_of_robots_at_different_times_are_those_of_each_alone() -> None:
    """Check delays, periods and clocks in a fleet whose robots have taken different numbers of steps."""
    sim = fw.Simulation(fw.load(sampled_sensors()))
    begins = []
    for steps in (20, 3, 1):
        begins.append(sim.state)
        sim.run(steps * sim.dt, control=[0.5])
    begins.append(sim.state)
    fleet = fw.Simulation(sim.robot, q=np.zeros((4, 2)))
    many = fleet.state
    for i, begin in enumerate(begins):
        many[i] = begin
    fleet.state = many
    for _ in range(13):
        fleet.step(control=[-0.7])
    for i, begin in enumerate(begins):
        sim.state = begin
        sim.step(control=[-0.7], steps=13)
        assert fleet.state[i] == sim.state
        np.testing.assert_array_equal(fleet.sensors()[i], sim.sensors())
    fleet.reset(np.zeros(2), which=[1, 3])
    for i in (1, 3):
        before = fleet.state[i].time
        sim.reset(time=before)
        np.testing.assert_array_equal(fleet.sensors()[i], sim.sensors())
    fleet.time = 5.0
    assert {fleet.state[i].time for i in range(4)} == {5.0}


def test_copies_of_states_share_nothing() -> None:
    sim = fw.Simulation(fw.load(sampled_sensors()))
    other = sim.state
    sim.run(0.1, control=[0.5])
    state, kept = sim.state, pickle.loads(pickle.dumps(sim.state))
    copies = [copy.copy(state), copy.deepcopy(state), state[0], state[:], state.with_capacity(2 * state.layout.capacity)]
    for each in copies:
        assert each == state
        each[0] = other
        assert each == other != state
    assert state == kept


def test_a_state_of_no_robots_is_refused() -> None:
    """Check that it serves to replace the states of no robots, and that a simulation does not take it."""
    sim = boxes([0.3, 0.2])
    before, none = sim.state, np.zeros(2, bool)
    state = sim.state
    state[none] = state[none]
    assert state == before and len(state[none]) == 0
    for refused in (lambda: setattr(sim, "state", state[none]), lambda: sim.advance(state[none])):
        with pytest.raises(ValueError, match="no robots"):
            refused()
    assert sim.state == before
    sim.step()


@pytest.mark.parametrize("robots", [2, 3])
def test_robots_that_fail_in_a_rollout_restart_where_the_simulation_does(robots: int) -> None:
    """Check the start of the last reset or, for another number of robots, that of the rollout, whatever ran before."""
    sim, tau = boxes([0.3, 0.4], on_failure="reset"), np.zeros((robots, 6, 6))
    tau[1, 2, 0] = np.nan
    for x in (0.0, 1.0, 2.0):
        q = sim.robot.neutral()
        q[:3] = x, 0.0, 0.5
        sim.reset(np.tile(q, (2, 1)))
        sim.step(steps=5)
        begin = sim.state[[0, 1, 1][:robots]]
        found = sim.rollout(begin, tau=tau)
        assert found.failed.tolist() == [False, True, False][:robots]
        np.testing.assert_array_equal(found.q[1, 3], q if robots == 2 else begin.q[1])
        if robots == 2:
            for k in range(6):
                sim.step(tau[:, k])
            assert found.final == sim.state


@pytest.mark.parametrize("change", ["state", "reset"])
def test_a_controller_cannot_change_the_number_of_robots(change: str) -> None:
    sim = boxes([0.3])
    many = sim.state.repeated(2)
    sim.state = sim.state[0]

    def controller(time: float, q: Array, v: Array) -> Array:
        if sim.steps == 4:
            sim.reset(many.q) if change == "reset" else setattr(sim, "state", many)
        return np.zeros(6)

    with pytest.raises(ValueError, match="the controller changed the number of robots"):
        sim.run(0.01, controller)
    sim.state = many
    sim.run(0.01)
    assert len(sim.state) == 2


def test_a_state_of_another_version_is_refused() -> None:
    sim = boxes([0.3])
    other = pickle.loads(pickle.dumps(sim.state))
    other.layout.kind = other.layout.kind[:-1]
    with pytest.raises(ValueError, match="another version of Featherweight"):
        sim.state = other
    assert sim.state != other


WAYS = [(how, law) for how in ("semi-implicit", "rk4", "midpoint") for law in ("rigid", "compliant", "file")]


def test_a_state_goes_on_with_any_integrator_and_contact_law() -> None:
    """Check that a robot on the ground moves as from its configuration and velocity, to the solver's tolerance in two steps."""
    robot = fw.load(gymnasium.__path__[0] + "/envs/mujoco/assets/hopper.xml")
    ways = [fw.Simulation(robot, 0.002, how, contact=law) for how, law in WAYS]
    for sim in ways:
        sim.step(control=[0.3, -0.4, 0.5], steps=500)
        assert len(sim.contacts().points) > 0
    for begin in [sim.state for sim in ways]:
        for sim in ways:
            found, anew = sim.rollout(begin, steps=2), sim.rollout(begin.q, begin.v, steps=2)
            np.testing.assert_allclose(found.v, anew.v, atol=10.0 * fw.ContactOptions().tolerance * abs(found.v).max())


def test_a_state_of_another_scene_is_refused() -> None:
    one, two = boxes([0.3]), fw.Simulation(fw.load(FILTER))
    with pytest.raises(ValueError, match="another robot or scene: robot: 'MuJoCo Model' instead of 'mechanism'"):
        one.state = two.state
    with pytest.raises(TypeError, match=r"featherweight\.State"):
        one.state = one.q  # type: ignore[assignment]
    with pytest.raises(ValueError, match="omit v and device"):
        one.rollout(one.state, one.v, 3)


ROLLING = """<mujoco><option timestep="{step}"/><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .101"><freejoint/>
  <geom type="sphere" size=".1" condim="{condim}" friction="1 .01 .01"/></body></worldbody></mujoco>"""
DELAYED = """<mujoco><worldbody><body><joint name="h" axis="0 1 0"/><geom size=".1"/></body></worldbody>
  <sensor><jointpos joint="h" {sampling}/></sensor></mujoco>"""


@pytest.mark.parametrize(
    ("own", "other", "what"),
    [
        (ROLLING.format(step=0.001, condim=3), ROLLING.format(step=0.002, condim=3), r"length of a step \[s\]: 0.002"),
        (ROLLING.format(step=0.001, condim=3), ROLLING.format(step=0.001, condim=6), "friction against spinning: True"),
        (DELAYED.format(sampling='delay="0.01" nsample="20"'), DELAYED.format(sampling=""), r"sampled sensors: \(\)"),
    ],
)
def test_a_refused_state_names_the_difference_and_changes_nothing(own: str, other: str, what: str) -> None:
    sim, stranger = fw.Simulation(fw.load(own)), fw.Simulation(fw.load(other))
    sim.run(0.02)
    stranger.run(0.02)
    before = sim.state
    for refused in (lambda: setattr(sim, "state", stranger.state), lambda: sim.rollout(stranger.state, steps=2)):
        with pytest.raises(ValueError, match=what):
            refused()
        assert sim.state == before
    sim.step()
    assert sim.state != before


def test_robots_that_vary_keep_their_number() -> None:
    """Check that a refused number of robots leaves the simulation as it was."""
    one, three = boxes([0.3]), boxes([0.3, 0.2, 0.1])
    three.vary(friction=np.array([0.5, 0.6, 0.7]))
    before = three.state
    with pytest.raises(ValueError, match="vary"):
        three.state = one.state
    assert three.state == before and len(three.state) == 3
    three.step()
    assert three.state.q.shape == (3, 7)


def test_robots_that_vary_alike_may_be_any_number() -> None:
    one, three = boxes([0.3]), boxes([0.3, 0.3, 0.3])
    one.vary(friction=0.5)
    three.vary(friction=0.5)
    q, _ = three.rollout(three.q, 0.5 + three.v, steps=50)
    np.testing.assert_array_equal(one.rollout(three.q, 0.5 + three.v, steps=50).q, q)
    slopes = one.parameter_derivatives("friction")["friction"]
    one.reset(three.q)
    np.testing.assert_array_equal(one.parameter_derivatives("friction")["friction"], np.tile(slopes, (3, 1, 1)))


SLIDERS = """<robot name="sliders"><link name="base"><collision><geometry><sphere radius=".1"/></geometry></collision></link>
  <link name="a"><inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius=".1"/></geometry></collision></link>
  <joint name="x" type="prismatic"><parent link="base"/><child link="a"/><axis xyz="1 0 0"/>
    <limit lower="-2" upper="2" effort="99" velocity="99"/></joint>
  <joint name="z" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/><origin xyz="0 0 .5"/>
    <limit lower="-2" upper="2" effort="99" velocity="99"/></joint></robot>"""


def test_pairs_excluded_at_the_start_belong_to_the_state(tmp_path: Path) -> None:
    """Check a start at which shapes of a URDF overlap: they never touch, wherever its state continues."""
    path = tmp_path / "sliders.urdf"
    path.write_text(SLIDERS)
    robot = fw.load(path)
    apart, overlapping = np.zeros(2), np.array([0.05, -0.4])
    sim, other = (fw.Simulation(robot, shapes=True, q=apart) for _ in range(2))
    touching = sim.rollout(sim.state, steps=300)
    sim.reset(overlapping)
    assert touching.final is not None
    begin = sim.state
    found = [sim.rollout(begin, steps=300).final, sim.advance(begin, steps=300)]
    other.state = pickle.loads(pickle.dumps(begin))
    for one in (sim, other):
        one.step(steps=300)
        found.append(one.state)
    assert all(x == found[0] for x in found)
    assert found[0] is not None and found[0].q[0] == 0.05  # no contact pushed it aside
    many = begin.repeated(2)
    with pytest.raises(ValueError, match="other pairs of shapes"):
        many[0] = touching.final
    other.state = touching.final[0]  # pairs touch again
    assert other.state == touching.final[0]


def test_rollouts_write_into_given_arrays() -> None:
    sim = boxes([0.3, 0.2])
    expected = sim.rollout(sim.state, steps=6, every=2)
    out = np.full((2, 4, 7), np.nan), np.full((2, 4, 6), np.nan)
    q, v = sim.rollout(sim.state, steps=6, every=2, out=out)
    assert q is out[0] and v is out[1]
    for x, y in zip(out, expected, strict=True):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match=r"out must be a pair .* shapes \(2, 7, 7\) and \(2, 7, 6\)"):
        sim.rollout(sim.state, steps=6, out=out)


# --- inputs, which belong to no state


def given_inputs(sim: fw.Simulation, kind: str) -> dict[str, Any]:
    rng, robot = np.random.default_rng(3), sim.robot
    tau, control = rng.normal(size=robot.nv), rng.uniform(-1.0, 1.0, len(robot.controls))
    external = rng.normal(size=(len(robot.bodies), 6))
    every: dict[str, dict[str, Any]] = {
        "nothing": {},
        "control": {"control": control},
        "tau": {"tau": tau},
        "lists": {"control": control.tolist(), "tau": tau.tolist()},
        "tuples": {"control": tuple(control.tolist()), "tau": tuple(tau.tolist()), "external_forces": (*map(tuple, external),)},
        "external": {"external_forces": external},
        "all": {"control": control, "tau": tau, "external_forces": external.tolist()},
        "strided": {"control": np.repeat(control, 2)[::2], "external_forces": np.asfortranarray(external)},
        "single": {"tau": tau.astype(np.float32).astype(float)},
    }
    return every[kind]


def test_inputs_alternate_as_in_simulations_of_their_own() -> None:
    """Check that forces of one step do not act in the next, alone and in a fleet, whatever their type."""
    kinds = ("nothing", "external", "control", "all", "tau", "lists", "tuples", "strided", "single", "nothing")
    robot = fw.load(fw.example("panda"))
    for q in (robot.start(), np.tile(robot.start(), (9, 1))):
        sim = fw.Simulation(robot, 0.002, q=q)
        for kind in kinds:
            fresh = fw.Simulation(robot, 0.002, q=q)
            fresh.state = sim.state
            for one in (sim, fresh):
                one.step(**given_inputs(sim, kind))
            assert sim.state == fresh.state
    single = given_inputs(sim, "single")["tau"]
    saved = sim.state
    sim.step(single)
    expected, sim.state = sim.state, saved
    sim.step(single.astype(np.float32))
    assert sim.state == expected


def test_a_fleet_on_any_number_of_threads_goes_on_alike() -> None:
    make, _ = scene("legs")
    ends = []
    saved = None
    for threads in (1, 2):
        sim = fw.Simulation(make("semi-implicit", 1).robot, q=standing(24), ground=True, threads=threads)
        if saved is None:
            sim.run(0.05)
            saved = sim.state
        sim.state = saved
        sim.run(0.1)
        ends.append(sim.state)
    assert ends[0] == ends[1]


def test_a_robot_that_stopped_in_a_long_rollout_advances_from_a_state() -> None:
    sim = fw.Simulation(pendulum(), 1e-3, q=[0.1], on_failure="stop")
    push, state, steps = np.zeros((1, 1500, 1)), sim.state, 3
    push[0, steps] = np.nan
    assert sim.rollout(state, tau=push).failed.all()
    assert sim.advance(state).times == [1e-3]
