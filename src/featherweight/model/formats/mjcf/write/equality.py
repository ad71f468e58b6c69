"""Loops, couplings and closures as <equality> elements, and the fixed tendons that some of them constrain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from xml.etree.ElementTree import Element, SubElement

from numpy.polynomial import Polynomial

from .....spatial.lie import quaternion_of_matrix
from ....compliant_equalities import LengthPolynomial
from ....contact_rules import DEFAULT_SOFTNESS, Softness
from ....types import WORLD, Closure, Contents, Coupling, Loop, LoopType, Pose, Vector, matmul, transpose
from ...xml import Names, written
from ..numbers import composed
from .geoms import soften
from .losses import Losses

TWO_POINTS = "the type of the revolute loops {} (each is two points on its axis in the file)"
APART = 0.1  # [m] between the two points of a revolute loop
MOST = 4  # degree of MuJoCo's polynomials


class Equalities:
    """Writes to the root element; `starts` are coordinates of joints in qpos0."""

    def __init__(self, root: Element, starts: Mapping[str, float], lost: Losses) -> None:
        self.tendons, self.equality = SubElement(root, "tendon"), SubElement(root, "equality")
        self.starts, self.lost = starts, lost
        self.names, self.tendon_names = Names(), Names()

    def write(self, d: Contents) -> None:
        """Write all constraints that MJCF can express; the others are lost."""
        given = [*(x.name for x in d.loops), *(c.name for c in d.couplings), *(c.name for c in d.closures)]
        names = iter(self.lost.unique(given, "loops, couplings and closures"))
        self.names, self.tendon_names = Names(given), Names(t.name for t in d.tendons)
        for loop in d.loops:
            self._loop(replace(loop, name=next(names)))
        for c in d.couplings:
            self._coupling(replace(c, name=next(names)))
        for closure in d.closures:
            self._closure(replace(closure, name=next(names)))

    def _loop(self, loop: Loop) -> None:
        if loop.type not in (LoopType.WELD, LoopType.SPHERICAL, LoopType.REVOLUTE):
            self.lost.add(f"the {loop.type} loops {{}}, which do not hold in the file", loop.name)
            return
        self._weld(loop, loop.name, (0.0, 0.0, 0.0))
        if loop.type is LoopType.REVOLUTE:
            self.lost.add(TWO_POINTS, loop.name)
            self._weld(loop, self.names.new(loop.name), (0.0, 0.0, APART))

    def _weld(self, loop: Loop, name: str, point: Vector) -> None:
        """Write a loop as a weld at a point of the two frames.

        A connect takes its second anchor from qpos0, where the loop may be open. A weld does not, and with torquescale zero it
        is a connect. Its anchor is on the second body, and it has no orientation there.
        """
        first, second = (frame @ Pose(p=point) for frame in (loop.predecessor_frame, loop.successor_frame))
        rigid = loop.type is LoopType.WELD
        R = matmul(first.R, transpose(second.R)) if rigid and second.R != Pose().R else first.R if rigid else Pose().R
        (x, y, z), w = quaternion_of_matrix(R)
        ends = {"body1": loop.predecessor or WORLD, "body2": loop.successor or WORLD}
        element = SubElement(self.equality, "weld", {"name": name} | ends)
        element.set("relpose", written(*first.p, w, x, y, z))
        element.set("anchor", written(*second.p))
        if not rigid:
            element.set("torquescale", "0")
        elif loop.torque_scale != 1.0:
            element.set("torquescale", written(loop.torque_scale))
        soften(element, loop.softness)

    def _coupling(self, c: Coupling) -> None:
        terms = [(name, Polynomial([0.0, *row])) for name, row in c.terms if any(row)]
        if not terms:
            constant = Polynomial([c.offset - self.starts[c.joint]])
            self._polynomial("joint", c.name, {"joint1": c.joint}, constant, c.softness)
        elif len(terms) == 1:
            ((leader, p),) = terms
            around = composed(p + c.offset, Polynomial([self.starts[leader], 1.0])) - self.starts[c.joint]
            if around.degree() > MOST:
                self.lost.add(f"the couplings {{}}, of a degree above {MOST}", c.name)
                return
            ends = {"joint1": c.joint, "joint2": leader}
            self._polynomial("joint", c.name, ends, around, c.softness)
        elif any(any(p.coef[2:]) for _, p in terms):
            self.lost.add("the couplings {}, by polynomials in several joints", c.name)
        else:
            slopes = {name: -float(p.coef[1]) for name, p in terms}
            slopes[c.joint] = 1.0  # last: readers take the last of equal coefficients
            if max(map(abs, slopes.values())) > 1.0:
                self.lost.add(
                    "the followers of the couplings {} (when the file is read, joints with the greatest coefficients)", c.name
                )
            length = {"tendon1": self._tendon(c.name, slopes)}
            self._polynomial("tendon", c.name, length, Polynomial([c.offset - self._rest(slopes)]), c.softness)

    def _closure(self, closure: Closure) -> None:
        """Write a closure that was read from a tendon equality as one; report any other as lost."""
        made = getattr(closure.function, "__self__", None)
        if not isinstance(made, LengthPolynomial):
            self.lost.add("the closures {}, functions in Python, which do not hold in the file", closure.name)
            return
        one, two = ({name: c for name, c in zip(closure.joints, side, strict=True) if c} for side in (made.first, made.second))
        shifts = [self._rest(side) - rest for side, rest in zip((one, two), made.rests, strict=True)]
        around = composed(Polynomial(made.coefficients), Polynomial([shifts[1], 1.0])) - shifts[0]
        ends = {"tendon1": self._tendon(closure.name, one)}
        if two:
            ends["tendon2"] = self._tendon(closure.name, two)
        self._polynomial("tendon", closure.name, ends, around)

    def _rest(self, slopes: Mapping[str, float]) -> float:
        return math.fsum(c * self.starts[name] for name, c in slopes.items())

    def _tendon(self, wish: str, slopes: Mapping[str, float]) -> str:
        name = self.tendon_names.new(wish)
        tendon = SubElement(self.tendons, "fixed", name=name)
        for joint, c in slopes.items():
            SubElement(tendon, "joint", joint=joint, coef=written(c))
        return name

    def _polynomial(
        self, tag: str, name: str, ends: dict[str, str], p: Polynomial, softness: Softness = DEFAULT_SOFTNESS
    ) -> None:
        element = SubElement(self.equality, tag, {"name": name} | ends)
        element.set("polycoef", written(*p.coef.tolist(), *(0.0,) * (MOST + 1 - len(p.coef))))
        soften(element, softness)
