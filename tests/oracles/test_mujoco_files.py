"""Tests of MJCF files against MuJoCo, which reads the same files."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

import featherweight as fw
from oracles.mujoco_models import Peer
from oracles.same_dynamics import SameDynamics
from oracles.states import States, assert_close, random_states

STATES = 12

WALKER = """
<mujoco model="walker">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0.5 -1 -9"/>
  <default><joint armature="0.02" damping="1"/><geom density="800"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="trunk" pos="0.1 0.2 1.3" euler="10 20 30">
      <freejoint name="root"/>
      <geom type="capsule" size="0.1 0.2"/>
      <site name="imu" pos="0.1 -0.05 0.2" euler="30 0 45"/>
      <body name="thigh" pos="0 0.1 -0.2" euler="0 90 0">
        <joint name="hip" type="ball" pos="0.01 0.02 -0.03"/>
        <geom type="capsule" fromto="0 0 0 0.05 0.02 -0.4" size="0.05"/>
        <body name="shank" pos="0 0 -0.4">
          <joint name="knee" type="hinge" axis="0 1 0.2" pos="0 0.01 0.02" range="-150 0" ref="-20"/>
          <inertial pos="0 0.01 -0.2" mass="3" fullinertia="0.05 0.06 0.02 0.001 0.002 -0.003"/>
          <site name="foot" pos="0.02 0 -0.4"/>
        </body>
      </body>
      <body name="arm" pos="0 -0.2 0.2">
        <joint name="shoulder_x" type="hinge" axis="1 0 0" pos="0 0 0.02"/>
        <joint name="shoulder_y" type="hinge" axis="0 1 0" armature="0.3" ref="15"/>
        <joint name="extension" type="slide" axis="0 0.6 -0.8" range="-0.1 0.3" ref="0.1" armature="0.7"/>
        <geom type="box" size="0.05 0.04 0.2" pos="0 0 -0.2" mass="2"/>
        <body name="welded" pos="0 0 -0.4" quat="0.8 0 0.6 0">
          <geom type="sphere" size="0.05" mass="1"/>
          <site name="hand" pos="0 0.1 0" quat="0.6 0 0 0.8"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="knee" gear="20" ctrlrange="-1 1"/></actuator>
</mujoco>
"""

CRANE = """
<mujoco model="crane">
  <compiler angle="radian"/>
  <worldbody>
    <site name="corner" pos="1 1 0"/>
    <body name="post" pos="0 0 1" euler="0.1 0.2 0.3">
      <geom type="box" size="0.1 0.1 1" mass="50"/>
      <body name="cart" pos="0 0 1">
        <joint name="x" type="slide" axis="1 0 0"/>
        <joint name="y" type="slide" axis="0 1 0"/>
        <joint name="yaw" type="hinge" axis="0 0 1" pos="0.1 0 0" ref="0.3" armature="0.1"/>
        <geom type="cylinder" size="0.2 0.1" mass="5"/>
        <body name="load" pos="0 0 -1">
          <joint name="rope" type="ball" pos="0 0 1" armature="0.05"/>
          <geom type="sphere" size="0.2" mass="10"/>
          <site name="hook" pos="0.1 0.2 0.3" euler="1 0 0"/>
        </body>
      </body>
    </body>
    <body name="ball" pos="3 0 0">
      <freejoint/>
      <geom type="ellipsoid" size="0.1 0.2 0.3" mass="1.5"/>
      <site name="mark" pos="0.1 0 0"/>
    </body>
  </worldbody>
</mujoco>
"""

FILES = {"walker": WALKER, "crane": CRANE}
SITES = [("walker", "imu"), ("walker", "foot"), ("walker", "hand"), ("crane", "corner"), ("crane", "hook"), ("crane", "mark")]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Peer]:
    folder: Path = tmp_path_factory.mktemp("mjcf")
    peers = {}
    for name, text in FILES.items():
        path = folder / f"{name}.xml"
        path.write_text(text)
        peers[name] = Peer(fw.load(path), mujoco.MjModel.from_xml_path(str(path)))
        peers[name].model.dof_damping[:] = 0.0  # damping is not part of rigid-body dynamics
    return peers


@pytest.fixture(params=FILES)
def peer(request: pytest.FixtureRequest, peers: dict[str, Peer]) -> Peer:
    return peers[request.param]


def test_gravity_is_the_files(peer: Peer) -> None:
    assert peer.robot.gravity == pytest.approx(tuple(peer.model.opt.gravity), rel=1e-15)


@pytest.fixture
def states(peer: Peer) -> States:
    return random_states(peer.robot, STATES)


class TestDynamics(SameDynamics):
    pass


@pytest.mark.parametrize(("name", "site"), SITES)
def test_sites_are_frames(peers: dict[str, Peer], name: str, site: str) -> None:
    peer = peers[name]
    q, v, _ = random_states(peer.robot, STATES)
    assert_close(peer.robot.frame_placement([site])(q)[:, 0], peer.site_placement(site, q))
    assert_close(peer.robot.frame_jacobian([site])(q)[:, 0], peer.site_jacobian(site, q))
    assert_close(peer.robot.frame_bias_acceleration([site])(q, v)[:, 0], peer.site_bias_acceleration(site, q, v))
