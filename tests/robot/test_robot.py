"""Tests of the user interface: arguments, results, frames, errors, and pickled robots."""

from __future__ import annotations

import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight import robot as robot_room
from featherweight.model.generators import chain
from featherweight.robot.compiled_member import compiled
from oracles.pinocchio_models import example as peer
from oracles.robots import example, path
from oracles.states import random_states, state

REFERENCES = ("local", "local_world_aligned", "world")


@pytest.fixture
def panda() -> fw.Robot:
    return example("panda")


@pytest.fixture
def hyq() -> fw.Robot:
    return example("hyq")


# properties of a robot


def test_slices_of_joints_cover_the_coordinates_in_order(hyq: fw.Robot) -> None:
    q = np.concatenate([np.arange(hyq.nq)[joint.q_slice] for joint in hyq.joints])
    v = np.concatenate([np.arange(hyq.nv)[joint.v_slice] for joint in hyq.joints])
    np.testing.assert_array_equal(q, np.arange(hyq.nq))
    np.testing.assert_array_equal(v, np.arange(hyq.nv))
    assert hyq.joints[0].name == "root_joint"


def test_every_joint_of_a_tree_is_a_cluster_by_itself(hyq: fw.Robot) -> None:
    assert hyq.clusters == tuple((joint.name,) for joint in hyq.joints)


def test_a_file_is_read_as_it_is_loaded() -> None:
    read = fw.build(fw.read(path("allegro"), mimic="independent"), execution="interpreted")
    assert read.model == example("allegro").model
    with pytest.raises(ValueError, match="mimic must be one of"):
        fw.read(path("allegro"), mimic="never")


def test_mass_is_that_of_the_moving_bodies(hyq: fw.Robot) -> None:
    assert hyq.mass == pytest.approx(sum(body.mass for body in hyq.bodies))
    assert f"{hyq.mass:.3g} kg" in repr(hyq)


def test_every_link_is_a_frame(hyq: fw.Robot) -> None:
    links = {link for body in hyq.bodies for link in body.links}
    assert links <= {frame.name for frame in hyq.frames}


@pytest.mark.parametrize("make", [lambda: example("panda"), lambda: fw.build(fw.robots.four_bar()), lambda: geared()])
def test_every_function_is_listed(make: Callable[[], fw.Robot]) -> None:
    """Check that the list has every public member that is a compiled function, however it is declared."""
    robot = make()
    public = [name for name in dir(type(robot)) if not name.startswith("_")]
    members = [n for n in public if isinstance(getattr(type(robot), n), property | cached_property)]
    assert set(robot.functions) == {n for n in members if isinstance(getattr(robot, n), fw.CompiledFunction)}
    assert {"coriolis_matrix", "centroidal_map", "inverse_dynamics_regressor", "forward_dynamics_hessian"} <= {*robot.functions}


def test_every_compiled_function_of_a_module_is_a_member() -> None:
    modules = [import_module(m.name) for m in pkgutil.walk_packages(robot_room.__path__, f"{robot_room.__name__}.")]
    found = {name: x for module in modules for name, x in vars(module).items() if isinstance(x, compiled)}
    assert len(found) > 20
    assert [name for name, x in found.items() if getattr(fw.Robot, name, None) is not x] == []


def geared() -> fw.Robot:
    """Return a robot with couplings and no loops, whose steps are a function."""
    robot = fw.build(fw.robots.geared_chain(3))
    assert "integrate" in robot.functions
    return robot


def test_large_robots_have_no_second_derivatives_and_say_so() -> None:
    robot = fw.build(chain(90))
    with pytest.raises(ValueError, match=r"inverse_dynamics_second_derivatives is not defined: the first .* of chain_90"):
        _ = robot.inverse_dynamics_second_derivatives
    with pytest.raises(ValueError, match="forward_dynamics_second_derivatives is not defined"):
        robot.forward_dynamics_second_derivatives(*state(robot, 0))


CONSTANT = {"integrate_derivatives", "difference_derivatives"}  # of robots whose joints have one degree of freedom each


