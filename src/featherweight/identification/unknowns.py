"""Parameters that a fit finds: their names, scales, bounds and priors, and the robots that have given values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..array_types import Array, Integers, Matrix, Vector
from ..checks import NAME, NOTHING, Positive, checked, either, list_of, one_of
from ..contact.compliant.compliance import MOST
from ..model.editing.adding import backlash_tendon
from ..model.inertial_parameters import NAMES
from ..model.types import JointType, ShapeType
from ..names import UnknownNameError, choose_from
from ..robot.robot import Robot
from ..simulation.inverse_weights import Inertias, inverse_mass_matrix, weights_of_dofs
from ..simulation.simulation import Simulation
from ..simulation.variation import RESIZED, with_gains
from .consistency import parameters_of, pseudo_inertia
from .consistent_fit import measure

ARMATURE, DAMPING, DRY, STIFFNESS = "armature", "damping", "dry_friction", "stiffness"
MASS, CENTER, INERTIA, PAYLOAD = "mass", "center", "inertia", "payload"
POSITION, RADIUS, SIZE = "position", "radius", "size"
FRICTION, TIME_CONSTANT, DAMPING_RATIO = "friction", "time_constant", "damping_ratio"
LEAST_IMPEDANCE, GREATEST_IMPEDANCE, IMPEDANCE_WIDTH = "least_impedance", "greatest_impedance", "impedance_width"
BACKLASH, GAIN, DRIVE, OFFSET, DELAY, LATENCY = "backlash", "gain", "drive", "offset", "delay", "latency"
INPUTS = "tau", "control"
FIELD = {DAMPING: "damping", DRY: "dry_friction", STIFFNESS: "stiffness"}  # of `MovingJoint`
OF_JOINTS, OF_BODIES = (ARMATURE, *FIELD, BACKLASH, OFFSET, DRIVE), (MASS, CENTER, INERTIA)
OF_SHAPES = POSITION, RADIUS, SIZE
ROUND = ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.CYLINDER
SOLREF = TIME_CONSTANT, DAMPING_RATIO
SOLIMP = LEAST_IMPEDANCE, GREATEST_IMPEDANCE, IMPEDANCE_WIDTH  # the first of five
OF_CONTACTS = FRICTION, *SOLREF, *SOLIMP
KINDS = (*OF_JOINTS, *OF_BODIES, PAYLOAD, *OF_SHAPES, *OF_CONTACTS, GAIN, DELAY, LATENCY)
OF_INERTIA = ARMATURE, *OF_BODIES, PAYLOAD  # kinds that change inverse inertias
MEASURED = OFFSET, DELAY  # kinds that change measurements, not the motion
TYPICAL = {
    ARMATURE: 0.05, DAMPING: 0.2, DRY: 0.2, STIFFNESS: 1.0, CENTER: 0.02, POSITION: 0.02, RADIUS: 0.02, SIZE: 0.02,
    INERTIA: 0.3, PAYLOAD: 0.5, FRICTION: 0.5,
    TIME_CONSTANT: 0.5, DAMPING_RATIO: 0.5, LEAST_IMPEDANCE: 0.1, GREATEST_IMPEDANCE: 0.02, IMPEDANCE_WIDTH: 0.5,
    BACKLASH: 1e-2, GAIN: 0.5, DRIVE: 0.5, OFFSET: 0.02, DELAY: 5e-3, LATENCY: 5e-3,
}  # fmt: skip
"""Typical magnitudes: larger errors leave a parameter undetermined."""
MANY = 4  # names that share a parameter from which on its own name leaves most of them out
SPREAD = 1.0  # prior deviation of entries of log-Cholesky factors
WEAK = 100.0  # deviation of the prior of parameters without one, relative to their scale
LEAST = {MASS: 1e-3, RADIUS: 1e-2, SIZE: 1e-2, **dict.fromkeys((*SOLREF, *SOLIMP), 1e-2)}  # relative to the value of the file
LOWER = tuple((i, j) for i in range(4) for j in range(i + 1))  # entries of a Cholesky factor

Names = Annotated[str | Iterable[str] | None, either([NOTHING, NAME, list_of(NAME)]).worded("a name, a list of names, or None")]
Or = Annotated[float | None, either([NOTHING])]


@checked
@dataclass(frozen=True)
class Parameter:
    """Parameters of one kind that `fit` finds: one for each name in `of`, or one that all names share (`shared`).

    | kind | `of` | value |
    |---|---|---|
    | "armature" | joints | reflected inertia [kg m², kg] |
    | "damping" | joints | viscous friction [N m s/rad, N s/m] |
    | "dry_friction" | joints | dry friction [N m, N] |
    | "stiffness" | joints | stiffness of the joint's spring [N m/rad, N/m] |
    | "backlash" | joints | gap [rad, m] between drive and link (`Description.with_backlash`) |
    | "drive" | joints | factor of the log's tau, such as a motor constant |
    | "offset" | joints | measured position minus position [rad, m] |
    | "gain" | actuators | factor of gain and bias |
    | "mass" | bodies | mass [kg] of constant shape: the inertia grows with it |
    | "center" | bodies | centre of mass (3) [m], with the same inertia about it |
    | "inertia" | bodies | all ten inertial parameters, physically consistent |
    | "payload" | frames or bodies | mass [kg] of a point at the frame's origin |
    | "position" | shapes | position (3) [m] of a shape in the frame of its body, for contacts |
    | "radius" | spheres, capsules, cylinders | radius [m] of a shape, for contacts |
    | "size" | these, boxes, ellipsoids | all numbers [m] of `Shape.size`, for contacts |
    | "friction" | nothing | factor of the friction of all contacts |
    | "time_constant" | nothing | factor of the time constants of all compliant contacts (`solref`) |
    | "damping_ratio" | nothing | factor of the damping ratios of all compliant contacts |
    | "least_impedance" | nothing | factor of the impedances of all compliant contacts at their surface (`solimp`) |
    | "greatest_impedance" | nothing | factor of those at the width of their curve and beyond |
    | "impedance_width" | nothing | factor of these widths |
    | "delay" | channels of the log | age of measurements [s] |
    | "latency" | "tau" or "control" | time [s] after which the drives follow the log's inputs |

    Without `of`, there is one for each joint, body, actuator or channel (floating joints have none). `initial` is the value
    from which the fit starts, by default the robot's. `lower` and `upper` are bounds; masses, friction, damping, stiffness,
    armature and latency are never negative. `prior` is a value that is known with a standard `deviation`; with a deviation
    alone, it is the initial value. The entries of "inertia" are a log-Cholesky factor relative to the robot's (Rucker and
    Wensing 2022) with a prior of deviation 1 around it, unless `deviation` gives another.
    """

    kind: Annotated[str, one_of(KINDS)]
    of: Names = None
    shared: bool = False
    initial: float | None = None
    lower: float | None = None
    upper: float | None = None
    prior: float | None = None
    deviation: Positive | None = None


class Unknown(NamedTuple):
    """One number that a fit finds."""

    name: str
    unit: str
    initial: float
    lower: float
    upper: float
    prior: float
    deviation: float  # of the prior; infinite without one
    scale: float  # magnitude of errors that matter
    moves: bool  # whether the motion depends on it
    kind: str


class Inertial(NamedTuple):
    """Unknowns of one body: numbers of the unknowns, or -1."""

    body: int
    mass: int = -1
    center: int = -1  # the first of three
    factor: int = -1  # the first of ten
    payloads: tuple[tuple[int, tuple[float, float, float]], ...] = ()  # unknown, point in the body's frame


class Unknowns:
    """The unknowns of a fit, and the maps from their values (rows, p) to arguments of `Simulation.vary`."""

    def __init__(self, sim: Simulation, given: Iterable[Parameter | str], channels: Sequence[str]) -> None:
        """Take the simulation of the user. `simulation` is one in which all unknowns act, whose robots are never equal."""
        self.given = tuple(x if isinstance(x, Parameter) else Parameter(x) for x in given)
        if not self.given:
            raise ValueError("fit: parameters must name at least one kind, such as 'damping'")
        self.channels = channels
        self._robot, self.list = sim.robot, list[Unknown]()
        self._tendons = {t.name: t for t in sim.forces.tendons}
        self._rows: dict[str, list[tuple[Array, float, int]]] = {}  # of FIELD: rows, value of a factor of one, unknown
        self._armature: list[tuple[int, int]] = []
        self.gains: list[tuple[int, int]] = []  # (actuator, unknown)
        self.drives: list[tuple[int, int]] = []  # (velocity, unknown)
        self.offsets: list[tuple[int, int]] = []  # (coordinate, unknown)
        self.delays: dict[str, int] = {}
        self.latencies: dict[str, int] = {}
        self._backlash: list[tuple[int, float, int]] = []  # row of the tendon, gap of the file, unknown
        self._contacts: dict[str, int] = {}  # by kind
        self._shapes: list[tuple[int, int]] = []  # (shape, the first of three unknowns of its position)
        self._sizes: list[tuple[int, int, int]] = []  # (shape, the first unknown of its size, and their number)
        self._inertial: dict[int, Inertial] = {}
        self.simulation, self._nominal = _with_acting_joints(sim, self.given)
        self._factors = np.array([])
        for x in self.given:
            self._add(x)
        names = [u.name for u in self.list]
        if len(set(names)) < len(names):
            raise ValueError(f"fit: parameters give {next(n for n in names if names.count(n) > 1)!r} twice")
        P = pseudo_inertia(self._robot.inertial_parameters)
        self._pseudo = P
        self._cholesky = np.linalg.cholesky(_regular(P))

    def __len__(self) -> int:
        return len(self.list)

    def field(self, name: str) -> Vector:
        """Return one field of all unknowns."""
        return np.array([getattr(u, name) for u in self.list], float)

    @property
    def moves(self) -> Integers:
        """The numbers of the unknowns on which the motion depends."""
        return np.flatnonzero([u.moves for u in self.list])

    def of_kinds(self, *kinds: str) -> Integers:
        """Return the numbers of the unknowns of some kinds."""
        return np.flatnonzero([u.kind in kinds for u in self.list])

    # binding of names

    def _add(self, x: Parameter) -> None:
        robot = self._robot
        if x.kind in OF_JOINTS:
            joints = {j.name: j for j in (robot.joints if x.kind in (OFFSET, DRIVE) else robot.model.joints)}
            default = [n for n, j in joints.items() if j.type is not JointType.FLOATING and _has(x.kind, j)]
            if x.kind == BACKLASH:
                default = [n for n in default if backlash_tendon(n) in self._tendons]
            self._each(x, list(joints), default, lambda name, k: self._of_joint(x, joints[name], k))
        elif x.kind in OF_BODIES:
            bodies = [b.name for b in robot.bodies]
            self._each(x, bodies, bodies, lambda name, k: self._of_body(x, bodies.index(name), k))
        elif x.kind == PAYLOAD:
            frames = {f.name: f for f in robot.frames if f.body is not None}
            self._each(x, list(frames), [], lambda name, k: self._of_frame(frames[name], k))
        elif x.kind in OF_SHAPES:
            shapes = [s.name for s in robot.shapes]
            self._each(x, shapes, [], lambda name, k: self._of_shape(x.kind, shapes.index(name), k))
        elif x.kind == GAIN:
            drives = [a.name for a in self.simulation.forces.actuators]
            self._each(x, drives, drives, lambda name, k: self._of_drive(drives.index(name), k))
        elif x.kind == DELAY:
            self._each(x, list(self.channels), list(self.channels), self._of_channel)
        elif x.kind == LATENCY:
            self._each(x, list(INPUTS), [], self._of_input)
        else:
            self._contacts[x.kind] = self._new(x, x.kind, "", 1.0, x.kind, self._greatest_factor(x.kind))

    def _each(self, x: Parameter, known: list[str], default: list[str], bind: Callable[[str, int], float]) -> None:
        """Add the unknowns of the names of a parameter. `bind` notes the number of an unknown and returns its own value."""
        names = default if x.of is None else [x.of] if isinstance(x.of, str) else list(x.of)
        for name in names:
            if name not in known:
                raise UnknownNameError(f"{self._robot.name}: Parameter({x.kind!r}) has no part {choose_from(name, known)}")
        if not names:
            if x.kind in OF_SHAPES:  # not those for pictures
                types = ROUND if x.kind == RADIUS else RESIZED if x.kind == SIZE else [*ShapeType]
                known = [s.name for s in self._robot.shapes if s.collision and s.type in types]
            some = ", ".join(known) or "none"
            raise ValueError(f"{self._robot.name}: Parameter({x.kind!r}) needs names in `of`; there are {some}")
        groups = [names] if x.shared else [[name] for name in names]
        for group in groups:
            k = len(self.list)
            own = [bind(name, k) for name in group]
            label = "+".join(group) if len(group) < MANY else f"{group[0]}+{len(group) - 1} others"
            if x.kind == CENTER:
                for i, axis in enumerate("xyz"):
                    self._new(x, f"{label}.{axis}", "m", self._center(group[0])[i], x.kind)
            elif x.kind == POSITION:
                for axis, p in zip("xyz", self._robot.shapes[group[0]].placement.p, strict=True):
                    self._new(x, f"{label}.position.{axis}", "m", float(p), x.kind)
            elif x.kind == SIZE:
                if len({self._robot.shapes[name].type for name in group}) > 1:
                    raise ValueError(f"fit: shapes that share a size must have the same type: {', '.join(group)}")
                for i, own_size in enumerate(self._robot.shapes[group[0]].size):
                    self._new(x, f"{label}.size[{i}]", "m", float(own_size), x.kind)
            elif x.kind == INERTIA:
                for i, j in LOWER:
                    self._new(x, f"{label}.log[{i}{j}]", "", 0.0, x.kind)
            else:
                self._new(x, f"{label}.{x.kind}", self._unit(x.kind, group[0]), float(np.mean(own)), x.kind)

    def _new(self, x: Parameter, name: str, unit: str, own: float, kind: str, most: float = np.inf) -> int:
        initial = own if x.initial is None else x.initial
        least = -np.inf if kind in (CENTER, POSITION, INERTIA, OFFSET, DELAY, DRIVE) else LEAST.get(kind, 0.0) * own
        lower = least if x.lower is None else max(least, x.lower)
        upper = most if x.upper is None else min(most, x.upper)
        if not lower <= initial <= upper:
            raise ValueError(f"fit: {name} starts at {initial:g}, outside of its bounds from {lower:g} to {upper:g}")
        deviation = x.deviation if x.deviation is not None else SPREAD if kind == INERTIA else np.inf
        prior = initial if x.prior is None else x.prior
        if x.prior is not None and not np.isfinite(deviation):
            raise ValueError(f"fit: the prior of {name} needs a deviation")
        scale = max(abs(initial), abs(own), TYPICAL.get(kind, 0.0)) if kind != MASS else max(abs(initial), abs(own), 1e-2)
        self.list.append(Unknown(name, unit, initial, lower, upper, prior, deviation, scale, kind not in MEASURED, kind))
        return len(self.list) - 1

    def _unit(self, kind: str, name: str) -> str:
        if kind in (GAIN, DRIVE):
            return ""
        if kind in (MASS, PAYLOAD):
            return "kg"
        if kind == RADIUS:
            return "m"
        if kind in (DELAY, LATENCY):
            return "s"
        slides = self._robot.model.joints[[j.name for j in self._robot.model.joints].index(name)].type is JointType.PRISMATIC
        turning = {ARMATURE: "kg m²", DAMPING: "N m s/rad", DRY: "N m", STIFFNESS: "N m/rad", OFFSET: "rad", BACKLASH: "rad"}
        sliding = {ARMATURE: "kg", DAMPING: "N s/m", DRY: "N", STIFFNESS: "N/m", OFFSET: "m", BACKLASH: "m"}
        return (sliding if slides else turning)[kind]

    def _of_joint(self, x: Parameter, joint: Any, k: int) -> float:
        if x.kind in FIELD:
            rows = np.arange(joint.v_slice.start, joint.v_slice.stop)
            self._rows.setdefault(x.kind, []).append((rows, self._nominal[x.kind, joint.name], k))
            return float(getattr(joint, FIELD[x.kind]))
        if x.kind == ARMATURE:
            self._armature.append(([j.name for j in _with_armature(self._robot)].index(joint.name), k))
            return float(joint.armature)
        if x.kind == BACKLASH:
            name = backlash_tendon(joint.name)
            gap = self._tendons[name].upper - self._tendons[name].lower if name in self._tendons else 0.0
            if not 0.0 < gap < np.inf:
                raise ValueError(f"fit: joint {joint.name!r} has no backlash; give it a gap with Description.with_backlash")
            self._backlash.append((self.simulation.forces.joint_rows + [*self._tendons].index(name), gap, k))
            return float(gap)
        if not _has(x.kind, joint):
            raise ValueError(f"fit: joint {joint.name!r} has no {x.kind}, because it has not one coordinate of its own")
        if x.kind == OFFSET:
            self.offsets.append((joint.q_slice.start, k))
            return 0.0
        self.drives.append((joint.v_slice.start, k))
        return 1.0

    def _of_body(self, x: Parameter, body: int, k: int) -> float:
        present = self._inertial.get(body, Inertial(body))
        field = {MASS: "mass", CENTER: "center", INERTIA: "factor"}[x.kind]
        chosen: dict[str, Any] = {field: k}
        made = present._replace(**chosen)
        name = self._robot.bodies[body].name
        if made.factor >= 0 and (made.mass >= 0 or made.center >= 0):
            raise ValueError(f"fit: 'inertia' of {name!r} includes its mass and centre; do not give them as well")
        mass = float(self._robot.inertial_parameters[body, 0])
        if mass <= 0.0 and x.kind != INERTIA:
            raise ValueError(
                f"fit: {name!r} has no mass in the model; give it one (Description.with_inertias), or fit a payload"
            )
        self._inertial[body] = made
        return mass

    def _greatest_factor(self, kind: str) -> float:
        """Return the greatest factor of a parameter of contacts: impedances are at most MOST."""
        softness = self.simulation.contact_softness
        if kind not in SOLIMP[:2] or softness is None or not len(softness[1]):
            return np.inf
        return float(MOST / softness[1][:, SOLIMP.index(kind)].max())

    def _center(self, body: str) -> Array:
        parameters = self._robot.inertial_parameters[[b.name for b in self._robot.bodies].index(body)]
        return np.asarray(parameters[1:4] / parameters[0])

    def _of_frame(self, frame: Any, k: int) -> float:
        body = [b.name for b in self._robot.bodies].index(frame.body)
        present = self._inertial.get(body, Inertial(body))
        self._inertial[body] = present._replace(payloads=(*present.payloads, (k, tuple(frame.placement.p))))
        return 0.0

    def _of_shape(self, kind: str, shape: int, k: int) -> float:
        if kind == POSITION:
            self._shapes.append((shape, k))
            return 0.0
        known = self._robot.shapes[shape]
        if known.type not in (ROUND if kind == RADIUS else RESIZED):
            other = f"; use Parameter({SIZE!r})" if known.type in RESIZED else ""
            raise ValueError(f"fit: shape {known.name!r} is a {known.type}, whose {kind} cannot be fitted{other}")
        self._sizes.append((shape, k, 1 if kind == RADIUS else len(known.size)))
        return float(known.size[0])

    def _of_drive(self, drive: int, k: int) -> float:
        self.gains.append((drive, k))
        return 1.0

    def _of_channel(self, channel: str, k: int) -> float:
        self.delays[channel] = k
        return 0.0

    def _of_input(self, name: str, k: int) -> float:
        self.latencies[name] = k
        return 0.0

    # values

    def inertial_parameters(self, X: Matrix) -> Array:
        """Return the inertial parameters (rows, nbodies, 10) of values (rows, p)."""
        P = np.tile(self._pseudo, (len(X), 1, 1, 1))
        for body, mass, center, factor, payloads in self._inertial.values():
            if factor >= 0:
                E = np.zeros((len(X), 4, 4))
                for n, (i, j) in enumerate(LOWER):
                    E[:, i, j] = np.exp(X[:, factor + n]) if i == j else X[:, factor + n]
                E = self._cholesky[body] @ E
                P[:, body] = E @ np.swapaxes(E, 1, 2)
            if mass >= 0:
                P[:, body] *= (X[:, mass] / self._pseudo[body, 3, 3])[:, None, None]
            if center >= 0:
                H = np.tile(np.eye(4), (len(X), 1, 1))
                H[:, :3, 3] = X[:, center : center + 3] - self._pseudo[body, :3, 3] / self._pseudo[body, 3, 3]
                P[:, body] = H @ P[:, body] @ np.swapaxes(H, 1, 2)
            for k, point in payloads:
                r = np.array([*point, 1.0])
                P[:, body] += X[:, k, None, None] * np.outer(r, r)
        return parameters_of(P)

    def arguments(self, X: Matrix) -> dict[str, Array]:
        """Return the arguments of `Simulation.vary` for robots with values (rows, p)."""
        found: dict[str, Array] = {}
        if self._inertial:
            found["parameters"] = self.inertial_parameters(X)
        if self._armature:
            found["armature"] = np.tile(self._robot.armature, (len(X), 1))
            for j, k in self._armature:
                found["armature"][:, j] = X[:, k]
        for kind, entries in self._rows.items():
            factors = np.ones((len(X), self.simulation.forces.joint_rows))
            for rows, nominal, k in entries:
                factors[:, rows] = X[:, k, None] / nominal
            found[kind] = factors
        if self._backlash:
            found["limits"] = np.ones((len(X), self.simulation.forces.rows))
            for row, gap, k in self._backlash:
                found["limits"][:, row] = X[:, k] / gap
        if self.gains:
            found["gains"] = np.ones((len(X), len(self.simulation.forces.actuators)))
            for drive, k in self.gains:
                found["gains"][:, drive] = X[:, k]
        if self._shapes:
            found["shape_offsets"] = np.zeros((len(X), len(self._robot.shapes), 3))
            first = {k: shape for shape, k in reversed(self._shapes)}
            for shape, k in self._shapes:
                found["shape_offsets"][:, shape] = X[:, k : k + 3] - self._robot.shapes[first[k]].placement.p
        if self._sizes:
            found["shape_sizes"] = np.ones((len(X), len(self._robot.shapes), 3))
            for shape, k, count in self._sizes:
                found["shape_sizes"][:, shape, :count] = X[:, k : k + count] / self._robot.shapes[shape].size[:count]
        if FRICTION in self._contacts:
            found["friction"] = X[:, self._contacts[FRICTION]].copy()
        if any(kind in self._contacts for kind in SOLREF):
            places = [self._contacts.get(kind) for kind in SOLREF]
            found["solref"] = np.column_stack([np.ones(len(X)) if k is None else X[:, k] for k in places])
        if any(kind in self._contacts for kind in SOLIMP):
            found["solimp"] = np.ones((len(X), 5))
            for i, kind in enumerate(SOLIMP):
                if kind in self._contacts:
                    found["solimp"][:, i] = X[:, self._contacts[kind]]
        return found

    def arguments_of(self, X: Matrix, robots: int) -> dict[str, Array]:
        """Return the arguments of `Simulation.vary` for so many robots, those with values (rows, p) one after the other."""
        given, alike = self.arguments(X), ("parameters", "armature", "shape_offsets", "shape_sizes") if len(X) == 1 else ()
        same = {name: given.pop(name)[0] for name in alike if name in given}
        return same | {name: np.tile(x, (robots // len(X), *[1] * (x.ndim - 1))) for name, x in given.items()}

    @property
    def as_forces(self) -> Array:
        """Flags (p,) of unknowns that change the motion as joint forces do (`force_slopes`); none with loops.

        Inertias that scale the compliance of contacts or tendons do not.
        """
        if self._robot.closed:
            return np.zeros(len(self), bool)
        others = {*OF_CONTACTS, *OF_SHAPES, BACKLASH, STIFFNESS, LATENCY, *(OF_INERTIA if self._scale_contacts else ())}
        others |= set() if self.simulation.has_explicit_drives else {GAIN}
        return np.array([u.moves and u.kind not in others for u in self.list])

    def drive_slopes(self, x: Vector, q: Matrix, v: Matrix, control: Matrix) -> Array:
        """Return the derivatives (robots, nv, gains) of joint forces of actuators by their gains, in the order of `gains`."""
        forces, factors = self.simulation.forces, np.ones(len(self.simulation.forces.actuators))
        factors[[drive for drive, _ in self.gains]] = [x[k] for _, k in self.gains]
        numbers = with_gains(forces, factors[None])
        here, found = forces.of_drives(q, v, control, numbers), np.empty((*v.shape, len(self.gains)))
        for i, (drive, k) in enumerate(self.gains):
            small = 1e-6 * max(self.list[k].scale, abs(x[k]))
            ahead = factors.copy()
            ahead[drive] += small
            found[..., i] = (forces.of_drives(q, v, control, with_gains(forces, ahead[None])) - here) / small
        return found

    @cached_property
    def _scale_contacts(self) -> bool:
        softness, forces = self.simulation.contact_softness, self.simulation.forces
        return softness is not None and (len(softness[0]) > 0 or forces.rows > forces.joint_rows)

    @cached_property
    def scale_friction(self) -> bool:
        """True if inertias are unknown that scale the compliance of limits and dry friction of joints."""
        yields = self.simulation.contact_softness is not None and not self._scale_contacts
        return yields and not self._robot.closed and any(u.kind in OF_INERTIA for u in self.list)

    def weight_slopes(self, x: Vector) -> Matrix:
        """Return the derivatives (nv, p) of the logarithms of the inverse inertias that scale the compliance at joints."""
        robot, forces, q = self._robot, self.simulation.forces, self._robot.start(within_limits=False)
        small = 1e-6 * np.maximum(self.field("scale"), np.abs(x))
        logs = []
        for sign in (1.0, -1.0):
            given = self.arguments(x + sign * np.diag(small))
            bodies = given.get("parameters", np.tile(robot.inertial_parameters, (len(x), 1, 1)))
            armature = given.get("armature", np.tile(robot.armature, (len(x), 1)))
            inverse = inverse_mass_matrix(robot, q, Inertias(bodies, armature))
            logs.append(np.log(weights_of_dofs(robot, forces, q, inverse, bodies)))
        return np.asarray(((logs[0] - logs[1]) / (2.0 * small[:, None])).T)

    @property
    def rub(self) -> bool:
        """True if dry friction is unknown."""
        return DRY in self._rows

    @property
    def inertial(self) -> Integers:
        """The numbers of the unknowns on which inertial parameters depend."""
        return self.of_kinds(*OF_BODIES, PAYLOAD)

    def inertial_slopes(self, x: Vector) -> Matrix:
        """Return the derivatives (10 nbodies, p) of inertial parameters at values (p,)."""
        small = 1e-6 * np.maximum(self.field("scale"), np.abs(x))
        ahead, behind = (self.inertial_parameters(x + s * np.diag(small)).reshape(len(x), -1) for s in (1.0, -1.0))
        return np.asarray(((ahead - behind) / (2.0 * small[:, None])).T)

    def write_force_slopes(
        self, found: Array, x: Vector, v: Matrix, a: Matrix, dry: Matrix, limits: Matrix, compliance: Matrix
    ) -> None:
        """Write the derivatives (robots, nv, p) of joint forces by unknowns that act at joints.

        `v` are velocities after a step, `a` accelerations, `dry` and `limits` forces (robots, nv) of both in it, and
        `compliance` is that of `weight_slopes`. Dry friction that sticks does not depend on its greatest value. Forces of
        limits and of dry friction that sticks are inversely proportional to their compliance at the same velocity.
        """
        slides = ~self.sticks(x, dry)
        found[:] = 0.0
        if self.scale_friction:
            yields = limits + np.where(slides, 0.0, dry)
            some = np.flatnonzero(yields.any(axis=1))
            found[some] = -yields[some, :, None] * compliance
        for kind, slope in ((ARMATURE, -a), (DAMPING, -v), (DRY, np.sign(dry) * slides)):
            rows, columns = self._places_of_forces[kind]
            found[:, rows, columns] = slope[:, rows] + (found[:, rows, columns] if kind == ARMATURE else 0.0)
        rows, columns = self._places_of_forces[DRY]
        none = x[columns] <= 0.0
        if none.any():
            found[:, rows[none], columns[none]] = -np.sign(v[:, rows[none]])

    @cached_property
    def _places_of_forces(self) -> dict[str, tuple[Integers, ...]]:
        """The velocities and unknowns of armature, damping and dry friction."""
        joints = _with_armature(self._robot)
        entries = {kind: [(rows, k) for rows, _, k in self._rows.get(kind, ())] for kind in (DAMPING, DRY)}
        entries[ARMATURE] = [(np.arange(joints[j].v_slice.start, joints[j].v_slice.stop), k) for j, k in self._armature]
        pairs = {kind: [(int(row), k) for rows, k in own for row in rows] for kind, own in entries.items()}
        return {kind: tuple(np.array(own, np.int64).reshape(-1, 2).T) for kind, own in pairs.items()}

    def add_late_slopes(self, found: Array, a: Matrix, change: Matrix) -> None:
        """Add slopes (robots, nv, p) of the product of the mass matrix and `a`, minus that of the damping and `change`."""
        for kind, x in ((ARMATURE, a), (DAMPING, -change)):
            rows, columns = self._places_of_forces[kind]
            found[:, rows, columns] += x[:, rows]

    def damping(self, x: Vector) -> Vector:
        """Return the damping (nv,) of joints."""
        found: Vector = self.simulation.forces.springs.damping[: self._robot.nv].copy()
        for rows, _, k in self._rows.get(DAMPING, ()):
            found[rows] = x[k]
        return found

    def sticks(self, x: Vector, dry: Matrix) -> Array:
        """Return whether joints stick (robots, nv) by dry friction with these forces."""
        return np.asarray(np.abs(dry) < (1.0 - 1e-6) * self._greatest_friction(x))

    def _greatest_friction(self, x: Vector) -> Vector:
        """Return the greatest dry friction (nv,) of joints."""
        most = self.simulation.forces.friction[: self._robot.nv].copy()
        for rows, _, k in self._rows.get(DRY, ()):
            most[rows] = x[k]
        return most

    def robot(self, x: Vector) -> Robot:
        """Return the robot with values (p,), without those of contacts, shapes, gaps and gains, and what concerns the log."""
        robot = self._robot
        if self._inertial:
            robot = robot.with_inertial_parameters(self.inertial_parameters(x[None])[0])
        if self._armature:
            names = [j.name for j in _with_armature(robot)]
            robot = robot.with_armature({names[j]: float(x[k]) for j, k in self._armature})
        values: dict[str, dict[str, float]] = {}
        for kind, entries in self._rows.items():
            for rows, _, k in entries:
                name = next(j.name for j in robot.model.joints if j.v_slice.start == rows[0])
                values.setdefault(name, {})[FIELD[kind]] = float(x[k])
        return _with_joints(robot, values) if values else robot

    def of_simulation(self, x: Vector) -> dict[str, Array]:
        """Return the arguments of `Simulation.vary` for what `robot` lacks, for values (p,)."""
        every = self.arguments(x[None])
        names = "shape_offsets", "shape_sizes", "friction", "solref", "solimp", "limits", "gains"
        return {name: every[name] for name in names if name in every}

    def physical(self, x: Vector) -> tuple[list[str], list[str], Vector]:
        """Return names, units and values of parameters in physical terms, in the order of the unknowns."""
        names, units, values = [], [], []
        inertial, k = self.inertial_parameters(x[None])[0], 0
        bodies = {i.factor: i.body for i in self._inertial.values() if i.factor >= 0}
        while k < len(self.list):
            if k in bodies:
                body = self._robot.bodies[bodies[k]].name
                names += [f"{body}.{name}" for name in NAMES]
                units += ["kg", *["kg m"] * 3, *["kg m²"] * 6]
                values += inertial[bodies[k]].tolist()
                k += len(LOWER)
            else:
                names.append(self.list[k].name)
                units.append(self.list[k].unit)
                values.append(float(x[k]))
                k += 1
        return names, units, np.array(values)


def _has(kind: str, joint: Any) -> bool:
    """Return whether a joint can have a parameter of this kind."""
    if kind == OFFSET:
        return bool(joint.type.nq == 1 and joint.q_slice.stop > joint.q_slice.start)
    return kind != DRIVE or bool(joint.type.nv == 1 and joint.independent)


def _with_armature(robot: Robot) -> list[Any]:
    """Return the joints in the order of `Robot.armature`."""
    return [j for j in robot.joints if j.type is not JointType.FLOATING]


def _regular(P: Array) -> Array:
    """Return pseudo-inertias (n, 4, 4), with those that are not definite made so."""
    least = np.linalg.eigvalsh(P)[:, 0]
    definite = least > 1e-12 * np.trace(P, axis1=1, axis2=2)
    return np.where(definite[:, None, None], P, measure(P))


def _with_joints(robot: Robot, values: dict[str, dict[str, float]]) -> Robot:
    """Return the robot with other values of fields of joints, by name."""
    changes: dict[str, Any] = dict(values)
    joints = tuple(replace(j, **changes.get(j.name, {})) for j in robot.model.joints)
    return robot.with_weights_of(replace(robot.model, joints=joints))


def _with_acting_joints(sim: Simulation, given: Iterable[Parameter]) -> tuple[Simulation, dict[tuple[str, str], float]]:
    """Return a simulation in which the damping, friction and stiffness of unknowns are not zero, and these values.

    `Simulation.vary` takes factors, and a step without friction has no rows for it.
    """
    values: dict[str, dict[str, float]] = {}
    nominal = {}
    for x in given:
        if x.kind not in FIELD:
            continue
        names = [x.of] if isinstance(x.of, str) else x.of
        for j in sim.robot.model.joints:
            if (names is None and j.type is not JointType.FLOATING) or (names is not None and j.name in names):
                own = float(getattr(j, FIELD[x.kind]))
                nominal[x.kind, j.name] = own or 1.0
                if not own:
                    values.setdefault(j.name, {})[FIELD[x.kind]] = 1.0
    if values:
        return sim.with_robot(_with_joints(sim.robot, values)), nominal
    return copy.copy(sim), nominal
