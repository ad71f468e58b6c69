"""Test that each attribute of MJCF that may change motion changes the description or its report, or is in a list of exceptions.

Elements and attributes come from MuJoCo's schema. Each attribute is set alone to a value other than its default, in a file with
an element of each kind. If the description and its report do not change, the loader ignores the attribute.
"""

from __future__ import annotations

import dataclasses
import re
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mujoco
import numpy as np
import pytest

import featherweight as fw
from oracles.mjcf_schema import schema

KNOWN = "4.0"  # version of MuJoCo whose attributes are all here; attributes of later versions are not tested

FILE = """<mujoco><compiler/><option><flag/></option>
<asset><mesh name="mesh" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><hfield name="field" nrow="2" ncol="2" size="1 1 1 1"/></asset>
<worldbody><site name="origin"/><geom name="floor" type="plane" size="1 1 1"/>
  <body name="a" pos="1 0 0"><inertial pos="0 0 0" mass="1" diaginertia="1 1.2 1.5"/>
    <joint name="a" axis="0 0 1"/><geom name="a" size=".1"/><site name="s"/></body>
  <body name="b"><joint name="b" axis="0 1 0"/><geom name="b" size=".1"/><site name="r" pos="1 0 0"/></body>
  <body name="c"><joint name="c" axis="0 1 0"/><geom size=".1"/></body>
  <body name="d"><joint name="d" axis="0 1 0"/><geom size=".1"/></body>
  <body name="e"><freejoint name="free"/><geom size=".1"/></body>
  <body name="h"><joint name="ball" type="ball"/><geom size=".1"/></body>
  <body name="f"><freejoint/><geom size=".1"/></body><body name="g"><freejoint/><geom size=".1"/></body></worldbody>
<contact><pair name="p" geom1="floor" geom2="a"/><exclude body1="a" body2="b"/></contact>
<tendon><fixed name="t"><joint joint="a" coef="1"/></fixed><fixed name="u"><joint joint="c" coef="1"/></fixed>
  <fixed name="two"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed>
  <spatial name="w"><site site="s"/><site site="r"/></spatial></tendon>
<equality><connect body1="e" body2="f" anchor="0 0 0"/><weld body1="f" body2="g"/><joint joint1="d" joint2="a"/>
  <tendon tendon1="u" tendon2="t"/></equality>
<actuator><general joint="a"/><motor joint="a"/><position joint="a" kp="2"/><velocity joint="a"/></actuator>
<keyframe><key name="k"/></keyframe></mujoco>"""

