"""Single calls of all public names of a robot that compute, and of `featherweight.se3`, beside Pinocchio in one run.

    python benchmarks/peers/robot_calls.py [--seconds 0.3] [ROBOT ...]

Names are found by inspection: compiled functions, and methods of which `values` has all required arguments. A method that
returns a function, as `frame_jacobian("hand")` does, is called in both steps. Names whose arguments are unknown are listed at
the end. Pinocchio has its model, data and arguments in advance. Calls alternate; times are processor time, on which other
programs of the machine have less effect. The worst ratio of medians comes first, then calls without a peer, the longest first.
"""

from __future__ import annotations

import argparse
import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from measure import machine, markdown, median_times
from pinocchio_peer import Pair

import featherweight as fw
from featherweight import se3
from featherweight.engine.function import CompiledFunction

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
BUILDS = ("with_", "warn_", "together", "require_")  # beginnings of names that make robots, or return nothing
Call = Callable[[], Any]


def values(robot: fw.Robot, frame: str) -> dict[str, Any]:
    """Return values for arguments, by name."""
    rng = np.random.default_rng(0)
    q, (v, a, tau) = robot.random_configuration(rng=rng), rng.standard_normal((3, robot.nv))
    twist, T = rng.standard_normal(6), se3.exp(rng.standard_normal(6))
    R, w = T[:3, :3].copy(), twist[3:].copy()
    return {
        "q": q, "v": v, "a": a, "tau": tau, "q0": q, "q1": robot.integrate(q, v), "h": 1e-3,
        "dtau": tau, "w_dot": a, "x": v, "frame": frame, "body": frame,
        "contacts": fw.BilateralContact(frame), "B": np.eye(robot.nv), "damping": 1e-6,
        "parameters": robot.inertial_parameters.ravel(), "vector": tau, "direction": v, "joint": robot.joints[-1].name,
    } | {f"se3.{k}": x for k, x in {"v": twist, "w": w, "T": T, "A": T, "B": T, "R": R, "p": w, "t": 0.3, "rpy": w}.items()} | {
        "se3.q": np.array([0.1, 0.2, 0.3, 0.9]), "se3.x": np.append(w, [0.1, 0.2, 0.3, 0.9])
    }  # fmt: skip


def calls_of(robot: fw.Robot, given: dict[str, Any]) -> Iterator[tuple[str, Call | None]]:
    """Yield the calls of a robot by name; None where an argument is unknown."""
    for name in dir(robot):
        if name.startswith(("_", *BUILDS)):
            continue
        try:
            member = getattr(robot, name)
        except ValueError:  # the robot does not define the function
            continue
        if callable(member) and not isinstance(member, type):
            with suppress(ValueError):  # not for this robot, as `on_ground` is not for one on a fixed base
                yield name, call_of(member, given)


def call_of(member: Any, given: dict[str, Any], prefix: str = "") -> Call | None:
    """Return a call of a function with arguments by name, of which those without a default must be known."""
    parameters = [p for p in inspect.signature(member).parameters.values() if p.kind is not p.VAR_KEYWORD]
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    if any(prefix + x not in given for x in needed):
        return None
    places = [given[prefix + x] for x in needed]
    result = member(*places)
    if isinstance(result, CompiledFunction) or (callable(result) and hasattr(result, "robot")):
        names = [x.name for x in result.program.inputs] if isinstance(result, CompiledFunction) else ["q"]
        if any(x not in given for x in names):
            return None
        state = [given[x] for x in names]
        return written_out(member, places, state)
    return written_out(member, places)


def written_out(f: Any, places: list[Any], state: list[Any] | None = None) -> Call:
    """Return the call f(*places), or f(*places)(*state), with arguments written out as users do, which takes less time."""
    names = [f"x{k}" for k in range(len(places) + len(state or ()))]
    first, then = ", ".join(names[: len(places)]), ", ".join(names[len(places) :])
    known = dict(zip(names, [*places, *(state or ())], strict=True)) | {"f": f}
    call: Call = eval(f"lambda: f({first})" + ("" if state is None else f"({then})"), known)
    return call


