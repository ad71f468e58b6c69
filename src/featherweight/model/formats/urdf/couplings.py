"""Couplings of URDF joints: `<coupling>` and `<mimic>` are linear equations, which are solved here for the followers.

A coupling states: ratio × (sum of the coordinates from the nearest common ancestor to the predecessor) = (sum of those from
there to the successor). Equations share joints, so all of them are solved at once, in fractions of the file's decimals:
rounding then does not affect whether they have a solution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ...editing.locking import joint_motion
from ...types import LARGEST, Coupling, Joint, JointType, ModelError
from ..unsupported import excused, tolerate
from ..xml import attribute, named, only, read_numbers, read_scalar, required

COUPLING_TYPES = ("rolling", "gear", "belt")
BETWEEN_LINKS = ("predecessor", "successor", "ratio")

Row = dict[str, Fraction]
"""A sum that is zero: the nonzero factor of each joint, and the constant under the name ""."""
CONSTANT = ""


class Equation(NamedTuple):
    """An equation between the coordinates of joints, and its element in the file."""

    name: str
    where: str
    row: Row
    leaders: tuple[str, ...]
    followers: tuple[str, ...]  # joints to solve for, in order of preference
    mimic: bool = False


def following(name: str, where: str, joint: str, leader: str, factor: Fraction, offset: Fraction = Fraction()) -> Equation:
    """Return the equation joint = factor × leader + offset."""
    sum_of = ((leader, factor), (CONSTANT, offset), (joint, Fraction(-1)))
    return Equation(name, where, {key: x for key, x in sum_of if x}, (leader,), (joint,), mimic=True)


def mimic_refused(where: str) -> ModelError:
    """Return the error for a joint that mimics another, in a file that is read with mimic="refuse"."""
    remedy = 'load with mimic="follow", or with mimic="independent" to make the joint independent'
    return ModelError(f"{where}: it mimics another joint; {remedy}")


class JointMarks(NamedTuple):
    """Properties of the joints of a file: marks of independence, actuation, and membership in loops."""

    independent: Mapping[str, bool]  # for joints with this attribute
    actuated: Collection[str]
    in_loops: Collection[str]


class Paths:
    """Paths through the tree of links; a fixed joint's name stands for its child, unless a link has that name."""

    def __init__(self, links: Iterable[str], joints: Sequence[Joint]) -> None:
        self._links = {joint.name: joint.child for joint in joints if not moves(joint)} | {link: link for link in links}
        self._inward = {joint.child: joint for joint in joints}

    def link(self, element: Element, role: str, where: str) -> str:
        """Return the link that the element's predecessor or successor names."""
        name = attribute(required(element, role, where), "link", where)
        if name not in self._links:
            raise ModelError(f"{where}: its {role} link '{name}' is not defined; define it or correct the name")
        return self._links[name]

    def between(self, element: Element, where: str) -> tuple[list[Joint], list[Joint]]:
        """Return the moving joints from the nearest common ancestor to the element's predecessor, and to its successor."""
        a, b = (joints_above(self.link(element, role, where), self._inward)[::-1] for role in ("predecessor", "successor"))
        common = sum(1 for x, y in zip(a, b, strict=False) if x is y)
        if not any(moves(joint) for joint in a[common:] + b[common:]):
            raise ModelError(
                f"{where}: no joint moves its predecessor relative to its successor; remove it or correct the links"
            )
        return list(filter(moves, a[common:])), list(filter(moves, b[common:]))


def joints_above(link: str, inward: Mapping[Any, Joint]) -> list[Joint]:
    """Return the joints from a link to the ground; `inward` has the joint that carries each link."""
    path: list[Joint] = []
    above: str | None = link
    while above in inward:
        path.append(inward[above])
        above = path[-1].parent
    return path


def moves(joint: Joint) -> bool:
    """Return whether the joint has degrees of freedom."""
    return joint.type != JointType.FIXED


# --- equations of the file


def coupling_equations(robot: Element, paths: Paths, source: str) -> list[Equation]:
    """Return one equation for each <coupling> between links."""
    elements = named(robot, "coupling", source, own=True).items()
    return [_coupling(name, element, paths, source) for name, element in elements if element.find("term") is None]


def _coupling(name: str, element: Element, paths: Paths, source: str) -> Equation:
    where = f"{source}: coupling '{name}'"
    if other := [f"the attribute '{key}'" for key in ("joint", "offset") if key in element.attrib]:
        _refuse_mixture(where, other[0], "one between links", "say so by <term>s")
    if (kind := element.get("type", "rolling")) not in COUPLING_TYPES:
        raise ModelError(f"{where}: unknown type '{kind}'; use one of {', '.join(COUPLING_TYPES)}, which mean the same")
    to_predecessor, to_successor = paths.between(element, where)
    for joint in to_predecessor + to_successor:
        _require_one_coordinate(joint, where)
    given = only(element, "ratio", where)
    ratio = Fraction(1) if given is None else exact(read_scalar(given, "value", where))
    row = {joint.name: ratio for joint in to_predecessor if ratio} | {joint.name: Fraction(-1) for joint in to_successor}
    leaders = tuple(joint.name for joint in reversed(to_predecessor))
    return Equation(name, where, row, leaders, tuple(joint.name for joint in reversed(to_successor)))


