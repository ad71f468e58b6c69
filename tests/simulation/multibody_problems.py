"""Mechanisms of group A of the library of computational benchmark problems of multibody dynamics.

The library began at the University of A Coruña (M. González, D. Dopico, U. Lugrís and J. Cuadrado, "A benchmarking system for
MBS simulation software: problem standardization and performance measurement", Multibody System Dynamics 16, 2006) and now
belongs to IFToMM. The numbers come from its specifications A01 and A02; from the pages of the OpenSim models of all five
problems (L. Tagliapietra, M. Vivian, M. Reggiani: "MBS benchmarks in OpenSim"); and, for Andrews' squeezer, from the test set
for initial value problem solvers (F. Mazzia, C. Magherini: "Andrews' squeezing mechanism"), whose seven angles are the
coordinates here.

A spring between two points is a massless strut: a hinge at one end, a slide with stiffness and damping, and a loop that joins
its end to the other point.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import featherweight as fw
from featherweight.array_types import Array
from featherweight.model.types import WORLD, Vector

G = 9.81
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DOWN_Y, DOWN_Z, NO_GRAVITY = (0.0, -G, 0.0), (0.0, 0.0, -G), (0.0, 0.0, 0.0)
HINGE, SLIDE = fw.JointType.CONTINUOUS, fw.JointType.PRISMATIC
Z_ALONG_X = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
Z_ALONG_Y = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0))


def block(mass: float, sides: Vector, center: Vector = (0.0, 0.0, 0.0)) -> fw.Inertia:
    """Return the inertia of a solid block with edges along the axes."""
    x, y, z = (mass * s * s / 12.0 for s in sides)
    return fw.Inertia(mass, center, (y + z, 0.0, 0.0, x + z, 0.0, x + y))


def flat(mass: float, center: tuple[float, float], inertia: float) -> fw.Inertia:
    """Return the inertia of a body that moves in the plane of x and y."""
    return fw.Inertia(mass, (*center, 0.0), (inertia, 0.0, 0.0, inertia, 0.0, inertia))


def at(x: float, y: float, z: float = 0.0) -> fw.Pose:
    return fw.Pose(p=(x, y, z))


# --- A01


def simple_pendulum() -> fw.Robot:
    """Return a point mass of 1 kg on a massless bar of 1 m, which hangs down at zero."""
    bob = fw.Body("bob", fw.Inertia(1.0, (0.0, -1.0, 0.0)))
    return fw.build(fw.describe([bob], [fw.Joint("pivot", HINGE, WORLD, "bob", axis=Z)], gravity=DOWN_Y))


# --- A02


def four_bars(count: int) -> fw.Robot:
    """Return a row of four-bars that share their upright bars: 2 count + 1 links of 1 m and 1 kg, upright at zero."""
    upright, level = block(1.0, (0.0, 1.0, 0.0), (0.0, 0.5, 0.0)), block(1.0, (1.0, 0.0, 0.0), (0.5, 0.0, 0.0))
    bodies, loops = [fw.Body("bar0", upright)], []
    joints = [fw.Joint("crank", HINGE, WORLD, "bar0", axis=Z)]
    for k in range(count):
        bodies += [fw.Body(f"coupler{k}", level), fw.Body(f"bar{k + 1}", upright)]
        joints += [
            fw.Joint(f"pin{k}", HINGE, f"bar{k}", f"coupler{k}", at(0.0, 1.0), Z),
            fw.Joint(f"rocker{k}", HINGE, WORLD, f"bar{k + 1}", at(k + 1.0, 0.0), Z),
        ]
        loops.append(fw.Loop(f"loop{k}", fw.LoopType.REVOLUTE, f"coupler{k}", f"bar{k + 1}", at(1.0, 0.0), at(0.0, 1.0)))
    return fw.build(fw.describe(bodies, joints, loops=loops, independent=["crank"], gravity=DOWN_Y))


# --- A03

SQUEEZED = {  # angles [rad] at the start, and after 0.03 s
    "beta": (-0.0617138900142764496, 15.81077119629904),
    "theta": (0.0, -15.75637105984298),
    "gamma": (0.455279819163070380, 0.04082224013073101),
    "phi": (0.222668390165885885, -0.5347301163226948),
    "delta": (0.487364979543842550, 0.5244099658805304),
    "omega": (-0.222668390165885885, 0.5347301163226948),
    "epsilon": (1.23054744454982120, 1.048080741042263),
}
MOTOR = 0.033  # [N m]


def squeezer() -> fw.Robot:
    """Return seven bodies in the plane, joined at a point E, a spring from one of them to the ground, and a motor on the
    crank.
    """
    a, b, c, d = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072), (0.02, -0.018)
    bodies = [
        fw.Body("crank", flat(0.04325, (0.00092, 0.0), 2.194e-6)),
        fw.Body("rod", flat(0.00365, (-0.0115, 0.0), 4.410e-7)),
        fw.Body("triangle", flat(0.02373, (0.01043, -0.01874), 5.255e-6)),
        fw.Body("arm", flat(0.07050, (0.02308, 0.00916), 1.169e-5)),
        fw.Body("link", flat(0.00706, (0.0, -(0.02 - 0.01421)), 5.667e-7)),
        fw.Body("lower_arm", flat(0.05498, (0.00449, -0.01228), 1.912e-5)),
        fw.Body("lower_link", flat(0.00706, (0.02 - 0.01421, 0.0), 5.667e-7)),
        fw.Body("strut"),
        fw.Body("spring_end"),
    ]
    joints = [
        fw.Joint("beta", HINGE, WORLD, "crank", axis=Z),
        fw.Joint("theta", HINGE, "crank", "rod", at(0.007, 0.0), Z),
        fw.Joint("gamma", HINGE, WORLD, "triangle", at(*b), Z),
        fw.Joint("delta", HINGE, WORLD, "arm", at(*a), Z),
        fw.Joint("phi", HINGE, "arm", "link", at(0.04, 0.0), Z),
        fw.Joint("epsilon", HINGE, WORLD, "lower_arm", at(*a), Z),
        fw.Joint("omega", HINGE, "lower_arm", "lower_link", at(0.0, -0.04), Z),
        fw.Joint("swing", HINGE, WORLD, "strut", at(*c), Z),
        fw.Joint("spring", SLIDE, "strut", "spring_end", axis=X, stiffness=4530.0, rest=0.07785),
    ]
    ends = {"triangle": (0.0, -0.035), "link": (0.0, -0.02), "lower_link": (0.02, 0.0)}
    loops = [fw.Loop(f"E_{n}", fw.LoopType.REVOLUTE, "rod", n, at(-0.028, 0.0), at(*p)) for n, p in ends.items()]
    loops.append(fw.Loop("D", fw.LoopType.REVOLUTE, "spring_end", "triangle", at(0.0, 0.0), at(*d)))
    return fw.build(fw.describe(bodies, joints, loops=loops, independent=["beta"], gravity=NO_GRAVITY))


def squeezer_start(robot: fw.ClosedRobot) -> Array:
    """Return the initial configuration."""
    gamma = SQUEEZED["gamma"][0]
    turn = np.array([[math.cos(gamma), -math.sin(gamma)], [math.sin(gamma), math.cos(gamma)]])
    along = np.array([-0.03635, 0.03273]) + turn @ [0.02, -0.018] - [0.014, 0.072]
    start = {name: angles[0] for name, angles in SQUEEZED.items()}
    start |= {"swing": math.atan2(along[1], along[0]), "spring": math.hypot(*along)}
    return robot.close([start[joint.name] for joint in robot.joints])


# --- A04


def bricard() -> fw.Robot:
    """Return five rods of 1 m and 1 kg between six hinges, whose axes are initially along y, z, x, y, z and x."""
    rods = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    bodies, joints, parent, end = [], [], WORLD, (0.0, 0.0, 0.0)
    for k, (along, axis) in enumerate(zip(rods, (Y, Z, X, Y, Z), strict=True)):
        sides = tuple(1.0 if x else 0.1 for x in along)
        bodies.append(
            fw.Body(f"rod{k}", block(1.0, (sides[0], sides[1], sides[2]), (along[0] / 2, along[1] / 2, along[2] / 2)))
        )
        joints.append(fw.Joint(f"hinge{k}", HINGE, parent, f"rod{k}", at(*end), axis))
        parent, end = f"rod{k}", along
    last = fw.Loop("hinge5", fw.LoopType.REVOLUTE, None, parent, fw.Pose(Z_ALONG_X, (0.0, 0.0, 1.0)), fw.Pose(Z_ALONG_X, end))
    return fw.build(fw.describe(bodies, joints, loops=[last], independent=["hinge0"], gravity=DOWN_Y))


# --- A05


def governor() -> fw.Robot:
    """Return a flyball governor: a shaft, a slider, two rods with masses of 5 kg, and couplers that are springs with
    dampers.
    """
    rod_inertia = 0.3 / 12.0 * (1.0 + 1e-4)
    mass, center = 5.3, (5.0 * 1.0 + 0.3 * 0.5) / 5.3
    across = rod_inertia + 0.3 * (center - 0.5) ** 2 + 5.0 * (1.0 - center) ** 2
    rod = fw.Inertia(mass, (center, 0.0, 0.0), (0.3 / 12.0 * 2e-4, 0.0, 0.0, across, 0.0, across))
    bodies = [fw.Body("shaft", block(0.3, (0.01, 0.01, 1.0), (0.0, 0.0, 0.5))), fw.Body("slider", block(3.0, (0.1, 0.1, 0.1)))]
    joints = [
        fw.Joint("turn", HINGE, WORLD, "shaft", axis=Z),
        fw.Joint("slide", SLIDE, "shaft", "slider", axis=Z),
    ]
    loops = []
    for name, side in (("right", 1.0), ("left", -1.0)):
        outward = fw.Pose(((side, 0.0, 0.0), (0.0, side, 0.0), (0.0, 0.0, 1.0)))
        bodies += [fw.Body(f"{name}_rod", rod), fw.Body(f"{name}_strut"), fw.Body(f"{name}_end")]
        joints += [
            fw.Joint(f"{name}_hinge", HINGE, "shaft", f"{name}_rod", at(0.05 * side, 0.0, 1.0) @ outward, Y),
            fw.Joint(f"{name}_swing", HINGE, "slider", f"{name}_strut", at(0.05 * side, 0.0) @ outward, Y),
            fw.Joint(f"{name}_spring", SLIDE, f"{name}_strut", f"{name}_end", axis=X, stiffness=8e5, damping=4e4, rest=0.5),
        ]
        frames = (fw.Pose(Z_ALONG_Y), fw.Pose(Z_ALONG_Y, (0.5, 0.0, 0.0)))
        loops.append(fw.Loop(name, fw.LoopType.REVOLUTE, f"{name}_end", f"{name}_rod", *frames))
    independent = ["turn", "slide", "right_spring", "left_spring"]
    return fw.build(fw.describe(bodies, joints, loops=loops, independent=independent, gravity=DOWN_Z))


def governor_start(robot: fw.ClosedRobot) -> Array:
    """Return the initial configuration: the slider at 0.5 m, springs at rest, rods 30 degrees below the horizontal."""
    start = {"slide": 0.5}
    for side in ("right", "left"):
        start |= {f"{side}_hinge": math.pi / 6, f"{side}_swing": -math.pi / 6, f"{side}_spring": 0.5}
    return robot.close([start.get(joint.name, 0.0) for joint in robot.joints])


# --- references


def pendulum_position(times: Array, side: float) -> Array:
    """Return x and y (n, 2) of the simple pendulum that starts at rest at x = side, one or minus one, and y = 0."""
    k = math.sqrt(0.5)
    rate = math.sqrt(G)
    sn, _, dn, _ = ellipj(ellipk(k * k) - rate * times, k * k)
    half = k * sn  # the sine of half the angle
    return np.stack([side * 2.0 * half * dn, 2.0 * half * half - 1.0], axis=-1)


def four_bars_angle(count: int, times: Array, rate: float) -> Array:
    """Return the angle of the upright bars and its rate (n, 2), which start upright at a given rate, by one equation: W
    sin = M a.
    """
    M, W = (count + 1.0) / 3.0 + count, G * ((count + 1.0) / 2.0 + count)

    def motion(t: float, y: Array) -> list[float]:
        return [y[1], W / M * math.sin(y[0])]

    return integrated(motion, [0.0, rate], times)


def governor_motion(times: Array, rate: float) -> Array:
    """Return the height of the governor's slider, the angle of the rods below the horizontal, and their rates (n, 4).

    Both sides move symmetrically, so three coordinates suffice. The shaft's rate follows from its angular momentum.
    """
    spring, damper, rest = 8e5, 4e4, 0.5
    rod, ball, slider = 0.3, 5.0, 3.0
    across, along = rod / 12.0 * (1.0 + 1e-4), rod / 12.0 * 2e-4
    swing = across + 0.25 * rod + ball  # inertia of a rod about its hinge
    fixed = 0.3 / 6.0 * 1e-4 + slider / 6.0 * 1e-2  # inertia of shaft and slider about the shaft's axis

    def about_axis(a: float) -> tuple[float, float]:
        """Return the inertia about the shaft's axis, and its derivative by the angle."""
        c, s = math.cos(a), math.sin(a)
        inertia = along * s * s + across * c * c + rod * (0.05 + 0.5 * c) ** 2 + ball * (0.05 + c) ** 2
        slope = 2.0 * s * c * (along - across) - rod * s * (0.05 + 0.5 * c) - 2.0 * ball * s * (0.05 + c)
        return fixed + 2.0 * inertia, 2.0 * slope

    momentum = about_axis(math.pi / 6)[0] * rate

    def motion(t: float, y: Array) -> list[float]:
        height, a, height_rate, a_rate = y
        c, s = math.cos(a), math.sin(a)
        drop = 1.0 - 0.5 * s - height
        length = math.hypot(0.5 * c, drop)
        by_height, by_angle = -drop / length, (-0.25 * c * s - 0.5 * c * drop) / length
        force = spring * (length - rest) + damper * (by_height * height_rate + by_angle * a_rate)
        inertia, slope = about_axis(a)
        weight = G * (0.5 * rod + ball) * c
        turning = 0.25 * slope * (momentum / inertia) ** 2  # one half for each rod
        return [height_rate, a_rate, -G - 2.0 * force * by_height / slider, (turning + weight - force * by_angle) / swing]

    return integrated(motion, [0.5, math.pi / 6, 0.0, 0.0], times, "Radau", 1e-10)


def integrated(motion: Any, start: list[float], times: Array, method: str = "DOP853", tolerance: float = 1e-12) -> Array:
    """Return a motion at times (n, size), by a solver with adaptive steps."""
    span = (0.0, float(times[-1]))
    return solve_ivp(motion, span, start, method, times, rtol=tolerance, atol=tolerance).y.T
