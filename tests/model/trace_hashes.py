"""Print hashes of the code compiled from robots, to compare machines and settings line by line.

    PYTHONPATH=tests:benchmarks/peers python tests/model/trace_hashes.py [--short]

Each line is a robot, a function, a hash of its trace (operations in order, constants with all bits), its counts of operations
and its algorithm. Robots come from generators, from files of `example-robot-data` and `gymnasium` if installed, and from
`featherweight.robots`. With `--short` there are few, for `make test`. The lines must be the same on every machine; lines of
MJCF files begin with "mjcf:", since MuJoCo's compiler computes some of their numbers.

The last line, which begins with "control:", is a hash of results of NumPy's functions and its BLAS, which may differ.
"""

from __future__ import annotations

import argparse
import hashlib
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from loop_generators import closed_mechanism

import featherweight as fw
from featherweight import robots
from featherweight.engine.operations import CONSTANT
from featherweight.engine.trace import Trace
from featherweight.identification.base_parameters import base_parameters
from featherweight.model import generators
from oracles.mechanisms import MECHANISMS
from oracles.robots import FIXED, FLOATING, ROOT, path

Make = Callable[[], fw.Robot]

DYNAMICS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
MORE = ("inverse_dynamics_regressor", "joint_jacobian", "center_of_mass", "integrate")
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")


def hash_of(t: Trace) -> str:
    """Return a hash of the operations that outputs depend on, in order, and of the outputs."""
    g, digest = t.graph, hashlib.sha256(repr(t.inputs).encode())
    for i in t.live:
        a = struct.pack("<d" if g.op[i] == CONSTANT else "<q", g.a[i] if g.op[i] == CONSTANT else int(g.a[i]))
        digest.update(struct.pack("<qq", i, g.op[i]) + a + struct.pack("<q", g.b[i]))
    for y in t.outputs:
        digest.update(struct.pack("<qq", *y) if isinstance(y, tuple) else struct.pack("<d", y))
    return digest.hexdigest()[:16]


def line(name: str, function: str, f: Any) -> str:
    return f"{name} {function} {hash_of(f.trace)} {','.join(map(str, f.operations))} {f.algorithm}"


def lines(name: str, robot: fw.Robot, functions: tuple[str, ...]) -> Iterator[str]:
    for function in functions:
        yield line(name, function, getattr(robot, function))


def of_contacts(name: str, robot: fw.Robot) -> Iterator[str]:
    """Yield hashes for contacts at the first and the last body, and two at the last body with redundant rows."""
    first, last = robot.bodies[0].name, robot.bodies[-1].name
    contacts = [fw.BilateralContact(last, kind="weld"), fw.BilateralContact(first, kind="point")]
    yield line(name, "delassus", robot.delassus(contacts))
    twice = [fw.BilateralContact(last, kind="weld"), fw.BilateralContact(last, kind="point")]
    yield line(name, "redundant", robot.operational_space(twice).constrained_dynamics)


def of_base_parameters(name: str, robot: fw.Robot) -> Iterator[str]:
    found = base_parameters(robot)
    yield f"{name} base_parameters {len(found)} {','.join(map(str, found.columns))}"
    yield line(name, "extended_regressor", found.regressor.function)


def independent(name: str, robot: fw.Robot) -> Iterator[str]:
    yield f"{name} independent {','.join(j.name for j in robot.joints if j.independent)}"


# ---- robots


def built(make: Callable[..., fw.Description], *arguments: Any, **options: Any) -> fw.Robot:
    return fw.build(make(*arguments, **options))


def examples(names: Iterable[str], base: str) -> dict[str, Make]:
    """Return robots of example-robot-data by name."""
    return {f"urdf:{name}": partial(fw.load, path(name), base=base, mimic="independent") for name in names}


def gymnasium_files(names: tuple[str, ...] | None) -> dict[str, Make]:
    spec = find_spec("gymnasium")
    if spec is None or spec.origin is None or find_spec("mujoco") is None:
        return {}
    folder = Path(spec.origin).parent / "envs" / "mujoco" / "assets"
    files = [f for f in sorted(folder.glob("*.xml")) if names is None or f.stem in names]
    return {f"mjcf:{file.stem}": partial(fw.load, file, unsupported="report") for file in files}


