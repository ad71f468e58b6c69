"""Tendons and actuators of a description as elements of an MJCF file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element, SubElement

from ....servos import DriveInput, Servo
from ....types import (
    ActivationType,
    Actuator,
    AnyFrame,
    Axes,
    Contents,
    Frame,
    JointType,
    Muscle,
    Pose,
    Pulley,
    ShapeType,
    Tendon,
    TendonPoint,
    TendonWrap,
)
from ...xml import Names, written
from ..servos import servo_attributes
from .geoms import place, soften
from .losses import Losses

DYNAMICS = {
    ActivationType.INTEGRATOR: "integrator",
    ActivationType.FILTER: "filter",
    ActivationType.EXACT_FILTER: "filterexact",
    ActivationType.MUSCLE: "muscle",
}
RANGES = {DriveInput.POSITION: "ctrlrange", DriveInput.VELOCITY: "velrange", DriveInput.FORCE: "ffrange"}
MUSCLE_RANGE = (0.75, 1.05)  # range of lengths over the optimum, by which a file gives the optimum
AT_FRAMES = "the actuators {}, which act at frames in axes that MuJoCo's do not"


def write_coefficients(element: Element, **values: tuple[float, ...]) -> None:
    """Write attributes of one number or a polynomial's coefficients, without zeros at the end."""
    for key, numbers in values.items():
        while numbers and numbers[-1] == 0.0:
            numbers = numbers[:-1]
        if numbers:
            element.set(key, written(*numbers))