DEGREES = 'pos="0 0 1" quat="1 1 0 0" axisangle="1 0 0 90" euler="90 0 0" xyaxes="0 1 0 -1 0 0" zaxis="0 1 0"'
SOFT = 'solref=".1 1" solimp=".5 .9 .01"'
HOLDING = 'solreflimit=".1 1" solimplimit=".5 .9 .01" solreffriction=".1 1" solimpfriction=".5 .9 .01"'
FORCES = (
    'ctrlrange="-1 1" ctrllimited="true" forcerange="-1 1" forcelimited="true" gear="3" damping="2" armature="2" delay=".01" '
)
FORCES += 'site="s" tendon="two" jointinparent="b" cranksite="s"'
SAMPLES = {
    "option": 'timestep=".01" integrator="RK4" gravity="1 0 0" density="1" viscosity="1" actuatorgroupdisable="0" '
    'wind="1 0 0" o_friction=".5 .5 .1 .1 .1" o_margin=".1" o_solref=".1 1" o_solimp=".5 .9 .01 .5 2"',
    "option/flag": 'gravity="disable" contact="disable" equality="disable" limit="disable" frictionloss="disable" '
    'constraint="disable" spring="disable" damper="disable" clampctrl="disable" actuation="disable" '
    'filterparent="disable" eulerdamp="disable" override="enable"',
    "worldbody/body": f'{DEGREES} gravcomp="1"',
    "worldbody/body/inertial": f'{DEGREES} mass="2" diaginertia="1 1 1.2" fullinertia="1 1 1 .1 .1 .1"',
    "worldbody/body/joint": 'type="slide" pos="0 0 1" axis="1 0 0" range="-1 1" ref="10" armature="1" damping="2" '
    'frictionloss="3" stiffness="4" springref="5" springdamper="1 1" actuatorfrcrange="-1 1" springyield="1" margin=".1" '
    f'{HOLDING} limited="true" actuatorfrclimited="true" actuatorgravcomp="true"',
    "worldbody/body/freejoint": "",
    "worldbody/body/geom": f'{DEGREES} type="box" size=".2" fromto="0 0 0 0 0 1" mesh="mesh" hfield="field" mass="3" '
    'density="3" shellinertia="true" rgba="1 0 0 1" group="4" contype="2" conaffinity="2" condim="6" friction=".1" '
    f'margin=".1" priority="1" gap=".1" {SOFT} surfacevel="1 0 0" adhesion="1" '
    'fluidshape="ellipsoid" fluidcoef="1 1 1 1 1"',
    "worldbody/body/site": f'{DEGREES} fromto="0 0 0 0 0 1"',
    "contact/pair": f'geom1="b" geom2="b" condim="1" friction=".5 .5" margin=".1" gap=".1" adhesion="1" {SOFT}',
    "contact/exclude": 'body1="c" body2="c"',
    "equality/connect": f'body1="g" body2="g" anchor="0 0 1" site1="" site2="" active="false" {SOFT}',
    "equality/weld": 'body1="a" body2="a" anchor="1 0 0" relpose="1 0 0 1 0 0 0" torquescale="0" site1="" site2="" '
    f'active="false" {SOFT}',
    "equality/joint": f'joint1="b" joint2="b" polycoef="0 2 0 0 0" active="false" {SOFT}',
    "equality/tendon": f'tendon1="two" tendon2="two" polycoef="0 2 0 0 0" active="false" {SOFT}',
    "tendon/fixed": 'stiffness="1" springlength="1" damping="1" frictionloss="1" armature="1" range="0 1" '
    f'actuatorfrcrange="-1 1" springyield="1" margin=".1" {HOLDING} limited="true" actuatorfrclimited="true"',
    "tendon/fixed/joint": 'joint="b" coef="2"',
    "tendon/spatial": 'stiffness="1" springlength="1" damping="1" frictionloss="1" armature="1" range="0 1" '
    f'actuatorfrcrange="-1 1" springyield="1" margin=".1" {HOLDING} limited="true" actuatorfrclimited="true"',
    "actuator/general": f'{FORCES} gainprm="2" biasprm="1" gaintype="affine" biastype="affine" dyntype="integrator" body="b" '
    'dynprm=".5" actrange="-1 2" actlimited="true" actearly="true" lengthrange="0 2" refsite="r"',
    "actuator/motor": FORCES,
    "actuator/position": f'{FORCES} kp="3" kv="1" dampratio="1" timeconst=".1" inheritrange="1"',
    "actuator/velocity": f'{FORCES} kv="3"',
    "keyframe/key": f'qpos="{" ".join(29 * ["1"])}" qvel="{" ".join(25 * ["1"])}" ctrl="1 0 0 0"',
}
"""The attributes of each element that change motion, with a value other than the default."""