def test_functions_are_described_and_counted(panda: fw.Robot) -> None:
    for name, f in panda.functions.items():
        assert getattr(panda, name) is f
        assert f.name == name
        assert f.__doc__
        assert f.signature.count("->") == 1
        assert f.operations.flops > 0 or name in CONSTANT


def test_algorithms_have_the_names_of_the_literature(panda: fw.Robot) -> None:
    found = [panda.inverse_dynamics.algorithm, panda.forward_dynamics.algorithm, panda.mass_matrix.algorithm]
    assert found == ["rnea", "aba", "crba"]


def test_gravity_is_as_given() -> None:
    robot = fw.load(path("double_pendulum"), gravity=(1.0, 2.0, 3.0))
    assert robot.gravity == (1.0, 2.0, 3.0)
    weightless = fw.load(path("double_pendulum"), gravity=(0.0, 0.0, 0.0))
    np.testing.assert_array_equal(weightless.gravity_force(np.array([0.3, 0.4])), np.zeros(2))


# calling


def test_arguments_may_be_named(panda: fw.Robot) -> None:
    q, v, a = state(panda, 0)
    expected = panda.inverse_dynamics(q, v, a)
    np.testing.assert_array_equal(panda.inverse_dynamics(q, v, a=a), expected)
    np.testing.assert_array_equal(panda.inverse_dynamics(a=a, q=q, v=v), expected)
    f = np.ones((len(panda.bodies), 6))
    pushed = panda.inverse_dynamics(q, v, a, external_forces=f)
    np.testing.assert_array_equal(panda.inverse_dynamics(a=a, external_forces=f, v=v, q=q), pushed)
    assert not np.array_equal(pushed, expected)


