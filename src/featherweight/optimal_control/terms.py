"""Costs and constraints of optimal control: rows of functions of a knot's q, v, tau, a and contact forces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..model.types import AnyFrame
from ..robot.inverse_kinematics.tasks import IkTask

Array = np.ndarray[Any, np.dtype[Any]]
BY = ("q", "v", "u", "tau", "a", "force")  # what functions may depend on
PLACEMENTS, PARAMETERS = "placements", "parameters"


@dataclass(frozen=True)
class WholeQuantity:
    """All entries of a quantity; `weight` may be a number or one for each."""

    weight: Any = 1.0
    name: str = ""
    quantity: ClassVar[str]


@dataclass(frozen=True)
class Effort(WholeQuantity):
    """The controls: joint forces of driven joints [N m, N], or those of actuators. `weight` may be a number or one for each."""

    name: str = "effort"
    quantity: ClassVar[str] = "u"


@dataclass(frozen=True)
class JointForces(WholeQuantity):
    """All joint forces tau [N m, N], of actuators too. `weight` may be a number or one for each."""

    name: str = "joint forces"
    quantity: ClassVar[str] = "tau"


@dataclass(frozen=True)
class JointVelocities(WholeQuantity):
    """All velocities v [rad/s, m/s]. `weight` may be a number or one for each."""

    name: str = "joint velocities"
    quantity: ClassVar[str] = "v"


@dataclass(frozen=True)
class ContactForces(WholeQuantity):
    """Forces of the phase's contacts [N, N m], in their own axes, in the order of the phase's contacts."""

    name: str = "contact forces"
    quantity: ClassVar[str] = "force"


@dataclass(frozen=True)
class Residual:
    """A function of one's own: a sequence of `size` numbers of any of q, v, u, tau, a, force and parameters.

        def power(v, tau):
            return [x * y for x, y in zip(v, tau)]

        ocp.add(featherweight.Residual(power, size=robot.nv, name="power"), weight=1e-3)

    Its arguments are named after what it needs, sequences of numbers: q (nq), v (nv), controls u, joint forces tau (nv),
    accelerations a (nv), forces of the phase's contacts (force), `placements` of `frames` in the world (k, 4, 4), and
    `parameters`, numbers that may change between solutions. The function is traced: it must not branch on its arguments, and
    takes roots, sines and cosines by `featherweight.spatial.sqrt` and `sincos`.
    """

    function: Callable[..., Sequence[Any]]
    size: int
    parameters: int = 0
    frames: Sequence[AnyFrame] = ()
    weight: Any = 1.0
    name: str = ""

    @property
    def called(self) -> str:
        """Its name."""
        return self.name or self.function.__name__

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the function's arguments. Raises ValueError for one that is unknown."""
        code = self.function.__code__
        names = code.co_varnames[: code.co_argcount]
        if unknown := [x for x in names if x not in (*BY, PLACEMENTS, PARAMETERS)]:
            known = f"{', '.join(BY)}, {PLACEMENTS} and {PARAMETERS}"
            raise ValueError(f"Residual {self.called!r}: its function takes {unknown[0]!r}; arguments may be {known}")
        return names

    @property
    def by(self) -> tuple[str, ...]:
        """The quantities that it depends on."""
        names = self.arguments
        return tuple(x for x in BY if x in names or (x == "q" and PLACEMENTS in names))


@dataclass(frozen=True)
class Picked:
    """Rows of the library's own: some entries of a quantity, or friction at frames."""

    name: str
    by: tuple[str, ...]
    kernel: Any
    constants: tuple[Any, ...]
    size: int
    frames: tuple[AnyFrame, ...] = ()
    weight: Any = 1.0


Term = IkTask | Effort | JointForces | JointVelocities | ContactForces | Residual


def quantities(term: Any) -> tuple[str, ...]:
    """Return the quantities that a term is a function of."""
    if isinstance(term, IkTask):
        return ("q",)
    return (term.quantity,) if isinstance(term, WholeQuantity) else term.by


def name_of(term: Any) -> str:
    """Return the name of a term."""
    name: str = getattr(term, "called", "") or term.name
    return name


class Added(NamedTuple):
    """A term of a problem: its law, and when it holds."""

    term: Any
    name: str
    weight: Array  # (knots + 1,); zero where it does not hold
    constraint: bool
    low: Any
    high: Any  # of costs, the width of Huber's function