CONTEXT: dict[tuple[str, str], dict[str, str]] = {
    ("option", "wind"): {"option": 'density="1"'},
    ("worldbody/body/geom", "fluidcoef"): {"worldbody/body/geom": 'fluidshape="ellipsoid"'},
    ("option", "o_.*"): {"option/flag": 'override="enable"'},
    ("option/flag", "limit|constraint"): {"worldbody/body/joint": 'limited="true" range="-1 1"'},
    ("option/flag", "frictionloss"): {"worldbody/body/joint": 'frictionloss="1"'},
    ("option/flag", "spring"): {"worldbody/body/joint": 'stiffness="1"'},
    ("option/flag", "damper"): {"worldbody/body/joint": 'damping="1"'},
    ("option/flag", "clampctrl"): {"actuator/motor": 'ctrllimited="true" ctrlrange="-1 1"'},
    ("option/flag", "override"): {"option": 'o_friction=".3 .3 .1 .1 .1"'},
    ("worldbody/body/joint", "springref|springyield"): {"worldbody/body/joint": 'stiffness="1"'},
    ("worldbody/body/joint", "limited"): {"worldbody/body/joint": 'limited="false" range="-1 1"'},
    ("worldbody/body/joint", "actuatorfrclimited"): {
        "worldbody/body/joint": 'actuatorfrclimited="false" actuatorfrcrange="-1 1"'
    },
    ("worldbody/body/joint", "sol(ref|imp)friction"): {"worldbody/body/joint": 'frictionloss="1"'},
    ("worldbody/body/joint", "margin|sol(ref|imp)limit"): {"worldbody/body/joint": 'limited="true" range="-1 1"'},
    ("worldbody/body/geom", "mass|density|shellinertia"): {"compiler": 'inertiafromgeom="true"'},
    ("worldbody/body/geom", "type"): {"worldbody/body/geom": 'size=".1 .1 .1"'},
    ("tendon/fixed", "springlength|springyield"): {"tendon/fixed": 'stiffness="1"'},
    ("tendon/fixed", "limited"): {"tendon/fixed": 'limited="false" range="0 1"'},
    ("tendon/fixed", "actuatorfrclimited"): {"tendon/fixed": 'actuatorfrclimited="false" actuatorfrcrange="-1 1"'},
    ("tendon/fixed", "sol(ref|imp)friction"): {"tendon/fixed": 'frictionloss="1"'},
    ("tendon/fixed", "margin|sol(ref|imp)limit"): {"tendon/fixed": 'limited="true" range="0 1"'},
    ("tendon/spatial", "springlength|springyield"): {"tendon/spatial": 'stiffness="1"'},
    ("tendon/spatial", "actuatorfrclimited"): {"tendon/spatial": 'actuatorfrclimited="false" actuatorfrcrange="-1 1"'},
    ("tendon/spatial", "sol(ref|imp)friction"): {"tendon/spatial": 'frictionloss="1"'},
    ("tendon/spatial", "margin|sol(ref|imp)limit"): {"tendon/spatial": 'limited="true" range="0 1"'},
    ("tendon/spatial", "limited"): {"tendon/spatial": 'limited="false" range="0 1"'},
    ("actuator/general", "gaintype"): {"actuator/general": 'gainprm="1 2 3"'},
    ("actuator/general", "dynprm|actearly|actrange"): {"actuator/general": 'dyntype="filter"'},
    ("actuator/general", "actlimited"): {"actuator/general": 'dyntype="filter" actlimited="false" actrange="-1 1"'},
    ("actuator/general", "lengthrange"): {
        "actuator/general": 'gaintype="muscle" gainprm=".75 1.05 -1 200 .5 1.6 1.5 1.3 1.2" lengthrange="0 1"'
    },
    ("actuator/general", "biasprm"): {"actuator/general": 'biastype="affine"'},
    ("actuator/general", "biastype"): {"actuator/general": 'biasprm="1 1 1"'},
    **{
        (f"actuator/{kind}", "delay"): {f"actuator/{kind}": 'nsample="10"'}
        for kind in ("general", "motor", "position", "velocity")
    },
    **{
        (f"actuator/{kind}", f"{what}limited"): {f"actuator/{kind}": f'{what}limited="false" {what}range="-1 1"'}
        for kind in ("general", "motor", "position", "velocity")
        for what in ("ctrl", "force")
    },
    ("actuator/position", "inheritrange"): {"worldbody/body/joint": 'limited="true" range="-1 1"'},
}
"""Contents without which an attribute has no effect, by element and pattern; files with and without the attribute have them."""

