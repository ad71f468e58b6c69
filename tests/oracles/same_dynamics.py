"""Tests of a robot against its peer in another program, for modules and classes with fixtures `peer` and `states`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.pinocchio_models import Peer
from oracles.robots import watched_frames
from oracles.states import States, assert_close, assert_same_solutions


class SameDynamics:
    """Tests of dynamics and energy."""

    def test_inverse_dynamics(self, peer: Any, states: States) -> None:
        assert_close(peer.robot.inverse_dynamics(*states), peer.inverse_dynamics(*states))

    def test_bias_force(self, peer: Any, states: States) -> None:
        assert_close(peer.robot.bias_force(states.q, states.v), peer.bias_force(states.q, states.v))

    def test_mass_matrix(self, peer: Any, states: States) -> None:
        assert_close(peer.robot.mass_matrix(states.q), peer.mass_matrix(states.q))

    def test_forward_dynamics(self, peer: Any, states: States) -> None:
        ours, theirs = peer.robot.forward_dynamics(*states), peer.forward_dynamics(*states)
        assert_same_solutions(ours, theirs, peer.mass_matrix(states.q))

    def test_kinetic_energy(self, peer: Any, states: States) -> None:
        assert_close(peer.robot.kinetic_energy(states.q, states.v), peer.kinetic_energy(states.q, states.v))

    def test_center_of_mass(self, peer: Any, states: States) -> None:
        assert_close(peer.robot.center_of_mass(states.q), peer.center_of_mass(states.q))


class SameMotionOfFrames:
    """Tests of the motion of frames, and of forces on bodies, against Pinocchio."""

    @pytest.mark.parametrize("reference", ["local", "local_world_aligned", "world"])
    def test_frame_motion(self, peer: Peer, states: States, reference: str) -> None:
        """Check Jacobian, velocity and velocity-product acceleration."""
        q, v, _ = states
        robot, names = peer.robot, watched_frames(peer.robot)
        assert_close(robot.frame_jacobian(names, reference)(q), peer.frame_jacobian(names, reference, q))
        assert_close(robot.frame_velocity(names, reference)(q, v), peer.frame_velocity(names, reference, q, v))
        theirs = peer.frame_bias_acceleration(names, reference, q, v)
        assert_close(robot.frame_bias_acceleration(names, reference)(q, v), theirs)

    def test_external_forces(self, peer: Peer, states: States) -> None:
        """Check forces on every moving body, about and in the body's frame of the file, also if the joint's frame differs."""
        robot, M = peer.robot, peer.mass_matrix(states.q)
        forces = np.random.default_rng(1).standard_normal((len(states.q), len(robot.bodies), 6))
        ours = robot.inverse_dynamics(*states, external_forces=forces)
        assert_close(ours, peer.inverse_dynamics(*states, forces))
        pushed = robot.forward_dynamics(*states, external_forces=forces)
        assert_same_solutions(pushed, peer.forward_dynamics(*states, forces), M)
