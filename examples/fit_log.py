"""Fit a simulation to a log of encoders that another simulator made.

    python examples/fit_log.py [--output output]        pip install 'featherweight[demo]' mujoco

The code is that of docs/guides/identification.md: MuJoCo simulates an arm with two joints, with a shorter step and another
integrator. The fit finds friction, armature, a mass and the offset of an encoder. The picture, fit_log.png, shows the encoder
of the elbow beside the nominal and the fitted arm, which both start from the same state and follow the same torques. It also
shows the errors of the parameters before and after the fit.
"""

import matplotlib
import numpy as np
from pictures import output_folder, save

import featherweight as fw
from featherweight import identification

matplotlib.use("Agg")

ARM = """<mujoco><option timestep="{step}" integrator="{integrator}"/><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" damping="{d}" armature="{a}" frictionloss="{f}"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="1.5" contype="0" conaffinity="0"/>
<body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0" damping="{d}" armature="{a}" frictionloss="{f}"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="{m}" contype="0" conaffinity="0"/></body></body>
</worldbody></mujoco>"""
NOISE, SHOWN = 1e-3, 3.0  # [rad], [s]
TRUTH = np.array([0.2, 0.2, 0.15, 0.15, 0.03, 0.03, 1.1])
BEFORE = 0.1, 0.1, 0.1, 0.1, 0.02, 0.02, 0.8


def recorded(seconds, rng):
    """Return times, torques and positions of the true arm."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(ARM.format(step=2.5e-4, integrator="implicitfast", d=0.2, a=0.03, f=0.15, m=1.1))
    data, time = mujoco.MjData(model), 2e-3 * np.arange(round(seconds / 2e-3))
    rate, phase = rng.uniform(2.0, 12.0, (4, 2)), rng.uniform(0.0, 6.0, (4, 2))
    tau, q = np.sin(time[:, None, None] * rate + phase).sum(axis=1), np.empty((len(time), 2))
    for k in range(len(time)):
        q[k], data.qfrc_applied[:] = data.qpos, tau[k]
        mujoco.mj_step(model, data, 8)
    return time, tau, q


def solve():
    """Return the result of the fit, the log, and the motions of the nominal and the fitted arm."""
    rng = np.random.default_rng(2)
    time, tau, q = recorded(10.0, rng)
    measured = q + [0.0, 0.01] + NOISE * rng.standard_normal(q.shape)
    measured[rng.random(q.shape) < 0.1] = np.nan
    nominal = fw.Simulation(fw.load(ARM.format(step=2e-3, integrator="Euler", d=0.1, a=0.02, f=0.1, m=0.8)))
    log = identification.Log(time, {"q": measured}, tau=tau)
    kinds = ["damping", "dry_friction", "armature", identification.Parameter("mass", "lower"), "offset"]
    result = identification.fit(nominal, log, kinds)
    start = np.zeros((1, 2))
    steps = round(SHOWN / 2e-3)
    motions = [s.rollout(start, start, tau=tau[None, :steps])[0][0] for s in (nominal, result.simulation)]
    return result, time, measured, motions


def main():
    import matplotlib.pyplot as plt

    output = output_folder(__doc__)
    result, time, measured, (nominal, fitted) = solve()
    print(result)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), gridspec_kw={"width_ratios": [1.6, 1.0]})
    n = len(nominal) - 1
    left.plot(time[:n:10], measured[:n:10, 1] - 0.01, ".", color="0.6", markersize=3, label="encoder, without its offset")
    left.plot(time[:n], nominal[:n, 1], "--", color="tab:orange", label="nominal arm")
    left.plot(time[:n], fitted[:n, 1], color="tab:blue", label="fitted arm")
    left.set(title="Motion of the elbow", xlabel="time [s]", ylabel="angle [rad]")
    left.legend(frameon=False, fontsize=8.5)
    names, places = result.names[:7], np.arange(7)
    for values, shift, color in ((BEFORE, -0.18, "tab:orange"), (result.values[:7], 0.18, "tab:blue")):
        right.barh(places + shift, 100.0 * (np.array(values) / TRUTH - 1.0), 0.32, color=color)
    right.axvline(0.0, color="0.5", linewidth=0.8)
    right.set_yticks(places, names)
    right.invert_yaxis()
    right.set(title="Errors of the parameters", xlabel="error [%]")
    figure.tight_layout()
    save(figure, output / "fit_log.png")


if __name__ == "__main__":
    main()
