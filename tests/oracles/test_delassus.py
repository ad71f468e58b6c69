"""Tests of contact Jacobians and Delassus matrices against Pinocchio, by every algorithm, in every execution."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import featherweight as fw
from featherweight.engine.execution import DIVISION
from featherweight.model.generators import from_parents
from featherweight.model.types import WORLD
from featherweight.robot.constraints.operational_space import DELASSUS
from oracles import pinocchio_models
from oracles.pinocchio_models import Peer
from oracles.robots import NAMES, example
from oracles.states import Array, random_states
from oracles.trees import _with_types, tree

STATES = 2
TREES = (
    "mixed_8",
    "mixed_13",
    "mixed_bush",
    "roots",
    "floating_inside",
    "spherical_below_prismatic",
    "fixed_between",
    "anchored",
    "side_branches",
    "grid",
)
SETS = ("one", "few_rows", "tips", "path", "same_body", "rows", "rigid", "ground", "all_ground")
KINDS = ("weld", "point")

TOLERANCE = 1e-9
"""Tolerance: both sides lose eps times the condition number of M, at most 1e6 here; a wrong term gives far more.

Norms are those of the block of two contacts, relative to the two contacts' own blocks, so that no contact hides another.
"""

ROUNDING = 1e-11
"""Tolerance for one source in three executions: the terms are the same, and the compiler chooses their order."""


# contacts


def contact(frame: str, size: int, seed: int, placed: bool = True) -> fw.BilateralContact:
    """Return any rows, in any frame near the named one."""
    rng = np.random.default_rng(seed)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(rng=rng).as_matrix(), rng.uniform(-0.3, 0.3, 3)
    return fw.BilateralContact(frame, rows=rng.standard_normal((size, 6)), placement=T if placed else None)


def path_to(robot: fw.Robot, body: str) -> list[str]:
    """Return the bodies from the first to `body`."""
    parents = {joint.child: joint.parent for joint in robot.joints}
    path = [body]
    while parents[path[0]] in parents:
        path.insert(0, str(parents[path[0]]))
    return path


def contact_set(robot: fw.Robot, what: str) -> list[fw.BilateralContact]:
    """Return contacts on any robot; an empty list if it has no frames for them."""
    names = [body.name for body in robot.bodies]
    tips = [name for name in names if name not in {joint.parent for joint in robot.joints}]
    longest = max((path_to(robot, tip) for tip in tips), key=len)
    ground = [frame.name for frame in robot.frames if frame.body is None]
    ends = [tips[k] for k in sorted({0, len(tips) // 3, 2 * len(tips) // 3, len(tips) - 1})]
    if what == "one":
        return [fw.BilateralContact(longest[-1])]
    if what == "few_rows":
        return [contact(longest[-1], 1, 1, placed=False), contact(longest[len(longest) // 2], 2, 2)]
    if what == "tips":
        return [fw.BilateralContact(tip, "weld" if k % 2 else "point") for k, tip in enumerate(ends)]
    if what == "path":  # including the base
        return [
            fw.BilateralContact(body) for body in dict.fromkeys((longest[-1], longest[0], longest[len(longest) // 2], ends[-1]))
        ]
    if what == "same_body":
        return [
            contact(longest[-1], 3, 3),
            fw.BilateralContact(ends[-1]),
            fw.BilateralContact(longest[-1], "point"),
            contact(longest[-1], 2, 4),
        ]
    if what == "rows":
        bodies = (names[0], *ends, longest[len(longest) // 2])
        return [contact(body, size, size) for body, size in zip(bodies, (12, 1, 4, 7, 2, 5), strict=False)]
    if what == "rigid":  # frames that are not a body's own
        frames = [frame.name for frame in robot.frames if frame.name not in names and frame.body is not None]
        return [
            fw.BilateralContact(frame, kind)
            for frame, kind in zip(frames[:: len(frames) // 3 + 1], itertools.cycle(KINDS), strict=False)
        ]
    if what == "all_ground":
        return [fw.BilateralContact(name) for name in ground[:2]]
    assert what == "ground"
    return (
        [fw.BilateralContact(ground[0]), fw.BilateralContact(longest[-1], "point"), contact(ground[-1], 2, 5)] if ground else []
    )


def sized(contacts: Sequence[fw.BilateralContact]) -> list[slice]:
    """Return the rows of each contact."""
    begin = [0, *itertools.accumulate(c.size for c in contacts)]
    return [slice(i, j) for i, j in itertools.pairwise(begin)]


# Pinocchio's


def described(name: str) -> fw.Description:
    """Return a tree with additional frames: one on the ground, and two on the last body."""
    description = tree(name)[0]
    last = description.joints[-1].child
    quarter = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    frames = (
        fw.Frame("mark", WORLD, fw.Pose(p=(0.1, 0.2, 0.3))),
        fw.Frame("hook", last, fw.Pose(quarter, (0.3, -0.1, 0.2))),
        fw.Frame("knob", last, fw.Pose(p=(0.0, 0.0, 0.5))),
    )
    return dataclasses.replace(description, frames=frames)


@functools.cache
def peer_of(name: str) -> Peer:
    return pinocchio_models.example(name) if name in NAMES else pinocchio_models.from_description(described(name))


@functools.cache
def plain_robot(name: str) -> fw.Robot:
    """Return a robot in plain Python, so that a large robot has its first result within milliseconds."""
    return example(name, "interpreted") if name in NAMES else fw.build(described(name), execution="interpreted")


def reference_jacobian(peer: Peer, contacts: Sequence[fw.BilateralContact], q: Array) -> Array:
    """Return K J, (states, m, nv)."""
    blocks = []
    for c in contacts:
        J = peer.frame_jacobian([str(c.frame)], "local", q)[:, 0]
        T = np.eye(4) if c.placement is None else np.asarray(c.placement)
        blocks.append(c.matrix @ pin.SE3(T).toActionMatrixInverse() @ J)
    return np.concatenate(blocks, axis=1)


def reference_delassus(peer: Peer, J: Array, q: Array) -> Array:
    """Return J M^-1 J^T, with M scaled to a unit diagonal for the accuracy of the solution."""
    M = peer.mass_matrix(q)
    size = np.sqrt(np.diagonal(M, axis1=1, axis2=2))
    scaled = J / size[:, None, :]
    solved = np.linalg.solve(M / (size[:, :, None] * size[:, None, :]), np.swapaxes(scaled, 1, 2))
    return np.asarray(scaled @ solved)


def assert_blocks_close(
    D: Array, expected: Array, contacts: Sequence[fw.BilateralContact], tolerance: float = TOLERANCE, what: str = ""
) -> None:
    """Compare block by block, relative to at least a millionth of the whole: contacts on a joint's axis are rounding only."""
    assert D.shape == expected.shape, what
    assert np.all(np.isfinite(D)), what

    def norm(x: Array) -> Array:
        return np.asarray(np.linalg.norm(x, axis=(-2, -1)))

    slices = sized(contacts)
    size = [np.sqrt(norm(expected[..., s, s]) + 1e-6 * norm(expected)) for s in slices]
    for (e, s), (f, t) in itertools.product(enumerate(slices), repeat=2):
        difference = norm(D[..., s, t] - expected[..., s, t])
        assert np.all(difference <= tolerance * size[e] * size[f]), f"{what}: contacts {e} and {f}"


