"""Tests of loops, couplings and mimic joints of URDF files: their meaning, and errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featherweight.model.description import Description
from featherweight.model.formats.registry import load_description
from featherweight.model.types import Coupling, Loop, LoopType, ModelError, Pose


def load(folder: Path, inside: str, **options: Any) -> Description:
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="r">{inside}</robot>')
    return load_description(path, **options)


def tree(*joints: str) -> str:
    """Return joints written "name parent child [type [mark]]", and their links."""
    links: dict[str, None] = {}
    written = ""
    for line in joints:
        name, parent, child, *rest = line.split()
        kind, mark = [*rest, *("revolute", "")[len(rest) :]]
        links |= {parent: None, child: None}
        attribute = f' independent="{mark}"' if mark else ""
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        written += f'<joint name="{name}" type="{kind}"{attribute}>{ends}<!--{name}--></joint>'
    return "".join(f'<link name="{link}"/>' for link in links) + written


def loop(type: str = "revolute", inside: str = "", ends: str = "a b", origins: tuple[str, str] = ("", "")) -> str:
    first, second = ends.split()
    ends = f'<predecessor link="{first}">{origins[0]}</predecessor><successor link="{second}">{origins[1]}</successor>'
    return f'<loop name="ring" type="{type}">{ends}{inside}</loop>'


def gear(name: str, predecessor: str, successor: str, ratio: str, type: str = "rolling") -> str:
    ends = f'<predecessor link="{predecessor}"/><successor link="{successor}"/>'
    return f'<coupling name="{name}" type="{type}">{ends}<ratio value="{ratio}"/></coupling>'


def mimic(inside: str, joint: str, attributes: str) -> str:
    """Return the file with a <mimic> in this joint."""
    return inside.replace(f"<!--{joint}-->", f"<mimic {attributes}/>")


def values(couplings: tuple[Coupling, ...]) -> dict[str, tuple[dict[str, float], float]]:
    return {c.joint: ({joint: factor for joint, (factor,) in c.terms}, c.offset) for c in couplings}


PAIR = tree("ja base a", "jb base b")


def only_loop(folder: Path, *arguments: Any, **options: Any) -> Loop:
    (found,) = load(folder, PAIR + loop(*arguments, **options)).loops
    return found


# --- loops


@pytest.mark.parametrize(
    ("written", "kind"),
    [*((str(t), t) for t in LoopType), ("continuous", "revolute"), ("ball", "spherical"), ("fixed", "weld")],
)
def test_every_loop_type_is_read(tmp_path: Path, written: str, kind: LoopType) -> None:
    found = only_loop(tmp_path, written)
    assert (found.name, found.type, found.predecessor, found.successor) == ("ring", LoopType(kind), "a", "b")


def test_frames_are_those_of_the_file_where_the_axis_is_z(tmp_path: Path) -> None:
    origins = '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>', '<origin xyz="4 5 6"/>'
    found = only_loop(tmp_path, "revolute", '<axis xyz="0 0 2"/>', origins=origins)
    assert found.predecessor_frame == Pose(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (1.0, 2.0, 3.0))
    assert found.successor_frame == Pose(p=(4.0, 5.0, 6.0))


@pytest.mark.parametrize("axis", ["1 0 0", "-1 0 0", "0 1 0", "0 0 -1", "1 2 -3", "1e-9 0 -1", "0.3 -0.4 0.5"])
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "cylindrical", "universal", "planar"])
def test_the_axis_becomes_z_of_both_frames(tmp_path: Path, kind: str, axis: str) -> None:
    origins = '<origin rpy="0.3 -1 2"/>', '<origin rpy="-2 0.5 1"/>'
    found = only_loop(tmp_path, kind, f'<axis xyz="{axis}"/>', origins=origins)
    given = only_loop(tmp_path, "weld", origins=origins)
    expected = np.array([float(x) for x in axis.split()])
    expected /= np.linalg.norm(expected)
    turns = []
    for end in ("predecessor_frame", "successor_frame"):
        R = np.array(getattr(found, end).R)
        turns.append(np.array(getattr(given, end).R).T @ R)
        np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-15)  # a few roundings each, here and below
        np.testing.assert_allclose(turns[-1][:, 2], expected, atol=1e-15)
        assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(turns[0], turns[1], atol=1e-15)  # frames that coincided still do


def test_axes_along_coordinates_are_exact_and_x_unless_given(tmp_path: Path) -> None:
    found = only_loop(tmp_path, "revolute")
    assert [row[2] for row in found.predecessor_frame.R] == [1.0, 0.0, 0.0]
    assert {abs(entry) for row in found.successor_frame.R for entry in row} == {0.0, 1.0}


def test_welds_and_ball_joints_keep_the_frames_of_the_file(tmp_path: Path) -> None:
    for kind in ("weld", "spherical"):
        found = only_loop(tmp_path, kind, '<axis xyz="0 1 0"/>')
        assert found.predecessor_frame == found.successor_frame == Pose()


def test_the_second_axis_of_a_universal_joint_becomes_x_of_the_successor(tmp_path: Path) -> None:
    found = only_loop(tmp_path, "universal", '<axis xyz="0 0 1"/><axis2 xyz="0 3 0"/>')
    assert found.predecessor_frame == found.successor_frame
    assert [row[0] for row in found.successor_frame.R] == [0.0, 1.0, 0.0]
    skew = only_loop(tmp_path, "universal", '<axis xyz="0 0 1"/><axis2 xyz="0 3 4"/>')
    assert [row[2] for row in skew.predecessor_frame.R] == [0.0, 0.0, 1.0]
    np.testing.assert_allclose([row[0] for row in skew.successor_frame.R], [0.0, 0.6, 0.8], atol=1e-15)
    for frame in (skew.predecessor_frame, skew.successor_frame):
        np.testing.assert_allclose(np.array(frame.R) @ np.array(frame.R).T, np.eye(3), atol=1e-15)
        assert np.linalg.det(frame.R) == pytest.approx(1.0, abs=1e-14)


# --- independent joints

FOUR_BAR = ("j1 base a", "j2 a b", "j3 base c")
CLOSED = loop(ends="b c")


def test_marks_of_joints_in_loops_are_kept_and_others_are_listed(tmp_path: Path) -> None:
    marked = tree("j1 base a revolute true", "j2 a b revolute false", "j3 base c", "j4 c d revolute true")
    robot = load(tmp_path, marked + CLOSED)
    assert (robot.independent, robot.dependent) == (("j1",), ("j2",))
    assert dict(robot.unused) == {"marks of independence": "1 joint in no loop or coupling"}


def test_joints_above_the_common_ancestor_are_in_no_loop(tmp_path: Path) -> None:
    robot = load(tmp_path, tree("j0 world base revolute true", "j1 base a revolute true", "j3 base c") + loop(ends="a c"))
    assert robot.independent == ("j1",)


def test_an_actuated_joint_of_a_loop_is_independent_where_nothing_is_marked(tmp_path: Path) -> None:
    drives = '<transmission><joint name="j3"/></transmission><transmission><joint name="j4"/></transmission>'
    robot = load(tmp_path, tree(*FOUR_BAR, "j4 c d") + CLOSED + drives)
    assert robot.independent == ("j3",) and robot.dependent == ()
    assert dict(robot.unused) == {"transmissions": "1"}
    marked = load(tmp_path, tree("j1 base a revolute true", *FOUR_BAR[1:], "j4 c d") + CLOSED + drives)
    assert marked.independent == ("j1",)
    assert dict(marked.unused) == {"transmissions": "2"}


# --- couplings


def test_a_gear_turns_the_successor_by_its_ratio(tmp_path: Path) -> None:
    robot = load(tmp_path, PAIR + gear("g", "a", "b", "-9.33"))
    assert robot.couplings == (Coupling("g", "jb", (("ja", (-9.33,)),)),)


def test_belts_that_share_joints_are_solved_together(tmp_path: Path) -> None:
    """Check the leg of the MIT humanoid: both rotors sit on the thigh, and the ankle's belt runs over the knee."""
    leg = tree("knee thigh shank", "ankle shank foot", "r1 thigh rotor1", "r2 thigh rotor2")
    robot = load(tmp_path, leg + gear("g1", "shank", "rotor1", "12") + gear("g2", "foot", "rotor2", "12"))
    assert values(robot.couplings) == {"r1": ({"knee": 12.0}, 0.0), "r2": ({"knee": 12.0, "ankle": 12.0}, 0.0)}


