"""Identify the inertias of Panda's links and of a tool in its hand from noisy angles and joint forces.

    python examples/identify.py [--output output]        pip install 'featherweight[demo,identification]'

The nominal model is the arm of the file. The simulated arm has different links, a tool, and friction. It follows a sum of
sines, the most informative of several random motions. A fit of the measured angles by sums of sines gives velocities and
accelerations without numerical differentiation, which would amplify the noise. Least squares fit the base parameters, and a
semidefinite program fits physically consistent inertias. Both predict the forces of a motion that is not in the data. The
picture is identify.png.
"""

from types import SimpleNamespace

import numpy as np
from pictures import output_folder, picture_of_identification

import featherweight as fw
from featherweight import identification

PANDA = "panda"
PERIOD, SAMPLES, HARMONICS = 10.0, 1000, 5  # [s], and the number of samples
TRIED = 40  # random motions
ANGLE_NOISE, FORCE_NOISE = 1e-4, np.array([0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1])  # [rad], [N m, N]
TOOL = fw.Inertia(0.8, (0.0, 0.03, 0.12), (3e-3, 0.0, 0.0, 2.5e-3, 0.0, 1e-3))  # in the hand


def driven(arm):
    """Return the joints, without the finger that follows the other."""
    return [j for j in arm.joints if j.independent]


def hidden_arm(arm, rng):
    """Return the simulated arm and its friction coefficients, viscous and then dry."""
    bend = np.eye(4) + 0.08 * rng.standard_normal((len(arm.bodies), 4, 4))  # affine maps keep inertias physically consistent
    bend[:, 3] = np.eye(4)[3]
    P = bend @ identification.pseudo_inertia(arm.inertial_parameters) @ np.swapaxes(bend, 1, 2)
    body, more = tool(arm)
    P[[b.name for b in arm.bodies].index(body)] += more
    size = np.array([0.6, 0.6, 0.5, 0.5, 0.3, 0.3, 0.2, 2.0])
    friction = np.append(size, 1.5 * size) * rng.uniform(0.5, 1.5, 2 * len(size))
    return arm.with_inertial_parameters(identification.parameters_of(P)), friction


def tool(arm):
    """Return the body that carries the hand, and the pseudo-inertia of the tool in its frame."""
    m, c, (xx, xy, xz, yy, yz, zz) = TOOL
    hand = next(frame for frame in arm.frames if frame.name == "panda_hand")
    at = hand.placement @ fw.Pose(p=c)
    H = np.eye(4)
    H[:3, :3], H[:3, 3] = at.R, at.p
    return hand.body, H @ identification.pseudo_inertia([m, 0.0, 0.0, 0.0, xx, xy, yy, xz, yz, zz]) @ H.T


def waves(t):
    """Return a constant, sines and cosines (t, 2 HARMONICS + 1), and their first and second derivatives."""
    w = 2 * np.pi / PERIOD * np.arange(1, HARMONICS + 1)
    s, c, one = np.sin(np.outer(t, w)), np.cos(np.outer(t, w)), np.ones((len(t), 1))
    return np.hstack([one, s, c]), np.hstack([0 * one, w * c, -w * s]), np.hstack([0 * one, -w * w * s, -w * w * c])


def random_motion(arm, rng, t):
    """Return q, v and a (t, 8) of a random sum of sines within the limits."""
    X, dX, ddX = waves(t)
    lower, upper = np.array([(j.lower, j.upper) for j in driven(arm)]).T
    sizes = 1.0 / np.arange(1, HARMONICS + 1)
    x = np.concatenate([[0.0], sizes, sizes])[:, None] * rng.standard_normal((2 * HARMONICS + 1, arm.nv))
    x *= np.minimum(0.45 * (upper - lower) / abs(X @ x).max(0), 1.5 / abs(dX @ x).max(0))  # of the range, and [rad/s, m/s]
    x[0] = 0.5 * (lower + upper)
    return X @ x, dX @ x, ddX @ x


