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

    States are float arrays (..., nq) and (..., nv); leading axes broadcast. The conventions are Pinocchio's: a free-flyer
    has q = (x, y, z, qx, qy, qz, qw) and v = (linear, angular) in the body's frame, a spherical joint q = (qx, qy, qz,
    qw), a planar joint q = (x, y, cos, sin) and v = (vx, vy, angular); all others, continuous joints too, have one
    coordinate. Quaternions must be of unit length. Joints are in depth-first order of the file.
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
        """The same robot with other reflected inertias [kg m², kg] at the joints named.

        With h times its damping added to a joint's armature, a step h is taken against the damping of its end (implicitly).
        Raises ValueError for a joint that it does not have, or a negative armature.
        """
        return Robot(with_armature(self.model, armature), self.execution)

    def with_inertial_parameters(self, parameters: Any) -> Robot:
        """The same robot with other `inertial_parameters` (nbodies, 10), or flat.

        Raises ValueError for a wrong shape, and for numbers that no model may have; ModelError where nothing has mass that a
        joint moves.
        """
        model = with_inertial_parameters(self.model, parameters)
        require_mass(model)
        return Robot(model, self.execution)

    def with_weights_of(self, model: Model) -> Robot:
        """The same robot with the masses and inertias of another model of it, which need not be those of bodies."""
        return Robot(model, self.execution)

    # the configuration space

    @cached_property
    def integrate(self) -> CompiledFunction:
        """The configuration (nq) that a velocity v (nv), held for a unit of time, leads to from q."""
        return self.step_functions.integrate

    @cached_property
    def step_functions(self) -> StepFunctions:
        """The functions that time steps are made of: what simulations call."""
        return StepFunctions(self)

    @cached_property
    def difference(self) -> CompiledFunction:
        """The velocity (nv) that leads from q0 to q1 in a unit of time: of the independent joints, where there are loops.

        Rotations take the short way, by at most π; q and -q of a quaternion are the same rotation. Coordinates of revolute
        and continuous joints are subtracted, whole turns included.
        """
        return self._function(Robot.difference, integration.difference, ("q0", "q1"), Output("velocity", (self.nv,)))

    def integrate_derivatives(self, q: Any, v: Any) -> IntegrateDerivatives:
        """Jacobians (..., nv, nv) of `integrate` along velocities, those of the result in its axes: dresult_dq, dresult_dv."""
        return configuration.integrate_derivatives(self._coordinates, q, v)

    def difference_derivatives(self, q0: Any, q1: Any) -> DifferenceDerivatives:
        """Jacobians (..., nv, nv) of `difference` along velocities: dresult_dq0, dresult_dq1."""
        return configuration.difference_derivatives(self._coordinates, q0, q1)

    # dynamics

    @cached_property
    def inverse_dynamics(self) -> CompiledFunction:
        """tau (nv) = M(q) a + c(q, v) + g(q), by the recursive Newton-Euler algorithm (Featherstone 2008, table 5.1).

        `external_forces` (..., nbodies, 6), if given, act on the bodies: force and torque about the origin of each body's
        frame of the file, in that frame.
        """
        return self._with_forces(Robot.inverse_dynamics, rnea.rnea, ("q", "v", "a"), "tau", "rnea")

    @cached_property
    def forward_dynamics(self) -> CompiledFunction:
        """a (nv) for joint forces tau.

        By the articulated-body algorithm ("aba"; Featherstone 2008, table 7.1) or by the mass matrix, its sparse factors
        and back-substitution ("crba-ltdl"; Featherstone 2005), whichever takes fewer operations for this robot, a division
        counted as eight; `algorithm=` insists on one. `external_forces` as in `inverse_dynamics`.
        """
        inputs = ("q", "v", "tau")
        candidates = {
            name: self._with_forces(Robot.forward_dynamics, kernel, inputs, "a", name)
            for name, kernel in (("aba", aba.aba), ("crba-ltdl", crba_ltdl.crba_ltdl))
        }
        return cheapest(candidates)

    @cached_property
    def mass_matrix(self) -> CompiledFunction:
        """M(q) (nv, nv), full and symmetric, by the composite-rigid-body algorithm (Featherstone 2008, table 6.2)."""
        return self._function(Robot.mass_matrix, crba.crba, ("q",), Output("M", (self.nv, self.nv)))

    @cached_property
    def inverse_mass_matrix(self) -> CompiledFunction:
        """M(q)⁻¹ (nv, nv), full and symmetric.

        In Θ(nv²), in one frame for all bodies ("global"; after Drumwright 2012), in the bodies' own frames ("local"), or by
        the sparse factors of the mass matrix ("crba-ltdl"; Featherstone 2005), whichever takes fewer operations for this
        robot, a division counted as eight; `algorithm=` insists on one. A robot that is too large to count takes the first,
        and its columns are shared by threads.
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
        """M(q)⁻¹ B for matrices B (..., nv, m), in Θ(nv m) (Drumwright 2012, algorithm 1).

        Compiled for each m. Raises ValueError for a wrong shape.
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
        """The sparse factors M(q) = Lᵀ D L (Featherstone 2005): an object with L, D, solve, logdet and products."""
        return Factorization(np.asarray(self._factors(q)), self.parent, True)

    @cached_property
    def _factors(self) -> CompiledFunction:
        entries = packed_size(self.parent)
        return self._function(Robot.factorize, crba_ltdl.packed_factors, ("q",), Output("factors", (entries,)))

    @cached_property
    def bias_force(self) -> CompiledFunction:
        """c(q, v) + g(q) (nv): the joint forces at which nothing accelerates."""
        return self._function(Robot.bias_force, rnea.bias_force, ("q", "v"), Output("tau", (self.nv,)))

    @cached_property
    def gravity_force(self) -> CompiledFunction:
        """g(q) (nv): the joint forces that hold the robot still."""
        return self._function(Robot.gravity_force, rnea.gravity_force, ("q",), Output("tau", (self.nv,)))

    @cached_property
    def kinetic_energy(self) -> CompiledFunction[Any]:
        """1/2 v^T M(q) v [J]: by the velocities of the bodies ("bodies"), or by the mass matrix ("crba"), which is the cheaper
        way beside a function that has it already (`together`)."""
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
        """Energy in gravity [J], zero with the centre of mass at the world's origin."""
        return self._function(Robot.potential_energy, energy.potential_energy, ("q",), Output("energy", ()))

    @cached_property
    def center_of_mass(self) -> CompiledFunction:
        """Centre of mass of the moving bodies (3) in the world [m]; raises ValueError for a robot without mass."""
        self._require_center("center_of_mass")
        return self._function(Robot.center_of_mass, energy.center_of_mass, ("q",), Output("center", (3,)))

    @cached_property
    def center_of_mass_jacobian(self) -> CompiledFunction:
        """The matrix J (3, nv) with J v the velocity of the centre of mass in the world."""
        self._require_center("center_of_mass_jacobian")
        kernel, output = energy.center_of_mass_jacobian, Output("J", (3, self.nv))
        return self._function(Robot.center_of_mass_jacobian, kernel, ("q",), output)

    @cached_property
    def joint_jacobian(self) -> CompiledFunction:
        """The motions of all joints in the world (6, n), a column (linear, angular) a degree of freedom, as of a body that
        passes the world's origin (Featherstone 2008, section 2.11: the motion subspaces S in world coordinates).

        The "world" Jacobian of a body has the columns of the joints that carry it, and zeros. With loops, the joints are those
        of the spanning tree, whose velocities `spanning_velocity` gives.
        """
        output = Output("J", (6, len(self.model.tree.parent)))
        return self._function(Robot.joint_jacobian, frames.joint_jacobian, ("q",), output)

    @property
    def functions(self) -> dict[str, CompiledFunction[Any]]:
        """All compiled functions of this robot by name, as far as they are defined for it.

        They are the members that are compiled functions. Methods that return one for a frame, for contacts or for other
        choices (`frame_jacobian`, `delassus`, `extended_regressor`) are not among them.
        """
        found: dict[str, CompiledFunction[Any]] = {}
        for name in dict.fromkeys((*declared_functions(Robot), *declared_functions(type(self)))):
            with suppress(NotDefinedError):
                function = getattr(self, name)
                if isinstance(function, CompiledFunction):  # `integrate` closes loops by iteration
                    found[name] = function
        return found

    def together(self, *functions: CompiledFunction[Any], **named: CompiledFunction[Any]) -> CompiledFunction[Any]:
        """Several functions of this robot as one, which computes what they have in common once.

        Takes the arguments of all of them, by name those of one name once, in the order in which they are first met, and
        returns a named tuple of their results: fields are named as the functions are (a name that is taken gets a number),
        or by keyword: `robot.together(robot.mass_matrix, foot=robot.frame_jacobian("left_foot"))`. Where a function has
        several algorithms, those are chosen that are the cheapest together. `.operations` counts the whole, `.parts` each
        function alone.

        Raises ValueError for functions of another robot, for none, or for arguments of one name and unlike shapes.
        """
        for function in (*functions, *named.values()):
            self._require_own(function)
        return together(functions, named)

    # contacts

    def operational_space(self, contacts: Constraint | Iterable[Constraint]) -> OperationalSpace:
        """The dynamics as contacts and other constraints see it: Λ, bias, consistent inverse, constrained dynamics.

        Raises ValueError for a frame that the robot does not have, or for no contacts.
        """
        constraints = checked(contacts, "operational_space")
        key = tuple(c.key for c in constraints)
        if key not in self._spaces:
            space = OperationalSpace(self, constraints)
            space.size  # noqa: B018  # looks up frames
            self._spaces[key] = space
        return self._spaces[key]

    def contact_jacobian(self, contacts: Constraint | Iterable[Constraint]) -> CompiledFunction:
        """Function of q: the matrix J (m, nv) with J v the velocities that m constraint rows see."""
        return self.operational_space(checked(contacts, "contact_jacobian")).jacobian

    def delassus(self, contacts: Constraint | Iterable[Constraint], algorithm: str = "auto") -> CompiledFunction:
        """Function of q: the Delassus matrix J M⁻¹ Jᵀ (m, m), the inverse of the operational-space inertia.

        Constraint rows are in the order of the contacts. `algorithm` is "pv-osimr" or "pv-osim" (Sathya, Decré and Swevers,
        algorithms 3 and 1), "pv-osimr-some" (the former, but only where branches are worth it), "efpa" (Wensing,
        Featherstone and Orin 2012, table I), "kjr" (Kreutz-Delgado, Jain and Rodriguez 1992), "ltl" (Featherstone 2010),
        "dense", or "auto": the one with the fewest operations for this robot and these contacts, a division counted as
        eight; `.candidates` has all counts. A robot that is too large to count takes the first. With constraints that are
        no contacts it is "pv-osim", "ltl" or "dense". Contacts on the ground give zeros.

        Raises ValueError for a frame that the robot does not have, for no contacts, or an unknown algorithm.
        """
        return self.operational_space(checked(contacts, "delassus")).delassus(algorithm)

    # how they are made

    def _with_forces(self, member: Any, kernel: Any, inputs: Sequence[str], output: str, algorithm: str) -> CompiledFunction:
        """A function that takes external forces, if they are given."""
        forces = Input("external_forces", (len(self.bodies), 6), optional=True)
        bodies = placements(self.model.placed_bodies)
        return self._function(member, kernel, (*inputs, forces), Output(output, (self.nv,)), (bodies,), algorithm=algorithm)