def test_links_follow_rotors_where_the_file_says_so(tmp_path: Path) -> None:
    leg = tree(
        "knee thigh shank revolute false", "ankle shank foot revolute false", "r1 thigh rotor1", "r2 thigh rotor2 revolute true"
    )
    robot = load(tmp_path, leg + gear("g1", "shank", "rotor1", "3") + gear("g2", "foot", "rotor2", "7"))
    third, seventh = 1.0 / 3.0, 1.0 / 7.0
    assert values(robot.couplings) == {"knee": ({"r1": third}, 0.0), "ankle": ({"r2": seventh, "r1": -third}, 0.0)}
    assert (robot.independent, robot.dependent) == (("r2",), ("knee", "ankle"))


def test_solved_couplings_satisfy_every_equation(tmp_path: Path) -> None:
    """Check a chain of equations with all joints of a long path on either side."""
    chain = tree("a1 base p1", "a2 p1 p2", "a3 p2 p3", "b1 base s1", "b2 s1 s2", "c base s3")
    robot = load(tmp_path, chain + gear("g1", "p3", "s2", "2.5") + gear("g2", "p2", "s3", "0.1") + gear("g3", "s1", "p1", "4"))
    coupled = values(robot.couplings)
    q = dict(zip(("a1", "a2", "a3", "b1", "b2", "c"), (0.3, -0.7, 1.1, 0.0, 0.0, 0.0), strict=True))
    free = [joint for joint in q if joint not in coupled]
    assert len(coupled) == 3 and all(set(terms) <= set(free) for terms, _ in coupled.values())
    q |= {joint: sum(factor * q[leader] for leader, factor in terms.items()) for joint, (terms, _) in coupled.items()}
    assert any(abs(q[joint]) > 0.1 for joint in coupled)
    assert q["b1"] + q["b2"] == pytest.approx(2.5 * (q["a1"] + q["a2"] + q["a3"]), abs=1e-14)
    assert q["c"] == pytest.approx(0.1 * (q["a1"] + q["a2"]), abs=1e-14)
    assert q["a1"] == pytest.approx(4 * q["b1"], abs=1e-14)