def written_couplings(robot: Element, joints: Iterable[Joint], source: str) -> list[Coupling]:
    """Return the coupling of each <coupling> with <term>s, which gives the follower and its leaders explicitly."""
    by_name = {joint.name: joint for joint in joints}
    elements = named(robot, "coupling", source, own=True).items()
    return [_written(name, element, by_name, source) for name, element in elements if element.find("term") is not None]


def _written(name: str, element: Element, by_name: Mapping[str, Joint], source: str) -> Coupling:
    where = f"{source}: coupling '{name}'"
    other = ["the attribute 'type'"] if "type" in element.attrib else []
    if other := other + [f"<{tag}>" for tag in BETWEEN_LINKS if element.find(tag) is not None]:
        _refuse_mixture(where, other[0], "one by <term>s", "leave out the <term>s")
    written = ((attribute(t, "joint", where), read_numbers(t, "coefficients", where)) for t in element.findall("term"))
    terms = tuple((leader, tuple(coefficients)) for leader, coefficients in written)
    joint = attribute(element, "joint", where)
    for one in (joint, *(leader for leader, _ in terms)):
        if one not in by_name:
            raise ModelError(f"{where}: joint '{one}' is not defined; define it or correct the name")
        _require_one_coordinate(by_name[one], where)
    return Coupling(name, joint, terms, read_scalar(element, "offset", where, 0.0))


def _refuse_mixture(where: str, what: str, kind: str, remedy: str) -> None:
    raise ModelError(f"{where}: {what} means nothing to {kind}; remove it, or {remedy}")


def fix_still_followers(robot: Element, joints: Iterable[Joint], source: str) -> tuple[Joint, ...]:
    """Return the joints, with those fixed whose leader is fixed or has no influence on them: they stay at their offset."""
    by_name = {joint.name: joint for joint in joints}
    for name, element in named(robot, "joint", source).items():
        mimic, joint, where = element.find("mimic"), by_name[name], f"{source}: joint '{name}'"
        if mimic is None or joint.type.nv != 1 or mimic.get("joint") not in by_name:
            continue
        still = not moves(by_name[mimic.get("joint", "")])
        if still or read_scalar(mimic, "multiplier", where, 1.0) == 0.0:
            offset = read_scalar(mimic, "offset", where, 0.0)
            reason = "is fixed" if still else "does not move it (multiplier 0)"
            problem = f"it mimics joint '{mimic.get('joint')}', which {reason}"
            tolerate(where, problem, 'make it type="fixed", or remove its <mimic>', f"fixed at {offset:g}")
            placement = joint.placement @ joint_motion(joint, (offset,))
            by_name[name] = Joint(name, JointType.FIXED, joint.parent, joint.child, placement)
    return tuple(by_name.values())


def mimic_equations(robot: Element, joints: Iterable[Joint], source: str) -> list[Equation]:
    """Return one equation for each <mimic> of a moving joint. A joint that follows itself indirectly moves independently."""
    by_name = {joint.name: joint for joint in joints}
    equations: dict[str, Equation] = {}
    for name, element in named(robot, "joint", source).items():
        where = f"{source}: joint '{name}'"
        mimic = only(element, "mimic", where)
        if mimic is not None and moves(by_name[name]):
            with excused("so it moves independently"):
                equations[name] = _mimic(by_name[name], mimic, by_name, where)
    break_circles(equations, source)
    return list(equations.values())


def _mimic(joint: Joint, mimic: Element, by_name: Mapping[str, Joint], where: str) -> Equation:
    leader = attribute(mimic, "joint", where)
    if leader not in by_name:
        remedy = 'define it, correct the name, or load with mimic="independent"'
        raise ModelError(f"{where}: it mimics joint '{leader}', which is not defined; {remedy}")
    for one in (joint, by_name[leader]):
        _require_one_coordinate(one, where)
    multiplier, offset = read_scalar(mimic, "multiplier", where, 1.0), read_scalar(mimic, "offset", where, 0.0)
    return following(joint.name, where, joint.name, leader, exact(multiplier), exact(offset))


def break_circles(equations: dict[str, Equation], source: str) -> None:
    """Remove equations by which joints follow themselves; each makes the joint of its name follow one other."""
    while circle := _circle(equations):
        cycle = ", ".join(f"'{joint}'" for joint in circle)
        problem, taken = f"joints that mimic each other in a cycle: {cycle}", f"so '{circle[-1]}' moves independently"
        tolerate(source, problem, "remove one <mimic>", taken)
        del equations[circle[-1]]


def _circle(equations: Mapping[str, Equation]) -> list[str]:
    """Return joints each of which follows the next, the last of which follows the first; none if there are no such joints."""
    for name in equations:
        path = [name]
        while (leader := equations[path[-1]].leaders[0]) in equations:
            if leader in path:
                return path[path.index(leader) :]
            path.append(leader)
    return []


