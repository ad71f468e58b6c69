"""Names that are not there: what other libraries' names are called here, and which known names are close to a wrong one.

Only errors use it: `__getattr__` of the public classes runs for attributes that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, SupportsIndex, TypeVar, overload

from .summaries import Several, visible


class UnknownNameError(KeyError, ValueError):
    """There is nothing of a name: `robot.joint("elbo")`, `robot.joints["elbo"]`, `robot.frame_placement("hnd")`.

    It is a KeyError, as of dictionaries, and a ValueError, as of functions that take names.
    """

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would add quotes


class HasName(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=HasName)
P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

SHOWN = 60  # names that a message lists
ANY_KEYWORDS = 0x08  # the flag of code with **keywords


class Named(Several[T]):
    """Things that have names, in order: by their numbers, and by their names."""

    __slots__ = ()

    @overload
    def __getitem__(self, which: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[T, ...]: ...
    @overload
    def __getitem__(self, which: str) -> T: ...
    def __getitem__(self, which: SupportsIndex | slice | str) -> T | tuple[T, ...]:
        if not isinstance(which, str):
            try:
                return super().__getitem__(which)
            except IndexError:
                raise IndexError(f"there are {len(self)} items, numbered from 0; got {which}") from None
            except TypeError:
                raise TypeError(f"choose by a name, a number or a slice; got {which!r:.60}") from None
        for x in self:
            if x.name == which:
                return x
        raise UnknownNameError(f"there is no {choose_from(which, [x.name for x in self]).replace('it has', 'there are')}")


class NamedValues(dict[str, V]):
    """Values by name."""

    def __missing__(self, name: object) -> V:
        raise UnknownNameError(f"there is no {choose_from(name, list(self)).replace('it has', 'there are')}")


def listed(names: Sequence[str]) -> str:
    """The names in a row; of very many, the first."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return visible(", ".join(names[:SHOWN])) + more


def suggestion(name: object, known: Iterable[str]) -> str:
    """The known names that a wrong one may stand for, as a question in brackets; nothing where none is close."""
    near = close_to(str(name), known)
    return f" (is it {' or '.join(map(repr, near))}?)" if near else ""