def generated(seeds: range, sizes: tuple[int, ...]) -> dict[str, Make]:
    chains = {f"chain:{n}": partial(built, generators.chain, n) for n in sizes}
    trees = {f"tree:{n}:{seed}": partial(built, generators.random_tree, n, rng=seed) for n in sizes for seed in seeds}
    return {**chains, **trees}


def closed(drawn: tuple[tuple[str, int], ...], seeds: range) -> dict[str, Make]:
    kinds = [(kind, n, seed) for kind, n in drawn for seed in seeds]
    return {f"drawn:{kind}:{n}:{seed}": partial(built, closed_mechanism, kind, n, rng=seed) for kind, n, seed in kinds}


def shipped(names: tuple[str, ...]) -> dict[str, Make]:
    return {f"robots:{name}": partial(built, getattr(robots, name)) for name in names}


def mechanisms(names: tuple[str, ...]) -> dict[str, Make]:
    return {f"mechanism:{name}": partial(built, MECHANISMS[name]) for name in names}


DRAWN = (("planar", 6), ("spatial", 8), ("linkage", 10))
RANDOM_BELTS = partial(built, robots.belt_chain, 4, rng=1)


def short() -> Iterator[str]:
    """Yield hashes that take a few seconds."""
    arms = examples(["ur5"], "fixed") if ROOT.exists() else {}
    for name, make in {**arms, **generated(range(1), (6,))}.items():
        robot = make()
        yield from lines(name, robot, (*DYNAMICS, *MORE))
        yield from of_contacts(name, robot)
    others: dict[str, Make] = {**gymnasium_files(("half_cheetah",)), **shipped(("four_bar", "tello")), "belts": RANDOM_BELTS}
    for name, make in others.items():
        yield from lines(name, make(), DYNAMICS)
    yield from of_base_parameters("chain:3", fw.build(generators.chain(3)))
    for name, make in {**mechanisms(("platform", "crank_and_rocker", "two_loops", "own")), **closed(DRAWN, range(1))}.items():
        yield from independent(name, make())


def long() -> Iterator[str]:
    """Yield hashes that take some minutes."""
    if ROOT.exists():
        trees = {**examples(FLOATING, "floating"), **examples(FIXED, "fixed")}
    else:
        trees = {}
    for name, make in {**trees, **gymnasium_files(None), **generated(range(4), (5, 10, 20))}.items():
        robot = make()
        yield from lines(name, robot, (*DYNAMICS, *MORE, "bias_force", "inverse_mass_matrix"))
        yield from of_contacts(name, robot)
        if robot.nv < 20 and not name.startswith("mjcf"):
            yield from lines(name, robot, DERIVATIVES)
            yield from of_base_parameters(name, robot)
    sized = ("belt_chain", "centipede", "geared_chain")
    names = tuple(name for name in robots.__all__ if name not in (*sized, "approximate", "unconstrained"))
    drawn = (("planar", 4), ("planar", 20), ("spatial", 9), ("linkage", 13), ("linkage", 22), ("platform", 36))
    others: dict[str, Make] = {"belts": RANDOM_BELTS, "centipede": partial(built, robots.centipede, 3)}
    others |= {**shipped(names), **mechanisms(tuple(MECHANISMS)), **closed(drawn, range(4))}
    for name, make in others.items():
        robot = make()
        yield from independent(name, robot)
        yield from lines(name, robot, DYNAMICS)


def control() -> str:
    rng = np.random.default_rng(0)
    A = rng.random((67, 67))
    numbers = (A @ A.T, np.linalg.inv(A), np.sin(100.0 * A), np.exp(A))
    return f"control: {hashlib.sha256(b''.join(x.tobytes() for x in numbers)).hexdigest()[:16]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="few robots and functions, for make test")
    warnings.simplefilter("ignore")
    for text in short() if parser.parse_args().short else long():
        print(text, flush=True)
    print(control())


if __name__ == "__main__":
    main()
