"""Robots of the MIT Biomimetic Robotics Lab: the Mini Cheetah and the MIT Humanoid.

Numbers are those of mini_cheetah.urdf and mit_humanoid.urdf of generalized_rbda (MIT licence). The Mini Cheetah is that of
Katz, Di Carlo and Kim (ICRA 2019), the humanoid that of Chignoli, Kim, Stanger-Jones and Kim (Humanoids 2021). Right sides
mirror the left.
"""

from __future__ import annotations

from ..model.description import Description
from ..model.types import Body, Inertia, Matrix
from ..spatial.elementary import cos, sin
from .parts import Part, mirrored, robot_of_parts, rotors

BASE = "Floating Base"
HALF_TURN: Matrix = ((-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0))  # about z


def mini_cheetah() -> Description:
    """Return the Mini Cheetah: 18 degrees of freedom, and 12 rotors geared by 6, 6 and 9.33 (abduction, hip, knee)."""
    torso = Body(BASE, Inertia(3.3, rotational=(0.011253, 0.0, 0.0, 0.036203, 0.0, 0.042673)))
    right = [mirrored(p) for leg, front in (("FR", 1.0), ("HR", -1.0)) for p in _cheetah_leg(leg, front)]
    left = [p for leg, front in (("FL", 1.0), ("HL", -1.0)) for p in _cheetah_leg(leg, front)]
    return robot_of_parts("mini_cheetah", [*right[:6], *left[:6], *right[6:], *left[6:]], torso, "base_to_floating_base")


def _cheetah_leg(leg: str, front: float) -> list[Part]:
    """Return a leg on the left side; `front` is 1 for fore and -1 for hind legs."""
    abad, hip, knee = f"torso_to_{leg}_abad_j", f"{leg}_abad_to_hip_j", f"{leg}_hip_to_knee_j"
    on_abad, on_hip = f"{leg}_abad_link", f"{leg}_hip_link"
    spin = rotors(0.055, 33e-6, 63e-6)
    return [
        Part(on_abad, Inertia(0.54, (0.0, 0.036, 0.0), (381e-6, 58e-6, 0.45e-6, 560e-6, 0.95e-6, 444e-6)),
             abad, BASE, "x", (0.19 * front, 0.049, 0.0)),
        Part(f"{leg}_abad_rotor", spin["x"], f"torso_to_{leg}_abad_rotor_j", BASE, "x", (0.125 * front, 0.049, 0.0),
             follows=((abad, 6.0),)),
        Part(on_hip, Inertia(0.634, (0.0, 0.016, -0.02), (1983e-6, 245e-6, 13e-6, 2103e-6, 1.5e-6, 408e-6)),
             hip, on_abad, "y", (0.0, 0.062, 0.0), HALF_TURN),
        Part(f"{leg}_hip_rotor", spin["y"], f"{leg}_abad_to_hip_rotor_j", on_abad, "y", (0.0, 0.04, 0.0), HALF_TURN,
             follows=((hip, 6.0),)),
        Part(f"{leg}_knee_link", Inertia(0.064, (0.0, 0.0, -0.061), (6e-6, 0.0, 0.0, 248e-6, 0.0, 245e-6)),
             knee, on_hip, "y", (0.0, 0.0, -0.209)),
        Part(f"{leg}_knee_rotor", spin["y"], f"{leg}_hip_to_knee_rotor_j", on_hip, "y", follows=((knee, 9.33),)),
    ]  # fmt: skip


def mit_humanoid() -> Description:
    """Return the MIT Humanoid: 24 degrees of freedom and 18 rotors.

    Gears of 6, 9 at the elbows. The motors of knee and ankle are both in the thigh, and belts transmit their rotation down the
    leg: q_rotor = 12 q_knee for the knee and 12 (q_knee + q_ankle) for the ankle.
    """
    inertia = (0.172699, 0.001419, 0.004023, 0.105949, -0.001672, 0.091906)
    torso = Body(BASE, Inertia(8.52, (0.009896, 0.004771, 0.100522), inertia))
    parts = [mirrored(p) for p in _humanoid_leg("right")] + _humanoid_leg("left")
    parts += [mirrored(p) for p in _humanoid_arm("right")] + _humanoid_arm("left")
    return robot_of_parts("mit_humanoid", parts, torso, "world_to_base")


SMALL, LARGE = rotors(0.05, 1.084e-4, 1.6841e-4), rotors(0.1, 3.443e-4, 5.548e-4)