def assert_rows_close(
    J: Array, expected: Array, contacts: Sequence[fw.BilateralContact], tolerance: float = TOLERANCE, what: str = ""
) -> None:
    """Compare the rows of each contact, relative to all of them."""
    assert J.shape == expected.shape, what
    for e, s in enumerate(sized(contacts)):
        size = np.linalg.norm(expected[:, s], axis=(1, 2))
        assert np.all(np.linalg.norm(J[:, s] - expected[:, s], axis=(1, 2)) <= tolerance * size), f"{what}: contact {e}"


@pytest.mark.parametrize("name", [*NAMES, *TREES])
def test_all_algorithms_are_pinocchios(name: str) -> None:
    robot, peer = plain_robot(name), peer_of(name)
    q = random_states(robot, STATES).q
    for what in SETS:
        made = contact_set(robot, what)
        if not made:
            assert name in NAMES and what in ("rigid", "ground", "all_ground")
            continue
        J = reference_jacobian(peer, made, q)
        assert_rows_close(robot.contact_jacobian(made)(q), J, made, what=what)
        D = reference_delassus(peer, J, q)
        for algorithm in DELASSUS:
            ours = robot.delassus(made, algorithm)(q)
            assert_blocks_close(ours, D, made, what=f"{algorithm}, {what}")
            np.testing.assert_array_equal(ours, np.swapaxes(ours, 1, 2))