def peers(pair: Pair, frame: str, given: dict[str, Any]) -> dict[str, Call]:
    """Return Pinocchio's calls by our names."""
    m, d, k = pair.model, pair.data, pair.model.getFrameId(frame)
    q, v, u = (np.ascontiguousarray(x[:, 0]) for x in (pair.pq, pair.pv, pair.pu))
    q1, M, x = pin.integrate(m, q, v), pin.SE3(given["se3.T"]), pin.Motion(given["se3.v"])
    w, R, quaternion = given["se3.w"], given["se3.R"], pin.Quaternion(given["se3.q"] / np.linalg.norm(given["se3.q"]))
    seven, B = given["se3.x"], given["B"]

    def placement() -> Any:
        pin.framesForwardKinematics(m, d, q)
        return d.oMf[k].homogeneous

    def velocity() -> Any:
        pin.forwardKinematics(m, d, q, v)
        return pin.getFrameVelocity(m, d, k, ALIGNED).vector

    def acceleration(get: Any) -> Call:
        def call() -> Any:
            pin.forwardKinematics(m, d, q, v, u)
            return get(m, d, k, ALIGNED).vector

        return call

    def jacobian_rate() -> Any:
        pin.computeJointJacobiansTimeVariation(m, d, q, v)
        return pin.getFrameJacobianTimeVariation(m, d, k, ALIGNED)

    def factorized() -> Any:
        pin.crba(m, d, q)
        return pin.cholesky.decompose(m, d)

    def solved() -> Any:
        pin.crba(m, d, q)
        pin.cholesky.decompose(m, d)
        return pin.cholesky.solve(m, d, v)

    return {
        "inverse_dynamics": lambda: pin.rnea(m, d, q, v, u),
        "forward_dynamics": lambda: pin.aba(m, d, q, v, u),
        "mass_matrix": lambda: pin.crba(m, d, q),
        "inverse_mass_matrix": lambda: pin.computeMinverse(m, d, q),
        "solve_mass_matrix": lambda: pin.computeMinverse(m, d, q) @ B,
        "factorize": factorized,
        "factorize(q).solve(v)": solved,
        "bias_force": lambda: pin.nonLinearEffects(m, d, q, v),
        "gravity_force": lambda: pin.computeGeneralizedGravity(m, d, q),
        "kinetic_energy": lambda: pin.computeKineticEnergy(m, d, q, v),
        "potential_energy": lambda: pin.computePotentialEnergy(m, d, q),
        "coriolis_matrix": lambda: pin.computeCoriolisMatrix(m, d, q, v),
        "inverse_dynamics_derivatives": lambda: pin.computeRNEADerivatives(m, d, q, v, u),
        "forward_dynamics_derivatives": lambda: pin.computeABADerivatives(m, d, q, v, u),
        "inverse_dynamics_regressor": lambda: pin.computeJointTorqueRegressor(m, d, q, v, u),
        "center_of_mass": lambda: pin.centerOfMass(m, d, q),
        "center_of_mass_velocity": lambda: pin.centerOfMass(m, d, q, v),
        "center_of_mass_acceleration": lambda: pin.centerOfMass(m, d, q, v, u),
        "center_of_mass_jacobian": lambda: pin.jacobianCenterOfMass(m, d, q),
        "centroidal_map": lambda: pin.computeCentroidalMap(m, d, q),
        "centroidal_map_rate": lambda: pin.computeCentroidalMapTimeVariation(m, d, q, v),
        "centroidal_momentum": lambda: pin.computeCentroidalMomentum(m, d, q, v),
        "centroidal_momentum_rate": lambda: pin.computeCentroidalMomentumTimeVariation(m, d, q, v, u),
        "joint_jacobian": lambda: pin.computeJointJacobians(m, d, q),
        "joint_jacobian_rate": lambda: pin.computeJointJacobiansTimeVariation(m, d, q, v),
        "frame_placement": placement,
        "frame_jacobian": lambda: pin.computeFrameJacobian(m, d, q, k, ALIGNED),
        "frame_jacobian_rate": jacobian_rate,
        "frame_velocity": velocity,
        "frame_acceleration": acceleration(pin.getFrameAcceleration),
        "frame_classical_acceleration": acceleration(pin.getFrameClassicalAcceleration),
        "integrate": lambda: pin.integrate(m, q, v),
        "difference": lambda: pin.difference(m, q, q1),
        "integrate_derivatives": lambda: pin.dIntegrate(m, q, v),
        "difference_derivatives": lambda: pin.dDifference(m, q, q1),
        "neutral": lambda: pin.neutral(m),
        "random_configuration": lambda: pin.randomConfiguration(m),
        "random_configuration(rng=rng)": lambda: pin.randomConfiguration(m),
        "se3.exp": lambda: pin.exp6(x),
        "se3.log": lambda: pin.log6(M).vector,
        "se3.Jexp": lambda: pin.Jexp6(x),
        "se3.Jlog": lambda: pin.Jlog6(M),
        "se3.exp3": lambda: pin.exp3(w),
        "se3.log3": lambda: pin.log3(R),
        "se3.Jexp3": lambda: pin.Jexp3(w),
        "se3.Jlog3": lambda: pin.Jlog3(R),
        "se3.inverse": lambda: M.inverse(),
        "se3.compose": lambda: M * M,
        "se3.adjoint": lambda: M.action,
        "se3.interpolate": lambda: pin.SE3.Interpolate(M, M, 0.3),
        "se3.homogeneous": lambda: pin.SE3(R, w),
        "se3.matrix_from_quaternion": lambda: quaternion.toRotationMatrix(),
        "se3.quaternion_from_matrix": lambda: pin.Quaternion(R),
        "se3.matrix_from_rpy": lambda: pin.rpy.rpyToMatrix(w),
        "se3.rpy_from_matrix": lambda: pin.rpy.matrixToRpy(R),
        "se3.homogeneous_from_xyzquat": lambda: pin.XYZQUATToSE3(seven),
        "se3.xyzquat_from_homogeneous": lambda: pin.SE3ToXYZQUAT(M),
    }