def _require_one_coordinate(joint: Joint, where: str) -> None:
    if joint.type.nv != 1:
        kind, degrees = joint.type.value, joint.type.nv
        problem = f"it couples joint '{joint.name}', which is {kind} and has {degrees} degrees of freedom instead of one"
        raise ModelError(f"{where}: {problem}; change its type, or remove the coupling")


def exact(value: float) -> Fraction:
    """Return the decimal in the file: the shortest that reads as this number."""
    return Fraction(repr(value))


# --- their solution


def solve_couplings(equations: list[Equation], marks: JointMarks) -> tuple[Coupling, ...]:
    """Return one coupling for each equation, in their order, in terms of joints that follow none.

    Followers are joints with <mimic>, then, as far as the equations allow, joints that the file marks as dependent, joints on
    the successor's side, and others; joints outside of loops precede joints in loops. Joints that the file marks as
    independent do not follow. Joints that others mimic or that drive a loop do not follow if this can be avoided.

    Raises ModelError if equations contradict or repeat each other, leave a joint no freedom, or contradict the marks.
    """
    rows, pivots = _eliminate(equations, _preferred(equations, marks))
    for number, equation in enumerate(equations):
        if number not in pivots:
            remedy = "remove it, or correct its links and numbers"
            verb = "contradicts" if rows[number] else "repeats"
            raise ModelError(f"{equation.where}: this coupling {verb} what the others say of the same joints; {remedy}")
    solved = {pivots[n]: equation for n, equation in enumerate(equations)}
    _check_marks(equations, solved, marks)
    return tuple(_solution(equation, pivots[n], rows[n]) for n, equation in enumerate(equations))


def _preferred(equations: list[Equation], marks: JointMarks) -> list[str]:
    """Return all joints of the equations, in order of preference for the solution."""
    mimics = {equation.followers[0] for equation in equations if equation.mimic}
    mimicked = {equation.leaders[0] for equation in equations if equation.mimic}
    followers = [joint for equation in equations for joint in equation.followers]
    leaders = [joint for equation in equations for joint in equation.leaders]

    def rank(joint: str) -> tuple[bool, bool, bool, bool]:
        mark = marks.independent.get(joint)
        kept = mark is True or (mark is None and (joint in marks.actuated or joint in mimicked))
        return (joint not in mimics, kept, joint in marks.in_loops, mark is not False)

    return sorted(dict.fromkeys(followers + leaders), key=rank)


def _eliminate(equations: list[Equation], columns: Iterable[str]) -> tuple[list[Row], dict[int, str]]:
    """Run Gauss-Jordan elimination: return the rows, and the joint for which each was solved. Rows without joints have none."""
    rows = [equation.row for equation in equations]
    pivots: dict[int, str] = {}
    for column in columns:
        number = next((n for n, row in enumerate(rows) if n not in pivots and column in row), None)
        if number is None:
            continue
        pivots[number] = column
        pivot_row = {key: value / rows[number][column] for key, value in rows[number].items()}
        rows = [pivot_row if n == number else _reduced(row, pivot_row, column) for n, row in enumerate(rows)]
    return rows, pivots


def _reduced(row: Row, pivot_row: Row, column: str) -> Row:
    """Return the row without this column."""
    if column not in row:
        return row
    zero, factor = Fraction(), row[column]
    change = {key: row.get(key, zero) - factor * pivot_row.get(key, zero) for key in row | pivot_row}
    return {key: value for key, value in change.items() if value}


def _check_marks(equations: list[Equation], solved: Mapping[str, Equation], marks: JointMarks) -> None:
    for joint, equation in solved.items():
        if marks.independent.get(joint):
            problem = f"joint '{joint}' is marked independent, but the couplings leave it no freedom of its own"
            raise ModelError(f"{equation.where}: {problem}; mark another joint, or remove a coupling")
    for equation in equations:
        for joint in equation.leaders + equation.followers:
            free = joint not in solved and joint not in marks.in_loops
            if free and marks.independent.get(joint) is False:
                problem = f"joint '{joint}' is marked dependent, but the couplings do not determine it"
                raise ModelError(f'{equation.where}: {problem}; remove its independent="false", or mark fewer joints')


def _solution(equation: Equation, joint: str, row: Row) -> Coupling:
    """Return the coupling that a row with factor 1 for the joint expresses."""
    if any(abs(value) > LARGEST for value in row.values()):
        problem = f"with the others it lets joint '{joint}' follow with a number beyond ±{LARGEST:g}"
        raise ModelError(f"{equation.where}: {problem}; correct their ratios")
    terms = tuple((key, (float(-value),)) for key, value in row.items() if key not in (joint, CONSTANT))
    if not terms:
        remedy = 'remove a coupling, or make the joint type="fixed"'
        raise ModelError(f"{equation.where}: the couplings do not let joint '{joint}' move; {remedy}")
    return Coupling(equation.name, joint, terms, float(-row.get(CONSTANT, Fraction())))