@pytest.mark.parametrize("name", ["hyq", "talos", "panda", "tiago", "mixed_8"])
def test_matrices_are_those_of_pinocchios_inverse(name: str) -> None:
    """Check against Pinocchio's algorithm for the inverse of the mass matrix, which loses up to 160 eps cond(M), about 1e-9."""
    robot, peer = plain_robot(name), peer_of(name)
    made, q = contact_set(robot, "path"), random_states(robot, 1).q
    J = reference_jacobian(peer, made, q)
    upper = np.triu(pin.computeMinverse(peer.model, peer.data, peer.q(q[0])))
    inverse = (upper + np.triu(upper, 1).T)[np.ix_(peer.columns, peer.columns)]
    for algorithm in DELASSUS:
        assert_blocks_close(robot.delassus(made, algorithm)(q), J @ inverse @ np.swapaxes(J, 1, 2), made, what=algorithm)


# Pinocchio's own Delassus matrix

FEET = ("left_sole_link", "right_sole_link")
HANDS = ("gripper_left_base_link", "gripper_right_base_link")


@pytest.mark.parametrize("frames", [FEET, FEET + HANDS], ids=["feet", "feet_and_hands"])
def test_talos_on_its_feet_and_hands_is_pinocchios(frames: tuple[str, ...]) -> None:
    """Check without Pinocchio's optional damping of the diagonal.

    The cheapest algorithm is compiled; all run in plain Python.
    """
    peer = peer_of("talos")
    made = [fw.BilateralContact(frame) for frame in frames]
    constraints, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for name in frames:
        frame = peer.model.frames[peer.model.getFrameId(name)]
        local = pin.ReferenceFrame.LOCAL
        constraints.append(
            pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, peer.model, frame.parentJoint, frame.placement, local)
        )
        datas.append(constraints[-1].createData())
    data = peer.model.createData()
    pin.initConstraintDynamics(peer.model, data, constraints, datas)
    q = random_states(example("talos"), 3).q
    theirs = np.array([pin.computeDelassusMatrix(peer.model, data, peer.q(x), constraints, datas).copy() for x in q])
    assert theirs.shape == (3, 6 * len(frames), 6 * len(frames))
    assert_blocks_close(example("talos").delassus(made)(q), theirs, made, what="auto")
    for algorithm in DELASSUS:
        assert_blocks_close(example("talos", "interpreted").delassus(made, algorithm)(q), theirs, made, what=algorithm)


# executions


def shrub() -> fw.Description:
    """Return a floating base with branches of all types of joints."""
    kinds = ["floating", "revolute", "prismatic", "spherical", "continuous", "planar", "revolute", "prismatic"]
    made = _with_types(from_parents([-1, 0, 1, 2, 2, 0, 5, 5], rng=12, name="shrub"), kinds)
    return dataclasses.replace(made, frames=(fw.Frame("mark", WORLD),))


@functools.cache
def shrub_robot(execution: str) -> fw.Robot:
    return fw.build(shrub(), execution=execution)


