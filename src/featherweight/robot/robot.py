"""A robot and its functions: what users call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from ..algorithms import aba, crba, crba_ltdl, energy, frames, integration, inverse, rnea
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import Input, Output
from ..engine.together import together
from ..model import configuration
from ..model.armature import with_armature
from ..model.configuration import DifferenceDerivatives, IntegrateDerivatives
from ..model.inertial_parameters import with_inertial_parameters
from ..model.model import Model
from ..summaries import SeveralByName
from .centroidal_dynamics import Centroidal
from .closing.soundness import require_mass
from .collision.colliding import Colliding
from .constraints.constraint import checked
from .constraints.contact import Constraint
from .constraints.operational_space import OperationalSpace
from .dynamics_terms import DynamicsTerms
from .factorization import Factorization, packed_size
from .frame_functions import FrameFunctions
from .parametric import Parametric
from .step_functions import StepFunctions
from .system import NotDefinedError, declared_functions, placements
from .tendons.tendon_functions import TendonFunctions

Array = np.ndarray[Any, np.dtype[Any]]


class Robot(Parametric, FrameFunctions, TendonFunctions, DynamicsTerms, Centroidal, Colliding):
    """A robot's model and its compiled functions.

    States are float arrays (..., nq) and (..., nv); leading axes broadcast. The conventions are Pinocchio's. A free-flyer has
    q = (x, y, z, qx, qy, qz, qw) and v = (linear, angular) in the body's frame. A spherical joint has q = (qx, qy, qz, qw). A
    planar joint has q = (x, y, cos, sin) and v = (vx, vy, angular). All other joints, including continuous joints, have one
    coordinate. Quaternions must have unit length. Joints are in depth-first order of the file.
    """

    def __init__(self, model: Model, execution: str = "auto") -> None:
        super().__init__(model, execution)
        self._spaces: dict[tuple[Any, ...], OperationalSpace] = {}
        self._solvers: dict[int, CompiledFunction[Any]] = {}

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {len(self.bodies)} bodies, nq={self.nq}, nv={self.nv}, {self.mass:.3g} kg>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Robot, (self.model, self.execution)

    def with_armature(self, armature: Mapping[str, float]) -> Robot:
        """Return the same robot with other reflected inertias [kg m², kg] at the named joints.

        If you add h times a joint's damping to its armature, a step of h seconds treats the damping implicitly. Raises
        ValueError for an unknown joint or a negative armature.
        """
        return Robot(with_armature(self.model, armature), self.execution)

    def with_inertial_parameters(self, parameters: Any) -> Robot:
        """Return the same robot with other `inertial_parameters`, (nbodies, 10) or flat.

        Raises ValueError for a wrong shape and for values that no model may have. Raises ModelError if no joint moves a mass.
        """
        model = with_inertial_parameters(self.model, parameters)
        require_mass(model)
        return Robot(model, self.execution)

    def with_weights_of(self, model: Model) -> Robot:
        """Return the same robot with the masses and inertias of another model of it; no rigid body need have these inertias."""
        return Robot(model, self.execution)

    # the configuration space

    @cached_property
    def integrate(self) -> CompiledFunction:
        """The configuration (nq) that the robot reaches from q when it moves with the velocity v (nv) for a unit of time."""
        return self.step_functions.integrate

    @cached_property
    def step_functions(self) -> StepFunctions:
        """The functions that simulations call in a time step."""
        return StepFunctions(self)

    @cached_property
    def difference(self) -> CompiledFunction:
        """The velocity (nv) that moves the robot from q0 to q1 in a unit of time.

        Rotations take the short way, by at most π; the quaternions q and -q are the same rotation. Coordinates of revolute and
        continuous joints are subtracted, including whole turns. If the robot has loops, the velocity is that of the
        independent joints.
        """
        return self._function(Robot.difference, integration.difference, ("q0", "q1"), Output("velocity", (self.nv,)))

    def integrate_derivatives(self, q: Any, v: Any) -> IntegrateDerivatives:
        """Return the Jacobians (..., nv, nv) of `integrate` with respect to velocities: dresult_dq, dresult_dv.

        Velocities of the result are in the axes of the result.
        """
        return configuration.integrate_derivatives(self._coordinates, q, v)

    def difference_derivatives(self, q0: Any, q1: Any) -> DifferenceDerivatives:
        """Return the Jacobians (..., nv, nv) of `difference` with respect to velocities: dresult_dq0, dresult_dq1."""
        return configuration.difference_derivatives(self._coordinates, q0, q1)

    # dynamics

    @cached_property
    def inverse_dynamics(self) -> CompiledFunction:
        """tau (nv) = M(q) a + c(q, v) + g(q), by the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1).

        The optional `external_forces` (..., nbodies, 6) act on the bodies: the force, and the torque about the origin of the
        body's frame in the file, both in the axes of that frame.
        """
        return self._with_forces(Robot.inverse_dynamics, rnea.rnea, ("q", "v", "a"), "tau", "rnea")

    @cached_property
    def forward_dynamics(self) -> CompiledFunction:
        """The acceleration a (nv) under joint forces tau.

        There are two algorithms: the articulated-body algorithm ("aba"; Featherstone 2008, table 7.1), and the sparse factors
        of the mass matrix with back-substitution ("crba-ltdl"; Featherstone 2005). The default is the one with fewer
        operations for this robot; a division counts as eight. `algorithm=` selects one. `external_forces` are those of
        `inverse_dynamics`.
        """
        inputs = ("q", "v", "tau")
        candidates = {
            name: self._with_forces(Robot.forward_dynamics, kernel, inputs, "a", name)
            for name, kernel in (("aba", aba.aba), ("crba-ltdl", crba_ltdl.crba_ltdl))
        }
        return cheapest(candidates)

    @cached_property
    def mass_matrix(self) -> CompiledFunction:
        """The mass matrix M(q) (nv, nv), full and symmetric.

        The algorithm is the composite-rigid-body algorithm (Featherstone 2008, table 6.2).
        """
        return self._function(Robot.mass_matrix, crba.crba, ("q",), Output("M", (self.nv, self.nv)))

    @cached_property
    def inverse_mass_matrix(self) -> CompiledFunction:
        """The inverse mass matrix M(q)⁻¹ (nv, nv), full and symmetric.

        There are three algorithms: a recursion of Θ(nv²) in one frame for all bodies ("global"; after Drumwright 2012), the
        same in the bodies' own frames ("local"), and the sparse factors of the mass matrix ("crba-ltdl"; Featherstone 2005).
        The default is the one with the fewest operations for this robot; a division counts as eight. `algorithm=` selects one.
        A robot that is too large for counting uses "global", and threads share the columns.
        """
        whole = ((0, self.nv),)

        def candidate(kernel: Any, more: tuple[Any, ...] = ()) -> CompiledFunction:
            output = Output("Minv", (self.nv, self.nv))
            return self._function(Robot.inverse_mass_matrix, kernel, ("q",), output, more, part=1 if more else None)

        return cheapest(
            {
                "global": candidate(inverse.inverse_global, whole),
                "local": candidate(inverse.inverse_local),
                "crba-ltdl": candidate(crba_ltdl.inverse_by_factors),
            }
        )

    def solve_mass_matrix(self, q: Any, B: Any) -> Array:
        """Return M(q)⁻¹ B for matrices B (..., nv, m), in Θ(nv m) (Drumwright 2012, algorithm 1).

        Each m compiles a function. Raises ValueError for a wrong shape.
        """
        B = np.asarray(B)
        if B.ndim < 2 or B.shape[-2] != self.nv:
            raise ValueError(f"solve_mass_matrix: B must have shape (..., {self.nv}, m); got {B.shape}")
        m = B.shape[-1]
        function = self._solvers.get(m)
        if function is None:
            inputs, output = ("q", Input("B", (self.nv, m))), Output("result", (self.nv, m))
            function = self._function(Robot.solve_mass_matrix, inverse.solve_mass_matrix, inputs, output)
            self._solvers[m] = function
        result: Array = function(q, B)
        return result

    def factorize(self, q: Any) -> Factorization:
        """Return the sparse factors M(q) = Lᵀ D L (Featherstone 2005) as an object with L, D, solve, logdet and products."""
        return Factorization(np.asarray(self._factors(q)), self.parent, True)

    @cached_property
    def _factors(self) -> CompiledFunction:
        entries = packed_size(self.parent)
        return self._function(Robot.factorize, crba_ltdl.packed_factors, ("q",), Output("factors", (entries,)))

    @cached_property
    def bias_force(self) -> CompiledFunction:
        """The bias force c(q, v) + g(q) (nv): the joint forces under which all joint accelerations are zero."""
        return self._function(Robot.bias_force, rnea.bias_force, ("q", "v"), Output("tau", (self.nv,)))

    @cached_property
    def gravity_force(self) -> CompiledFunction:
        """The gravity force g(q) (nv): the joint forces that hold the robot still."""
        return self._function(Robot.gravity_force, rnea.gravity_force, ("q",), Output("tau", (self.nv,)))

    @cached_property
    def kinetic_energy(self) -> CompiledFunction[Any]:
        """The kinetic energy 1/2 v^T M(q) v [J].

        The algorithms use the velocities of the bodies ("bodies") or the mass matrix ("crba"). The second is cheaper in
        `together` with a function that computes the mass matrix.
        """
        kernels = {"bodies": energy.kinetic_energy, "crba": energy.kinetic_energy_by_mass_matrix}
        output = Output("energy", ())
        return cheapest(
            {
                name: self._function(Robot.kinetic_energy, kernel, ("q", "v"), output, algorithm=name)
                for name, kernel in kernels.items()
            }
        )

    @cached_property
    def potential_energy(self) -> CompiledFunction[Any]:
        """The potential energy in gravity [J]; it is zero when the centre of mass is at the world's origin."""
        return self._function(Robot.potential_energy, energy.potential_energy, ("q",), Output("energy", ()))

    @cached_property
    def center_of_mass(self) -> CompiledFunction:
        """The centre of mass of the moving bodies (3) in the world [m]. A robot without mass raises ValueError."""
        self._require_center("center_of_mass")
        return self._function(Robot.center_of_mass, energy.center_of_mass, ("q",), Output("center", (3,)))

    @cached_property
    def center_of_mass_jacobian(self) -> CompiledFunction:
        """The matrix J (3, nv) for which J v is the velocity of the centre of mass in the world."""
        self._require_center("center_of_mass_jacobian")
        kernel, output = energy.center_of_mass_jacobian, Output("J", (3, self.nv))
        return self._function(Robot.center_of_mass_jacobian, kernel, ("q",), output)

    @cached_property
    def joint_jacobian(self) -> CompiledFunction:
        """The motions of all joints in the world (6, n): one column (linear, angular) for each degree of freedom.

        The columns are the motion subspaces S in world coordinates (Featherstone 2008, section 2.11): the velocities of the
        point at the world's origin. The "world" Jacobian of a body has the columns of the joints that carry the body, and
        zeros elsewhere. If the robot has loops, the joints are those of the spanning tree; `spanning_velocity` returns their
        velocities.
        """
        output = Output("J", (6, len(self.model.tree.parent)))
        return self._function(Robot.joint_jacobian, frames.joint_jacobian, ("q",), output)

    @property
    def functions(self) -> dict[str, CompiledFunction[Any]]:
        """All compiled functions that this robot defines, by name.

        These are the members that are compiled functions. Methods that return a function for a frame, for contacts or for
        other choices (`frame_jacobian`, `delassus`, `extended_regressor`) are not included.
        """
        found: dict[str, CompiledFunction[Any]] = SeveralByName()
        for name in dict.fromkeys((*declared_functions(Robot), *declared_functions(type(self)))):
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
        """
        for function in (*functions, *named.values()):
            self._require_own(function)
        return together(functions, named)

    # contacts

    def operational_space(self, contacts: Constraint | Iterable[Constraint]) -> OperationalSpace:
        """Return the dynamics along contacts and other constraints: Λ, bias, consistent inverse, constrained dynamics.

        Raises ValueError for an unknown frame and for no contacts.
        """
        constraints = checked(contacts, "operational_space")
        key = tuple(c.key for c in constraints)
        if key not in self._spaces:
            space = OperationalSpace(self, constraints)
            space.size  # noqa: B018  # looks up frames
            self._spaces[key] = space
        return self._spaces[key]

    def contact_jacobian(self, contacts: Constraint | Iterable[Constraint]) -> CompiledFunction:
        """Return the function of q that computes J (m, nv), where J v are the velocities along m constraint rows."""
        return self.operational_space(checked(contacts, "contact_jacobian")).jacobian

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

        A division counts as eight operations; `.candidates` has the counts of all algorithms. A robot that is too large for
        counting uses the first. If some constraints are not contacts, the choices are "pv-osim" and "ltl". Contacts on the
        ground have zero rows and columns.

        Raises ValueError for an unknown frame, for no contacts, and for an unknown algorithm.
        """
        return self.operational_space(checked(contacts, "delassus")).delassus(algorithm)

    # how they are made

    def _with_forces(self, member: Any, kernel: Any, inputs: Sequence[str], output: str, algorithm: str) -> CompiledFunction:
        """Return a function that takes optional external forces."""
        forces = Input("external_forces", (len(self.bodies), 6), optional=True)
        bodies = placements(self.model.placed_bodies)
        return self._function(member, kernel, (*inputs, forces), Output(output, (self.nv,)), (bodies,), algorithm=algorithm)
