"""Tests of geometries of USD files: sizes and positions under scales, materials, pairs in contact, and masses of colliders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw
from featherweight.model.types import Pose
from featherweight.robot.collision.shape_pairs import pairs_that_may_touch

pytest.importorskip("pxr", reason="usd-core has no wheel for this Python or processor")

from pxr import Gf, Usd, UsdPhysics

from model.formats.usd.usd_text import body, joint, placed, prim, read
from oracles.matrices import symmetric

COLLIDES = "PhysicsCollisionAPI"
TURN = "0.9, 0.1, -0.3, 0.3"


def one_shape(kind: str, inside: str, folder: Path, schemas: str = COLLIDES, **options: Any) -> fw.Shape:
    (shape,) = read(body("a", prim(kind, "g", inside, schemas)), folder, **options).shapes
    return shape


@pytest.mark.parametrize(
    ("kind", "inside", "form", "size"),
    [
        ("Cube", "", "box", (2, 2, 2)),
        ("Cube", "double size = 0.5\n" + placed(1, 0, 0, scale="1, 2, 3"), "box", (0.5, 1, 1.5)),
        ("Sphere", "double radius = 0.5\n" + placed(1, 0, 0, scale="2, 2, -2"), "sphere", (1,)),
        ("Sphere", "double radius = 0.5\n" + placed(1, 0, 0, scale="2, 4, 6"), "ellipsoid", (1, 2, 3)),
        ("Cylinder", "", "cylinder", (1, 2)),
        ("Cylinder", placed(1, 0, 0, scale="2, 2, 3"), "cylinder", (2, 6)),
        ("Cylinder", 'uniform token axis = "X"\n' + placed(1, 0, 0, scale="3, 2, 2"), "cylinder", (2, 6)),
        ("Capsule", "", "capsule", (0.5, 1)),
        ("Capsule", placed(1, 0, 0, scale="2, 2, 2"), "capsule", (1, 2)),
    ],
)
def test_shapes_have_the_sizes_that_scales_make_of_them(kind: str, inside: str, form: str, size: Any, tmp_path: Path) -> None:
    shape = one_shape(kind, inside, tmp_path)
    assert shape.type == form and shape.size == pytest.approx(size) and shape.visual and shape.collision
    assert shape.placement.p[0] == (1.0 if inside.count("translate") else 0.0)


@pytest.mark.parametrize(("kind", "along"), [("Cylinder", "Z"), ("Capsule", "Y"), ("Plane", "X")])
def test_the_axis_is_z_of_the_shape(kind: str, along: str, tmp_path: Path) -> None:
    shape = one_shape(kind, f'uniform token axis = "{along}"\n' + placed(0, 0, 0, "0.5, 0.5, 0.5, 0.5"), tmp_path)
    axis = {"X": (0, 1, 0), "Y": (0, 0, 1), "Z": (1, 0, 0)}[along]  # the rotation permutes axes
    np.testing.assert_allclose(np.array(shape.placement.R)[:, 2], axis, atol=1e-15)


@pytest.mark.parametrize(
    ("kind", "inside"),
    [
        ("Cylinder", placed(0, 0, 0, scale="1, 2, 1")),
        ("Capsule", placed(0, 0, 0, scale="1, 1, 2")),
        ("Capsule_1", ""),
        ("Cube", placed(0, 0, 0, scale="1, 0, 1")),
    ],
)
def test_what_is_no_shape_here_is_refused_or_left_out(kind: str, inside: str, tmp_path: Path) -> None:
    with pytest.raises(fw.ModelError, match="</r/a/g>"):
        read(body("a", prim(kind, "g", inside, COLLIDES)), tmp_path, unsupported="raise")
    with pytest.warns(fw.ModelWarning, match="left out: </r/a/g>"):
        assert read(body("a", prim(kind, "g", inside, COLLIDES)), tmp_path).shapes == ()


@pytest.mark.parametrize(("kind", "name"), [("Cube", "size"), ("Sphere", "radius"), ("Cylinder", "height"), ("Cone", "radius")])
@pytest.mark.parametrize("number", ["-1", "0", "inf"])
def test_lengths_are_positive(kind: str, name: str, number: str, tmp_path: Path) -> None:
    with pytest.raises(fw.ModelError, match=f"</r/a/g>: (its )?{name} is"):
        one_shape(kind, f"double {name} = {number}", tmp_path, unsupported="raise")
    with pytest.warns(fw.ModelWarning, match=f"</r/a/g>: (its )?{name} is .*, left out"):
        assert read(body("a", prim(kind, "g", f"double {name} = {number}", COLLIDES)), tmp_path).shapes == ()
    assert one_shape("Capsule", "double height = 0", tmp_path).size == (0.5, 0.0)


TETRAHEDRON = """point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
int[] faceVertexCounts = [3, 3, 3, 3]
int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
"""
BLOCK = """point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
int[] faceVertexIndices = [0, 3, 2, 1, 4, 5, 6, 7, 0, 1, 5, 4, 2, 3, 7, 6, 0, 4, 7, 3, 1, 2, 6, 5]
"""


def test_meshes_are_triangles_in_metres_also_sheared_ones(tmp_path: Path) -> None:
    shape = one_shape("Mesh", BLOCK + placed(1, 2, 3, scale="1, 2, 3"), tmp_path)
    assert shape.type == "mesh" and shape.size == (1, 2, 3) and shape.placement.p == (1, 2, 3) and len(shape.faces) == 12
    inner = prim("Mesh", "g", BLOCK + placed(0, 0, 0, TURN), COLLIDES)
    (sheared,) = read(body("a", prim("Xform", "x", placed(0, 0, 0, scale="1, 2, 3") + inner)), tmp_path).shapes
    stage = Usd.Stage.Open(str(tmp_path / "robot.usda"))
    M = np.array(pose_in_world(stage, "/r/a/x/g"))
    assert sheared.placement == Pose() and sheared.size == (1, 1, 1)
    np.testing.assert_allclose(sheared.vertices, np.array(shape.vertices) @ M[:3, :3], atol=1e-12)


def pose_in_world(stage: Any, path: str) -> Any:
    from pxr import UsdGeom

    return UsdGeom.XformCache().GetLocalToWorldTransform(stage.GetPrimAtPath(path))


def test_left_handed_meshes_face_outward_too_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    right = one_shape("Mesh", TETRAHEDRON, tmp_path)
    left = one_shape("Mesh", TETRAHEDRON + 'uniform token orientation = "leftHanded"', tmp_path)
    np.testing.assert_array_equal(left.faces, right.faces[:, ::-1])
    for damaged in (TETRAHEDRON.replace("2, 3]", "2, 9]"), TETRAHEDRON.replace("[3, 3, 3", "[3, 3, 4")):
        with pytest.raises(fw.ModelError, match="</r/a/g>: its faces refer to missing points"):
            one_shape("Mesh", damaged, tmp_path, unsupported="raise")


def test_approximations_of_meshes_other_than_convex_hulls_are_listed(tmp_path: Path) -> None:
    kind = "meshes that touch as their convex hulls, for which the file has another approximation"
    text = TETRAHEDRON + 'uniform token physics:approximation = "{}"'
    for approximation, listed in (("convexHull", None), ("boundingCube", "/r/a/g (boundingCube)"), ("none", "/r/a/g (none)")):
        mesh = prim("Mesh", "g", text.format(approximation), "PhysicsCollisionAPI PhysicsMeshCollisionAPI")
        assert dict(read(body("a", mesh), tmp_path).unused).get(kind) == listed


def test_cones_are_pyramids_and_are_listed(tmp_path: Path) -> None:
    d = read(body("a", prim("Cone", "g", 'double height = 3\nuniform token axis = "X"', COLLIDES)), tmp_path)
    assert d.shapes[0].vertices[-1] == pytest.approx((1.5, 0, 0)) and dict(d.unused) == {"cones, as pyramids of 32 sides": "1"}


def test_what_shows_and_what_touches(tmp_path: Path) -> None:
    inside = prim("Cube", "shown") + prim("Cube", "guide", 'uniform token purpose = "guide"', COLLIDES)
    inside += prim("Cube", "hidden", 'token visibility = "invisible"') + prim(
        "Cube", "off", "bool physics:collisionEnabled = 0", COLLIDES
    )
    inside += prim("Xform", "group", prim("Cube", "below"), COLLIDES)  # applies to its descendants
    d = read(body("a", inside) + prim("Plane", "floor", "", COLLIDES), tmp_path)
    seen = {s.name: (s.body, s.visual, s.collision) for s in d.shapes}
    assert seen == {
        "shown": ("a", True, False), "guide": ("a", False, True), "off": ("a", True, False), "below": ("a", True, True),
        "floor": (None, True, True),
    }  # fmt: skip


def test_colors_are_those_of_the_surface_or_displayed(tmp_path: Path) -> None:
    display = "color3f[] primvars:displayColor = [(1, 0.5, 0)]\nfloat[] primvars:displayOpacity = [0.5]"
    assert one_shape("Cube", display, tmp_path).color == (1.0, 0.5, 0.0, 0.5)
    shader = 'uniform token info:id = "UsdPreviewSurface"\ncolor3f inputs:diffuseColor = (0, 1, 0)\ntoken outputs:surface'
    material = prim("Material", "m", "token outputs:surface.connect = </r/m/s.outputs:surface>\n" + prim("Shader", "s", shader))
    cube = prim("Cube", "g", "rel material:binding = </r/m>", "MaterialBindingAPI")
    assert read(body("a", cube) + material, tmp_path).shapes[0].color == (0.0, 1.0, 0.0, 1.0)


def test_friction_is_that_of_the_physics_material(tmp_path: Path) -> None:
    numbers = "float physics:dynamicFriction = 0.4\nfloat physics:staticFriction = 0.6\nfloat physics:restitution = 0.5"
    material = prim("Material", "m", numbers, "PhysicsMaterialAPI")
    cube = prim(
        "Cube",
        "g",
        "rel material:binding:physics = </r/m>\nfloat newton:contactMargin = 0.01",
        "PhysicsCollisionAPI MaterialBindingAPI",
    )
    d = read(body("a", cube) + material, tmp_path)
    assert (d.shapes[0].friction, d.shapes[0].margin) == (0.4, 0.01)
    assert dict(d.unused) == {"static frictions that differ from dynamic ones, which count": "/r/m", "restitution": "/r/m"}
    assert one_shape("Cube", "", tmp_path).friction is None


# --- pairs in contact


def touching(inside: str, folder: Path) -> set[str]:
    """Return pairs of the shapes with names of one letter."""
    robot = fw.build(read(inside, folder), execution="interpreted")
    return {"".join(sorted(robot.shapes[k].name for k in pair)) for pair in pairs_that_may_touch(robot)}


BALLS = {name: prim("Sphere", name, "", COLLIDES) for name in "pqrs"}
BODIES = body("a", BALLS["p"]) + body("b", BALLS["q"] + BALLS["r"]) + body("c", BALLS["s"])
ALL = {"pq", "pr", "ps", "qs", "rs"}


def test_everything_touches_but_jointed_bodies(tmp_path: Path) -> None:
    assert touching(BODIES, tmp_path) == ALL
    hinge = joint("Revolute", "j", "a", "b")
    assert touching(BODIES + hinge, tmp_path) == {"ps", "qs", "rs"}
    collides = hinge.replace("rel physics:body0", "bool physics:collisionEnabled = true\nrel physics:body0")
    assert touching(BODIES + collides, tmp_path) == ALL


def filtered(path: str) -> str:
    return f"rel physics:filteredPairs = <{path}>"


def test_filtered_pairs_of_bodies_and_of_single_colliders(tmp_path: Path) -> None:
    a = body("a", BALLS["p"] + filtered("/r/b"), schemas="PhysicsFilteredPairsAPI")
    assert touching(a + BODIES[len(body("a", BALLS["p"])) :], tmp_path) == ALL - {"pq", "pr"}
    single = BODIES.replace('"PhysicsCollisionAPI"', '"PhysicsCollisionAPI", "PhysicsFilteredPairsAPI"', 1)
    single = single.replace('def Sphere "p" (', 'def Sphere "p" (', 1).replace(") {\n\n}", f") {{\n{filtered('/r/b/q')}\n}}", 1)
    assert touching(single, tmp_path) == ALL - {"pq"}


def group(name: str, members: str, others: str, more: str = "") -> str:
    targets = ", ".join(f"</r/{m}>" for m in members.split())
    return prim("PhysicsCollisionGroup", name, f"rel collection:colliders:includes = [{targets}]\n"
                f"rel physics:filteredGroups = [{', '.join(f'</r/{o}>' for o in others.split())}]\n{more}")  # fmt: skip


def test_collision_groups_keep_colliders_apart(tmp_path: Path) -> None:
    groups = group("g", "a/p b/q", "h") + group("h", "c", "")
    assert touching(BODIES + groups, tmp_path) == ALL - {"ps", "qs"}
    own = group("g", "a/p b/q", "g")
    assert touching(BODIES + own, tmp_path) == ALL - {"pq"}
    inverted = group("g", "a/p", "h", "bool physics:invertFilteredGroups = true") + group("h", "c", "") + group("i", "b", "")
    assert touching(BODIES + inverted, tmp_path) == ALL - {"pq", "pr"}


@pytest.mark.parametrize("switch", ["newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions"])
def test_articulations_may_not_touch_themselves(switch: str, tmp_path: Path) -> None:
    a = body("a", BALLS["p"] + f"bool {switch} = false", schemas="PhysicsArticulationRootAPI")
    rest = BODIES[len(body("a", BALLS["p"])) :] + joint("Revolute", "j", "a", "b") + joint("Revolute", "k", "b", "c")
    assert touching(a + rest + body("d", prim("Sphere", "t", "", COLLIDES)), tmp_path) == {"pt", "qt", "rt", "st"}


# --- masses


def usd_properties(path: Path) -> Any:
    """Return mass, centre and tensor that USD computes for a body, from volumes of balls of radius 1 and cubes of edge 2."""
    stage = Usd.Stage.Open(str(path))
    prim_a = stage.GetPrimAtPath("/r/a")

    def information(collider: Any) -> Any:
        info, ball = UsdPhysics.RigidBodyAPI.MassInformation(), collider.GetTypeName() == "Sphere"
        info.volume = 4 / 3 * np.pi if ball else 8.0
        info.inertia = Gf.Matrix3f(info.volume * (0.4 if ball else 2 / 3))
        info.centerOfMass = Gf.Vec3f(0, 0, 0)
        local = pose_in_world(stage, str(collider.GetPath())) * pose_in_world(stage, "/r/a").GetInverse()
        info.localPos, info.localRot = Gf.Vec3f(local.ExtractTranslation()), Gf.Quatf(local.ExtractRotationQuat())
        return info

    mass, diagonal, center, axes = UsdPhysics.RigidBodyAPI(prim_a).ComputeMassProperties(information)
    R = np.array(Gf.Matrix3d(Gf.Rotation(axes))).T
    return mass, np.array(center), R @ np.diag(diagonal) @ R.T


CENTER = "point3f physics:centerOfMass = (1, 2, 3)"
MOMENTS = "float3 physics:diagonalInertia = (1, 2, 2.5)\nquatf physics:principalAxes = (0.5, 0.5, -0.5, 0.5)"
MASSES = ("", "float physics:mass = 5", "float physics:density = 3", f"float physics:mass = 5\n{CENTER}", MOMENTS, CENTER)


@pytest.mark.parametrize("of_body", MASSES)
@pytest.mark.parametrize("of_ball", ["", "float physics:mass = 7", "float physics:density = 2"])
@pytest.mark.parametrize("of_material", ["", "float physics:density = 4"])
def test_masses_are_those_that_usd_computes(of_body: str, of_ball: str, of_material: str, tmp_path: Path) -> None:
    material = prim("Material", "m", of_material, "PhysicsMaterialAPI")
    bound = "rel material:binding:physics = </r/m>\n"
    ball = prim("Sphere", "ball", of_ball + "\n" + placed(1, -1, 0.5), "PhysicsCollisionAPI PhysicsMassAPI")
    cube = prim("Cube", "cube", bound + placed(-1, 0, 2, TURN), "PhysicsCollisionAPI MaterialBindingAPI")
    inside = body("a", placed(3, 2, 1, "0.5, 0.5, 0.5, 0.5") + ball + cube, of_body) + material
    d = read(inside, tmp_path)
    mass, center, I = usd_properties(tmp_path / "robot.usda")
    ours = d.bodies[0].inertia
    tolerance = 5e-6  # USD computes with 32 bits
    assert ours.mass == pytest.approx(mass, rel=tolerance)
    np.testing.assert_allclose(ours.center, center, atol=tolerance)
    np.testing.assert_allclose(symmetric(ours.rotational), I, atol=tolerance * np.abs(I).max())


@pytest.mark.parametrize(
    ("kind", "inside"),
    [
        ("Cube", placed(1, 2, 3, TURN, "1, 2, 3")),
        ("Sphere", placed(1, 2, 3, TURN, "1, 2, 3")),
        ("Cylinder", placed(1, 2, 3, TURN, "2, 2, 3")),
        ("Capsule", placed(1, 2, 3, TURN, "2, 2, 2")),
        ("Mesh", BLOCK + placed(1, 2, 3, TURN, "1, 2, -3")),
        ("Mesh", TETRAHEDRON + placed(1, 2, 3, TURN, "1, 2, 3")),
    ],
)
@pytest.mark.parametrize("approximation", ["none", "convexHull"])
def test_masses_of_shapes_are_those_of_points_spread_over_them(
    kind: str, inside: str, approximation: str, tmp_path: Path
) -> None:
    """Check against trimesh's integrals over triangles; round shapes agree within the size of their facets."""
    from featherweight.model.triangles import shape_meshes

    text = inside + f'uniform token physics:approximation = "{approximation}"' * (kind == "Mesh")
    schemas = "PhysicsCollisionAPI" + " PhysicsMeshCollisionAPI" * (kind == "Mesh")
    d = read(body("a", prim(kind, "g", text, schemas), "float physics:density = 2"), tmp_path)
    ((mesh, _),) = shape_meshes(d.shapes[0])
    ours, volume = d.bodies[0].inertia, abs(mesh.volume)
    facets = 1e-9 if kind in ("Cube", "Mesh") else 0.05
    assert ours.mass == pytest.approx(2 * volume, rel=facets)
    np.testing.assert_allclose(ours.center, mesh.center_mass, atol=max(facets / 100, 1e-9))
    theirs = mesh.moment_inertia / mesh.volume
    np.testing.assert_allclose(symmetric(ours.rotational) / ours.mass, theirs, atol=facets * np.abs(theirs).max())