def _humanoid_leg(side: str) -> list[Part]:
    """Return a leg with the numbers of the left one."""
    hip_rz, hip_rx, hip_ry, knee = (f"{side}_{part}_link" for part in ("hip_rz", "hip_rx", "hip_ry", "knee"))
    rz, rx, ry = f"base_to_{side}_hipz_link", f"{side}_hipz_to_hipx_link", f"{side}_hipx_to_hipy_link"
    bend, ankle = f"{side}_hipy_to_knee_link", f"{side}_knee_to_ankle"
    tilt_z, tilt_x, tilt_y = _about_y(-0.174533), _about_y(0.436332), _about_y(-0.261799)
    return [
        Part(hip_rz, Inertia(0.84563, (-0.064842, -3.6e-5, -0.06309),
                             (0.0015373, 1.1e-6, 0.0005578, 0.0014252, 2.4e-6, 0.0012028)),
             rz, BASE, "z", (-0.00565, 0.082, -0.05735), tilt_z),
        Part(f"{side}_hip_rz_rotor", SMALL["z"], f"{side}_base_to_hipz_rotor", BASE, "z",
             (-0.00842837, 0.082, -0.041593), tilt_z, ((rz, 6.0),)),
        Part(hip_rx, Inertia(1.20868, (0.067232, -0.013018, 0.0001831),
                             (0.0017535, -6.3e-6, -8.0e-5, 0.003338, -1.3e-5, 0.0019927)),
             rx, hip_rz, "x", (-0.06435, 0.0, -0.07499), tilt_x),
        Part(f"{side}_hip_rx_rotor", SMALL["x"], f"{side}_hipz_to_hipx_rotor", hip_rz, "x",
             (-0.0827, 0.0, -0.066436), tilt_x, ((rx, 6.0),)),
        Part(hip_ry, Inertia(2.64093, (0.0132054, 0.0269864, -0.096021),
                             (0.0243761, 9.96e-5, 0.0006548, 0.0259015, 0.0026713, 0.0038929)),
             ry, hip_rx, "y", (0.071, -0.0018375, 0.0), tilt_y),
        Part(f"{side}_hip_ry_rotor", LARGE["y"], f"{side}_hipx_to_hipy_rotor", hip_rx, "y",
             (0.071, -0.024, 0.0), tilt_y, ((ry, 6.0),)),
        Part(knee, Inertia(0.35435, (0.00528, 0.0014762, -0.13201),
                           (0.003051, 0.0, 8.73e-5, 0.003033, 3.93e-5, 0.0002529)),
             bend, hip_ry, "y", (0.0, 0.0, -0.267)),
        Part(f"{side}_knee_rotor", LARGE["y"], f"{side}_hipy_to_knee_rotor", hip_ry, "y",
             (0.013, 0.0497, -0.0178), follows=((bend, 12.0),)),
        Part(f"{side}_ankle_rotor", SMALL["y"], f"{side}_hipy_to_ankle_rotor", hip_ry, "y",
             (0.01563, 0.0454, -0.13354), follows=((bend, 12.0), (ankle, 12.0))),
        Part(f"{side}_ankle_link", Inertia(0.280951, (0.022623, 0.0, -0.012826),
                                           (8.42e-5, 0.0, -4.88e-5, 0.0007959, 0.0, 0.0007681)),
             ankle, knee, "y", (0.0, 0.0, -0.2785)),
    ]  # fmt: skip


SHOULDER_RY = Inertia(0.788506, (0.009265, 0.052623, -0.0001249), (0.0013678, 2.66e-5, 2.1e-6, 0.0007392, -1.2e-6, 0.000884))
SHOULDER_RX = Inertia(0.80125, (0.0006041, 0.0001221, -0.082361), (0.0011524, 7e-7, 3.96e-5, 0.0011921, 1.4e-6, 0.0012386))
SHOULDER_RZ = Inertia(0.905588, (0.0001703, -0.016797, -0.06), (0.0012713, 1e-6, -8e-6, 0.0017477, -2.25e-5, 0.0008191))
ELBOW = Inertia(0.34839, (-0.0059578, 0.000111, -0.0426735), (0.00157, 2e-7, 3.35e-5, 0.0016167, 3e-6, 6.19e-5))


def _humanoid_arm(side: str) -> list[Part]:
    """Return an arm with the numbers of the left one."""
    ry, rx, rz = f"{side}_shoulder_ry", f"{side}_shoulder_rx", f"{side}_shoulder_rz"
    to_ry, to_rx = f"base_to_{side}_shouldery_link", f"{side}_shouldery_shoulderx_link"
    to_rz, to_elbow = f"{side}_shoulderx_shoulderz_link", f"{side}_shoulderz_elbow_link"
    in_ry, in_rx, in_rz = f"{ry}_link", f"{rx}_link", f"{rz}_link"
    return [
        Part(in_ry, SHOULDER_RY, to_ry, BASE, "y", (0.01346, 0.17608, 0.24657)),
        Part(f"{ry}_rotor", SMALL["y"], f"base_to_{side}_shouldery_rotor", BASE, "y", (0.01346, 0.16, 0.24657),
             follows=((to_ry, 6.0),)),
        Part(in_rx, SHOULDER_RX, to_rx, in_ry, "x", (0.0, 0.0575, 0.0)),
        Part(f"{rx}_rotor", SMALL["x"], f"{side}_shouldery_to_shoulderx_rotor", in_ry, "x", (0.0, 0.0575, 0.0),
             follows=((to_rx, 6.0),)),
        Part(in_rz, SHOULDER_RZ, to_rz, in_rx, "z", (0.0, 0.0, -0.1025)),
        Part(f"{rz}_rotor", SMALL["z"], f"{side}_shoulderx_to_shoulderz_rotor", in_rx, "z", (0.0, 0.0, -0.1025),
             follows=((to_rz, 6.0),)),
        Part(f"{side}_elbow_link", ELBOW, to_elbow, in_rz, "y", (0.0, 0.0, -0.1455)),
        Part(f"{side}_elbow_rotor", SMALL["y"], f"{side}_shoulderz_to_elbow_rotor", in_rz, "y", (0.0, -0.0325, -0.06),
             follows=((to_elbow, 9.0),)),
    ]  # fmt: skip


def _about_y(angle: float) -> Matrix:
    """Return a rotation about y [rad]."""
    c, s = cos(angle), sin(angle)
    return ((c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c))