INSTEAD = {
    ("worldbody/body/inertial", "fullinertia"): 'pos="0 0 0" mass="1" fullinertia="1 1 1 .1 .1 .1"',
    ("worldbody/body/geom", "fromto"): 'name="a" type="capsule" size=".1" fromto="0 0 0 0 0 1"',
    ("worldbody/body/geom", "mesh"): 'name="a" type="mesh" mesh="mesh"',
    ("worldbody/body/geom", "hfield"): 'name="a" type="hfield" hfield="field"',
    ("worldbody/body/geom", "shellinertia"): 'name="a" size=".1" shellinertia="true"',
    ("worldbody/body/site", "fromto"): 'name="s" type="capsule" size=".1" fromto="0 0 0 0 0 1"',
    ("equality/connect", "site1"): 'site1="s" site2="r"',
    ("equality/connect", "site2"): 'site1="s" site2="r"',
    ("equality/weld", "site1"): 'site1="s" site2="r"',
    ("equality/weld", "site2"): 'site1="s" site2="r"',
    **{
        (f"actuator/{kind}", key): f'{key}="{value}"' + ' kp="2"' * (kind == "position")
        for kind in ("general", "motor", "position", "velocity")
        for key, value in (("site", "s"), ("tendon", "two"), ("jointinparent", "b"), ("body", "b"))
    },
    **{
        (f"actuator/{kind}", "cranksite"): 'cranksite="s" slidersite="r" cranklength="1"' + ' kp="2"' * (kind == "position")
        for kind in ("general", "motor", "position", "velocity")
    },
    ("actuator/general", "refsite"): 'site="s" refsite="r"',
}
"""Complete attributes of an element, for attributes that exclude others."""

OF_MUJOCOS_SOLVER = {
    "option": "ccd_iterations ccd_tolerance cone impratio iterations jacobian ls_iterations ls_tolerance noslip_iterations "
    "noslip_tolerance sdf_initpoints sdf_iterations sleep_tolerance solver tolerance",
    "option/flag": "autoreset diagexact energy fwdinv invdiscrete ipc island midphase multiccd nativeccd refsafe "
    "sensor sleep speculative warmstart",
    "contact/pair": "solreffriction",  # of pairs alone; the same as solref there
    "worldbody/body/geom": "solmix",
}
WITH_WHAT_IS_LISTED = {
    "option": "magnetic",  # for magnetometers
    "actuator/general": "actdim ffrange velrange input",  # states that users compute; attributes of servos, tested below
    "actuator/(motor|position|velocity)": "refsite lengthrange",  # as for `general`
}
SHOWN_OR_RESOLVED = {
    "(?!worldbody/body/geom).*": "group material rgba",
    ".*": "name class user childclass fuse simple sleep nsample interp",
    "worldbody/body/geom": "castshadow fitscale material",
    "worldbody/body/freejoint": "align group",  # a free body's frame, set by MuJoCo's compiler
    "worldbody/body/site": "material mesh rgba size type",
    "tendon/.*": "width",
    # the last belong to elements that this file lacks; test_reader.py tests them
    "keyframe/key": "time plastic act mpos mquat",
    "actuator/.*": "joint cranklength slidersite",  # the last two belong to cranks
    "worldbody/body": "mocap",  # test_reader.py tests it: a body with joints cannot be mocap
    "actuator/general": "inheritrange",
}
WITHOUT_EFFECT = (OF_MUJOCOS_SOLVER, WITH_WHAT_IS_LISTED, SHOWN_OR_RESOLVED)
SERVOS = {
    "orientation": ('joint="ball" kp="1" kv="1"', 'kp="2" kv="2" dampratio="1" input="quat"'),
    "dcmotor": (
        'joint="a" motorconst=".1" resistance="1" input="pos" controller="1 1 1"',
        'resistance="2" motorconst=".2" nominal="1 2 3" inductance=".1" thermal="1 2 0 .1 20 25" saturation="1" cogging="1 2" '
        'lugre="1 1 1 1 1" input="pos vel" controller="2"',
    ),
    "pid": (
        'joint="a" kp="1" kv="1" ki="1" input="pos vel ff"',
        'kp="2" kv="2" dampratio="1" ki="2" imax="1" slewmax="1" input="pos" posrange="-1 1" velrange="-1 1" ffrange="-1 1" '
        'inheritrange="1"',
    ),
}
"""Attributes without which others have no effect, and those others, for actuators that `general` does not cover."""


SCHEMA = {path.removeprefix("mujoco/"): keys for path, keys in schema().items()}


