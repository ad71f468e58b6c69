"""Use an extra once with an installed package: `python smoke.py EXTRA`, in an environment with that extra alone.

`core` is the package without extras. It compares dynamics with the mass matrix and checks that the package imports only its
requirements. Every other use of the table must fail there with an ImportError that names its extra.
"""

from __future__ import annotations

import sys
import tempfile
import urllib.request
import warnings
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

warnings.filterwarnings("error", category=DeprecationWarning, module=r"(featherweight|__main__)(\.|$)")

import featherweight as fw  # noqa: E402  # warnings of its import count, too

REQUIRED = {"numpy", "llvmlite", "defusedxml", "featherweight"}
FOLDED_AND_STRETCHED = [[3.1, 0.0], [0.1, 0.0]]  # angles of the robot of `urdf`
MJCF = '<mujoco><worldbody><body><joint name="hinge"/><geom size="0.1"/></body></worldbody></mujoco>'


def installed_modules() -> set[str]:
    """Return the installed packages of which a module is imported."""
    found = {
        name.partition(".")[0]
        for name, module in sys.modules.items()
        if "site-packages" in str(getattr(module, "__file__", ""))
    }
    return found & metadata.packages_distributions().keys()


def arm() -> fw.Robot:
    return fw.build(fw.generators.chain(6, rng=1))


def urdf(folder: Path, first: str = '<sphere radius="0.1"/>') -> Path:
    """Write the file of a robot with a given shape, a box and a ball; the given shape and the ball may touch."""
    shapes = (first, '<box size="0.2 0.2 0.2"/>', '<sphere radius="0.1"/>')
    links = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        f"<visual><geometry>{shape}</geometry></visual><collision><geometry>{shape}</geometry></collision></link>"
        for k, shape in enumerate(shapes)
    )
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/><origin xyz="0 0 0.5"/>'
        '<axis xyz="1 0 0"/></joint>'
        for k in range(2)
    )
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="robot">{links}{joints}</robot>')
    return path


def pyramid(folder: Path) -> str:
    """Write a mesh file; return its name."""
    corners = "v 0 0 0.1\nv 0.1 0 -0.1\nv -0.1 0.1 -0.1\nv -0.1 -0.1 -0.1\n"
    (folder / "pyramid.obj").write_text(f"{corners}f 1 2 3\nf 1 3 4\nf 1 4 2\nf 2 4 3\n")
    return "pyramid.obj"


def same(x: Any, y: Any) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-9)


def states(robot: fw.Robot, *size: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng=rng, size=size[0]) if size else robot.random_configuration(rng=rng)
    return q, rng.standard_normal((*size, robot.nv)), rng.standard_normal((*size, robot.nv))


def core(folder: Path) -> None:
    """Check M a = tau - bias for one state and many, for robots from code and from a file, traced and with loops; and
    collisions.
    """
    assert installed_modules() <= REQUIRED, f"importing featherweight imports {installed_modules() - REQUIRED}"
    loaded = fw.load(urdf(folder), base="floating")
    large = fw.build(fw.generators.chain(6, rng=1), execution="rolled")  # robots too large to trace run in this way
    for robot in (arm(), loaded, fw.build(fw.robots.tello()), large):
        for size in ((), (1000,)):
            q, v, tau = states(robot, *size)
            a = robot.forward_dynamics(q, v, tau)
            same((robot.mass_matrix(q) @ a[..., None])[..., 0], tau - robot.bias_force(q, v))
    description, state = fw.generators.chain(6, rng=1), states(arm())
    same(fw.build(description, execution="rolled").inverse_dynamics(*state), arm().inverse_dynamics(*state))
    assert fw.load(urdf(folder)).in_collision(FOLDED_AND_STRETCHED).tolist() == [True, False]
    fw.export(arm().forward_dynamics, str(folder / "exported"))
    for name in fw.__all__:
        getattr(fw, name)
    for extra in USES.keys() - UNASKED:
        refused_by_name(extra, USES[extra], folder)
    assert installed_modules() <= REQUIRED, f"featherweight imports {installed_modules() - REQUIRED}"