def test_no_external_forces_are_none(hyq: fw.Robot) -> None:
    x = random_states(hyq, 5)
    zero = np.zeros((len(hyq.bodies), 6))
    np.testing.assert_allclose(hyq.forward_dynamics(*x, external_forces=zero), hyq.forward_dynamics(*x), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(hyq.forward_dynamics(*x, external_forces=None), hyq.forward_dynamics(*x))


def test_external_forces_broadcast(panda: fw.Robot) -> None:
    x = random_states(panda, 5)
    f = np.random.default_rng(0).standard_normal((len(panda.bodies), 6))
    together = panda.forward_dynamics(*x, external_forces=f)
    apart = panda.forward_dynamics(*x, external_forces=np.broadcast_to(f, (5, *f.shape)).copy())
    np.testing.assert_array_equal(together, apart)
    alone = panda.forward_dynamics(x.q[3], x.v[3], x.a[3], external_forces=f)
    np.testing.assert_array_equal(together[3], alone)


def test_lists_and_integers_are_taken(panda: fw.Robot) -> None:
    expected = panda.bias_force(np.zeros(9), np.ones(9))
    np.testing.assert_array_equal(panda.bias_force([0] * 9, [1] * 9), expected)
    np.testing.assert_array_equal(panda.bias_force(np.zeros(9, dtype=int), np.ones(9, dtype=bool)), expected)
    assert panda.bias_force([0] * 9, [1] * 9).dtype == np.float64


def test_results_are_single_if_every_argument_is(panda: fw.Robot) -> None:
    q, v = np.zeros(9, dtype=np.float32), np.ones(9, dtype=np.float32)
    assert panda.bias_force(q, v).dtype == np.float32
    assert panda.bias_force(q, v.astype(np.float64)).dtype == np.float64
    np.testing.assert_allclose(panda.bias_force(q, v), panda.bias_force([0] * 9, [1] * 9), rtol=1e-3, atol=1e-4)


def test_scalars_come_back_as_numbers(panda: fw.Robot) -> None:
    assert np.ndim(panda.kinetic_energy(np.zeros(9), np.ones(9))) == 0
    assert panda.kinetic_energy(np.zeros((2, 9)), np.ones(9)).shape == (2,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r: r.mass_matrix(np.zeros(8)), ValueError, "mass_matrix: q .*9.*8"),
        (lambda r: r.mass_matrix(0.0), ValueError, "q "),
        (lambda r: r.bias_force(np.zeros(9), np.zeros((2, 8))), ValueError, "bias_force: v .*9.*8"),
        (lambda r: r.inverse_dynamics(np.zeros(9), np.zeros(9), np.zeros(7)), ValueError, "a .*9.*7"),
        (lambda r: r.bias_force(np.zeros((2, 9)), np.zeros((3, 9))), ValueError, "broadcast.*q.*v"),
        (lambda r: r.bias_force(np.zeros(9)), TypeError, "q, v"),
        (lambda r: r.bias_force(np.zeros(9), u=np.zeros(9)), TypeError, "q, v.*u"),
        (lambda r: r.mass_matrix(np.zeros(9), np.zeros(9)), TypeError, "q.*2"),
        (lambda r: r.mass_matrix(np.zeros(9), q=np.zeros(9)), TypeError, "q"),
        (lambda r: r.mass_matrix(np.zeros(9, dtype=complex)), TypeError, "q .*complex"),
        (lambda r: r.mass_matrix(["x"] * 9), TypeError, "q .*real"),
        (lambda r: r.mass_matrix(np.zeros(9), out=np.zeros((9, 8))), ValueError, r"out .*\(9, 9\).*\(9, 8\)"),
        (lambda r: r.mass_matrix(np.zeros((2, 9)), out=[0.0]), ValueError, "out .*list"),
        (lambda r: r.mass_matrix(np.zeros((2, 9)), threads=0), ValueError, "threads"),
        (
            lambda r: r.forward_dynamics(*np.zeros((3, 9)), external_forces=np.zeros((4, 6))),
            ValueError,
            "external_forces .*9, 6",
        ),
        (lambda r: r.mass_matrix(np.zeros(9), external_forces=np.zeros((9, 6))), TypeError, "external_forces"),
    ],
)
def test_errors_name_the_argument(panda: fw.Robot, call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(panda)


def test_errors_are_the_same_after_a_first_call(panda: fw.Robot) -> None:
    """Check that the entry for single states, made at the first call, passes invalid calls to the general one."""
    panda.mass_matrix(np.zeros(9))
    with pytest.raises(ValueError, match=r"mass_matrix: q .*9.*8"):
        panda.mass_matrix(np.zeros(8))
    with pytest.raises(TypeError, match="q"):
        panda.mass_matrix()


# frames


@pytest.mark.parametrize("reference", REFERENCES)
def test_one_frame_is_the_first_of_a_sequence(panda: fw.Robot, reference: str) -> None:
    q, v, _ = random_states(panda, 4)
    name = panda.frames[-1].name
    assert panda.frame_jacobian(name, reference).signature == "(9)->(6,9)"
    for function in (panda.frame_jacobian, panda.frame_velocity, panda.frame_bias_acceleration):
        one, several = function(name, reference), function([name], reference)
        args = (q,) if len(one.program.inputs) == 1 else (q, v)
        np.testing.assert_array_equal(one(*args), several(*args)[:, 0])
        np.testing.assert_array_equal(one(*(x[0] for x in args)), several(*args)[0, 0])


def test_placement_of_one_frame(panda: fw.Robot) -> None:
    q = random_states(panda, 4).q
    name = panda.frames[-1].name
    assert panda.frame_placement(name).signature == "(9)->(4,4)"
    np.testing.assert_array_equal(panda.frame_placement(name)(q), panda.frame_placement([name])(q)[:, 0])


def test_functions_of_frames_are_made_once(panda: fw.Robot) -> None:
    names = [frame.name for frame in panda.frames[:2]]
    assert panda.frame_jacobian(names) is panda.frame_jacobian(tuple(names))
    assert panda.frame_jacobian(names) is not panda.frame_jacobian(names, "world")
    assert panda.frame_jacobian(names[:1]) is not panda.frame_jacobian(names[0])


def test_frames_of_the_world_do_not_move(panda: fw.Robot) -> None:
    q, v, _ = random_states(panda, 4)
    name = panda.frames[0].name
    assert panda.frames[0].body is None
    np.testing.assert_array_equal(panda.frame_velocity([name])(q, v), np.zeros((4, 1, 6)))
    np.testing.assert_array_equal(panda.frame_jacobian([name])(q), np.zeros((4, 1, 6, 9)))


def test_unknown_frames_and_references_are_refused(panda: fw.Robot) -> None:
    with pytest.raises(ValueError, match=r"panda.*no frame 'paw'.*panda_link0"):
        panda.frame_placement("paw")
    with pytest.raises(ValueError, match=r"reference.*local_world_aligned.*'body'"):
        panda.frame_jacobian(panda.frames[0].name, "body")


# the configuration space, against Pinocchio's


@pytest.mark.parametrize("name", ["hyq", "tiago"])
def test_integrate_and_difference_are_pinocchios(name: str) -> None:
    import pinocchio as pin

    robot, other = example(name), peer(name)
    q, v, _ = random_states(robot, 10)
    for k in range(10):
        theirs = pin.integrate(other.model, other.q(q[k]), other.v(v[k]))
        np.testing.assert_allclose(other.q(robot.integrate(q[k], v[k])), theirs, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(robot.integrate(q, robot.difference(q, q[::-1]))[:, :3], q[::-1, :3], atol=1e-12)


# pickles

CHILD = """
import pickle, sys
import numpy as np
robot, function, jacobian, args = pickle.load(open(sys.argv[1], "rb"))
results = [robot.forward_dynamics(*args), function(*args), jacobian(args[0])]
pickle.dump(results, open(sys.argv[2], "wb"))
"""


def test_robots_and_functions_travel_to_other_processes(hyq: fw.Robot, tmp_path: Path) -> None:
    args = tuple(random_states(hyq, 4))
    functions = hyq.forward_dynamics, hyq.frame_jacobian(["lf_foot", "rh_foot"])
    expected = [hyq.forward_dynamics(*args), functions[0](*args), functions[1](args[0])]
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.write_bytes(pickle.dumps((hyq, *functions, args)))
    subprocess.run([sys.executable, "-c", CHILD, str(sent), str(received)], check=True)
    for x, y in zip(pickle.loads(received.read_bytes()), expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_used_functions_pickle_too(panda: fw.Robot) -> None:
    q = state(panda, 0).q
    expected = panda.mass_matrix(q)
    again = pickle.loads(pickle.dumps(panda.mass_matrix))
    np.testing.assert_array_equal(again(q), expected)
    assert repr(again) == repr(panda.mass_matrix)


def test_functions_may_outlive_their_robot() -> None:
    f = fw.load(path("double_pendulum")).mass_matrix
    assert f(np.zeros(2)).shape == (2, 2)


def test_a_fresh_robot_gives_the_same_bits(panda: fw.Robot) -> None:
    x = state(panda, 1)
    fresh = fw.load(path("panda"), mimic="independent")
    np.testing.assert_array_equal(fresh.inverse_dynamics(*x), panda.inverse_dynamics(*x))


FLAT = """<robot name="r"><link name="base"/><link name="plate"><inertial><mass value="1"/>
  <inertia ixx="0.01" iyy="0.01" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="plate"/></joint></robot>"""


def test_files_with_inertias_that_no_body_has_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "plate.urdf"
    path.write_text(FLAT.format(izz="0.03"))
    with pytest.warns(fw.ModelWarning, match=r"plate\.urdf: physically impossible inertias.*: 'plate' by 50 %") as caught:
        fw.load(path)
    assert len(caught) == 1 and caught[0].filename == __file__
    path.write_text(FLAT.format(izz="0.0201"))  # three digits, rounded
    fw.load(path)


def test_everything_is_imported_that_is_installed() -> None:
    shown = "print(Simulation.__name__, 'Window' in dir())"
    program = f"import sys\nsys.modules['viser'] = None\nfrom featherweight import *\n{shown}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Simulation", "False"]