def test_fixed_joints_on_the_path_count_zero(tmp_path: Path) -> None:
    robot = load(tmp_path, tree("ja base a", "f a tip fixed", "jb base b") + gear("g", "tip", "b", "2"))
    assert values(robot.couplings) == {"jb": ({"ja": 2.0}, 0.0)}


def test_of_a_path_without_marks_the_last_joint_follows(tmp_path: Path) -> None:
    robot = load(tmp_path, tree("ja base a", "b1 base m", "b2 m b") + gear("g", "a", "b", "2"))
    assert values(robot.couplings) == {"b2": ({"ja": 2.0, "b1": -1.0}, 0.0)}


def test_a_joint_outside_of_loops_follows_one_in_a_loop(tmp_path: Path) -> None:
    """Check two joints marked dependent: the loop determines one of them, and the coupling the other."""
    bars = tree("j1 base a revolute true", "j2 a b revolute false", "j3 base c revolute false", "r base rotor revolute false")
    robot = load(tmp_path, bars + CLOSED + gear("g", "rotor", "c", "6"))
    assert values(robot.couplings) == {"r": ({"j3": 1.0 / 6.0}, 0.0)}
    assert robot.independent == ("j1",) and robot.dependent == ("j2", "j3", "r")


def test_an_actuated_joint_of_a_loop_is_not_the_one_that_follows(tmp_path: Path) -> None:
    drive = '<transmission><joint name="j3"/></transmission>'
    robot = load(tmp_path, tree(*FOUR_BAR) + CLOSED + gear("g", "a", "c", "6") + drive)
    assert values(robot.couplings) == {"j1": ({"j3": 1.0 / 6.0}, 0.0)}
    assert robot.independent == ("j3",)


def test_a_joint_marked_independent_is_not_the_one_that_follows(tmp_path: Path) -> None:
    robot = load(tmp_path, tree("ja base a", "jb base b revolute true") + gear("g", "a", "b", "4"))
    assert values(robot.couplings) == {"ja": ({"jb": 0.25}, 0.0)}
    assert robot.independent == ("jb",)


def test_of_actuated_joints_that_are_coupled_one_is_independent(tmp_path: Path) -> None:
    drives = "".join(f'<transmission><joint name="{name}"/></transmission>' for name in ("j1", "j3"))
    robot = load(tmp_path, tree(*FOUR_BAR) + CLOSED + gear("g", "a", "c", "6") + drives)
    assert [coupling.joint for coupling in robot.couplings] == ["j3"] and robot.independent == ("j1",)