@pytest.fixture(params=["traced", "rolled"])
def execution(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("algorithm", [*DELASSUS, "jacobian"])
def test_agrees_with_plain_python(execution: str, algorithm: str) -> None:
    """Check kernels; with loops, one kernel is compiled for all types of contacts."""
    q = random_states(shrub_robot("interpreted"), 3).q
    for what in ("same_body",) if execution == "traced" else ("path", "one", "tips", "same_body", "rows", "all_ground"):
        made = contact_set(shrub_robot("interpreted"), what)
        result, plain = (function(how, made, algorithm)(q) for how in (execution, "interpreted"))
        close = assert_rows_close if algorithm == "jacobian" else assert_blocks_close
        close(result, plain, made, ROUNDING, what)
        compiled = function(execution, made, algorithm)
        assert compiled.execution == execution
        for k in range(len(q)):
            np.testing.assert_array_equal(compiled(q[k]), result[k])


def function(execution: str, made: list[fw.BilateralContact], algorithm: str) -> fw.CompiledFunction:
    robot = shrub_robot(execution)
    return robot.contact_jacobian(made) if algorithm == "jacobian" else robot.delassus(made, algorithm)


@pytest.mark.parametrize("algorithm", DELASSUS)
def test_batches_are_their_states(algorithm: str) -> None:
    """Check bits at all places of the lanes, and with more batch axes."""
    robot = example("panda")
    delassus = robot.delassus(contact_set(robot, "path"), algorithm)
    q = random_states(robot, 21).q
    whole = delassus(q)
    np.testing.assert_array_equal(whole, [delassus(x) for x in q])
    np.testing.assert_array_equal(delassus(q.reshape(7, 3, -1)), whole.reshape(7, 3, *whole.shape[1:]))
    np.testing.assert_array_equal(delassus(q[4:9]), whole[4:9])


@pytest.mark.parametrize("name", ["hyq", "panda"])
def test_single_precision(name: str) -> None:
    """Check to 1e-3: eps of 6e-8, a few hundred operations in sequence, through matrices of condition up to 1e2."""
    robot = example(name)
    made, q = contact_set(robot, "path"), random_states(robot, 16).q
    result = robot.delassus(made)(q.astype(np.float32))
    assert result.dtype == np.float32
    assert_blocks_close(result.astype(np.float64), robot.delassus(made)(q), made, 1e-3)


@pytest.mark.parametrize("algorithm", ["auto", *DELASSUS])
def test_contacts_on_the_ground_compile_to_zeros(algorithm: str) -> None:
    robot = example("ur5")
    made = contact_set(robot, "all_ground")
    q = random_states(robot, 3).q
    delassus, jacobian = robot.delassus(made, algorithm), robot.contact_jacobian(made)
    np.testing.assert_array_equal(delassus(q), np.zeros((3, 12, 12)))
    np.testing.assert_array_equal(delassus(q[0]), np.zeros((12, 12)))
    np.testing.assert_array_equal(jacobian(q), np.zeros((3, 12, robot.nv)))


# the choice

COUNTED = ("hyq", "solo12", "iris", "panda", "ur5", "kinova", "allegro", "baxter", "double_pendulum", "talos")
COUNTED_TREES = ("mixed_3", "mixed_8", "side_branches", "balanced", "anchored")
LARGE = ("talos", "hyq", "solo12", "baxter", "anchored", "mixed_8", "side_branches", "balanced")


def weight(o: fw.Operations) -> int:
    """Return the operations that decide between algorithms; sines and cosines are the same in all."""
    return o.flops + DIVISION * (o.div + o.sqrt)


@pytest.mark.parametrize("name", [*COUNTED, *COUNTED_TREES])
def test_none_takes_fewer_operations_than_the_one_that_is_chosen(name: str) -> None:
    robot = example(name) if name in NAMES else tree(name)[1]
    for what in ("tips", "same_body") if name in LARGE else ("one", "path", "same_body", "rows"):
        made = contact_set(robot, what)
        f = robot.delassus(made)
        counts = {algorithm: weight(o) for algorithm, o in f.candidates.items()}
        assert counts.keys() == DELASSUS.keys()
        assert weight(f.operations) == counts[f.algorithm] == min(counts.values())
        assert len({o.trig for o in f.candidates.values()}) == 1
        for algorithm in DELASSUS:
            assert robot.delassus(made, algorithm).operations == f.candidates[algorithm]


def test_branches_are_left_out_where_they_are_not_worth_it() -> None:
    """Check the six rows of a floating base, a short path along which wrenches cost little, and twelve joints, a long path."""
    robot = example("hyq")
    feet = [fw.BilateralContact(foot) for foot in ("lf_foot", "rf_foot", "lh_foot", "rh_foot")]
    every, none, some = (robot.delassus(feet, a).operations for a in ("pv-osimr", "pv-osim", "pv-osimr-some"))
    assert weight(some) == weight(none) == weight(every)  # the base costs the same in both
    chain = fw.build(fw.generators.chain(24))
    two = [fw.BilateralContact("body11"), fw.BilateralContact("body23")]
    every, none, some = (chain.delassus(two, a).operations for a in ("pv-osimr", "pv-osim", "pv-osimr-some"))
    assert weight(some) == weight(every) < weight(none)
