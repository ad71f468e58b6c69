"""The centroidal momentum of a robot, and the motion of its centre of mass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ..algorithms import centroidal, centroidal_rates
from ..algorithms.mechanisms import centroidal as of_mechanisms
from ..engine.function import CompiledFunction, cheapest
from ..engine.program import ComposedProgram, CoreShape, Input, Output
from .spanning_motion import motion_parts, of_spanning_tree, rate_along_velocity
from .system import NotDefinedError, System


class Centroidal(System):
    """A system with a centre of mass (Orin, Goswami and Lee 2013).

    Momenta are (linear, angular) about the centre of mass, in the world's axes. They are the momenta of the bodies, without
    rotors (armature). A robot without mass raises ValueError at the first access.
    """

    @cached_property
    def centroidal_map(self) -> CompiledFunction:
        """Function of q: the matrix A (6, nv) for which A v is the centroidal momentum [kg m/s, kg m²/s]."""
        return self._centroidal(Centroidal.centroidal_map, centroidal.centroidal_map, ("q",), (6, self.nv))

    @cached_property
    def centroidal_map_rate(self) -> CompiledFunction:
        """Function of q, v: the rate A' (6, nv) of `centroidal_map` along the motion.

        The algorithms are rates of composite inertias ("composite") and forward differentiation of the map ("forward"); the
        default is the one with fewer operations. With loops, A' follows from that of the spanning tree and the Jacobian of the
        tree's velocities ("projection").
        """
        if self.closed:
            return self._projected_map_rate()
        member, shape = Centroidal.centroidal_map_rate, (6, self.nv)
        own = self._centroidal(member, centroidal_rates.centroidal_map_rate, ("q", "v"), shape)
        source = self.centroidal_map
        if source.too_large or source.execution == "rolled":
            return own
        program = rate_along_velocity(source.program, "centroidal_map_rate", "map_rate", member.__doc__)
        return cheapest({"composite": own, "forward": CompiledFunction(program, self.execution)})

    def _projected_map_rate(self) -> CompiledFunction:
        n, doc = len(self.model.tree.parent), Centroidal.centroidal_map_rate.__doc__ or ""
        self._require_center("centroidal_map_rate")
        inputs = [Input(name, (6, n)) for name in ("spanning_A", "spanning_rate")]
        inputs += [Input(name, (n, self.nv)) for name in ("G", "G_dot")]
        parts = (
            *motion_parts(self),
            of_spanning_tree(self, centroidal.centroidal_map, "q", Output("spanning_A", (6, n))),
            of_spanning_tree(self, centroidal_rates.centroidal_map_rate, "qv", Output("spanning_rate", (6, n))),
            self.bind("projected", of_mechanisms.projected_map_rate, inputs, (Output("map_rate", (6, self.nv)),)).program,
        )
        program = ComposedProgram("centroidal_map_rate", parts, ("map_rate",), doc)
        return CompiledFunction(program, self.execution, "projection")

    @cached_property
    def centroidal_momentum(self) -> CompiledFunction:
        """Function of q, v: the centroidal momentum (6) [kg m/s, kg m²/s].

        The algorithms use the velocities of the bodies ("bodies") or the centroidal map ("map"). The second is cheaper in
        `together` with a function that computes the map.
        """
        kernels = {"bodies": centroidal.centroidal_momentum, "map": centroidal.centroidal_momentum_by_map}
        return self._cheapest(Centroidal.centroidal_momentum, kernels, (6,))

    @cached_property
    def centroidal_momentum_rate(self) -> CompiledFunction:
        """Function of q, v, a: the rate A a + A' v (6) of the centroidal momentum [N, N m].

        It equals the sum of gravity and external wrenches about the centre of mass.
        """
        kernel = centroidal_rates.centroidal_momentum_rate
        return self._centroidal(Centroidal.centroidal_momentum_rate, kernel, ("q", "v", "a"), (6,))

    @cached_property
    def centroidal_bias(self) -> CompiledFunction:
        """Function of q, v: A' v (6), the rate of the centroidal momentum when joint accelerations are zero [N, N m]."""
        return self._centroidal(Centroidal.centroidal_bias, centroidal_rates.centroidal_bias, ("q", "v"), (6,))

    @cached_property
    def centroidal_inertia(self) -> CompiledFunction:
        """Function of q: the rotational inertia (3, 3) of all bodies, with joints locked, about the centre of mass [kg m²].

        It is in the world's axes. The spatial inertia (6, 6) there is block-diagonal: this matrix and the mass.
        """
        return self._centroidal(Centroidal.centroidal_inertia, centroidal.centroidal_inertia, ("q",), (3, 3))

    @cached_property
    def center_of_mass_velocity(self) -> CompiledFunction:
        """Function of q, v: the velocity of the centre of mass (3) in the world [m/s].

        The algorithms use the velocities of the bodies ("bodies") or the Jacobian of the centre of mass ("jacobian").
        """
        kernels = {"bodies": centroidal.center_of_mass_velocity, "jacobian": centroidal.center_of_mass_velocity_by_jacobian}
        return self._cheapest(Centroidal.center_of_mass_velocity, kernels, (3,))

    @cached_property
    def center_of_mass_acceleration(self) -> CompiledFunction:
        """Function of q, v, a: the acceleration of the centre of mass (3) in the world [m/s²]."""
        kernel = centroidal_rates.center_of_mass_acceleration
        return self._centroidal(Centroidal.center_of_mass_acceleration, kernel, ("q", "v", "a"), (3,))

    def _cheapest(self, member: Any, kernels: dict[str, Callable[..., None]], shape: CoreShape) -> CompiledFunction:
        """Return the cheapest of several algorithms that take q and v."""
        ways = {name: self._centroidal(member, kernel, ("q", "v"), shape, name) for name, kernel in kernels.items()}
        return cheapest(ways)

    def _centroidal(
        self, member: Any, kernel: Callable[..., None], inputs: Sequence[str], shape: CoreShape, algorithm: str = ""
    ) -> CompiledFunction:
        name = member.func.__name__
        self._require_center(name)
        output = Output(name.removeprefix("centroidal_").removeprefix("center_of_mass_"), shape)
        return self.bind(name, kernel, inputs, (output,), doc=member.func.__doc__, algorithm=algorithm)

    def _require_center(self, what: str) -> None:
        """Raise NotDefinedError, a ValueError, if the robot has no centre of mass."""
        if not self.mass > 0.0:
            raise NotDefinedError(
                f"{what} is not defined: {self.name} has no mass and therefore no centre of mass. Give its bodies masses"
            )