# --- mimic


def test_mimic_joints_follow(tmp_path: Path) -> None:
    robot = load(tmp_path, mimic(PAIR, "ja", 'joint="jb" multiplier="1.05851325" offset="-0.5"'))
    assert robot.couplings == (Coupling("ja", "ja", (("jb", (1.05851325,)),), -0.5),)
    assert load(tmp_path, mimic(PAIR, "ja", 'joint="jb"')).couplings == (Coupling("ja", "ja", (("jb", (1.0,)),)),)


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_chains_of_mimic_end_at_a_joint_that_follows_none(tmp_path: Path, order: str) -> None:
    file = tree(*(f"j{x} base {x}" for x in order), "jd base d")
    file = mimic(file, "ja", 'joint="jb" multiplier="2" offset="1"')
    file = mimic(file, "jb", 'joint="jc" multiplier="-3" offset="0.5"')
    file = mimic(file, "jc", 'joint="jd" multiplier="5" offset="-1"')
    robot = load(tmp_path, file)
    assert values(robot.couplings) == {
        "ja": ({"jd": -30.0}, 8.0),
        "jb": ({"jd": -15.0}, 3.5),
        "jc": ({"jd": 5.0}, -1.0),
    }
    assert all(coupling.name == coupling.joint for coupling in robot.couplings)


def test_a_gear_on_a_mimic_joint_follows_its_leader(tmp_path: Path) -> None:
    file = tree("ja base a", "jb base b", "jr base r") + gear("g", "r", "b", "4")
    robot = load(tmp_path, mimic(file, "jb", 'joint="ja" multiplier="2" offset="1"'))
    assert values(robot.couplings) == {"jb": ({"ja": 2.0}, 1.0), "jr": ({"ja": 0.5}, 0.25)}


def test_mimic_can_be_taken_as_independent_or_refused(tmp_path: Path) -> None:
    file = mimic(PAIR, "ja", 'joint="jb"')
    robot = load(tmp_path, file, mimic="independent")
    assert robot.couplings == () and dict(robot.unused) == {"couplings": "mimic of ja, taken as independent"}
    with pytest.raises(ModelError, match=r"robot\.urdf: joint 'ja': it mimics another joint; .*mimic=\"follow\""):
        load(tmp_path, file, mimic="refuse")
    with pytest.raises(ValueError, match="follow, independent, refuse; got 'perhaps'"):
        load(tmp_path, file, mimic="perhaps")


def test_mimic_of_a_fixed_joint_is_listed(tmp_path: Path) -> None:
    robot = load(tmp_path, mimic(tree("ja base a", "f base b fixed"), "f", 'joint="ja"'))
    assert robot.couplings == () and dict(robot.unused) == {"mimic of fixed joints": "f"}


def test_constraints_of_the_draft_are_loops_and_couplings(tmp_path: Path) -> None:
    """Check two elements with the same meaning, which give the same description; types of early drafts are only reported."""
    origins = '<origin xyz="0.3 0 0"/>', '<origin xyz="0.2 0.1 0"/>'
    inside = tree("ja base a", "jb base b", "jc base c", "jd base d")
    final = loop("spherical", origins=origins) + gear("mesh", "c", "d", "6")
    draft = final.replace("<loop", "<constraint").replace("</loop", "</constraint").replace("coupling", "constraint")
    first, second = load(tmp_path, inside + final), load(tmp_path, inside + draft.replace("spherical", "position"))
    assert first.loops == second.loops and first.couplings == second.couplings
    assert (len(second.loops), len(second.couplings), second.unused) == (1, 1, ())
    assert load(
        tmp_path, inside + '<constraint name="k" type="rolling"><predecessor link="c"/><successor link="d"/></constraint>'
    ).couplings
    for other in ('type="rotation"><predecessor link="a"/>', 'type="position"><parent link="a"/>', "><predecessor link='a'/>"):
        listed = load(tmp_path, f'{inside}<constraint name="k" {other}</constraint>')
        assert ("unknown elements", "robot/constraint (1)") in listed.unused and not listed.loops