class DriveElements:
    """Tendons and actuators, with the sites and geoms that they name; existing ones are reused."""

    def __init__(self, d: Contents, bodies: Mapping[str | None, Element], sites: Iterable[str], lost: Losses) -> None:
        """`bodies` are the elements of the file, `sites` the names of the description's frames in it."""
        self.d, self.bodies, self.lost = d, bodies, lost
        self.sites = {(f.body, Pose.of(f.placement, f.name)): name for f, name in zip(d.frames, sites, strict=True)}
        self.points = {(body, pose.p): name for (body, pose), name in reversed(self.sites.items())}
        self.named = {f.name: f for f in d.frames} | {b.name: Frame(b.name, b.name) for b in d.bodies}
        self.taken = Names([*self.sites.values(), *(s.name for s in d.shapes)])
        kinds = {ShapeType.SPHERE: False, ShapeType.CYLINDER: True}
        self.geoms = {(s.body, s.placement, s.size[0], kinds[s.type]): s.name for s in d.shapes if s.type in kinds}

    def write(self, root: Element) -> list[str]:
        """Write all tendons and actuators; return the names of the actuators."""
        tendon, actuator = SubElement(root, "tendon"), SubElement(root, "actuator")
        for t in self.d.tendons:
            self._tendon(tendon, t)
        names = self.lost.unique([a.name for a in self.d.actuators], "actuators")
        return [name for name, a in zip(names, self.d.actuators, strict=True) if self._actuator(actuator, name, a)]

    # tendons

    def _tendon(self, parent: Element, t: Tendon) -> None:
        element = SubElement(parent, "spatial" if t.path else "fixed", name=t.name)
        for joint, c in t.terms:
            SubElement(element, "joint", joint=joint, coef=written(c))
        for x in t.path:
            if isinstance(x, Pulley):
                SubElement(element, "pulley", divisor=written(x.divisor))
            elif isinstance(x, TendonPoint):
                SubElement(element, "site", site=self._point(t.name, x))
            else:
                side = {} if x.side is None else {"sidesite": self._point(t.name, x.side)}
                SubElement(element, "geom", {"geom": self._wrap(t.name, x)} | side)
        springs, dampers = (t.stiffness, *t.stiffness_poly), (t.damping, *t.damping_poly)
        write_coefficients(element, stiffness=springs, damping=dampers, frictionloss=(t.dry_friction,))
        if any(springs):
            element.set("springlength", written(*t.rest))
        self._bound(element, "range", (t.lower, t.upper), "tendons", t.name)
        self._bound(element, "actuatorfrcrange", t.force, "tendons", t.name)
        soften(element, t.limit_softness, "limit")
        soften(element, t.dry_friction_softness, "friction")

    def _point(self, owner: str, x: TendonPoint) -> str:
        return self.points.get((x.body, x.position)) or self._site(owner, x.body, Pose(p=x.position))

    def _site(self, wish: str, body: str | None, pose: Pose) -> str:
        if (body, pose) not in self.sites:
            name = self.sites[body, pose] = self.taken.new(f"{wish}_site")
            self.points.setdefault((body, pose.p), name)
            place(SubElement(self.bodies[body], "site", name=name), pose)
        return self.sites[body, pose]

    def _wrap(self, owner: str, x: TendonWrap) -> str:
        key = (x.body, x.placement, x.radius, x.cylinder)
        if key not in self.geoms:
            name = self.geoms[key] = self.taken.new(f"{owner}_wrap")
            kind = {"type": "cylinder" if x.cylinder else "sphere", "size": written(*[x.radius] * (1 + x.cylinder))}
            free = {"contype": "0", "conaffinity": "0", "mass": "0", "group": "3"}
            place(SubElement(self.bodies[x.body], "geom", {"name": name} | kind | free), x.placement)
        return self.geoms[key]

    # actuators

    def _actuator(self, parent: Element, name: str, a: Actuator) -> bool:
        acts = self._transmission(a)
        if not acts:
            self.lost.add(AT_FRAMES, a.name)
            return False
        element = SubElement(parent, "general", {"name": name} | acts)
        if a.muscle is not None:
            self._muscle(element, a.muscle)
        elif a.servo is not None or a.orientation is not None:
            self._servo(element, a)
        else:
            element.set("gainprm", written(a.gain, *(a.slopes if any(a.slopes) else ())))
            if any(a.slopes):
                element.set("gaintype", "affine")
            if any(a.bias):
                element.set("biastype", "affine")
                element.set("biasprm", written(*a.bias))
        if x := a.activation:
            element.set("dyntype", DYNAMICS[x.type])
            if x.type is not ActivationType.INTEGRATOR:
                element.set("dynprm", written(x.time_constant, x.deactivation, x.smoothing))
            if x.early:
                element.set("actearly", "true")
            self._bound(element, "actrange", x.range, "actuators", a.name)
        if delay := a.delay:
            element.set("delay", written(delay.time))
            element.set("nsample", str(delay.samples))
            element.set("interp", str(delay.interpolation))
        self._bound(element, "ctrlrange", a.control, "actuators", a.name)
        self._bound(element, "forcerange", a.force, "actuators", a.name)
        return True

    def _transmission(self, a: Actuator) -> dict[str, str]:
        """Return the attributes of a drive's transmission; none if MuJoCo has no such actuator."""
        gear = {} if a.gear == 1.0 else {"gear": written(a.gear)}
        if a.tendon is not None:
            return {"tendon": a.tendon} | gear
        if a.adhesion is not None:
            return {"body": a.adhesion} | gear
        if a.at is None:
            return {"joint": str(a.joint)} | gear
        types = {j.name: j.type for j in self.d.joints}
        if a.at.rod is not None and a.at.reference is not None and a.at.wrench[:3] == (0.0, 0.0, 1.0):
            ends = {"cranksite": self._frame(a.at.frame), "slidersite": self._frame(a.at.reference)}
            return ends | gear | {"cranklength": written(a.at.rod)}
        axes, wrench = (a.at.force_axes, a.at.torque_axes), tuple(a.gear * x for x in a.at.wrench)
        if a.orientation is not None and (a.joint is not None or a.at.reference is not None):
            if a.joint is not None:
                return {"joint": a.joint}
            return {"site": self._frame(a.at.frame), "refsite": self._frame(a.at.reference or a.at.frame)}
        if a.joint is not None and types.get(a.joint) in (JointType.SPHERICAL, JointType.FLOATING):
            ball = types[a.joint] is JointType.SPHERICAL
            in_parent = axes[1] is (Axes.REFERENCE if ball else Axes.WORLD)
            return {"jointinparent" if in_parent else "joint": a.joint, "gear": written(*(wrench[3:] if ball else wrench))}
        if axes != ((Axes.FRAME,) * 2 if a.at.reference is None else (Axes.REFERENCE,) * 2):
            return {}
        sites = {"site": self._frame(a.at.frame)} | ({} if a.at.reference is None else {"refsite": self._frame(a.at.reference)})
        return sites | {"gear": written(*wrench)}

    def _frame(self, frame: AnyFrame) -> str:
        f = frame if isinstance(frame, Frame) else self.named[frame]
        return self._site(f.name, f.body, Pose.of(f.placement, f.name))

    def _servo(self, element: Element, a: Actuator) -> None:
        if x := a.orientation:
            numbers = {"gainprm": (x.stiffness,), "biasprm": (x.torque, -x.stiffness, -x.damping)}
            given = numbers | {"gaintype": "so3", "biastype": "so3", "input": "quat" if x.quaternion else "expmap"}
        else:
            servo = a.servo or Servo()
            given = servo_attributes(servo, a.motor)
            self._bound(element, "actrange", servo.states, "actuators", a.name)
            keys = ["ctrlrange"] * 4 if a.motor else [RANGES[x] for x in servo.inputs]
            if a.motor and len({*servo.ranges}) > 1:
                self.lost.add("the ranges of the inputs of the motors {}, which differ", a.name)
            for key, bounds in zip(keys, servo.ranges, strict=False):
                self._bound(element, key, bounds, "actuators", a.name)
        for key, value in given.items():
            element.set(key, value if isinstance(value, str) else written(*value))

    @staticmethod
    def _muscle(element: Element, m: Muscle) -> None:
        low, high = MUSCLE_RANGE
        start, end = m.slack + low * m.optimum, m.slack + high * m.optimum
        element.set("gaintype", "muscle")
        element.set("gainprm", written(low, high, m.peak, 1.0, *m.lengths, m.fastest, m.passive, m.lengthening))
        p = m.at_rest or m
        if p.passive:
            within = (start - p.slack) / p.optimum, (end - p.slack) / p.optimum
            element.set("biastype", "muscle")
            element.set("biasprm", written(*within, p.peak, 1.0, *p.lengths, p.fastest, p.passive, p.lengthening))
        element.set("lengthrange", written(start, end))

    def _bound(self, element: Element, key: str, pair: tuple[float, float], kind: str, name: str) -> None:
        lower, upper = pair
        if lower == upper:
            self.lost.add(f"the {key} of the {kind} {{}}, which has no extent", name)
        elif math.isfinite(max(lower, -upper)):
            element.set(key, written(lower, upper))
