"""Tests of the warnings about the inputs of the first steps."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from simulation.scenes import cart, free_bodies, solid_box

PUSHED, LIMP = "tau has forces on the floating joint", "exert no force"


def flying(**options: Any) -> fw.Simulation:
    return fw.Simulation(free_bodies(solid_box(1.0, (0.1, 0.1, 0.1))), 1e-3, **options)


@pytest.mark.parametrize("way", ["step", "run", "controller", "rollout", "list"])
def test_a_force_on_a_floating_root_warns_once(way: str) -> None:
    sim, push = flying(), np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    ways: dict[str, Any] = {
        "step": lambda: sim.step(push),
        "run": lambda: sim.run(2e-3, tau=push),
        "controller": lambda: sim.run(2e-3, lambda t, q, v: push),
        "rollout": lambda: sim.rollout(sim.q[None], tau=push[None, None].repeat(3, 1)),
        "list": lambda: sim.step(push.tolist()),
    }
    with pytest.warns(fw.ModelWarning, match=f"{PUSHED} 'free0', in rows 0 to 5.*root_forces=True"):
        ways[way]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(push)
        copy.copy(sim).step(push)  # copies remember what was said


def test_forces_on_a_root_that_are_meant_or_zero_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flying(root_forces=True).step(np.ones(6))
        flying().step(np.zeros(6))
        fw.Simulation(cart(), 1e-3).step([1.0])


def test_a_later_force_on_a_root_warns_too() -> None:
    sim = flying()
    sim.step()
    sim.step(np.zeros(6))
    with pytest.warns(fw.ModelWarning, match=PUSHED):
        sim.step(np.ones(6))


@pytest.mark.parametrize("way", ["step", "run", "rollout"])
def test_servos_without_control_warn_once(way: str) -> None:
    sim = fw.Simulation(cart(), 1e-3, actuators=fw.PD(10.0, 1.0))
    ways: dict[str, Any] = {
        "step": sim.step,
        "run": lambda: sim.run(2e-3),
        "rollout": lambda: sim.rollout(sim.q[None], steps=2),
    }
    with pytest.warns(fw.ModelWarning, match=rf"1 position servos\) {LIMP}.*control=np.zeros\(1\)"):
        ways[way]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.reset()
        sim.step()


def test_servos_with_control_or_tau_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fw.Simulation(cart(), 1e-3, actuators=fw.PD(10.0, 1.0)).step(control=[0.1])
        fw.Simulation(cart(), 1e-3, actuators=fw.PD(10.0, 1.0)).step([1.0])
        fw.Simulation(cart(), 1e-3, actuators=[fw.Actuator("motor", "rail")]).step()


def test_a_fixed_robot_in_the_ground_is_asked_whether_it_floats() -> None:
    body = fw.Body("leg", fw.Inertia(1.0, (0, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01)))
    joint = fw.Joint("hip", fw.JointType.REVOLUTE, None, "leg", axis=(0.0, 1.0, 0.0))
    foot = fw.Shape("foot", "leg", fw.ShapeType.SPHERE, (0.05,), fw.Pose(p=(0.0, 0.0, -0.4)))
    robot = fw.build(fw.describe([body], [joint], shapes=[foot]))
    with pytest.warns(fw.ModelWarning, match=r"overlap at the start: .*stands 0.45 m in the ground.*base='floating'"):
        fw.Simulation(robot, ground=True).step()