def exciting_motion(arm, base, rng, t):
    """Return the random motion with the best conditioned regressor of base parameters."""
    motions = [random_motion(arm, rng, t) for _ in range(TRIED)]

    def condition(motion):
        Y = base.matrix(*(x[::10] for x in motion)) / FORCE_NOISE[:, None]
        Y = (Y / np.linalg.norm(Y, axis=(0, 1))).reshape(-1, len(base))
        return np.sqrt(np.linalg.cond(Y.T @ Y))

    conditions = [condition(motion) for motion in motions]
    print(f"Condition of the regressor for {TRIED} motions: {min(conditions):.0f} to {max(conditions):.0f}")
    return motions[int(np.argmin(conditions))]


def measured(hidden, friction, regressor, motion, rng):
    """Return noisy angles and joint forces along a motion."""
    q, v, a = motion
    Y = regressor.function(q, v, a)[..., -len(friction) :]
    tau = hidden.inverse_dynamics(q, v, a) + Y @ friction
    return q + ANGLE_NOISE * rng.standard_normal(q.shape), tau + FORCE_NOISE * rng.standard_normal(tau.shape)


def smoothed(q, t):
    """Return q, v and a of the sum of sines that fits noisy angles best."""
    X, dX, ddX = waves(t)
    x = np.linalg.lstsq(X, q, rcond=None)[0]
    return X @ x, dX @ x, ddX @ x


def solve():
    rng = np.random.default_rng(4)
    arm = fw.load(fw.example(PANDA))
    hidden, friction = hidden_arm(arm, rng)
    base = identification.base_parameters(arm, joint_friction=[j.name for j in driven(arm)])
    t = np.linspace(0.0, PERIOD, SAMPLES, endpoint=False)
    q, tau = measured(hidden, friction, base.regressor, exciting_motion(arm, base, rng, t), rng)
    motion = smoothed(q, t)
    fit = base.fit(*motion, tau)
    consistent = identification.fit_inertial_parameters(base.regressor, *motion, tau)
    truth = base.of(np.append(hidden.inertial_parameters, friction))
    unseen = random_motion(arm, rng, t)
    _, asked = measured(hidden, friction, base.regressor, unseen, rng)
    whole = np.append(consistent.inertial, list(consistent.joints.values()))
    predicted = {
        "file": arm.inverse_dynamics(*unseen),
        "base parameters": base.matrix(*unseen) @ fit.values,
        "consistent inertias": base.regressor.function(*unseen) @ whole,
    }
    return SimpleNamespace(
        arm=arm, base=base, fit=fit, truth=truth, consistent=consistent, times=t, asked=asked, predicted=predicted
    )


def main():
    output = output_folder(__doc__)
    found = solve()
    base, fit, inertial = found.base, found.fit, found.consistent.inertial
    print(f"{len(base)} base parameters of {len(base.regressor.names)}: file, true, found (standard deviation)")
    for row in zip(base.names, base.values, found.truth, fit.values, fit.deviations, strict=True):
        print("  {:28s}{:10.4f}{:10.4f}{:10.4f}   ({:.4f})".format(*row))
    print("Mass [kg] of links: file, consistent fit (undetermined parameters stay near the file)")
    for body, m in zip(found.arm.bodies, inertial[:, 0], strict=True):
        print(f"  {body.name:28s}{body.mass:10.3f}{m:10.3f}")
    print(f"Inconsistent bodies: {identification.inconsistent_bodies(found.arm, inertial) or 'none'}")
    for name, tau in found.predicted.items():
        print(f"Forces of another motion, {name}: rms error {np.sqrt(np.mean((tau - found.asked) ** 2)):.3f}")
    seen = found.times, found.asked, found.predicted
    picture_of_identification(output / "identify.png", base, fit, found.truth, seen, FORCE_NOISE)


if __name__ == "__main__":
    main()
