"""MJCF files, read by the `mujoco` package: its compiler resolves defaults, frames, includes and units.

Visual parts (textures, meshes that carry no mass) are read and removed before MuJoCo compiles the file, so that missing assets
do not matter. MuJoCo's conventions differ from this package's: quaternions are (w, x, y, z), and a free joint's linear
velocity is in world axes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from .....array_types import Array
from .....extras import imports_from_extra
from ....compliant_equalities import EXACT
from ....contact_rules import TAKEN_AS_EXACT
from ....description import Description
from ....editing.kept_parts import without_sensors_across_loops
from ....types import (
    EXPLICIT_EULER,
    LARGEST,
    WORLD,
    Body,
    Fluid,
    Frame,
    Inertia,
    Joint,
    JointDynamics,
    JointType,
    ModelError,
    Moments,
    Pose,
    Sensor,
    Shape,
    as_vector,
    values_of,
)
from ...robot_source import RobotSource
from ...unsupported import FOLLOW, MESHES_IN_FLUID, UNDRIVEN, Unsupported, file_notes, unused_integrator
from ...xml import Names, shortened
from ..mujoco_types import MjModel, MjSpec, Mujoco
from ..numbers import as_pose, as_rotation, compiled, disabled, snap
from .cameras import read_cameras
from .contacts import read_contact_pairs, read_neighbour_rule, unused_of_contacts
from .documents import Documents
from .drives import MujocoForces
from .equality import (
    let_followers_go,
    read_couplings,
    read_loops,
    read_tendon_equalities,
    refuse_equalities_of_spatial_tendons,
    refuse_unsupported_equalities,
)
from .keyframes import read_configurations, unused_of_keyframes
from .levers import Tendons
from .orientations import make_orientations_plain
from .sensors import SensedNames, read_sensors, sensed_bodies, take_unknown_sensors, unused_of_sensors
from .shapes import Drawing, read_shapes, take_appearance, unusable_mesh
from .tendon_elements import read_tendons, tendon_names

FOREIGN = (ValueError, RuntimeError, MemoryError)  # raised by MuJoCo for a file that it cannot use


def read_mjcf(file: RobotSource, options: Mapping[str, str]) -> Description:
    """Read an MJCF file, in SI units.

    The options are `mimic` (default "follow") and `equalities`. Tendons of joints that follow one joint exactly are tendons of
    that joint; with `equalities="compliant"` or "file" they act on all their joints. Without the option, equalities are exact,
    and reported.

    `mimic="independent"` leaves out equalities by which joints follow others, and `mimic="refuse"` raises an error for them.

    Bodies are in MuJoCo's depth-first order. A body without joints is on a fixed joint, a body with several joints on a chain
    of massless bodies, named in `Description.virtual`. Sites become frames, and geoms become shapes. Actuators without states
    are read if they drive a hinge or slide joint, or a fixed tendon whose length is that of one such joint. Their armature and
    damping are added to those of the joint, and so are springs, damping, dry friction, armature and limits of the tendon.
    Gravity is that of the file. Active equality constraints become loops (connect, weld), couplings (joint, tendon) and
    closures (tendon, by a polynomial of a length of several joints). Keyframes and qpos0 become configurations, contact
    exclusions become disabled collisions, and contact pairs those of the description.

    Flexible bodies, equality constraints of other kinds and the armature of free joints, of tendons and of actuators that drive
    no joint are left out and noted (`file_notes`). Raises `ModelError`, which names file and element, for a file that is
    damaged, or that MuJoCo cannot compile. Raises `OSError` for a file that cannot be
    opened, and `ImportError` without the package `mujoco`.
    """
    source, unsupported = file.name, file_notes()
    with imports_from_extra("mjcf", "reading MJCF needs the package mujoco"):
        import mujoco  # type: ignore[import-untyped, unused-ignore]
    documents = Documents(file)
    try:
        spec = mujoco.MjSpec.from_file(documents.main, include=documents.texts)
    except FOREIGN as error:
        message = documents.located(_one_line(error))
        raise ModelError(f"{source}: MuJoCo cannot read the file: {message}; correct it there") from error
    if disabled(mujoco, spec.option, "EQUALITY"):
        for equality in spec.equalities:
            equality.active = False
    let_go = let_followers_go(mujoco, spec, source, options.get("mimic", FOLLOW))
    refuse_unsupported_equalities(mujoco, spec, source, unsupported)
    counts = [*let_go, *_counts(spec)]
    other_sensors = take_unknown_sensors(mujoco, spec)
    drawings = take_appearance(mujoco, spec, file)
    make_orientations_plain(mujoco, spec)
    model = _compile(spec, documents, file)
    _check_finite(model, source)
    refuse_equalities_of_spatial_tendons(mujoco, model, source, unsupported)
    equalities = options.get("equalities")
    if equalities is None and (number := np.count_nonzero(model.eq_active0)):
        counts.append((TAKEN_AS_EXACT, f"{number}"))
    return _Elements(mujoco, model, file, unsupported, equalities in (None, EXACT)).description(
        spec.modelname or file.stem, counts, drawings, other_sensors
    )


def _one_line(error: Exception) -> str:
    return shortened(" ".join(str(error).split()))


# --- the file before MuJoCo compiles it


def _counts(spec: MjSpec) -> list[tuple[str, str]]:
    """Return the number of each kind of element that is removed before compiling, in words."""
    kinds = (
        ("textures", len(spec.textures)),
        ("skins", len(spec.skins)),
        ("inactive equality constraints", sum(not equality.active for equality in spec.equalities)),
        ("tuples", len(spec.tuples)),
        ("plugins", len(spec.plugins)),
    )
    return [(kind, f"{number}") for kind, number in kinds if number]


def _compile(spec: MjSpec, documents: Documents, source: RobotSource) -> MjModel:
    try:
        return compiled(spec)
    except FOREIGN as error:
        message = documents.located(_one_line(error))
        weighed = {geom.meshname for geom in spec.geoms}
        if named := [m for m in spec.meshes if m.name in weighed and m.file and m.file[:200] in str(error)]:  # it cuts names
            raise unusable_mesh(named, spec, source, message) from error
        raise ModelError(f"{source}: MuJoCo cannot compile the model: {message}; correct it there") from error


# --- MuJoCo's compiled model


def _check_finite(model: MjModel, source: str) -> None:
    """Raise ModelError for values in the compiled model that are not finite or too large.

    The text does not show them: they overflowed.
    """
    fields = {
        "geom": ("geom_pos", "geom_quat", "geom_size", "geom_friction", "geom_margin"),
        "body": ("body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia"),
        "joint": ("jnt_pos", "jnt_axis", "jnt_stiffness", "jnt_stiffnesspoly"),
        "pair": ("pair_friction", "pair_margin"),
        "site": ("site_pos", "site_quat"),
        "camera": ("cam_pos", "cam_quat", "cam_fovy", "cam_intrinsic", "cam_sensorsize"),
        "equality": ("eq_data",),
        "tendon": ("tendon_length0", "tendon_stiffnesspoly", "tendon_dampingpoly"),
        "actuator": ("actuator_armature", "actuator_gear", "actuator_gainprm", "actuator_biasprm", "actuator_dampingpoly"),
    }
    for kind, names in fields.items():
        for field in (name for name in names if hasattr(model, name)):  # MuJoCo 3.3 has fewer fields
            for row in _unusable(getattr(model, field)):
                name = getattr(model, kind)(int(row)).name or f"number {row}"
                problem = f"{field.split('_')[1]} is not finite, or beyond {LARGEST:g}"
                raise ModelError(f"{source}: {kind} '{name}': {problem}; give finite numbers")
    for field, first, what in (
        ("dof_armature", model.jnt_dofadr, "armature"),
        *((name, model.jnt_dofadr, "damping") for name in ("dof_damping", "dof_dampingpoly") if hasattr(model, name)),
        ("dof_frictionloss", model.jnt_dofadr, "frictionloss"),
        ("qpos0", model.jnt_qposadr, "ref, or the place of its body,"),
        ("qpos_spring", model.jnt_qposadr, "springref"),
    ):
        for row in _unusable(getattr(model, field)):
            joint = int(np.searchsorted(first, row, side="right")) - 1
            name = model.joint(joint).name or f"number {joint}"
            raise ModelError(f"{source}: joint '{name}': {what} is not finite, or beyond {LARGEST:g}; give finite numbers")


def _unusable(values: Array) -> Array:
    """Return rows with values that are not finite or too large."""
    return np.flatnonzero(~(np.abs(np.atleast_2d(values.T)) <= LARGEST).all(axis=0))


class _Elements:
    """Converter of the compiled model to bodies, joints and frames, one MuJoCo body at a time."""

    def __init__(self, mujoco: Mujoco, model: MjModel, file: RobotSource, unsupported: Unsupported, exact: bool) -> None:
        source = file.name
        self.mujoco, self.model, self.file, self.source, self.unsupported = mujoco, model, file, source, unsupported
        names = [model.body(i).name for i in range(model.nbody)]
        self.body_names = Names([*names, WORLD])
        self.names = [WORLD, *(name or self.body_names.new(f"body{i}") for i, name in enumerate(names) if i)]
        self.joint_names = Names(model.joint(i).name for i in range(model.njnt))
        self.read_joints: dict[int, tuple[str, JointType]] = {}  # by MuJoCo's numbers
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        self.virtual: set[str] = set()
        couplings = read_couplings(mujoco, model, source)
        self.couplings, self.closures = read_tendon_equalities(mujoco, model, couplings, source)
        self.tendons = Tendons(mujoco, model, self.couplings if exact else ())
        self.tendons.refuse_armature(unsupported, source)
        self.sensed = sensed_bodies(mujoco, model)
        self.forces = MujocoForces(mujoco, model, source, self.tendons.levers)
        self.forces.refuse_armature_elsewhere(unsupported)

    def description(
        self, name: str, counts: list[tuple[str, str]], drawings: list[Drawing], other_sensors: Counter[str]
    ) -> Description:
        for i in range(1, self.model.nbody):
            self._add_body(i)
        names = {j: joint for j, (joint, _) in self.read_joints.items()}
        actuators = self.forces.actuators(names, self.names)
        drives = {a: actuator.name for a, actuator in actuators.items()}
        shapes, geoms = read_shapes(self.mujoco, self.model, drawings, self.names, self.file)
        cameras = tuple(read_cameras(self.model, self.names, self.source))
        sensors = self._sensors(geoms, drives, [c.name for c in cameras], other_sensors)
        integrator = self.mujoco.mjtIntegrator(self.model.opt.integrator).name.removeprefix("mjINT_").lower()
        if integrator == "euler" and disabled(self.mujoco, self.model.opt, "EULERDAMP"):
            integrator = EXPLICIT_EULER
        excluded = self.model.exclude_signature
        weightless = disabled(self.mujoco, self.model.opt, "GRAVITY")
        description = Description(
            name=name,
            source=self.source,
            bodies=tuple(self.bodies),
            joints=tuple(self.tendons.with_forces(self.joints, names, self.source)),
            frames=tuple(self._frames()),
            gravity=(0.0, 0.0, 0.0) if weightless else as_vector(self.model.opt.gravity),
            unused=(
                *shapes.unused,
                *counts,
                *unused_of_sensors(other_sensors),
                *self.forces.unused(),
                *self.tendons.unused(),
                *unused_of_contacts(self.mujoco, self.model, geoms),
                *_unused(self.mujoco, self.model),
                *self._unused_drag(shapes.shapes, geoms),
                *unused_integrator(integrator),
                *unused_of_keyframes(self.model, actuators),
            ),
            virtual=frozenset(self.virtual),
            loops=tuple(read_loops(self.mujoco, self.model, self.names, self.source)),
            couplings=self.couplings,
            closures=self.closures,
            shapes=shapes.shapes,
            tendons=read_tendons(self.tendons, names, self.names, self.source),
            led_tendons=tuple(tendon_names(self.model)[t] for t in self.tendons.led),
            actuators=tuple(actuators.values()),
            configurations=tuple(read_configurations(self.model, self.read_joints, actuators)),
            disabled_collisions=tuple((self.names[x >> 16], self.names[x & 0xFFFF]) for x in map(int, excluded)),
            contact_pairs=read_contact_pairs(self.mujoco, self.model, geoms, self.source),
            neighbours=read_neighbour_rule(self.mujoco, self.model),
            timestep=float(self.model.opt.timestep),
            integrator=integrator,
            impratio=float(self.model.opt.impratio),
            noslip=int(self.model.opt.noslip_iterations),
            fluid=self._fluid(),
            cameras=cameras,
            cone=self.mujoco.mjtCone(self.model.opt.cone).name.removeprefix("mjCONE_").lower(),
            sensors=sensors,
        )
        return without_sensors_across_loops(description)

    def _sensors(
        self, geoms: dict[int, str], drives: dict[int, str], cameras: list[str], others: Counter[str]
    ) -> tuple[Sensor, ...]:
        sites = [self._site_name(i) for i in range(self.model.nsite)]
        tendons = dict(enumerate(tendon_names(self.model)))
        known = SensedNames(self.names, sites, geoms, self.read_joints, drives, tendons, self.tendons.levers, cameras)
        return read_sensors(self.mujoco, self.model, known, others)

    def _add_body(self, i: int) -> None:
        model, name = self.model, self.names[i]
        parent = self.names[model.body_parentid[i]]
        placement = as_pose(model.body_pos[i], model.body_quat[i])
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        if count == 0:
            self.joints.append(Joint(self.joint_names.new(f"{name}_fixed"), JointType.FIXED, parent, name, placement))
        for j in range(first, first + count):
            joint_name = model.joint(j).name or self.joint_names.new(f"{name}_joint")
            child = name
            if j < first + count - 1:
                child = self.body_names.new(f"{name}/{joint_name}")
                self.virtual.add(child)
                self.bodies.append(Body(child))
            joint = self._joint(j, joint_name, parent, child, placement)
            self.joints.append(joint)
            self.read_joints[j] = (joint_name, joint.type)
            parent, placement = child, Pose()
        axes = as_rotation(model.body_iquat[i]) if self._fluid() or i in self.sensed else None
        self.bodies.append(Body(name, self._inertia(i), axes, float(model.body_gravcomp[i]) if self._passive() else 0.0))

    def _joint(self, j: int, name: str, parent: str, child: str, placement: Pose) -> Joint:
        """Return a joint. MuJoCo moves the body from its pose at qpos0; a free joint's coordinates are the whole pose."""
        model, kinds = self.model, self.mujoco.mjtJoint
        kind, anchor = int(model.jnt_type[j]), as_vector(model.jnt_pos[j])
        dynamics = values_of(JointDynamics, self.forces.dynamics(j, name))
        if kind == kinds.mjJNT_FREE:
            if dynamics["armature"] != 0.0:
                problem, remedy = "that of a free joint is not supported", "set it to zero, write <freejoint/>"
                self.unsupported.refuse(f"{self.source}: armature of joint '{name}'", problem, remedy)
                dynamics["armature"] = 0.0
            return Joint(name, JointType.FLOATING, parent, child, Pose(), **dynamics)
        if kind == kinds.mjJNT_BALL:
            return Joint(name, JointType.SPHERICAL, parent, child, placement, anchor=anchor, **dynamics)
        x, y, z = as_vector(model.jnt_axis[j])
        hinge = kind == kinds.mjJNT_HINGE
        return Joint(
            name,
            JointType.REVOLUTE if hinge else JointType.PRISMATIC,
            parent,
            child,
            placement,
            (snap(x), snap(y), snap(z)),
            anchor if hinge else (0.0, 0.0, 0.0),
            zero=float(model.qpos0[model.jnt_qposadr[j]]),
            **dynamics,
        )

    def _passive(self) -> bool:
        """Return whether there are passive forces: MuJoCo has none if both springs and dampers are disabled."""
        return not (disabled(self.mujoco, self.model.opt, "SPRING") and disabled(self.mujoco, self.model.opt, "DAMPER"))

    def _fluid(self) -> Fluid | None:
        density, viscosity = float(self.model.opt.density), float(self.model.opt.viscosity)
        there = (density or viscosity) and self._passive()
        return Fluid(density, viscosity, as_vector(self.model.opt.wind)) if there else None

    def _unused_drag(self, shapes: Iterable[Shape], geoms: Mapping[int, str]) -> Iterator[tuple[str, str]]:
        model, read = self.model, {s.name for s in shapes if s.fluid is not None}
        heavy = model.body_mass[model.geom_bodyid] > 0.0
        others = [i for i in np.flatnonzero((model.geom_fluid[:, 0] != 0.0) & heavy) if geoms.get(int(i)) not in read]
        if others and self._fluid():
            yield MESHES_IN_FLUID, f"{len(others)}"

    def _inertia(self, i: int) -> Inertia:
        model, R = self.model, as_rotation(self.model.body_iquat[i])
        x, y, z = as_vector(model.body_inertia[i])
        return Inertia(float(model.body_mass[i]), as_vector(model.body_ipos[i]), Moments(x, 0.0, 0.0, y, 0.0, z).rotated(R))

    def _frames(self) -> Iterator[Frame]:
        model = self.model
        for i in range(model.nsite):
            placement = as_pose(model.site_pos[i], model.site_quat[i])
            yield Frame(self._site_name(i), self.names[model.site_bodyid[i]], placement)

    def _site_name(self, i: int) -> str:
        return self.model.site(i).name or f"site{i}"


# --- unused elements


def _unused(mujoco: Mujoco, model: MjModel) -> Iterator[tuple[str, str]]:
    acting = len(model.actuator_trntype) and not disabled(mujoco, model.opt, "ACTUATION")
    plain = (
        ("lights", model.nlight),
        ("mocap bodies, taken as fixed", model.nmocap),
        (UNDRIVEN, np.count_nonzero(model.jnt_actgravcomp) if model.body_gravcomp.any() and not acting else 0),
        ("bodies with forces of plugins", np.count_nonzero(model.body_plugin >= 0)),
        ("custom fields", model.nnumeric + model.ntext),
    )
    for kind, number in plain:
        if number:
            yield kind, f"{number}"
    own, default = model.opt, mujoco.MjOption()
    search = [flag.lower() for flag in ("NATIVECCD", "MULTICCD") if disabled(mujoco, own, flag)]
    search += [name for name in ("ccd_iterations", "ccd_tolerance") if getattr(own, name) != getattr(default, name)]
    if search:
        yield "settings of the search for contacts", ", ".join(search)