def parsed(attributes: str) -> dict[str, str]:
    return dict(ElementTree.fromstring(f"<x {attributes}/>").attrib)


def matches(table: dict[str, str], path: str, key: str) -> bool:
    return any(re.fullmatch(pattern, path) and key in keys.split() for pattern, keys in table.items())


def file_for(path: str, key: str) -> Element:
    """Return a file in which the attribute has an effect."""
    root = ElementTree.fromstring(FILE)
    for (element, pattern), needed in CONTEXT.items():
        if re.fullmatch(element, path) and re.fullmatch(pattern, key):
            for where, attributes in needed.items():
                found = root.find(where)
                assert found is not None
                found.attrib.update(parsed(attributes))
    return root


def changed(root: Element, path: str, key: str, value: str) -> Element:
    other = deepcopy(root)
    element = other.find(path)
    assert element is not None
    if (path, key) in INSTEAD:
        element.attrib = parsed(INSTEAD[path, key])
    else:
        element.set(key, value)
    return other


def seen(root: Element) -> Any:
    """Return all contents of a description, or the reason why this package refuses it."""
    text = ElementTree.tostring(root)
    mujoco.MjModel.from_xml_string(text.decode())  # otherwise the file of this test is wrong
    try:
        d = fw.read(text, unsupported="raise")
    except fw.ModelError as error:
        return str(error)
    arrays = [np.asarray(x).tolist() for s in d.shapes for x in (s.vertices, s.heights) if x is not None]
    return [getattr(d, f.name) for f in dataclasses.fields(d)], arrays


@pytest.mark.parametrize("path", SAMPLES)
def test_what_changes_motion_changes_the_description_or_its_report(path: str) -> None:
    known = SCHEMA[path]
    for key, value in parsed(SAMPLES[path]).items():
        if key in known:  # older versions of MuJoCo lack these
            root = file_for(path, key)
            assert seen(changed(root, path, key, value)) != seen(root), f"{path}@{key} is ignored silently"


@pytest.mark.parametrize("kind", SERVOS)
def test_what_servos_and_motors_say_is_read(kind: str) -> None:
    """Check each attribute of these elements beyond those of `general`; some need others, which are in the file."""
    if f"actuator/{kind}" not in SCHEMA:
        pytest.skip("not in this version of MuJoCo")
    beside, own = (parsed(attributes) for attributes in SERVOS[kind])
    common = SCHEMA["actuator/general"] - own.keys()
    if mujoco.__version__.startswith(KNOWN):
        assert SCHEMA[f"actuator/{kind}"] - common == own.keys()
    for key, value in own.items():
        texts = []
        for attributes in (beside, beside | {key: value}):
            given = " ".join(f'{name}="{x}"' for name, x in attributes.items() if key != "dampratio" or name != "kv")
            file = re.sub("<actuator>.*</actuator>", f"<actuator><{kind} {given}/></actuator>", FILE)
            texts.append(file.replace('name="a" axis', 'name="a" range="-20 20" axis'))
        before, after = (fw.read(text).actuators for text in texts)
        assert len(before) == 1 and before != after, f"{kind}@{key} is ignored silently"


def test_each_attribute_that_mujoco_reads_is_tried_or_said_to_be_without_effect() -> None:
    """Check attributes of the known version; whoever raises the version adds those of a later one."""
    if not mujoco.__version__.startswith(KNOWN):
        pytest.skip(f"the attributes are those of MuJoCo {KNOWN}")
    forgotten = {
        f"{path}@{key}"
        for path, keys in SCHEMA.items()
        if path in SAMPLES
        for key in keys - parsed(SAMPLES[path]).keys()
        if not any(matches(table, path, key) for table in WITHOUT_EFFECT)
    }
    assert forgotten == set()


@pytest.mark.parametrize("table", range(len(WITHOUT_EFFECT)))
def test_no_attribute_is_both_tried_and_without_effect(table: int) -> None:
    tried = {(path, key) for path, keys in SAMPLES.items() for key in parsed(keys)}
    assert [(path, key) for path, key in sorted(tried) if matches(WITHOUT_EFFECT[table], path, key)] == []