def close_to(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that a wrong one is a part of, or the one that is spelled most like it."""
    from difflib import get_close_matches  # only errors need it

    plain = {_plain(x): x for x in known}
    if _plain(name) in plain:
        return [plain[_plain(name)]]
    within = sorted((x for x in plain if len(_plain(name)) > 2 and _plain(name) in x), key=len)
    return [plain[x] for x in within[:3] or get_close_matches(_plain(name), plain, n=1)]


def choose_from(name: object, known: Sequence[str]) -> str:
    """The end of a message about a wrong name: the one that is close, and those that there are."""
    return f"{name!r}{suggestion(name, known)}; it has {listed(known) or 'none'}"


def missing_attribute(owner: object, name: str, otherwise: str = "dir() lists those that there are") -> Any:
    """`__getattr__` of a public class: raise AttributeError that says what is meant, or how it is called here.

    Where a property failed with an AttributeError of its own, Python asks here, too: that error is raised again.
    """
    if hasattr(type(owner), name):
        return object.__getattribute__(owner, name)
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if not name.startswith("_"):
        robot = vars(owner).get("robot") if hasattr(owner, "__dict__") else None
        has_it = not isinstance(robot, str) and hasattr(type(robot), name)  # a trajectory has the name of its robot
        if name in _OF_DESCRIPTIONS and not {"System", "Simulation"}.isdisjoint(x.__name__ for x in type(owner).__mro__):
            said += f"; descriptions have it: featherweight.read(path).{name}(...)"
        else:
            said += f"; its robot has it: .robot.{name}" if has_it else meant(name, dir(owner)) or f"; {otherwise}"
    raise AttributeError(said, name=name)


class SuggestsNames:
    """A public class, whose missing attributes raise an error that says what is meant."""

    __slots__ = ()
    if not TYPE_CHECKING:  # type checkers would take every attribute to be there
        __getattr__ = missing_attribute


def meant(name: str, known: Iterable[str]) -> str:
    """Return what a name that is missing stands for, as the end of a message; nothing for one that is like none."""
    own = {_plain(x): x for x in known if not x.startswith("_")}
    here = CALLED_HERE.get(name) or own.get(_plain(name)) or _WITHOUT_CAPITALS.get(_plain(name))
    return f"; here it is {here}" if here else suggestion(name, own.values())


def knows_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose TypeError for arguments that it does not take says what it takes, and which keyword is meant."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised inside the function
                raise
        raise wrong_arguments(function, args, named)

    return call


def wrong_arguments(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> TypeError:
    """Return the error about arguments that a function does not take, or that it lacks."""
    name, own = public_signature(function, args)
    if unknown := [x for x in named if x not in own]:
        return moved_keywords(name, named) or unknown_keyword(name, unknown[0], own)
    return TypeError(f"{name} takes {listed(own)}; {misfit(function, args, named)}")


def misfit(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Describe arguments that are too many, missing or given twice; the text is empty if a call has the right ones."""
    code, own = function.__code__, public_signature(function, args)[1]
    every = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    places, by_keyword = every[: code.co_argcount], every[code.co_argcount :]
    if len(args) > len(places):
        how = f"; write {', '.join(f'{x}=...' for x in by_keyword)}" if by_keyword else ""
        count = len(args) - len(every) + len(own)
        return f"got {count} argument{'s' * (count != 1)} by position{how}"
    if twice := [x for x in places[: len(args)] if x in named]:
        return f"got {', '.join(twice)} by position and by keyword"
    needed = [*places[len(args) : len(places) - len(function.__defaults__ or ())]]
    needed += [x for x in by_keyword if x not in (function.__kwdefaults__ or {})]
    missing = [x for x in needed if x not in named]
    return f"missing: {', '.join(missing)}" if missing else ""


def public_signature(function: Any, args: Sequence[Any]) -> tuple[str, list[str]]:
    """Return the name of a function and those of its parameters as users know them, for a call with these arguments.

    A method has the class of its object, which may be defined in a base class or, as a function of a `System`, elsewhere. A
    method that a property returns has the property's name, after an underscore.
    """
    code, name = function.__code__, str(function.__name__)
    names = [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
    if name == "__init__":
        return str(function.__qualname__.removesuffix(".__init__")), names[1:]
    if name == "__new__":  # of a named tuple
        return str(args[0].__name__), names[1:]
    if names[:1] == ["self"]:
        return f"{type(args[0]).__name__}.{name.removeprefix('_')}", names[1:]
    return (f"Robot.{name}", names[1:]) if function.__annotations__.get(names[0]) == "System" else (name, names)


def unknown_keyword(function: str, keyword: str, known: Sequence[str]) -> TypeError:
    """The error for a keyword that a function does not take."""
    here = [x for x in KEYWORDS_HERE.get(keyword, ()) if x.partition("=")[0] in known]
    advice = ADVICE.get((function, keyword))
    ending = f"; {advice}" if advice else f"; here it is {here[0]}" if here else suggestion(keyword, known)
    return TypeError(f"{function} has no argument {keyword!r}{ending}; it takes {listed(known)}")


def moved_keywords(function: str, named: Mapping[str, Any]) -> TypeError | None:
    """The error for keywords that are fields of an argument, with what to write; None for other keywords."""
    moved = {x: MOVED_KEYWORDS[function, x] for x in named if (function, x) in MOVED_KEYWORDS}
    if not moved:
        return None
    if wrong := [x for x in moved if (x, type(named[x])) in _NUMBERS_OF_JOINTS]:
        advice = _NUMBERS_OF_JOINTS[wrong[0], type(named[wrong[0]])]
        return TypeError(f"{function} has no argument {wrong[0]!r}; {advice.format(named[wrong[0]])}")
    written: dict[str, list[str]] = {}
    for keyword, (place, field) in moved.items():
        x = named[keyword]
        written.setdefault(place, []).append(f"{field}={x!r}" if isinstance(x, bool | float | int | str) else f"{field}=...")
    advice = ", ".join(place.format(", ".join(fields)) for place, fields in written.items())
    return TypeError(f"{function} has no argument {' or '.join(map(repr, moved))}; write {advice}")


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _names(table: Mapping[str, V]) -> dict[str, V]:
    """Return a table with a row for each name, from rows whose keys are several names."""
    return {name: here for names, here in table.items() for name in names.split()}


_ROWS = "rows (linear, angular)"

CALLED_HERE = _names(
    {
        # Pinocchio
        "rnea": "robot.inverse_dynamics(q, v, a)",
        "aba": "robot.forward_dynamics(q, v, tau)",
        "crba": "robot.mass_matrix(q)",
        "nonLinearEffects": "robot.bias_force(q, v)",
        "computeGeneralizedGravity": "robot.gravity_force(q)",
        "computeCoriolisMatrix": "robot.coriolis_matrix(q, v) @ v",
        "computeMinverse": "robot.inverse_mass_matrix(q)",
        "cholesky": "robot.factorize(q).solve(tau)",
        "computeRNEADerivatives": "robot.inverse_dynamics_derivatives(q, v, a)",
        "computeABADerivatives": "robot.forward_dynamics_derivatives(q, v, tau)",
        "computeJointTorqueRegressor": "robot.inverse_dynamics_regressor(q, v, a)",
        "ccrba": "robot.centroidal_map(q)",
        "dccrba": "robot.centroidal_map_rate(q, v)",
        "computeCentroidalMomentum": "robot.centroidal_momentum(q, v)",
        "computeCentroidalMomentumTimeVariation": "robot.centroidal_momentum_rate(q, v, a)",
        "centerOfMass": "robot.center_of_mass(q)",
        "jacobianCenterOfMass": "robot.center_of_mass_jacobian(q)",
        "computeKineticEnergy": "robot.kinetic_energy(q, v)",
        "computePotentialEnergy": "robot.potential_energy(q)",
        "framesForwardKinematics oMf": 'robot.frame_placement("hand")(q)',
        "computeJointJacobians": "robot.joint_jacobian(q)",
        "lowerPositionLimit": "robot.lower",
        "upperPositionLimit": "robot.upper",
        "effortLimit": "robot.effort_limit",
        "velocityLimit": "robot.velocity_limit",
        "computeFrameJacobian": 'robot.frame_jacobian("hand")(q)',
        "frameJacobianTimeVariation": 'robot.frame_jacobian_rate("hand", "local")(q, v)',
        "getFrameVelocity": 'robot.frame_velocity("hand", "local")(q, v)',
        "getFrameAcceleration": 'robot.frame_acceleration("hand", "local")(q, v, a)',
        "getFrameClassicalAcceleration": 'robot.frame_classical_acceleration("hand", "local")(q, v, a)',
        "buildModelFromUrdf buildModelFromMJCF": "featherweight.load",
        "buildReducedModel": "featherweight.Description.locked",
        "appendModel": "featherweight.Description.attached",
        "randomConfiguration": "featherweight.Robot.random_configuration",
        "computeAllTerms": "featherweight.Robot.together",
        "constraintDynamics": "featherweight.OperationalSpace.forward_dynamics",
        "impulseDynamics": "featherweight.OperationalSpace.impulse_dynamics",
        "computeDelassusMatrix": "featherweight.Robot.delassus",
        "computeCollisions computeDistances": "featherweight.Robot.collisions, featherweight.Robot.distances",
        "exp6 log6 Jexp6 Jlog6": "featherweight.se3.exp, featherweight.se3.log, featherweight.se3.Jexp, featherweight.se3.Jlog",
        "getFrameId getJointId": 'robot.frame("hand"), robot.joint("wrist")',
        "createData data": "not needed: functions return their results",
        # MuJoCo
        "qfrc_bias": "robot.bias_force(q, v)",
        "mj_fullM": "robot.mass_matrix(q)",
        "qacc": "robot.forward_dynamics(q, v, tau)",
        "mj_inverse qfrc_inverse": "robot.inverse_dynamics(q, v, a)",
        "mj_solveM": "robot.solve_mass_matrix(q, y.T).T",
        "mj_jacSite": 'robot.frame_jacobian("hand")(q)',
        "mj_jacBody": 'robot.frame_jacobian("wrist")(q)',
        "mj_objectVelocity": 'robot.frame_velocity("hand", "local")(q, v)',
        "site_xpos": 'robot.frame_placement("hand")(q)[:3, 3]',
        "site_xmat": 'robot.frame_placement("hand")(q)[:3, :3]',
        "subtree_com": "robot.center_of_mass(q)",
        "mj_jacSubtreeCom": "robot.center_of_mass_jacobian(q)",
        "jnt_range": "robot.lower",
        "qpos0": 'robot.configurations["qpos0"]',
        "qpos": "featherweight.Simulation.q, in the order of our conventions",
        "qvel": "featherweight.Simulation.v, in the order of our conventions",
        "ctrl": "control= of featherweight.Simulation.step and featherweight.Simulation.run",
        "qfrc_applied": "tau= of featherweight.Simulation.step and featherweight.Simulation.run",
        "xfrc_applied": "external_forces= of featherweight.Simulation.step and featherweight.Simulation.run (Robot.wrench)",
        "ncon contact": "featherweight.Simulation.contacts",
        "timestep": "featherweight.Simulation.dt",
        "cone": 'contact=featherweight.ContactOptions(law="rigid", pyramid=...) of featherweight.Simulation',
        "mj_step": "featherweight.Simulation.step",
        "mj_resetData mj_resetDataKeyframe": "featherweight.Simulation.reset",
        "mjd_transitionFD": "featherweight.Simulation.derivatives, without differences of steps",
        "mj_integratePos mj_differentiatePos": "featherweight.Robot.integrate, featherweight.Robot.difference",
        "mj_contactForce": "featherweight.Simulation.contact_forces",
        "sensordata": "featherweight.Simulation.sensors",
        "mj_geomDistance": "featherweight.Robot.distances",
        "Renderer": "featherweight.Simulation.render",
        "cam_xpos cam_xmat": "featherweight.Robot.camera_placement",
        "from_xml_path from_xml_string MjModel": "featherweight.load",
        # Drake
        "CalcMassMatrix": "robot.mass_matrix(q)",
        "CalcBiasTerm": "robot.bias_force(q, v) - robot.gravity_force(q)",
        "CalcGravityGeneralizedForces": "-robot.gravity_force(q)",
        "CalcInverseDynamics": "robot.inverse_dynamics(q, v, a)",
        "CalcJacobianSpatialVelocity": f'robot.frame_jacobian("hand")(q), {_ROWS}',
        "CalcBiasSpatialAcceleration": f'robot.frame_bias_acceleration("hand")(q, v), {_ROWS}',
        "EvalBodyPoseInWorld": 'robot.frame_placement("hand")(q)',
        "EvalBodySpatialVelocityInWorld": f'robot.frame_velocity("hand")(q, v), {_ROWS}',
        "CalcCenterOfMassPositionInWorld": "robot.center_of_mass(q)",
        "CalcJacobianCenterOfMassTranslationalVelocity": "robot.center_of_mass_jacobian(q)",
        "CalcSpatialMomentumInWorldAboutPoint": f"robot.centroidal_momentum(q, v), {_ROWS}, about the centre of mass",
        "CalcKineticEnergy CalcPotentialEnergy": "robot.kinetic_energy(q, v), robot.potential_energy(q)",
        "MultibodyPlant Parser": "featherweight.load",
        "AutoDiffXd": "robot.forward_dynamics.derivative(), exact, of any function",
        "DoDifferentialInverseKinematics": "featherweight.InverseKinematics",
        "Simulator": "featherweight.Simulation",
        # RBDL
        "CompositeRigidBodyAlgorithm": "robot.mass_matrix(q)",
        "NonlinearEffects": "robot.bias_force(q, v)",
        "CalcMInvTimesTau": "robot.factorize(q).solve(tau)",
        "ForwardDynamicsLagrangian": 'robot.forward_dynamics(q, v, tau, algorithm="crba-ltdl")',
        "CalcBodyToBaseCoordinates CalcBodyWorldOrientation": (
            'robot.frame_placement("hand")(q); the orientation there is the transpose'
        ),
        "CalcPointJacobian": 'the first three rows of robot.frame_jacobian("hand")(q)',
        "CalcPointJacobian6D": f'robot.frame_jacobian("hand")(q), {_ROWS}',
        "CalcPointVelocity6D": f'robot.frame_velocity("hand")(q, v), {_ROWS}',
        "CalcPointAcceleration6D": f'robot.frame_classical_acceleration("hand")(q, v, a), {_ROWS}',
        "CalcCenterOfMass": "robot.center_of_mass(q), robot.center_of_mass_velocity(q, v)",
        "ForwardDynamicsConstraintsDirect": "robot.operational_space(feet).forward_dynamics(q, v, tau)",
        "ComputeConstraintImpulsesDirect": "robot.operational_space(feet).impulse_dynamics(q, v)",
        # other words
        "forward_kinematics fk fkine": 'robot.frame_placement("hand")(q)',
        "jacobian jacob0 getJacobian": 'robot.frame_jacobian("hand")(q), or f.derivative() for any function f',
        "inverse_kinematics ik ikine": "featherweight.InverseKinematics(robot, tasks)",
        "whole_body_control wbc InverseDynamicsFormulationAccForce": "featherweight.WholeBodyControl(robot, tasks, contacts)",
        "rne": "robot.inverse_dynamics(q, v, a)",
        "inertia inertia_matrix M": "robot.mass_matrix(q)",
        "gravload g": "robot.gravity_force(q)",
        "coriolis": "robot.coriolis_matrix(q, v)",
        "com": "robot.center_of_mass(q)",
        "dof ndof num_dof num_joints njoints": "robot.nv, the number of degrees of freedom",
        "joint_names": "[joint.name for joint in robot.joints]",
        "link_names links": "robot.frames has every link, robot.bodies those that move",
        "joint_limits": "robot.lower, robot.upper",
        "load_urdf load_mjcf from_urdf loadURDF": "featherweight.load",
        "t": "featherweight.Simulation.time",
        "set_state": "featherweight.Simulation.reset",
        "get_state save_state load_state restore_state saveState restoreState": (
            "featherweight.Simulation.state, a value to keep, pickle and assign"
        ),
        "clone": "copy.copy(simulation), by Python's module copy",
        "view display visualize initViewer": "featherweight.Window(robot), a page for the browser",
        "Box Sphere Capsule Cylinder Geometry": 'featherweight.Shape("table", None, "box", (1.0, 1.0, 0.1))',
        "stepSimulation": "featherweight.Simulation.step",
        "simulate": "featherweight.Simulation.run",
        "close residual spanning_velocity spanning_torque loop_forces singularity": (
            "in featherweight.ClosedRobot, which load gives for robots with loops or couplings"
        ),
    }
)
"""Names in other libraries, and the name here: the tables of docs/coming_from.md, whose cells a test compares with these."""

KEYWORDS_HERE = _names(
    {
        "step timestep time_step step_size": ("dt",),
        "rate": ("frequency", "fps", "rate_limit"),
        "hz": ("frequency",),
        "T time": ("duration",),
        "floating floating_base free_flyer root_joint": ('base="floating"',),
        "fixed_base use_fixed_base": ('base="fixed"',),
        "package_dirs mesh_dir": ("package_path",),
        "torque torques": ("tau",),
        "ctrl": ("control",),
        "qpos home": ("q",),
        "qvel dq qd": ("v",),
        "qdd ddq qacc": ("a",),
        "f_ext fext": ("external_forces",),
        "seed random random_state generator": ("rng",),
        "floor": ("ground",),
        "drives": ("actuators",),
        "horizon": ("knots",),
        "mu": ("friction",),
        "friction": ("dry_friction", "joint_friction"),
        "joint_friction frictionloss": ("dry_friction",),
        "kp": ("stiffness",),
        "kd": ("damping",),
    }
)
"""Words for arguments in other libraries, and ours, of which a function takes one."""

_MANY = "q (robots, nq) makes many robots: Simulation(robot, q=np.tile(robot.start(), (64, 1)))"

ADVICE = {
    **{("Simulation", x): _MANY for x in ("num_envs", "n_envs", "nworld", "batch", "batch_size", "robots", "num_robots")},
    ("Simulation", "gravity"): "it is that of the robot: featherweight.load(path, gravity=...)",
    ("Simulation", "substeps"): "give dt= the length of a step, and step(steps=...) their number",
    ("Joint", "limits"): "write lower=..., upper=...",
    ("Simulation.run", "steps"): "write duration=steps * simulation.dt, or step(steps=...), which records nothing",
    ("Simulation.run", "dt"): "it is an argument of the Simulation",
    ("Simulation.step", "dt"): "it is an argument of the Simulation",
}
"""What to write in place of an argument that a function does not take."""

_OF_DESCRIPTIONS = {
    *("attached", "locked", "mirrored", "renamed", "save", "subtree", "with_backlash", "with_closure", "with_coupling"),
    *("with_friction", "with_inertias", "with_joint", "with_joint_type", "with_loop", "with_payload", "with_shape"),
    "without",
}
"""Methods of descriptions, which users look for at robots."""

_CONTACT, _JOINTS = "contact=featherweight.ContactOptions({})", "joints=featherweight.JointOptions({})"
_OF_CONTACTS = ("friction", "restitution", "pyramid", "margin", "slop", "bounce", "tolerance", "max_penetration", "delassus")

MOVED_KEYWORDS = {
    **{("Simulation", name): (_CONTACT, name) for name in _OF_CONTACTS},
    **{("Simulation", f"joint_{name}"): (_JOINTS, name) for name in ("limits", "passive")},
    **{("Simulation", name): (_JOINTS, "dry_friction") for name in ("joint_friction", "dry_friction")},
}
"""Words for arguments by function: the argument that contains them, and the field of it."""

_DRY_FRICTION = (
    "the dry friction [N m, N] of a joint is a number of its description: "
    'featherweight.read(path).with_joint("elbow", dry_friction={}); '
    "joints=featherweight.JointOptions(dry_friction=False) has none"
)
_NUMBERS_OF_JOINTS = {(x, kind): _DRY_FRICTION for x in ("joint_friction", "dry_friction") for kind in (int, float)}

_WITHOUT_CAPITALS = {_plain(name): here for name, here in CALLED_HERE.items() if len(name) > 2}
