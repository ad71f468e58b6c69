"""A robot and its functions: what users call."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..algorithms import integration
from ..array_types import Array
from ..checks import checked, warn_caller
from ..engine.function import CompiledFunction
from ..engine.fusion import together
from ..engine.program import Output
from ..model.inertial_parameters import Armature, with_armature, with_inertial_parameters
from ..model.model import Model
from ..names import knows_keywords
from ..summaries import SeveralByName
from . import camera_placement as cameras
from . import (
    centroidal_dynamics,
    checked_states,
    dynamics,
    dynamics_derivatives,
    frame_functions,
    linear_parameters,
    second_derivatives,
    wrenches,
)
from . import parametric as of_inertias
from .arguments import Q0, Q1, Q, V
from .closing.soundness import loose_joint, loose_rows, require_mass, with_massless
from .collision import colliding
from .compiled_member import compiled, functions_of
from .constraints.constraint import as_constraints
from .constraints.contact import Constraint
from .constraints.operational_space import OperationalSpace
from .step_functions import StepFunctions
from .system import NotDefinedError, System, rows_of
from .tendons import tendon_functions

if TYPE_CHECKING:
    from .result_types import DifferenceDerivatives, IntegrateDerivatives

FOR_OTHER_PACKAGES = {
    *("bind", "configuration_result", "followers", "input", "irregular", "labels", "placements", "proportions", "row_limits"),
    *("execution_of", "loops_of", "opening", "require_dynamics", "require_masses_of", "require_motion", "require_whole_joints"),
    *("row_maximum", "split_joint", "step_functions", "warn_where_irregular", "with_weights_of"),
}
LOST = 8  # digits that accelerations lose near singular configurations


class Robot(System):
    """A robot's model and its compiled functions.

    States are float arrays (..., nq) and (..., nv); leading axes broadcast. The conventions are Pinocchio's. A free-flyer has
    q = (x, y, z, qx, qy, qz, qw) and v = (linear, angular) in the body's frame. A spherical joint has q = (qx, qy, qz, qw). A
    planar joint has q = (x, y, cos, sin) and v = (vx, vy, angular). All other joints, including continuous joints, have one
    coordinate. Quaternions must have unit length. Joints are in depth-first order of the file.
    """

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {len(self.bodies)} bodies, nq={self.nq}, nv={self.nv}, {self.mass:.3g} kg>"

    def _repr_html_(self) -> str:
        from .html_view import html_of  # only notebooks need it

        return self._kept(("html",), lambda: html_of(self))

    def __dir__(self) -> list[str]:
        """Return the names that users call: those that other packages of the library need have no place in completions."""
        return sorted({*super().__dir__()} - FOR_OTHER_PACKAGES)

    def __reduce__(self) -> tuple[object, ...]:
        return Robot, (self.model, self.execution)

    @checked
    def with_armature(self, armature: Armature) -> Robot:
        """Return the same robot with other reflected inertias [kg m², kg]: of the joints that a dict names, or of all joints.

        For all joints, give a list or an array in the order of `robot.armature`, or one number; floating joints have none.
        If you add h times a joint's damping to its armature, a step of h seconds treats the damping implicitly. Raises
        ValueError for an unknown joint or a negative armature.

            geared = robot.with_armature(0.02)  # [kg m²], of all joints
        """
        model = with_armature(self.model, armature)
        return Robot(with_massless(model, loose_joint(model)), self.execution)

    @checked
    def with_inertial_parameters(self, parameters: npt.ArrayLike) -> Robot:
        """Return the same robot with other `inertial_parameters`, (nbodies, 10) or flat.

        Raises ValueError for a wrong shape and for values that no model may have. Raises ModelError if a joint could then move
        without moving any mass.

            heavier = robot.with_inertial_parameters(1.1 * robot.inertial_parameters)
        """
        model = with_inertial_parameters(self.model, parameters)
        require_mass(model)
        return Robot(with_massless(model, None), self.execution)

    def with_weights_of(self, model: Model) -> Robot:
        """Return the same robot with the masses and inertias of another model of it, which may be physically impossible."""
        return Robot(model, self.execution)

    # regular configurations

    check = checked_states.check

    @knows_keywords
    def require_regular(self, q: npt.ArrayLike) -> None:
        """Raise ValueError for configurations q (..., nq) where accelerations lose eight or more digits.

        This is so where joints move no mass, because bodies without mass are between them: for example in the lock of a gimbal
        whose rings have no mass. It is also so near singular configurations of loops (`ClosedRobot.singularity`). The functions
        of the dynamics do not check q, so that they stay fast; simulations check where they start, and where a step fails.

            robot.require_regular(q)
        """
        q = self._checked("q", q, self.nq)
        found = self.irregular(rows_of(q))
        if found is not None:
            at = f"state {tuple(map(int, np.unravel_index(found[0], q.shape[:-1])))} of q is " if q.ndim > 1 else ""
            raise ValueError(f"{self.name}: {at}{found[1]}")

    def warn_where_irregular(self, q: Array, masses: bool = True) -> None:
        """Issue a RuntimeWarning for q (..., nq) that `require_regular` refuses; the check of masses may take milliseconds."""
        found = self.irregular(rows_of(q), masses=masses)
        if found is not None:
            warn_caller(f"{self.name}: {found[1]}", RuntimeWarning)

    def irregular(self, q: Array, digits: int = LOST, masses: bool = True) -> tuple[int, str] | None:
        """Return the first of q (states, nq) where accelerations lose some digits, and the reason; or None.

        Without `masses`, only loops are checked.
        """
        if not masses or self.model.solid or self.model.massless:
            return None
        rows = self._loose(q, 10.0**-digits)
        states = np.flatnonzero(rows >= 0)
        if not len(states):
            return None
        joint = self._joint_of(int(rows[states[0]]))
        return int(states[0]), (
            f"near a singular configuration, where joint {joint!r} moves no mass if other joints move along; results there are "
            "inaccurate or invalid. Give the bodies without mass an inertia, or the joint an armature"
        )

    def require_whole_joints(self) -> None:
        """Raise NotImplementedError if loops determine a part of a joint's velocities: closing loops moves it."""

    @property
    def split_joint(self) -> str | None:
        """The first joint of whose velocities loops determine a part, or None."""
        return None

    def _loose(self, q: Array, least: float) -> Array:
        """Return the outermost velocity that moves at most this share of its inertia, at each of q (states, nq), or -1."""
        return loose_rows(self.model, q, least)

    def _joint_of(self, velocity: int) -> str:
        return next(j.name for j in self.joints if j.v_slice.start <= velocity < j.v_slice.stop)

    # the configuration space

    @compiled
    def integrate(self) -> CompiledFunction:
        """The configuration (nq) that the robot reaches from q when it moves with the velocity v (nv) for a unit of time.

        For example:

            q = robot.integrate(q, 0.01 * v)  # 10 ms later
        """
        return self.step_functions.integrate

    @cached_property
    def step_functions(self) -> StepFunctions:
        """The functions that simulations call in a time step."""
        return StepFunctions(self)

    @compiled
    def difference(self) -> CompiledFunction:
        """The velocity (nv) that moves the robot from q0 to q1 in a unit of time.

        Rotations take the short way, by at most π; the quaternions q and -q are the same rotation. Coordinates of revolute and
        continuous joints are subtracted, including whole turns. If the robot has loops, the velocity is that of the
        independent joints.

            v = robot.difference(q, robot.neutral()) / 2.0  # reaches zero in 2 s
        """
        return Robot.difference.bind(self, integration.difference, (Q0, Q1), Output("velocity", (self.nv,)))

    @compiled
    def integrate_derivatives(self) -> CompiledFunction[IntegrateDerivatives]:
        """The Jacobians (nv, nv) of `integrate` at q, v with respect to velocities: dresult_dq, dresult_dv.

        Velocities of the result are in the axes of the result. The Jacobians are exact at any angle.

            by_q, by_v = robot.integrate_derivatives(q, 0.01 * v)
        """
        outputs = [Output(f"dresult_d{x}", (self.nv, self.nv)) for x in "qv"]
        return Robot.integrate_derivatives.bind(self, integration.integrate_derivatives, (Q, V), outputs)

    @compiled
    def difference_derivatives(self) -> CompiledFunction[DifferenceDerivatives]:
        """The Jacobians (nv, nv) of `difference` at q0, q1 with respect to velocities: dresult_dq0, dresult_dq1.

        They are exact for turns by less than π, where the short way changes.

            by_q0, by_q1 = robot.difference_derivatives(q, robot.neutral())
        """
        outputs = [Output(f"dresult_d{x.name}", (self.nv, self.nv)) for x in (Q0, Q1)]
        return Robot.difference_derivatives.bind(self, integration.difference_derivatives, (Q0, Q1), outputs)

    # functions, each in the module for its topic

    inverse_dynamics = dynamics.inverse_dynamics
    forward_dynamics = dynamics.forward_dynamics
    mass_matrix = dynamics.mass_matrix
    inverse_mass_matrix = dynamics.inverse_mass_matrix
    solve_mass_matrix = dynamics.solve_mass_matrix
    factorize = dynamics.factorize
    bias_force = dynamics.bias_force
    gravity_force = dynamics.gravity_force
    kinetic_energy = dynamics.kinetic_energy
    potential_energy = dynamics.potential_energy

    static_torque = dynamics.static_torque
    coriolis_matrix = dynamics.coriolis_matrix
    mechanical_power = dynamics.mechanical_power

    inverse_dynamics_derivatives = dynamics_derivatives.inverse_dynamics_derivatives
    forward_dynamics_derivatives = dynamics_derivatives.forward_dynamics_derivatives

    inverse_dynamics_second_derivatives = second_derivatives.inverse_dynamics_second_derivatives
    forward_dynamics_second_derivatives = second_derivatives.forward_dynamics_second_derivatives
    inverse_dynamics_hessian = second_derivatives.inverse_dynamics_hessian
    forward_dynamics_hessian = second_derivatives.forward_dynamics_hessian

    inverse_dynamics_regressor = linear_parameters.inverse_dynamics_regressor
    kinetic_energy_regressor = linear_parameters.kinetic_energy_regressor
    potential_energy_regressor = linear_parameters.potential_energy_regressor
    extended_regressor = linear_parameters.extended_regressor

    parametric = of_inertias.parametric

    center_of_mass = centroidal_dynamics.center_of_mass
    center_of_mass_jacobian = centroidal_dynamics.center_of_mass_jacobian
    center_of_mass_velocity = centroidal_dynamics.center_of_mass_velocity
    center_of_mass_acceleration = centroidal_dynamics.center_of_mass_acceleration
    centroidal_map = centroidal_dynamics.centroidal_map
    centroidal_map_rate = centroidal_dynamics.centroidal_map_rate
    centroidal_momentum = centroidal_dynamics.centroidal_momentum
    centroidal_momentum_rate = centroidal_dynamics.centroidal_momentum_rate
    centroidal_bias = centroidal_dynamics.centroidal_bias
    centroidal_inertia = centroidal_dynamics.centroidal_inertia

    frame_placement = frame_functions.frame_placement
    frame_jacobian = frame_functions.frame_jacobian
    frame_jacobian_rate = frame_functions.frame_jacobian_rate
    frame_velocity = frame_functions.frame_velocity
    frame_acceleration = frame_functions.frame_acceleration
    frame_classical_acceleration = frame_functions.frame_classical_acceleration
    frame_bias_acceleration = frame_functions.frame_bias_acceleration
    joint_jacobian = frame_functions.joint_jacobian
    joint_jacobian_rate = frame_functions.joint_jacobian_rate
    camera_placement = cameras.camera_placement
    wrench = wrenches.wrench

    tendon_lengths = tendon_functions.tendon_lengths
    tendon_moment_arms = tendon_functions.tendon_moment_arms

    collision_pairs = colliding.collision_pairs
    in_collision = colliding.in_collision
    collisions = colliding.collisions
    distances = colliding.distances
    distance_jacobian = colliding.distance_jacobian
    on_ground = colliding.on_ground
    with_obstacles = colliding.with_obstacles

    @property
    def functions(self) -> dict[str, CompiledFunction[Any]]:
        """All compiled functions that this robot defines, by name.

        These are the members that are compiled functions. Methods that return a function for a frame, for contacts or for
        other choices (`frame_jacobian`, `delassus`, `extended_regressor`) are not included.

            for name, function in robot.functions.items():
                print(name, function.signature)
        """
        found: dict[str, CompiledFunction[Any]] = SeveralByName()
        for name in functions_of(type(self)):
            with suppress(NotDefinedError):
                function = getattr(self, name)
                if isinstance(function, CompiledFunction):  # `integrate` closes loops by iteration
                    found[name] = function
        return found

    def together(self, *functions: CompiledFunction[Any], **named: CompiledFunction[Any]) -> CompiledFunction[Any]:
        """Return one function that evaluates several functions of this robot and computes their common parts once.

        The function takes the arguments of all functions, in the order in which they first occur; functions share arguments of
        the same name. The result is a named tuple. Its fields have the names of the functions (a number is added to a repeated
        name) or the keywords: `robot.together(robot.mass_matrix, foot=robot.frame_jacobian("left_foot"))`. Where a function
        has several algorithms, `together` selects the combination with the fewest operations. `.operations` counts the
        operations of the whole, `.parts` those of each function alone.

        Raises ValueError for functions of another robot, for no functions, and for arguments of the same name with different
        shapes.

            both = robot.together(robot.mass_matrix, robot.bias_force)(q, v)
            both.mass_matrix, both.bias_force
        """
        for function in (*functions, *named.values()):
            self._require_own(function)
        return together(functions, named)

    # contacts

    @knows_keywords
    def operational_space(self, contacts: Constraint | Iterable[Constraint]) -> OperationalSpace:
        """Return the dynamics along contacts and other constraints: Λ, bias, consistent inverse, constrained dynamics.

        Raises ValueError for an unknown frame and for no contacts.

            space = robot.operational_space(featherweight.BilateralContact("hand", "point"))
            space.forward_dynamics(q, v, tau)  # accelerations and contact forces
        """
        return self._operational_space(contacts, "operational_space")

    def _operational_space(self, contacts: Constraint | Iterable[Constraint], what: str) -> OperationalSpace:
        constraints = as_constraints(contacts, what)

        def make() -> OperationalSpace:
            space = OperationalSpace(self, constraints)
            space.size  # noqa: B018  # looks up frames
            return space

        return self._kept(("operational_space", *(c.key for c in constraints)), make)

    @knows_keywords
    def contact_jacobian(self, contacts: Constraint | Iterable[Constraint]) -> CompiledFunction:
        """Return the function of q that computes J (m, nv), where J v are the velocities along m constraint rows.

        For example:

            J = robot.contact_jacobian(featherweight.BilateralContact("hand", "point"))(q)  # (3, nv)
        """
        return self._operational_space(contacts, "contact_jacobian").jacobian

    @knows_keywords
    def delassus(self, contacts: Constraint | Iterable[Constraint], algorithm: str = "auto") -> CompiledFunction:
        """Return the function of q that computes the Delassus matrix J M⁻¹ Jᵀ (m, m).

        It is the inverse of the operational-space inertia.

        Constraint rows are in the order of the contacts. `algorithm` is one of these:

            "pv-osimr", "pv-osim"   Sathya, Decré and Swevers, algorithms 3 and 1
            "pv-osimr-some"         "pv-osimr", but only on branches where it saves operations
            "efpa"                  Wensing, Featherstone and Orin 2012, table I
            "kjr"                   Kreutz-Delgado, Jain and Rodriguez 1992
            "ltl"                   Featherstone 2010
            "auto"                  the algorithm with the fewest operations for this robot and these contacts

        A division counts as eight operations; `.candidates` has the counts of the algorithms. A robot that is too large for
        counting uses the first. If some constraints are not contacts, the choices are "pv-osim" and "ltl". Contacts on the
        ground have zero rows and columns.

        Raises ValueError for an unknown frame, for no contacts, and for an unknown algorithm.

            D = robot.delassus(featherweight.BilateralContact("hand", "point"))(q)  # (3, 3) [1/kg]
        """
        return self._operational_space(contacts, "delassus").delassus(algorithm)
