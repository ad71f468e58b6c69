"""Costs and constraints of optimal control: rows that are functions of a knot's q, v, tau, a and contact forces."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.knots import root_two
from ..array_types import Array
from ..checks import ARRAY, CHECKED_LATER, Refused, checked
from ..model.types import AnyFrame
from ..robot.constraints.contact import BilateralContact
from ..robot.inverse_kinematics.tasks import IkTask

BY = ("q", "v", "u", "tau", "a", "force")  # quantities on which functions may depend
PLACEMENTS, PARAMETERS = "placements", "parameters"


@dataclass(frozen=True)
class WholeQuantity:
    """All entries of a quantity; `weight` is a number or one for each entry."""

    weight: Annotated[ArrayLike, CHECKED_LATER] = 1.0
    name: str = ""
    quantity: ClassVar[str]


@checked
@dataclass(frozen=True)
class Effort(WholeQuantity):
    """The controls: joint forces of driven joints [N m, N], or controls of actuators. `weight` is a number or one for each."""

    name: str = "effort"
    quantity: ClassVar[str] = "u"


@checked
@dataclass(frozen=True)
class JointForces(WholeQuantity):
    """All joint forces tau [N m, N], including those of actuators. `weight` is a number or one for each."""

    name: str = "joint forces"
    quantity: ClassVar[str] = "tau"


@checked
@dataclass(frozen=True)
class JointVelocities(WholeQuantity):
    """All velocities v [rad/s, m/s]. `weight` is a number or one for each."""

    name: str = "joint velocities"
    quantity: ClassVar[str] = "v"


@checked
@dataclass(frozen=True)
class ContactForces(WholeQuantity):
    """The contact forces of the phase [N, N m], in the contacts' axes and order."""

    name: str = "contact forces"
    quantity: ClassVar[str] = "force"


@checked
@dataclass(frozen=True)
class Residual:
    """A user-defined function that returns a sequence of `size` numbers.

        def power(v, tau):
            return [x * y for x, y in zip(v, tau)]

        ocp.add(featherweight.Residual(power, size=robot.nv, name="power"), weight=1e-3)

    The names of its arguments select sequences of numbers: q (nq), v (nv), controls u, joint forces tau (nv), accelerations a
    (nv), forces of the phase's contacts (force), `placements` of `frames` in the world (k, 4, 4), and `parameters`, which may
    change between solutions. The function is traced: it must not branch on its arguments. It may use arithmetic, `np.sqrt`,
    `np.sin` and `np.cos`, but no other functions, and none of `math`.
    """

    function: Annotated[Callable[..., Sequence[Any]], CHECKED_LATER]
    size: Annotated[int, CHECKED_LATER]
    parameters: Annotated[int, CHECKED_LATER] = 0
    frames: Sequence[AnyFrame] = ()
    weight: Annotated[ArrayLike, CHECKED_LATER] = 1.0
    name: str = ""

    @property
    def called(self) -> str:
        """The name of the term."""
        return self.name or getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the function's arguments. Raises ValueError for an unknown one, and one without frames or parameters."""
        if not callable(self.function):
            raise TypeError(f"Residual {self.called!r}: its function must be callable; got {self.function!r}")
        signature = inspect.signature(self.function)
        names = tuple(x.name for x in signature.parameters.values() if x.default is x.empty)
        if not names:
            raise ValueError(f"Residual {self.called!r}: its function takes no arguments; give it some of {', '.join(BY)}")
        if unknown := [x for x in names if x not in (*BY, PLACEMENTS, PARAMETERS)]:
            known = f"{', '.join(BY)}, {PLACEMENTS} and {PARAMETERS}"
            raise ValueError(f"Residual {self.called!r}: its function takes {unknown[0]!r}; arguments may be {known}")
        if PLACEMENTS in names and not self.frames:
            raise ValueError(f"Residual {self.called!r}: its function takes placements; give their frames=[...]")
        if PARAMETERS in names and not self.parameters:
            raise ValueError(f"Residual {self.called!r}: its function takes parameters; give their number, parameters=...")
        return names

    @property
    def by(self) -> tuple[str, ...]:
        """The quantities on which the function depends."""
        names = self.arguments
        return tuple(x for x in BY if x in names or (x == "q" and PLACEMENTS in names))


@checked
@dataclass(frozen=True)
class Duration:
    """The duration of knots [s]: `add(Duration(), weight=w)` costs w per second, which makes free steps short."""

    name: str = "duration"
    weight: ClassVar[float] = 1.0
    by: ClassVar[tuple[str, ...]] = ("a",)  # exists at knots that take time
    kernel: ClassVar[Any] = staticmethod(root_two)
    constants: ClassVar[tuple[Any, ...]] = ()
    size: ClassVar[int] = 1
    frames: ClassVar[tuple[AnyFrame, ...]] = ()


@dataclass(frozen=True)
class Picked:
    """Rows that the library creates: some entries of a quantity, or friction at frames."""

    name: str
    by: tuple[str, ...]
    kernel: Any
    constants: tuple[Any, ...]
    size: int
    frames: tuple[AnyFrame, ...] = ()
    weight: ArrayLike = 1.0


Term = IkTask | Effort | JointForces | JointVelocities | ContactForces | Duration | Residual


def quantities(term: Term | Picked) -> tuple[str, ...]:
    """Return the quantities on which a term depends."""
    if isinstance(term, IkTask):
        return ("q",)
    return (term.quantity,) if isinstance(term, WholeQuantity) else term.by


def name_of(term: Any) -> str:
    """Return the name of a term."""
    name: str = getattr(term, "called", "") or term.name
    return name


class Added(NamedTuple):
    """A term of a problem: its penalty, and the knots at which it holds."""

    term: Any
    name: str
    weight: Array  # (knots + 1,); zero at other knots
    constraint: bool
    low: Any
    high: Any  # upper bound of a constraint; width of a cost's Huber function
    exact: bool  # whether second derivatives of its rows are added to the Hessian
    contacts: tuple[BilateralContact, ...] | None = None  # if only phases with these contacts have the term


def for_rows(name: str, what: str, x: ArrayLike, rows: int, weights: bool = False) -> Array:
    """Return a number, or one number for each row; weights are finite and not negative. Raises ValueError with the term."""
    numbers = as_numbers(x)
    if (
        numbers is None
        or numbers.shape not in ((), (rows,))
        or np.isnan(numbers).any()
        or (weights and not are_weights(numbers))
    ):
        none = ", finite and none negative" if weights else ""
        raise ValueError(
            f"OptimalControl: {what} of {name!r} must be a number or {rows} of them, one for each row{none}; got {x!r}"
        )
    return numbers


def are_weights(numbers: Array) -> bool:
    """Return whether all numbers are finite and not negative."""
    return bool(((numbers >= 0.0) & (numbers < math.inf)).all())


def as_numbers(x: ArrayLike) -> Array | None:
    """Return an array of real numbers; None for objects that are not numbers, such as text."""
    try:
        return np.asarray(ARRAY.convert(x), dtype=float)
    except Refused:
        return None
