"""Sathya, Decré and Swevers (2023), table I: growth of operations with joints, constraints and depth."""

from __future__ import annotations

from collections.abc import Sequence

from report import Report
from sathya2023_counts import LABELS, count, leading_terms, long_branches, maximal, stem_with_tips, sum_of

# Terms of the paper's complexities as powers of (n, m, d).
TABLE1: dict[str, Sequence[tuple[int, int, int]]] = {
    "dense": ((3, 0, 0), (1, 2, 0)),
    "ltl": ((1, 0, 2), (0, 2, 1), (0, 1, 2)),
    "kjr": ((1, 0, 0), (0, 2, 1)),
    "efpa": ((1, 0, 0), (0, 1, 1), (0, 2, 0)),
    "pv-osim": ((1, 0, 0), (0, 2, 1)),
    "pv-osimr": ((1, 0, 0), (0, 2, 0)),
}
TESTED = ("stem", "branches")
LENGTHS, NUMBERS = (4, 5, 6, 7, 8), (2, 3, 4, 5, 6)  # s and c, counted


def sections(report: Report) -> None:
    report.heading("Table I: complexity")
    _terms(report)


def inserted(terms: Sequence[tuple[int, int, int]], family: str) -> list[tuple[int, int]]:
    """Return the largest powers of (s, c) of a complexity in (n, m, d), with m proportional to c and d to s."""
    found = []
    for n, m, d in terms:
        if family == "stem":  # n = s + c
            found += [(k + d, n - k + m) for k in range(n + 1)]
        else:  # n = s c
            found.append((n + d, n + m))
    return maximal(found)


def _terms(report: Report) -> None:
    report.text(
        f"""Two families: a stem of s links with c constrained links on its end (n = s + c, m = 6c, d = s + 1), and c branches
        of s links on one link, constrained at the tips (n = s c + 1, m = 6c, d = s + 1). For s = {LENGTHS[0]} to {LENGTHS[-1]}
        and c = {NUMBERS[0]} to {NUMBERS[-1]}, all counts agree exactly with a polynomial in s and c, whose dominant terms the
        table has. The paper's orders are bounds: PV-OSIM reaches m²d if constraints share a long path (the stem), KJR if their
        long paths are separate (the branches)."""
    )
    rows: list[list[object]] = []
    for algorithm, terms in TABLE1.items():
        row: list[object] = [LABELS[algorithm], "O(" + " + ".join(map(_term, terms)) + ")"]
        for family, mechanism in zip(TESTED, (stem_with_tips, long_branches), strict=True):
            counts = {(s, c): count(mechanism, s, c, algorithm=algorithm) for s in LENGTHS for c in NUMBERS}
            row += [sum_of(inserted(terms, family)), sum_of(leading_terms(counts))]
        rows.append(row)
    report.table(["algorithm", "the paper", "stem: at most", "counted", "branches: at most", "counted"], rows)


def _term(powers: tuple[int, int, int]) -> str:
    return "".join(x + " ²³"[k - 1].strip() for x, k in zip("nmd", powers, strict=True) if k)
