"""Tables of docs/algorithms: operations of the algorithms for some robots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import compared
import drumwright2012
import featherstone2005_humanoid as humanoid
from algorithm_robots import CHAIN, CONTACTS, LOOPS, TREES, case, robot
from costs import Cost, cost
from measure import markdown
from sathya2023_counts import Polynomial

from featherweight import Robot, build, generators
from featherweight.engine.function import CompiledFunction
from featherweight.engine.operations import Operations

Cells = dict[str, str]  # of one column, by row
NONE = "—"


@dataclass(frozen=True)
class Table:
    """A table whose columns are computed one by one."""

    corner: str
    columns: tuple[str, ...]
    column: Callable[[str], Cells]
    dear: tuple[str, ...] = ()  # columns whose counts take seconds

    def markdown(self) -> str:
        return laid_out(self.corner, {name: self.column(name) for name in self.columns})


def laid_out(corner: str, columns: dict[str, Cells]) -> str:
    """Return a table in Markdown, its rows in the order of their first appearance."""
    rows = list(dict.fromkeys(row for cells in columns.values() for row in cells))
    lines = [[row, *(cells.get(row, NONE) for cells in columns.values())] for row in rows]
    return markdown([corner, *columns], lines)


# columns


def ways(get: Callable[[Robot], CompiledFunction[Any]]) -> Callable[[str], Cells]:
    """Return a column with a row for each algorithm of a function; the library's choice is in bold."""
    return lambda name: counted_ways(get(robot(name)))


def counted_ways(function: CompiledFunction[Any], label: str = "") -> Cells:
    return {
        f"{label}`{algorithm}`": f"**{cost(f.operations)}**" if algorithm == function.algorithm else str(cost(f.operations))
        for algorithm, f in function.alternatives.items()
    }


def members(*names: str) -> Callable[[str], Cells]:
    """Return a column with a row for each function, by the algorithm that the library chooses."""
    return lambda name: {f"`{member}`": str(cost(getattr(robot(name), member).operations)) for member in names}


def delassus(name: str) -> Cells:
    made = case(name)
    return counted_ways(made.robot.delassus(made.contacts))


def forward_dynamics_with_loops(name: str) -> Cells:
    f = robot(name).forward_dynamics
    cells = counted_ways(f)
    return cells | {f"`{compared.MULTIPLIERS}`": str(cost(compared.candidate(f, compared.MULTIPLIERS).operations))}


# chains of n revolute joints on the ground, by formulas

LENGTHS = (4, 6, 8, 10, 12)  # even n, for which the papers' halves are whole; shorter chains need less than the polynomials


def formula(costs: Callable[[int], Cost]) -> str:
    """Return the polynomials in n of multiplications and additions, on which all costs must lie exactly."""
    found = {n: costs(n) for n in LENGTHS}
    m, a = (Polynomial({n: getattr(c, k) for n, c in found.items()}).text("n") for k in ("m", "a"))
    return f"({m})m + ({a})a"


def crba_of_chain(n: int) -> Cost:
    """Return the cost by Featherstone (2005), equation (20)."""
    return (n - 1) * (humanoid.RA + humanoid.RX_A) + D1_of_chain(n) * humanoid.VX_A


def inverse_of_chain(n: int) -> Cost:
    """Return the cost by Drumwright (2012), table 1."""
    return drumwright2012.total(drumwright2012.TABLE1, n)


def counted(get: Callable[[Robot], Operations]) -> str:
    return formula(lambda n: cost(get(build(generators.chain(n)))))


def chain_formulas(name: str) -> Cells:
    """Return the papers' formulas and our polynomials."""
    if name == "the papers":
        return {
            "RNEA": formula(lambda n: Cost(93 * n - 69, 81 * n - 66)),  # Featherstone (2005), section 6
            "CRBA": formula(crba_of_chain),
            "Θ(n²) inverse": formula(inverse_of_chain),
        }
    return {
        "RNEA": counted(lambda r: r.inverse_dynamics.operations),
        "CRBA": counted(lambda r: r.mass_matrix.operations),
        "Θ(n²) inverse": counted(lambda r: r.inverse_mass_matrix.alternatives["global"].operations),
        "ABA": counted(lambda r: r.forward_dynamics.alternatives["aba"].operations),
    }


# sparse factors


def D1_of_chain(n: int) -> int:
    return (n * n - n) // 2


# regressors, and joints one by one


def of_joint(kind: str) -> Cells:
    """Return operations for one body on a joint of one type."""
    r = build(generators.chain(1, joint=kind))
    functions = r.integrate, r.difference, r.integrate_derivatives, r.difference_derivatives
    return {f"`{f.name}`": with_functions(f.operations) for f in functions}


def with_functions(o: Operations) -> str:
    parts = [f"{o.mul}m", f"{o.add}a", f"{o.div}d", f"{o.sqrt} √", f"{o.trig} sin, cos"]
    return " + ".join(x for x in parts if not x.startswith("0")) or "0"


KINDS = ("revolute", "planar", "spherical", "floating")
WAY = "algorithm"

TABLES = {
    "chain-formulas": Table("", ("the papers", "ours"), chain_formulas),
    "inverse-dynamics": Table("function", TREES, members("inverse_dynamics", "bias_force", "gravity_force")),
    "forward-dynamics": Table(WAY, TREES, ways(lambda r: r.forward_dynamics)),
    "mass-matrix": Table("function", TREES, members("mass_matrix")),
    "inverse-mass-matrix": Table(WAY, TREES, ways(lambda r: r.inverse_mass_matrix), (f"{CHAIN}30",)),
    "delassus": Table(WAY, CONTACTS, delassus, CONTACTS[3:]),
    "forward-dynamics-with-loops": Table(WAY, tuple(LOOPS), forward_dynamics_with_loops),
    "inverse-dynamics-derivatives": Table(WAY, TREES, ways(lambda r: r.inverse_dynamics_derivatives), TREES[2:]),
    "integration": Table("function", KINDS, of_joint),
}
