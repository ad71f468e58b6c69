"""The tables of a run, in Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import published
from cases import Case
from figures import Figure, Start
from measure import markdown
from results import Results
from roofline import RESOURCES, assembled, binding, bounds, counted, in_words

APART = 0.1  # relative difference of the two clocks from which both are shown

FUNCTIONS = ["robot", "function", "precision", "batch", "states/s", "ns per state", "goal", "met", "error", "first call, s"]
BESIDE = ["library", "robot", "function", "precision", "batch", "states/s", "ns per state", "time / ours"]
BOUND = ["robot", "function", "precision", "tuned", *(f"{x}, ns" for x in RESOURCES), "measured, ns", "measured / bound"]


def document(results: Results, cases: Sequence[Case]) -> str:
    """Return all tables of a run over these cases."""
    of: dict[str, list[Figure]] = defaultdict(list)
    for f in results.figures:
        of[f.part].append(f)

    def rows_of(part: str) -> list[list[str]]:
        return [function_row(f) for f in of[part]]

    facts = [f"- {name}: {value}" for name, value in results.facts.items()]
    parts = [
        "# Featherweight on a device",
        "\n".join([*facts, *([f"- device: {results.device}"] if results.device else [])]),
        section("Functions, data on the device", FUNCTIONS, rows_of("functions")),
        section("Tuned (the first call tries all candidates)", FUNCTIONS, rows_of("tuned")),
        section("Compiling forward dynamics of Talos", START, [start_row(s) for s in results.starts]),
        section("Bounds and measured times", BOUND, bound_rows([*of["functions"], *of["tuned"]], results, cases)),
        section("Batches of forward dynamics of Talos", FUNCTIONS[:6], [function_row(f)[:6] for f in of["sweep"]]),
        section("NumPy arrays in and out", FUNCTIONS[:6], [function_row(f)[:6] for f in of["copied"]]),
        section("Whole steps with contact", STEPS, [step_row(f) for f in of["rollouts"]]),
        section("Other libraries and processors, same machine", BESIDE, beside([*of["processors"], *of["peers"]], of)),
        section("Machine code", ["function", "instructions"], [[k, v.described] for k, v in results.code.items()]),
        section("Published by others, on other machines", published.HEADER, published.rows()),
        "\n".join(f"- {x}" for x in results.skipped),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def section(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"## {title}\n\n{markdown(header, rows)}" if rows else ""


def function_row(f: Figure) -> list[str]:
    each = f"{1e9 * f.seconds / f.batch:.3g}"
    if f.wall is not None and abs(f.wall / f.seconds - 1.0) > APART:
        each += f" ({1e9 * f.wall / f.batch:.3g} wall clock)"
    goal = "" if f.goal is None else f"{f.goal:.2e}"
    differs = "" if f.difference is None else f"{f.difference:.0e}{' (wrong)' if f.wrong else ''}"
    first = "" if f.first is None else f"{f.first:.2f}"
    return [f.robot, f.function, f.precision, str(f.batch), f"{f.rate:.3g}", each, goal, f.met, differs, first]


STEPS = ["library", "robot", "precision", "robots x steps", "us per step", "steps/s", "error"]


def step_row(f: Figure) -> list[str]:
    differs = "" if f.difference is None else f"{f.difference:.0e}"
    return [f.library, f.robot, f.precision, str(f.batch), f"{1e6 * f.seconds / f.batch:.3g}", f"{f.rate:.3g}", differs]


START = ["precision", "cold, s", "goal", "met", "code in cache, s"]


def start_row(s: Start) -> list[str]:
    goal, met = ("", "") if s.goal is None else (f"{s.goal:g}", "yes" if s.cold <= s.goal else "no")
    return [s.precision, f"{s.cold:.2f}", goal, met, f"{s.kept:.3f}"]


def bound_rows(figures: list[Figure], results: Results, cases: Sequence[Case]) -> list[list[str]]:
    """Return bounds by machine code, or by operations if it was not read; no rows in a trial without a device."""
    device = results.device
    if device is None:
        return []
    known = {(c.robot, c.name): c.function for c in cases}
    rows = []
    for f in figures:
        function = known[f.robot, f.function]
        code = results.code.get(f"{f.robot}, {f.function}, {f.precision}, {f.part}")
        work = counted(function, f.precision) if code is None else assembled(function, f.precision, code)
        found, each = bounds(work, device), f.seconds / f.batch
        times = [f"{1e9 * x:.3f}{'*' if name == binding(found) else ''}" for name, x in found.items()]
        tuned = "yes" if f.part == "tuned" else ""
        rows.append([f.robot, f.function, f.precision, tuned, *times, f"{1e9 * each:.3f}", in_words(found, each)])
    return rows


def beside(figures: list[Figure], of: Mapping[str, list[Figure]]) -> list[list[str]]:
    """Return the rows of other libraries, with their time divided by our best time on the device."""
    rows = []
    for f in figures:
        ours = [x for x in (*of["functions"], *of["tuned"], *of["sweep"]) if x[2:5] == f[2:5]]
        best = max((x.rate for x in ours), default=None)
        faster = "" if best is None else f"{best / f.rate:.1f}"
        each = f"{1e9 * f.seconds / f.batch:.3g}"
        rows.append([f.library, f.robot, f.function, f.precision, str(f.batch), f"{f.rate:.3g}", each, faster])
    return rows
