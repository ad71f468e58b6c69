"""Controllers that run without Python: programs in C give the bits of Python."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from bridges.export.standalone_cases import CASES, HAND, check, inverse_kinematics, pushed
from bridges.export.standalone_programs import built, emulated, emulated_arm, emulated_microcontroller, records
from featherweight.engine.backends.llvm.jit import host
from featherweight.exporting.elf import Elf
from featherweight.identification import random_parameters
from featherweight.model.generators import from_parents

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


@needs_gcc
@pytest.mark.parametrize("kind", CASES)
def test_a_program_gives_the_bits_of_python(kind: str, tmp_path: Path) -> None:
    case = CASES[kind]()
    fw.export(case.controller, tmp_path, name="leg", files=("static", "object"))
    check(case, [str(built(tmp_path, "leg"))])
    elf = Elf((tmp_path / "leg.o").read_bytes())
    assert not elf.undefined, "calls of libraries, such as malloc"
    assert all(name.startswith("leg_") for name in elf.defined)
    assert not [s.name for s in elf.sections if s.flags & 1 and s.flags & 2 and s.size], "variables outside the workspace"
    assert (tmp_path / "leg.o").stat().st_size < 1 << 20


@needs_gcc
@pytest.mark.parametrize("kind", CASES)
def test_valgrind_finds_no_error(kind: str, tmp_path: Path) -> None:
    """Check a build for processors without AVX-512, which valgrind does not know."""
    if not shutil.which("valgrind") or not host().triple.startswith("x86_64"):
        pytest.skip("needs valgrind, on x86-64")
    case = CASES[kind]()
    fw.export(case.controller, tmp_path, name="leg", target="x86-64-v3")
    command = ["valgrind", "--error-exitcode=9", "--leak-check=full", str(built(tmp_path, "leg", "gcc", "-g"))]
    done = subprocess.run(command, input=records(case.inputs), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"in use at exit: 0 bytes" in done.stderr


@pytest.mark.parametrize("kind", CASES)
def test_aarch64_gives_the_bits_of_this_processor(kind: str, tmp_path: Path) -> None:
    case = CASES[kind]()
    if not host().fma:
        pytest.skip("needs a processor with fma")
    fw.export(case.controller, tmp_path, name="leg", target="cortex-a76")
    check(case, emulated(tmp_path, "leg"))


@pytest.mark.parametrize("kind", ["inverse kinematics", "closed leg"])
def test_32_bit_arm_gives_the_bits_of_this_processor(kind: str, tmp_path: Path) -> None:
    """Check object code, then source compiled by gcc, under Linux."""
    case = CASES[kind]()
    if not host().fma:
        pytest.skip("needs a processor with fma")
    fw.export(case.controller, tmp_path, name="leg", target="cortex-a7", files=("static", "source"))
    check(case, emulated_arm(tmp_path, "leg"))
    check(case, emulated_arm(tmp_path, "leg", "-O2", "-DFW_FMA", "-ffp-contract=off", "-fno-math-errno"))


@pytest.mark.parametrize("kind", CASES)
def test_a_microcontroller_gives_the_bits_of_this_processor(kind: str, tmp_path: Path) -> None:
    """Check a Cortex-M7 with a double-precision unit, without an operating system."""
    case = CASES[kind]()
    if not host().fma:
        pytest.skip("needs a processor with fma")
    fw.export(case.controller, tmp_path, name="leg", target="cortex-m7", files=("static", "object"))
    check(case, emulated_microcontroller(tmp_path, "leg", bool(Elf((tmp_path / "leg.o").read_bytes()).undefined)))


@pytest.mark.parametrize("kind", CASES)
def test_the_same_code_runs_in_python(kind: str) -> None:
    case = CASES[kind]()
    alone, valid = fw.Standalone(case.controller), case.controller.standalone().valid
    for _ in range(2):
        for given, expected in zip(case.inputs, case.results, strict=True):
            for into, x in zip(alone.inputs, given.values(), strict=True):
                into[...] = x
            status = alone.tick()
            assert status in alone.words
            if status in valid:
                for a, b in zip(alone.outputs, expected, strict=True):
                    if b is not None:
                        np.testing.assert_array_equal(a.reshape(-1), np.reshape(b, -1))
        alone.reset()


@pytest.mark.parametrize("part", [0.5, 0.3, 1.5])
def test_ticks_between_knots_give_the_bits_of_python(part: float) -> None:
    robot = fw.build(fw.robots.planar_leg_linkage())
    q, v = robot.random_configuration(rng=3), np.zeros(robot.nv)
    ocp = fw.OptimalControl(robot, dt=0.01, knots=10)
    ocp.add(fw.FrameTask("foot", kind="position", name="tool"), weight=100.0)
    ocp.add(fw.Effort(), weight=1e-2)
    tool = robot.frame_placement("foot")(q)[:3, 3] + [0.02, 0.0, 0.02]
    mpc = fw.Controller(ocp, frequency=100 / part, targets={"tool": tool})
    alone = fw.Standalone(mpc)
    for k in range(12):
        now = 0.01 * part * k
        tau = mpc(now, q, v)
        np.testing.assert_array_equal(alone(now=now, q=q, v=v).tau, tau)
        v = v + 0.01 * part * robot.forward_dynamics(q, v, tau)
        q = robot.integrate(q, 0.01 * part * v)


def test_attempts_keep_the_position_of_a_base() -> None:
    """Check an arm on a cart, whose attempts start from the position in q0 with other joints, as in Python."""
    robot = fw.build(from_parents([-1, 0, 1, 2], rng=3, joint_types=["planar", "revolute", "revolute", "revolute"]))
    ik, rng = fw.InverseKinematics(robot, fw.FrameTask("body3")), np.random.default_rng(0)
    alone, restarts = fw.Standalone(ik.solver(restarts=30)), set()
    for _ in range(20):
        q0, T = robot.random_configuration(rng=rng), robot.frame_placement("body3")(robot.random_configuration(rng=rng))
        found, result = ik.solve(T, q0, rng=0, restarts=30), alone(q0=q0, target_body3=T)
        np.testing.assert_array_equal(result.q, found.q)
        assert (result.status == 0) == found.converged
        assert (result.iterations, result.restarts) == (found.iterations, found.restarts)
        restarts.add(found.restarts)
    assert len(restarts) > 2


def test_parameters_that_vary_leave_python() -> None:
    """Check a chain that falls on a plane, with inertias, armature, damping and friction of its own."""
    robot = fw.build(from_parents([-1, 0, 1], rng=3, joint_types=["floating", "revolute", "revolute"]))
    spheres = [fw.ContactSphere(f"body{k}", 0.1) for k in range(3)]
    ground = fw.Plane((0.0, 0.0, -3.0))
    sim = fw.Simulation(robot, 0.002, spheres=spheres, ground=ground, shapes=False)
    plain, touched = copy.copy(sim), 0
    sim.vary(parameters=random_parameters(robot, rng=0), armature=0.02, damping=1.3, friction=0.7)
    alone = fw.Standalone(sim)
    for _ in range(500):
        plain.step()
        sim.step()
        result = alone()
        np.testing.assert_array_equal(result.q, sim.q)
        touched += result.contacts
    assert touched > 0 and np.abs(plain.q - sim.q).max() > 1e-3


def test_whole_body_control_of_a_hand_alone_gives_the_bits_of_python(tmp_path: Path) -> None:
    robot = fw.load(fw.example("panda"))
    control, q, v = fw.WholeBodyControl(robot, [fw.FrameTask(HAND)]), robot.random_configuration(rng=0), np.full(robot.nv, 0.1)
    target = robot.frame_placement(HAND)(robot.random_configuration(rng=1))
    expected = control(q, v, {HAND: target})
    np.testing.assert_array_equal(fw.Standalone(control)(q=q, v=v, target_panda_hand=target).tau, expected.tau)
    assert [p.suffix for p in fw.export(control, tmp_path, files="source")] == [".h", ".c"]


def test_a_header_never_says_less_than_a_library_beside_it_needs(tmp_path: Path) -> None:
    """Check that the source is not written beside an earlier library, whose workspace may be larger."""
    controller = inverse_kinematics().controller
    fw.export(controller, tmp_path, name="hand")
    with pytest.raises(ValueError, match=r"has libhand\.a of an earlier export.*files="):
        fw.export(controller, tmp_path, name="hand", files="source")
    assert not (tmp_path / "hand.c").exists()
    assert len(fw.export(controller, tmp_path, name="hand", files=("static", "source"))) == 3


def test_inputs_are_checked() -> None:
    alone = fw.Standalone(inverse_kinematics().controller)
    with pytest.raises(ValueError, match="no input 'p'"):
        alone(p=1.0)
    with pytest.raises(ValueError, match="q must have shape"):
        alone(q=np.zeros(3))
    assert alone(q=np.full(8, np.nan)).status == -2
    assert alone(q=np.zeros(8), dt=0.0).status == -2
    alone.reset()
    assert alone(speed=np.full(8, np.inf)).status == 0
    with pytest.raises(TypeError, match="takes a controller"):
        fw.Standalone(fw.load(fw.example("panda")))  # type: ignore[arg-type]


def test_knots_of_several_steps_of_a_simulation_agree_to_rounding() -> None:
    """Check products of derivatives, which NumPy's library sums in another order, until time goes back.

    Ticks amplify this to 2.4e-9. Fifty iterations from a state in contact, as then follow, may end at another local minimum.
    """
    case = pushed(3)
    alone = fw.Standalone(case.controller)
    for given, (u, cost, _) in zip(case.inputs[:12], case.results[:12], strict=True):
        result = alone(now=given["now"], q=given["q"], v=given["v"], target_box=given["box"])
        np.testing.assert_allclose(result.u, u, rtol=0, atol=1e-8)
        np.testing.assert_allclose(result.cost, cost, rtol=1e-8)


def test_what_cannot_leave_says_so(tmp_path: Path) -> None:
    sim = fw.Simulation(fw.load(fw.example("panda")))
    sim.reset(np.tile(sim.q, (2, 1)))
    with pytest.raises(NotImplementedError, match="has one robot"):
        fw.export(sim, tmp_path)
    with pytest.raises(NotImplementedError, match="interpreted"):
        fw.export(fw.Simulation(fw.build(from_parents([-1], rng=0), execution="interpreted")), tmp_path)
    with pytest.raises(ValueError, match="double precision"):
        fw.export(inverse_kinematics().controller, tmp_path, precision="float")
