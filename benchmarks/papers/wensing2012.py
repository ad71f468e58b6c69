"""Wensing, Featherstone and Orin (2012), "A Reduced-Order Recursive Algorithm for the Computation of the Operational-Space
Inertia Matrix": operations of the inverse of that matrix, which is the Delassus matrix of its end-effectors.

    PYTHONPATH=benchmarks/peers python benchmarks/papers/wensing2012.py [--output output/papers]

The mechanisms are in wensing2012_mechanisms.py, the steps of our functions in wensing2012_steps.py, costs at the paper's
prices in wensing2012_prices.py. IEEE International Conference on Robotics and Automation 2012.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from costs import Cost
from matplotlib.axes import Axes
from report import Report, run
from wensing2012_mechanisms import (
    ALGORITHMS,
    ASIMO,
    BODIES,
    MORE_LIMBS,
    SFA_TO_EFPA,
    TITLES,
    ZEROS,
    contacts,
    counts,
    distributions,
    flops,
    humanoid,
    matching,
    robot,
    three_zeros,
    variants,
)
from wensing2012_prices import by_table1, sfa_by_formulae
from wensing2012_steps import HOOKS, STEPS, merged, steps, total, without_jacobian

from featherweight.viewer.chart_style import BLUE, FAINT, GREEN, INK, ORANGE, PALE, RED

COLORS = {"efpa": BLUE, "kjr": RED, "ltl": GREEN, "pv-osim": ORANGE, "pv-osimr": INK}
STEP_COLORS = dict(zip(STEPS, ("#b9c0c8", "#7c8794", PALE, BLUE, GREEN, RED), strict=True))

# The appendix: an operation, its price, and whether the extended-force-propagator algorithm uses it.
APPENDIX = {
    "inertia to the base": ("Xᵀ Iᴬ L X", Cost(22, 25), True),
    "inertia added there": ("Iᴬ + …", Cost(0, 15), True),
    "6 × 6 block to the child": ("X Λ⁻¹", Cost(48, 24), True),
    "symmetric block to the child": ("X Λ⁻¹ Xᵀ", Cost(63, 54), False),
    "symmetric block to an end-effector": ("to end-effector coordinates, Λ⁻¹ₖₖ", Cost(137, 137), False),
    "6 × 6 block to two end-effectors": ("to end-effector coordinates, Λ⁻¹ⱼₖ", Cost(288, 216), False),
    "wrench to the parent": ("from a joint that it has passed", Cost(20, 12), True),
    "motion to the child": ("of a joint with Denavit-Hartenberg parameters", Cost(20, 12), True),
    "6 × 6 product": ("𝒳 Λ⁻¹", Cost(216, 180), True),
    "6 × 6 product, a row of zeros": ("𝒳 Λ⁻¹, k on the privileged child", Cost(180, 144), True),
}


@cache
def measured_zeros() -> tuple[float, float]:
    """Return all zeros of J and of H at a random configuration in per cent."""
    m = humanoid(ASIMO)
    r = robot(m)
    q = r.random_configuration(rng=0)
    J, H = r.contact_jacobian(contacts(m.hands + m.feet))(q), r.mass_matrix(q)
    return float(100 * np.mean(J == 0.0)), float(100 * np.mean(H == 0.0))


def ratio(counted: dict[str, int], one: str, other: str) -> float:
    return counted[one] / counted[other]


def sections(report: Report) -> None:
    report.heading("Wensing, Featherstone and Orin (2012): operational-space inertia by extended force propagators", 2)
    report.text(
        """The paper's Λ⁻¹ is our Delassus matrix of contacts with six rows each. Its EFPA is our "efpa", its RJK our "kjr", its
        SFA (sparse factors) our "ltl". "pv-osim" and "pv-osimr" are newer than the paper; "dense" ignores the branches. A flop
        is a multiplication, division or addition. The paper's numbers are those of its text: its figures have bars without
        values."""
    )
    _mechanism(report)
    _figure5(report)
    _figure6(report)


def _mechanism(report: Report) -> None:
    report.heading("The humanoid of 35 bodies")
    report.text(
        f"""The paper draws the connectivity of ASIMO Next-Generation but does not list it. Its zeros identify it: with hands
        and feet, about {ZEROS[0]} % of J and {ZEROS[1]} % of H are zero, with two additional arms and legs {ZEROS[2]} % of H.
        {len(matching())} of {sum(1 for _ in distributions())} distributions of the joints of {BODIES} bodies are within half a
        per cent of all three numbers. We use the only one with two fingers, arms of seven joints and legs of six ({ASIMO}; the
        additional arms have hands), with {", ".join(f"{x:.2f}" for x in three_zeros(MORE_LIMBS))} %. The percentages count
        zeros due to branches."""
    )
    J, H = measured_zeros()
    report.text(
        f"""At a random configuration {J:.1f} % of our J and {H:.1f} % of our H are zero. The frame of
        the base is that of the waist, which leads to the feet."""
    )


def _figure5(report: Report) -> None:
    m = humanoid(ASIMO)
    ends = m.hands + m.feet
    report.heading("Figure 5: steps, for hands and feet")
    report.text(
        """Each operation belongs to the step that first computes it. "Inertias" are articulated inertias or H. "Inward"
        contains the propagators of EFPA and PV-OSIM and the Jacobian of SFA. "Outward" contains Λ⁻¹ᵢₖ (EFPA), Λ⁻¹ᵢᵢ (RJK) and Y
        = J L⁻¹ (SFA)."""
    )
    with report.picture("wensing2012_figure5", "Flops of the algorithms' steps for hands and feet", (6.4, 3.2)) as ax:
        draw_figure5(ax)
    rows: list[list[object]] = []
    for algorithm in HOOKS:
        costs = merged(steps(m, ends, algorithm))
        rows.append([TITLES[algorithm], *(total({s: costs[s]}) or "—" for s in STEPS), total(costs)])
    report.table(["", *STEPS, "all"], rows)
    found = counts(m, ends)
    kjr = merged(steps(m, ends, "kjr"))
    largest = max(kjr, key=lambda step: total({step: kjr[step]}))
    report.text(
        f"""SFA needs {ratio(found, "ltl", "efpa"):.2f} times the flops of EFPA ({SFA_TO_EFPA} in the paper), and
        {without_jacobian(m, ends) / found["efpa"]:.2f} times without the Jacobian. The most expensive step of RJK is
        "{largest}" with {100 * total({largest: kjr[largest]}) / total(kjr):.0f} % of its flops; in the paper it is the
        off-diagonal blocks."""
    )


def draw_figure5(ax: Axes) -> None:
    m = humanoid(ASIMO)
    for row, algorithm in enumerate(HOOKS):
        left = 0
        for step, c in merged(steps(m, m.hands + m.feet, algorithm)).items():
            width = c.m + c.a
            ax.barh(row, width, left=left, height=0.6, color=STEP_COLORS[step], edgecolor="white", linewidth=0.8)
            if width > 1500:
                dark = step in ("inertias", "inward")
                color = INK if dark else "white"
                ax.text(left + width / 2, row, f"{width / 1000:.1f}", ha="center", va="center", fontsize=7.5, color=color)
            left += width
        ax.text(left + 300, row, f"{left:,}", va="center", fontsize=8.0, color=FAINT)
    ax.set_yticks(range(len(HOOKS)), [TITLES[a] for a in HOOKS])
    ax.invert_yaxis()
    ax.set_xlim(0, 38000)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(axis="x")
    handles = [ax.barh(0, 0, color=color) for color in STEP_COLORS.values()]
    ax.legend(handles, STEPS, loc="upper center", bbox_to_anchor=(0.44, -0.12), ncols=3, fontsize=8.0)
    ax.set_title("Flops of each step for hands and feet, labels in thousands")


def _figure6(report: Report) -> None:
    report.heading("Figure 6: other end-effectors and other mechanisms")
    report.text(
        """HF means hands and feet, HFH hands, feet and head, FTF forefingers, thumbs and feet (six end-effectors). The paper
        does not give the number of joints of its longer limbs; here each has four more. Four-fingered hands have three joints a
        finger, and the end-effector is the hand. All eight limbs have end-effectors if there are additional arms and legs. On
        one foot, this foot is the fixed base."""
    )
    with report.picture("wensing2012_figure6", "Flops for other end-effectors and mechanisms", (6.4, 5.6)) as ax:
        draw_figure6(ax)
    rows: list[list[object]] = []
    for name, case in variants().items():
        found = counts(*case, ALGORITHMS)
        ratios = (f"{ratio(found, one, 'efpa'):.2f}" for one in ("ltl", "kjr"))
        rows.append([name, *(found[a] for a in ALGORITHMS), *ratios])
    report.table(["", *(TITLES[a] for a in ALGORITHMS), "SFA to EFPA", "RJK to EFPA"], rows)


def draw_figure6(ax: Axes) -> None:
    cases = variants()
    for row, case in enumerate(cases.values()):
        found = counts(*case)
        for k, (algorithm, color) in enumerate(COLORS.items()):
            label = TITLES[algorithm] if row == 0 else None
            ax.barh(row + 0.16 * (k - 2), found[algorithm] / 1000, height=0.14, color=color, label=label)
    ax.set_yticks(range(len(cases)), list(cases))
    ax.set_ylim(len(cases) - 0.5, -0.5)
    ax.set_xlim(0, 104)
    ax.set_xlabel("flops, thousands")
    ax.grid(axis="x")
    ax.legend(loc="upper right", fontsize=8.0)
    ax.set_title("Flops of Λ⁻¹")


def ratios() -> dict[str, tuple[float, float, float]]:
    """Return the ratios of SFA to EFPA for hands and feet and for two additional arms and legs, and their quotient."""
    found: dict[str, list[float]] = {}
    for limbs in (ASIMO, MORE_LIMBS):
        m = humanoid(limbs)
        ends = m.hands + m.feet
        c = counts(m, ends, ("efpa", "ltl"))
        J = c["ltl"] - without_jacobian(m, ends)
        frames = robot(m).frame_jacobian([f"body{e}" for e in ends], reference="local")
        inertias = total({"": steps(m, ends, "efpa")["inertias"]})
        efpa, sfa = sum(by_table1(m, ends).values()) + inertias, sum(sfa_by_formulae(m, ends).values())
        for name, x in {
            "our functions": c["ltl"] / c["efpa"],
            "our functions, the Jacobian not counted": without_jacobian(m, ends) / c["efpa"],
            "our functions, J as `frame_jacobian` makes it": (c["ltl"] - J + flops(frames.operations)) / c["efpa"],
            "the papers' prices, the Jacobian not counted": sfa / efpa,
            "the papers' prices and our Jacobian": (sfa + J) / efpa,
        }.items():
            found.setdefault(name, []).append(x)
    return {name: (one, more, more / one) for name, (one, more) in found.items()}


if __name__ == "__main__":
    run(sections, __doc__)