class Measured(NamedTuple):
    """The times of a robot's calls."""

    times: dict[str, tuple[float, ...]]  # [s], ours, and Pinocchio's if it has the function
    unknown: list[str]  # names that take other arguments


def measured(name: str, seconds: float) -> Measured:
    """Return the times of all calls of a robot and of `featherweight.se3`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pair = Pair(name, 1)
        robot = pair.robot
        frame = next(f.name for f in reversed(robot.frames) if f.body is not None and pair.model.existFrame(f.name))
        given, rng = values(robot, frame), np.random.default_rng(0)
        theirs = peers(pair, frame, given)
        found = dict(calls_of(robot, given))
        found["random_configuration(rng=rng)"] = lambda: robot.random_configuration(rng=rng)
        found["factorize(q).solve(v)"] = lambda: robot.factorize(given["q"]).solve(given["v"])
        found |= {f"se3.{x}": call_of(getattr(se3, x), given, "se3.") for x in se3.__all__}
        both = {what: [call, theirs[what]] if what in theirs else [call] for what, call in found.items() if call is not None}
        times = {what: tuple(median_times(calls, seconds, clock=time.process_time)) for what, calls in both.items()}
    return Measured(times, [what for what, call in found.items() if call is None])


def worst_first(times: dict[tuple[str, str], tuple[float, ...]]) -> list[list[str]]:
    """Return rows (robot, call, our time, the peer's, their ratio), by ratio, those without a peer last and by time."""

    def order(x: tuple[tuple[str, str], tuple[float, ...]]) -> tuple[bool, float]:
        ours, *theirs = x[1]
        return (False, theirs[0] / ours) if theirs else (True, -ours)

    rows = []
    for (robot, call), (ours, *theirs) in sorted(times.items(), key=order):
        ratio = [f"{theirs[0] / ours:.2f}"] if theirs else ["", ""]
        rows.append([robot, call, *(f"{1e6 * x:.2f}" for x in (ours, *theirs)), *ratio])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=["hyq", "panda", "talos_reduced"])
    parser.add_argument("--seconds", type=float, default=0.3, help="time of each comparison [s]")
    options = parser.parse_args()
    print(f"{machine()}; Pinocchio {pin.__version__}\n")
    for name in options.robots:
        found = measured(name, options.seconds)
        rows = worst_first({(name, call): times for call, times in found.times.items()})
        print(markdown(["robot", "call", "ours [µs]", "Pinocchio [µs]", "ratio"], rows))
        print(f"\nnot called, because they take other arguments: {', '.join(found.unknown)}\n")


if __name__ == "__main__":
    main()