def refused_by_name(extra: str, use: Callable[[Path], None], folder: Path) -> None:
    """Check that a use without its extra names the extra to install."""
    try:
        use(folder)
    except ImportError as error:
        if f'pip install "featherweight[{extra}]"' not in str(error):
            raise AssertionError(f"without {extra}: {error}") from error
    else:
        raise AssertionError(f"the use of {extra} works without the extra")


def mjcf(folder: Path) -> None:
    path = folder / "robot.xml"
    path.write_text(MJCF)
    robot = fw.load(path)
    same(robot.mass_matrix([0.3]), [[robot.mass * 0.1**2 * 0.4]])  # a ball of radius 0.1 about its centre


def xacro(folder: Path) -> None:
    """Check a macro that is used twice, and an argument in an expression."""
    links = '<xacro:link name="a"/><xacro:link name="b"/>'
    path = folder / "robot.urdf.xacro"
    path.write_text(
        '<robot name="robot" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="mass" default="1"/>'
        '<xacro:macro name="link" params="name"><link name="${name}"><inertial><mass value="${2 * $(arg mass)}"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></xacro:macro>'
        f'{links}<joint name="hinge" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    robot = fw.load(path, base="floating", xacro_args={"mass": 3})
    same([robot.nv, robot.mass], [7, 12.0])


def usd(folder: Path) -> None:
    path = folder / "robot.usda"
    moments = "float physics:mass = 2\nfloat3 physics:diagonalInertia = (3, 4, 5)"
    link = f'def Xform "link" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{\n{moments}\n}}'
    hinge = 'def PhysicsRevoluteJoint "hinge" {\nrel physics:body1 = </link>\n}'
    path.write_text(f"#usda 1.0\n(metersPerUnit = 1)\n{link}\n{hinge}\n")
    same(fw.load(path).mass_matrix([0.3]), [[3.0]])  # about x


def identification(folder: Path) -> None:
    """Compute the base parameters of an arm."""
    assert fw.identification.base_parameters(arm()).values.size > 0


def shapes(folder: Path) -> None:
    """Check that a pyramid of a mesh file touches a ball."""
    robot = fw.load(urdf(folder, f'<mesh filename="{pyramid(folder)}"/>'))
    assert robot.in_collision(FOLDED_AND_STRETCHED).tolist() == [True, False]


def decomposition(folder: Path) -> None:
    """Check that an L of two cubes becomes two convex parts."""
    corners = [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2))]
    below = [(0, 2, 1), (0, 3, 2), (0, 4, 3), (0, 5, 4)]
    sides = [t for a in range(6) for b in [(a + 1) % 6] for t in ((a, b, b + 6), (a, b + 6, a + 6))]
    faces = [*below, *(tuple(k + 6 for k in reversed(t)) for t in below), *sides]
    corner = fw.Shape("corner", None, "mesh", (1.0, 1.0, 1.0), vertices=corners, faces=faces)
    parts = [s for s in fw.describe([], [], shapes=[corner]).decomposed().shapes if s.part_of == "corner"]
    assert len(parts) == 2, [s.name for s in parts]


def cli(folder: Path) -> None:
    main = import_module("featherweight.cli").main
    said: list[str] = []
    write, sys.stderr = sys.stderr, _Lines(said)
    try:
        status = main(["ops", str(urdf(folder))])
    finally:
        sys.stderr = write
    if status:
        raise ImportError("".join(said))


class _Lines:
    """Stream that collects the written texts."""

    def __init__(self, said: list[str]) -> None:
        self.write, self.flush = said.append, lambda: None


def dask(folder: Path) -> None:
    array = import_module("dask.array")
    robot = arm()
    state = states(robot, 100)
    chunked = (array.from_array(x, chunks=(50, -1)) for x in state)
    f = robot.forward_dynamics
    same(array.apply_gufunc(f, f.signature, *chunked, output_dtypes=float).compute(), f(*state))