def test_a_tensor_of_newton_is_in_the_axes_of_the_body(tmp_path: Path) -> None:
    given = (
        "double[] newton:inertia = [3, 4, 5, 0.1, 0.2, 0.3]\nfloat physics:mass = 2\npoint3f physics:centerOfMass = (1, 0, 0)"
    )
    inertia = read(body("a", mass=given), tmp_path).bodies[0].inertia
    assert inertia == (2.0, (1.0, 0.0, 0.0), (3.0, 0.1, 0.2, 4.0, 0.3, 5.0))


def test_what_masses_lack_is_listed(tmp_path: Path) -> None:
    hinge = joint("Fixed", "j", "a", "b")
    d = read(body("a", prim("Cube", "g", "", COLLIDES), "") + body("b", mass="") + hinge, tmp_path)
    assert dict(d.unused) == {
        "colliders without density, taken as 1000 kg/m³": "/r/a/g",
        "bodies without mass and colliders, taken as massless": "/r/b",
    }
    assert [b.inertia.mass for b in d.bodies] == [8000.0, 0.0]
    shell = prim("Cube", "g", 'uniform token newton:massModel = "shell"', COLLIDES)
    with pytest.raises(fw.ModelError, match=r"</r/a/g>: the mass of its shell"):
        read(body("a", shell, ""), tmp_path, unsupported="raise")