def test_unknown_parts_of_loops_and_couplings_are_listed(tmp_path: Path) -> None:
    robot = load(tmp_path, PAIR + loop(inside="<spring/>") + gear("g", "a", "b", "1").replace("<ratio", "<backlash/><ratio"))
    assert dict(robot.unused) == {"unknown elements": "loop/spring (1), coupling/backlash (1)"}


# --- refusals

BALL = tree("ja base a spherical", "jb base b")
TWIST = tree("ja base a", "jb base b", "jc base c")
MARKED = tree("ja base a revolute true", "jb base b revolute true")
REFUSED = {
    "loop without predecessor": (PAIR + '<loop name="ring" type="weld"/>', ["loop 'ring'", "<predecessor>", "add it"]),
    "loop without type": (PAIR + loop().replace('type="revolute"', ""), ["loop 'ring'", "type", "add it"]),
    "loop of unknown type": (PAIR + loop("rubber"), ["loop 'ring'", "rubber", "cylindrical"]),
    "loop without name": (PAIR + loop().replace('"ring"', '""'), ["loop number 1", "name"]),
    "two loops of one name": (PAIR + loop() + loop(), ["two loops", "ring"]),
    "loop to nowhere": (PAIR + loop(ends="a c"), ["loop 'ring'", "successor", "'c'", "not defined"]),
    "loop in one piece": (tree("ja base a", "f a tip fixed") + loop(ends="a tip"), ["loop 'ring'", "no joint moves", "remove"]),
    "loop without axis": (PAIR + loop(inside='<axis xyz="0 0 0"/>'), ["loop 'ring'", "axis is zero"]),
    "parallel axes": (
        PAIR + loop("universal", '<axis xyz="0 0 1"/><axis2 xyz="0 0 -2"/>'),
        ["loop 'ring'", "axis and axis2 are parallel"],
    ),
    "coupling of unknown type": (PAIR + gear("g", "a", "b", "1", "rubber"), ["coupling 'g'", "rubber", "rolling"]),
    "ratio not a number": (PAIR + gear("g", "a", "b", "six"), ["coupling 'g'", "value", "six"]),
    "infinite ratio": (PAIR + gear("g", "a", "b", "inf"), ["coupling 'g'", "value", "finite"]),
    "coupling to nowhere": (PAIR + gear("g", "c", "b", "1"), ["coupling 'g'", "predecessor", "'c'", "not defined"]),
    "coupling to itself": (PAIR + gear("g", "a", "a", "1"), ["coupling 'g'", "no joint moves", "remove"]),
    "coupling of a ball joint": (BALL + gear("g", "b", "a", "1"), ["coupling 'g'", "'ja'", "spherical", "3 degrees"]),
    "coupling along a chain": (tree("ja base a") + gear("g", "base", "a", "2"), ["coupling 'g'", "'ja'", "not let", "fixed"]),
    "coupling twice": (
        PAIR + gear("g", "a", "b", "2") + gear("h", "b", "a", "0.5"),
        ["coupling 'h'", "repeats", "remove"],
    ),
    "two ratios": (PAIR + gear("g", "a", "b", "2") + gear("h", "a", "b", "3"), ["coupling 'g'", "do not let joint", "'jb'"]),
    "a ring of three": (
        TWIST + gear("g", "a", "b", "2") + gear("h", "b", "c", "2") + gear("i", "c", "a", "0.25"),
        ["coupling 'i'", "repeats"],
    ),
    "independent joints coupled": (MARKED + gear("g", "a", "b", "2"), ["coupling 'g'", "'jb'", "marked independent"]),
    "both dependent": (
        MARKED.replace("true", "false") + gear("g", "a", "b", "2"),
        ["coupling 'g'", "'ja'", "marked dependent", "do not determine"],
    ),
    "unreadable mark": (MARKED.replace("true", "maybe"), ["joint 'ja'", "independent", "maybe", '"true" or "false"']),
    "mimic of nothing": (mimic(PAIR, "ja", 'joint="jc"'), ["joint 'ja'", "'jc'", "not defined", 'mimic="independent"']),
    "mimic without joint": (mimic(PAIR, "ja", 'offset="1"'), ["joint 'ja'", "<mimic>", "'joint'"]),
    "mimic of itself": (mimic(PAIR, "ja", 'joint="ja"'), ["cycle", "'ja'", "remove"]),
    "mimic in a circle": (
        mimic(mimic(TWIST, "ja", 'joint="jb"'), "jb", 'joint="ja"'),
        ["cycle", "'ja'", "'jb'", "remove"],
    ),
    "mimic of a ball joint": (mimic(BALL, "jb", 'joint="ja"'), ["joint 'jb'", "'ja'", "spherical"]),
    "mimic by zero": (mimic(PAIR, "ja", 'joint="jb" multiplier="0" offset="1"'), ["joint 'ja'", "multiplier 0", "fixed"]),
    "mimic against a gear": (
        mimic(PAIR, "ja", 'joint="jb" offset="1"') + gear("g", "a", "b", "1"),
        ["coupling 'g'", "contradicts"],
    ),
    "mimic that is independent": (mimic(MARKED, "ja", 'joint="jb"'), ["joint 'ja'", "marked independent"]),
}