def learning(folder: Path) -> None:
    import_module("featherweight.gym")
    envs = import_module("gymnasium").make_vec("featherweight/Hopper-v0", num_envs=2)
    seen, _ = envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[0].shape == seen.shape


def window(folder: Path) -> None:
    shown = import_module("featherweight.viewer").Window(fw.load(urdf(folder)), port=0)
    with urllib.request.urlopen(shown.url, timeout=10) as page:
        assert page.status == 200
    shown.close()


def render(folder: Path) -> None:
    robot = fw.load(urdf(folder, f'<mesh filename="{pyramid(folder)}"/>'))
    picture = import_module("featherweight.viewer").picture(robot, size=(64, 48))
    assert picture.shape == (48, 64, 3)
    assert picture.std() > 0


def film(folder: Path) -> None:
    frames = [np.full((48, 64, 3), 5 * k, np.uint8) for k in range(10)]
    import_module("featherweight.viewer").save_film(folder / "film.mp4", frames)
    assert (folder / "film.mp4").stat().st_size > 0


def casadi(folder: Path) -> None:
    wrap = import_module("featherweight.casadi").wrap
    robot = arm()
    q, v, tau = states(robot)
    same(wrap(robot.forward_dynamics)(q, v, tau).full()[:, 0], robot.forward_dynamics(q, v, tau))


def unisim(folder: Path) -> None:
    """Check the backend of unisim without PyTorch, which it needs only for tensors."""
    backend = import_module("featherweight.unisim").FeatherweightBackend
    import_module("unisim").assert_backend_conformance(backend(arm(), 2, actuators=fw.PD(10.0)))


def robots(folder: Path) -> None:
    arm = fw.load(fw.example("panda"))
    same([arm.nv], [8])  # the second finger follows the first


def demo(folder: Path) -> None:
    import_module("featherweight.cli.demo")
    humanoid = fw.load(fw.example("talos_reduced"), base="floating")
    assert humanoid.nv > 30


def jax(folder: Path) -> None:
    wrap = import_module("featherweight.jax").wrap
    import_module("jax").config.update("jax_enable_x64", True)
    robot = arm()
    same(wrap(robot.forward_dynamics)(*states(robot)), robot.forward_dynamics(*states(robot)))


def torch(folder: Path) -> None:
    wrap = import_module("featherweight.torch").wrap
    robot = arm()
    tensors = map(import_module("torch").as_tensor, states(robot))
    same(wrap(robot.forward_dynamics)(*tensors), robot.forward_dynamics(*states(robot)))


def cuda(folder: Path) -> None:
    """Use a device; on a machine without one, the error must come from the driver."""
    robot = arm()
    try:
        same(robot.forward_dynamics(*states(robot, 10), device="cuda"), robot.forward_dynamics(*states(robot, 10)))
    except RuntimeError as error:
        if "driver" not in str(error) and "device" not in str(error):
            raise


def all_together(folder: Path) -> None:
    """Use all extras that the extra `all` lists in one environment."""
    listed = next(r for r in metadata.requires("featherweight") or () if r.endswith('extra == "all"'))
    for extra in listed.partition("[")[2].partition("]")[0].split(","):
        USES[extra](folder)


LIGHT = (
    mjcf, xacro, usd, identification, shapes, decomposition, cli, dask, learning, window, render, film, casadi, unisim,
    robots, demo,
)  # fmt: skip
HEAVY = (jax, torch, cuda)
USES: dict[str, Callable[[Path], None]] = {"all": all_together, **{use.__name__: use for use in (*LIGHT, *HEAVY)}}

UNASKED = {"dask", "demo", "all"}  # a user of Dask's arrays has Dask; [demo] and [all] combine other extras


def main(extra: str) -> None:
    prefix = Path(sys.prefix).resolve()
    assert prefix in Path(fw.__file__).resolve().parents, f"{fw.__file__} is not the package installed in {prefix}"
    with tempfile.TemporaryDirectory() as folder:
        (core if extra == "core" else USES[extra])(Path(folder))
    print(f"{extra}: works")


if __name__ == "__main__":
    main(*sys.argv[1:])
