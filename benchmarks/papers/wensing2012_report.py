"""Wensing, Featherstone and Orin (2012): reasons for the differences between the paper's numbers and ours."""

from __future__ import annotations

from report import Report, percentage
from wensing2012_mechanisms import ASIMO, MORE_LIMBS, SFA_TO_EFPA, TITLES, contacts, counts, flops, humanoid, robot
from wensing2012_prices import by_table1, sfa_by_formulae
from wensing2012_steps import (
    HOOKS,
    axis_terms,
    base_frames,
    merged,
    steps,
    total,
    without_jacobian,
)

from featherweight import BilateralContact


def sections(report: Report) -> None:
    report.heading("Reasons for the differences")
    _prices(report)
    _ratios(report)
    _variants(report)


def _prices(report: Report) -> None:
    m = humanoid(ASIMO)
    ends = m.hands + m.feet
    ours = steps(m, ends, "efpa")
    priced = by_table1(m, ends)
    counted = {step: total({step: c}) for step, c in ours.items() if not step.endswith("base")}
    counted["base"] = sum(total({s: c}) for s, c in ours.items() if s.endswith("base"))
    report.text(
        """Our EFPA beside the paper's table I for hands and feet, with full matrices, at the prices of its appendix and of
        Featherstone (2005). The paper gives no price of articulated inertias, so the table omits them."""
    )
    rows: list[list[object]] = [[s, p, counted[s], percentage(counted[s], p)] for s, p in priced.items()]
    all_priced, all_ours = sum(priced.values()), sum(counted[s] for s in priced)
    rows.append(["sum", all_priced, all_ours, percentage(all_ours, all_priced)])
    report.table(["step", "table I at the paper's prices", "ours", "%"], rows)
    report.text(
        """We compute one triangle of a diagonal block, half of whose rows are couples without a force. Blocks of a hand and a
        foot have a row of zeros on the foot's side. Inward, wrenches have no moment about the axis that they have passed."""
    )
    terms = axis_terms(m, ends, "efpa")
    if terms:
        report.text(
            f"""In "outward", an acceleration passes a joint as b − S Wᵀ b. The component of W along the joint is one, so that
            of b cancels, which the tracer does not detect. Without this component, EFPA would need {terms:,} fewer flops,
            including the base."""
        )


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


def _ratios(report: Report) -> None:
    report.text(
        f"""The paper's ratio of SFA to EFPA is {SFA_TO_EFPA}. The table has the ratio with and without the Jacobian. "The
        papers' prices" are table I with our articulated inertias, and the formulae of Featherstone (2005) for H, its factors, Y
        and Y Yᵀ."""
    )
    rows = [[name, *(f"{x:.2f}" for x in values)] for name, values in ratios().items()]
    report.table(["", "HF", "two additional arms and legs", "growth"], rows)
    report.text(
        """The ratio without the Jacobian is close to the paper's, whose text does not say whether it counts the Jacobian. Ours
        propagates each row of each end-effector from link to link."""
    )


def _variants(report: Report) -> None:
    m = humanoid(ASIMO)
    ends = m.hands + m.feet
    report.text(
        """Savings of the tracer for hands and feet: the additional flops without the sharing of equal expressions, and without
        the simplification of x + (y − x) to y."""
    )
    rows: list[list[object]] = []
    for algorithm in HOOKS:
        plain = merged(steps(m, ends, algorithm))
        row: list[object] = [TITLES[algorithm], total(plain)]
        for what in ("sharing", "cancelling"):
            row.append(total(steps(m, ends, algorithm, what)) - total(plain))
        rows.append(row)
    report.table(["", "flops", "more without sharing", "more without cancelling"], rows)
    unshared, plain = merged(steps(m, ends, "ltl", "sharing")), merged(steps(m, ends, "ltl"))
    most = max(plain, key=lambda s: total({s: unshared[s]}) - total({s: plain[s]}))
    gain = total({most: unshared[most]}) - total({most: plain[most]})
    report.text(
        f"""Without sharing, the ratio of SFA to EFPA is {_unshared_ratio():.2f}. SFA saves {gain:,} flops in the step "{most}":
        forces of a contact along its axes rotate from link to link like couples about these axes. The Jacobian would need
        {rows_apart():,} more flops for separate forces and couples. Force propagators mix the two."""
    )
    report.text("Effect of the frame of the base for hands and feet:")
    rows = [[where, efpa, ltl, f"{ltl / efpa:.2f}"] for where, (efpa, ltl) in base_frames().items()]
    report.table(["", "EFPA", "SFA", "SFA to EFPA"], rows)


def _unshared_ratio() -> float:
    m = humanoid(ASIMO)
    return total(steps(m, m.hands + m.feet, "ltl", "sharing")) / total(steps(m, m.hands + m.feet, "efpa", "sharing"))


def rows_apart() -> int:
    """Return the additional flops of the Jacobian for hands and feet if forces and couples have separate functions."""
    m = humanoid(ASIMO)

    def jacobian(rows: slice) -> int:
        made = [BilateralContact(c.frame, rows=c.matrix[rows], placement=c.placement) for c in contacts(m.hands + m.feet)]
        return flops(robot(m).contact_jacobian(made).operations)

    return jacobian(slice(0, 3)) + jacobian(slice(3, 6)) - jacobian(slice(0, 6))