@pytest.mark.parametrize(("inside", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_named_with_file_and_element(tmp_path: Path, inside: str, words: Sequence[str]) -> None:
    with pytest.raises(ModelError) as caught:
        load(tmp_path, inside, unsupported="raise")
    for word in [str(tmp_path / "robot.urdf"), *words]:
        assert word in str(caught.value)


def test_decimals_that_agree_do_not_contradict(tmp_path: Path) -> None:
    """Check decimals such as 0.1 and 3 times it, which differs from 0.3 in binary: the third coupling repeats the others,
    and is redundant.
    """
    ring = gear("g", "a", "b", "0.1") + gear("h", "b", "c", "3") + gear("i", "a", "c", "0.3")
    assert 0.1 * 3 != 0.3 and math.isclose(0.1 * 3, 0.3)
    with pytest.raises(ModelError, match="'i': this coupling repeats"):
        load(tmp_path, TWIST + ring)


# --- fixed joints as ends, and couplings that name their followers


def test_a_fixed_joint_stands_for_its_child(tmp_path: Path) -> None:
    inside = PAIR + tree("jf b flange fixed").replace('<link name="b"/>', "")
    by_joint = load(tmp_path, inside + loop(ends="a jf") + gear("g", "a", "jf", "2"))
    by_link = load(tmp_path, inside + loop(ends="a flange") + gear("g", "a", "flange", "2"))
    assert by_joint.loops == by_link.loops
    assert by_joint.loops[0].successor == "flange"
    assert by_joint.couplings == by_link.couplings
    with pytest.raises(ModelError, match="loop 'ring': its successor link 'jb' is not defined"):
        load(tmp_path, PAIR + loop(ends="a jb"))


def terms(*written: str, joint: str = "jb", more: str = "") -> str:
    inside = "".join(f'<term joint="{line.split()[0]}" coefficients="{" ".join(line.split()[1:])}"/>' for line in written)
    return f'<coupling name="cam" joint="{joint}"{more}>{inside}</coupling>'


def test_a_coupling_may_be_a_polynomial_of_several_joints(tmp_path: Path) -> None:
    inside = tree("ja base a", "jb base b revolute true", "jc base c")
    found = load(tmp_path, inside + terms("ja 1 -0.5", "jc 2", more=' offset="0.25"'))
    assert found.couplings == (Coupling("cam", "jb", (("ja", (1.0, -0.5)), ("jc", (2.0,))), 0.25),)
    assert found.independent == ("jb",)
    assert not dict(found.unused)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (terms("jz 1"), "coupling 'cam': joint 'jz' is not defined"),
        (terms("ja 1", joint="jz"), "coupling 'cam': joint 'jz' is not defined"),
        (terms("ja"), "coupling 'cam': <term> has no attribute 'coefficients'"),
        (terms("ja 1 x"), "coupling 'cam': 'coefficients' is not a number: 'x'"),
        (terms("ja 1", more=' offset="x"'), "coupling 'cam': 'offset' is not a number"),
        (terms("ja 1", more=' type="gear"'), "coupling 'cam': the attribute 'type' means nothing to one by <term>s"),
        (terms("ja 1").replace("<term", '<ratio value="2"/><term'), "coupling 'cam': <ratio> means nothing to one by <term>s"),
        (gear("g", "a", "b", "1").replace("<coupling", '<coupling offset="1"'), "coupling 'g': the attribute 'offset' means"),
    ],
)
def test_terms_that_mean_nothing_are_refused(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(tmp_path, PAIR + inside)
