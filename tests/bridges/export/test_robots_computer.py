"""The samples of the page "From URDF to a robot's computer": a loop in C, and a controller of ros2_control."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import featherweight as fw
from bridges.export.standalone_programs import STRICT
from patience import PATIENCE

SAMPLES = Path(__file__).parents[3] / "examples" / "robots_computer"
LIBRARIES = ["out/libpanda_ik.a", "out/libpanda_hand.a"]
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"]

MANAGER = """
#include <controller_interface/controller_interface.hpp>
#include <cstdio>
#include <memory>
std::unique_ptr<controller_interface::ControllerInterface> make_controller();
int main()
{
  auto controller = make_controller();
  double q[8] = {0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02}, v[8] = {};
  std::vector<hardware_interface::LoanedCommandInterface> commands;
  std::vector<hardware_interface::LoanedStateInterface> states;
  for (int k = 0; k < 8; k++) commands.emplace_back(v[k]), states.emplace_back(q[k]);
  if (controller->on_init() != controller_interface::CallbackReturn::SUCCESS) return 1;
  std::puts(controller->command_interface_configuration().names[0].c_str());
  controller->assign_interfaces(std::move(commands), std::move(states));
  controller->on_activate({});
  for (int tick = 0; tick < 1000; tick++) {
    if (controller->update({}, rclcpp::Duration(0.001)) != controller_interface::return_type::OK) return 2;
    for (int k = 0; k < 8; k++) q[k] += 0.001 * v[k];
  }
  for (double x : q) std::printf("%.17g ", x);
  controller->on_deactivate({});
  for (double x : v) if (x != 0.0) return 3;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the libraries of the page, in `out`."""
    if not shutil.which("gcc") or not shutil.which("g++"):
        pytest.skip("needs gcc and g++")
    robot = fw.load(fw.example("panda"))
    ik = fw.InverseKinematics(robot, [fw.FrameTask("panda_hand"), fw.PostureTask(priority=1)])
    fw.export(ik, tmp_path / "out", name="panda_ik")
    fw.export({"hand": robot.frame_placement("panda_hand")}, tmp_path / "out", name="panda_hand", files="static")
    return tmp_path


def test_the_loop_in_c_reaches_its_target(folder: Path) -> None:
    sources = [str(SAMPLES / "loop.c"), *LIBRARIES, "-I", "out"]
    subprocess.run(["gcc", *STRICT, *sources, "-o", "loop"], cwd=folder, check=True)
    done = subprocess.run(["./loop", "1000"], cwd=folder, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert abs(float(done.stdout.split()[0])) < 1e-4


def test_the_controller_of_ros_moves_the_hand(folder: Path) -> None:
    """Check against minimal headers: ROS is not installed here."""
    (folder / "manager.cpp").write_text(MANAGER)
    sources = ["manager.cpp", str(SAMPLES / "panda_controller" / "src" / "ik_controller.cpp"), *LIBRARIES]
    command = ["g++", "-std=c++17", *WARNINGS, *sources, "-I", "out", "-I", str(SAMPLES / "minimal_ros"), "-o", "manager"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["./manager"], cwd=folder, capture_output=True, text=True, check=True, timeout=PATIENCE)
    name, numbers = done.stdout.split("\n")
    assert name == "panda_joint1/velocity"
    robot, start = fw.load(fw.example("panda")), [0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02]
    up = robot.frame_placement("panda_hand")([float(x) for x in numbers.split()]) - robot.frame_placement("panda_hand")(start)
    assert abs(up[2, 3] - 0.05) < 1e-4
