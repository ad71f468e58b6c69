"""Tests of a new user's mistakes: wrong files, names and arguments, and names of other libraries. Each error says what to do.

An error has the usual Python type, and names the wrong value, its place, and the intended or available values.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

fw: Any = importlib.import_module("featherweight")  # untyped, because type checkers would report the mistakes

pytestmark = pytest.mark.usefixtures("steps")

ARM = Path(__file__).parents[2] / "docs" / "files" / "arm.urdf"
EMPTY = '<robot name="x"/>'


@functools.cache
def arm() -> Any:
    return fw.load(ARM, execution="interpreted")


def still(**named: Any) -> Any:
    return fw.Simulation(arm(), joints=fw.JointOptions(limits=False, dry_friction=False), **named)


V = np.zeros(7)

SLIPS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # files
    "a file that is not there": (lambda: fw.load("nothing.urdf"), FileNotFoundError, "'nothing.urdf'"),
    "a name for a file": (lambda: fw.load("panda"), fw.ModelError, "featherweight.example returns the paths of example robots"),
    "a mesh for a file": (lambda: fw.load("arm.stl"), fw.ModelError, "unknown suffix '.stl'; a robot is read from .urdf"),
    "a path in bytes": (lambda: fw.load(b"arm.urdf"), fw.ModelError, "no XML, which begins with '<'"),
    "a folder": (lambda: fw.load(ARM.parent), OSError, "a folder, not a file; name the robot's file in it"),
    "nothing": (lambda: fw.load(None), TypeError, "from a path, XML text, bytes or an open file, not from NoneType"),
    "a description": (lambda: fw.load(fw.read(ARM)), TypeError, "featherweight.build builds a robot from a Description"),
    "a file without a robot": (lambda: fw.load(EMPTY), fw.ModelError, "give it at least one <link name=...>"),
    "XML of something else": (
        lambda: fw.load("<hello/>"),
        fw.ModelError,
        "the root element is <hello>; that of a robot is <robot>",
    ),
    "a path to build": (lambda: fw.build("arm.urdf"), TypeError, "got 'arm.urdf'; read it: featherweight.read("),
    "a robot to build": (lambda: fw.build(arm()), TypeError, "got Robot 'arm'; give the description"),
    # options of load
    "a base in capitals": (lambda: fw.load(ARM, base="Floating"), ValueError, "got 'Floating' (is it 'floating'?)"),
    "floating as a flag": (
        lambda: fw.load(ARM, floating=True),
        TypeError,
        "no argument 'floating'; here it is base=\"floating\"",
    ),
    "a misspelled option": (lambda: fw.load(ARM, gravty=(0, 0, 0)), TypeError, "no argument 'gravty' (is it 'gravity'?)"),
    "gravity as a number": (lambda: fw.load(ARM, gravity=-9.81), fw.ModelError, "gravity must be three finite numbers"),
    "an execution that is none": (lambda: fw.load(ARM, execution="fast"), ValueError, "execution must be one of auto, traced"),
    "a joint that is none": (
        lambda: fw.load(ARM, independent=["elbo"]),
        fw.ModelError,
        "'elbo' does not exist (is it 'elbow'?)",
    ),
    # calls
    "an argument by another name": (
        lambda: arm().forward_dynamics(V, V, torque=V),
        TypeError,
        "here it is tau; it takes q, v, tau",
    ),
    "an option by another name": (lambda: arm().inverse_dynamics(V, V, V, f_ext=V), TypeError, "here it is external_forces"),
    "too few arguments": (lambda: arm().forward_dynamics(V, V), TypeError, "takes q, v, tau; missing: tau"),
    "too many arguments": (lambda: arm().forward_dynamics(V, V, V, V), TypeError, "takes q, v, tau; got 4 arguments"),
    "an argument twice": (lambda: arm().mass_matrix(V, q=V), TypeError, "mass_matrix(q) got q twice"),
    "a wrong length": (lambda: arm().mass_matrix(V[1:]), ValueError, "mass_matrix: q must have shape (..., 7); got (6,)"),
    "a column": (lambda: arm().mass_matrix(V[:, None]), ValueError, "q must have shape (..., 7); got (7, 1)"),
    "words for numbers": (lambda: arm().mass_matrix("home"), TypeError, "q must hold real numbers"),
    "a derivative by nothing": (lambda: arm().mass_matrix.derivative("p"), TypeError, "no argument 'p'; it takes q"),
    "a name for a function": (
        lambda: arm().parametric("mass_matrix"),
        TypeError,
        "such as robot.mass_matrix; got 'mass_matrix'",
    ),
    # frames and joints
    "a frame that is none": (
        lambda: arm().frame_jacobian("hnd"),
        ValueError,
        "has no frame 'hnd' (is it 'hand'?); it has base",
    ),
    "q in place of a frame": (lambda: arm().frame_jacobian(V), TypeError, 'write frame_jacobian("hand", q)'),
    "q alone for a velocity": (lambda: arm().frame_velocity("hand", V), TypeError, "frame_velocity: v must be an array"),
    "a number for a frame": (lambda: arm().frame_placement(3), TypeError, 'got 3: write frame_placement("hand", q)'),
    "a reference in capitals": (lambda: arm().frame_jacobian("hand", "LOCAL"), ValueError, "(is it 'local'?)"),
    "a joint's armature": (lambda: arm().with_armature({"elbo": 1.0}), ValueError, "no moving joint 'elbo' (is it 'elbow'?)"),
    "frames by name": (lambda: arm().frames["hnd"], KeyError, "there is no 'hnd' (is it 'hand'?); there are base"),
    "a configuration": (lambda: arm().configurations["home"], KeyError, "arm has no configuration 'home'; it has none"),
    "a name for a contact": (lambda: arm().delassus("hand"), TypeError, "delassus takes featherweight.BilateralContact"),
    # simulations
    "a description to simulate": (
        lambda: fw.Simulation(fw.read(ARM)),
        TypeError,
        "build it: featherweight.build(description)",
    ),
    "timestep": (lambda: still(timestep=1e-3), TypeError, "Simulation has no argument 'timestep'; here it is dt"),
    "ground as a height": (lambda: still(ground=0.0), TypeError, "ground must be True (the plane z = 0)"),
    "names for spheres": (
        lambda: still(spheres=["hand"], ground=fw.Plane()),
        TypeError,
        "spheres must be a list of ContactSphere",
    ),
    "a state of another length": (lambda: still(q=V[1:]), ValueError, "q must have shape (7,) or (robots, 7); got (6,)"),
    "a state that is NaN": (
        lambda: still(q=V * np.nan),
        ValueError,
        "q must be finite numbers; number 0, of joint 'shoulder_yaw'",
    ),
    "T for the duration": (lambda: still().run(T=1.0), TypeError, "Simulation.run has no argument 'T'; here it is duration"),
    "a controller without an answer": (
        lambda: still().run(0.002, controller=lambda time, q, v: None),
        ValueError,
        "a controller must return joint forces tau",
    ),
    "a robot's file as a motion": (lambda: fw.Trajectory.load(ARM), fw.ModelError, "no .npz file of a trajectory"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_told_with_what_to_do(slip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, kind, said = SLIPS[slip]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as error:
        make()
    assert said in str(error.value)


def edits(name: str) -> set[str]:
    """Return misspellings: two letters exchanged, one omitted, one doubled, in camel case, without underscores."""
    first, *others = name.split("_")
    swapped = name[:2] + name[3] + name[2] + name[4:]
    return {
        swapped,
        name[:-2] + name[-1],
        name + name[-1],
        first + "".join(x.title() for x in others),
        name.replace("_", ""),
    } - {name}


@pytest.mark.parametrize("owner", ["robot", "simulation", "description", "function", "space", "package"])
def test_misspelled_names_are_recognized(owner: str) -> None:
    """Check all public names with at least seven letters."""
    owners: dict[str, Callable[[], Any]] = {
        "robot": arm,
        "simulation": still,
        "description": lambda: fw.read(ARM),
        "function": lambda: arm().mass_matrix,
        "space": lambda: arm().operational_space(fw.BilateralContact("hand")),
        "package": lambda: fw,
    }
    thing = owners[owner]()
    names = [name for name in dir(thing) if not name.startswith("_")]
    for name in (x for x in names if len(x) >= 7):
        for wrong in edits(name) - {*names}:
            with pytest.raises(AttributeError) as error:
                getattr(thing, wrong)
            assert f"{name}" in str(error.value) or " (is it '" in str(error.value), wrong
