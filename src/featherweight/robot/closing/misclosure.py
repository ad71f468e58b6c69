"""The misclosure of a cluster's loops and its derivatives by the joints, for many configurations at once.

With frames A and B of a loop, d the origin of B and R its orientation, both in A, and phi = log R,

    points      d_x, d_y, d_z [m]                       the rates are those of the point of B, seen from A
    turns       phi_z, phi_x, phi_y [rad]               phi' = Jl(phi)^-1 w
    axes        theta (e_x, e_y)/sin theta [rad]        e = R z, at the angle theta from z
    crossed     arcsin of R_zx [rad]                    axes that stay perpendicular

Each measure is zero only at closed loops; an axis that points the wrong way has the misclosure pi. Far from closed loops, none
of these measures levels off, unlike the sines of angles in the equations of motion (algorithms/mechanisms/loop_constraints).
Rows are in the order of those equations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval

from ...algorithms.mechanisms.cluster_tree import Attached, Closing, Cluster, ClusterTree, moving
from ...array_types import Array
from ...model import configuration
from ...model.configuration import Coordinates
from ...model.model import MovingJoint
from ...model.tree import FLOATING, INNER, PLANAR, PRISMATIC, REVOLUTE, SPHERICAL
from ...model.types import ALIGNMENTS, LoopType
from ...spatial import quaternion_at, sincos
from ...spatial.lie import angle_over_sine, quaternion_of_matrix
from ...spatial.ordered import lengths, product, times, total

NEXT, LAST = [1, 2, 0], [2, 0, 1]  # of x, y and z
NEAR_POLE = 1e-7  # sine of an axis's angle below which its direction is not normalized


def cross_matrix(w: Array) -> Array:
    """Return the matrices (..., 3, 3) of cross products with vectors w (..., 3)."""
    x, y, z = (w[..., k] for k in range(3))
    M = np.zeros((*w.shape, 3))
    M[..., 0, 1], M[..., 0, 2], M[..., 1, 2] = -z, y, -x
    M[..., 1, 0], M[..., 2, 0], M[..., 2, 1] = z, -y, x
    return M


def turns(R: Array) -> tuple[Array, Array]:
    """Return phi of rotations R (..., 3, 3) in the order z, x, y (..., 3), and Jl(phi)^-1 (..., 3, 3).

    With a unit quaternion (u, s) and half the angle h: phi = 2 g u, Jl^-1 = g s - g u x + (1 - g s)/|u|² u u^T for g = h/|u|.
    """
    (x, y, z), s = quaternion_of_matrix(np.moveaxis(R, (-2, -1), (0, 1)))
    u = np.stack([x, y, z], axis=-1)
    sine2 = total(u * u)
    sine, g = np.maximum(np.sqrt(sine2), 1e-12), angle_over_sine(s, sine2)
    bend = np.where(sine > 1e-5, (1.0 - g * s) / (sine * sine), 1.0 / 3.0)
    rates = bend[..., None, None] * u[..., :, None] * u[..., None, :] - g[..., None, None] * cross_matrix(u)
    rates[..., range(3), range(3)] += (g * s)[..., None]
    return (2.0 * g)[..., None] * u[..., LAST], rates[..., LAST, :]


def axes(R: Array) -> tuple[Array, Array]:
    """Return theta (e_x, e_y)/sin theta for the z axes e of R, a zero, and the rates."""
    e = R[..., :, 2].copy()
    z, sine = e[..., 2], lengths(e[..., :2])
    poles = sine < NEAR_POLE
    e[..., 0] = np.where(poles & (z < 0.0), NEAR_POLE, e[..., 0])  # for the opposite axis, all ways back are equally long
    sine = np.maximum(sine, NEAR_POLE)
    angle = _angle(sine, z)
    g = np.where(poles & (z > 0.0), 1.0, angle / sine)[..., None]
    turned = -cross_matrix(e)  # of w, w x e
    bend = np.where(poles, 0.0, (z * angle / sine - 1.0) / (sine * sine))[..., None, None]
    rates = g[..., None] * turned
    rates += bend * e[..., :, None] * turned[..., 2:, :]
    rates[..., 2, :] = 0.0
    r = g * e
    r[..., 2] = 0.0
    return r, rates


def _angle(sine: Array, cosine: Array) -> Array:
    """Return the angle in [0, pi], given numbers proportional to its sine and cosine; the sine is positive."""
    length = np.sqrt(sine * sine + cosine * cosine)
    half = 2.0 * angle_over_sine(np.abs(cosine) / length, (sine / length) ** 2) * 0.5 * (sine / length)
    return np.asarray(np.where(cosine < 0.0, math.pi - half, half))


def crossed(R: Array) -> tuple[Array, Array]:
    """Return the arc sine of R_zx, two zeros, and the rates."""
    e = R[..., :, 0]
    sine = np.clip(e[..., 2], -1.0, 1.0)
    r, rates = np.zeros_like(e), np.zeros_like(R)
    cosine2 = 1.0 - sine * sine
    r[..., 0] = sine * angle_over_sine(np.sqrt(cosine2), sine * sine)
    rates[..., 0, :] = -cross_matrix(e)[..., 2, :] / np.sqrt(np.maximum(cosine2, NEAR_POLE))[..., None]
    return r, rates


def sines(R: Array, pairs: Sequence[tuple[int, int]]) -> tuple[Array, Array]:
    """Return scalar products of axes (i of A, j of B) as in the equations of motion, padded to three, and the rates."""
    r, rates = np.zeros(R.shape[:-1]), np.zeros_like(R)
    for k, (i, j) in enumerate(pairs):
        r[..., k] = R[..., i, j]
        rates[..., k, :] = -cross_matrix(R[..., :, j])[..., i, :]
    return r, rates


ANGLES: dict[LoopType, Callable[[Array], tuple[Array, Array]] | None] = {  # measures of the angles of a loop
    LoopType.REVOLUTE: axes,
    LoopType.SPHERICAL: None,
    LoopType.WELD: turns,
    LoopType.PRISMATIC: turns,
    LoopType.CYLINDRICAL: axes,
    LoopType.UNIVERSAL: crossed,
    LoopType.PLANAR: axes,
}


class LoopFrames(NamedTuple):
    """A loop, given by its frames."""

    name: str
    type: LoopType
    a: Attached
    b: Attached


class Misclosure:
    """The residuals of a cluster's loops at configurations (..., nx) of those of its joints that do not follow others.

    `coordinates` are those of these joints, and `places` (nx,) their indices in the robot's q. `rows` (n,) are the moving rows
    of the tree; derivatives are by their velocities.
    """

    def __init__(
        self,
        mechanism: ClusterTree,
        cluster: Cluster,
        joints: Sequence[MovingJoint],
        loops: Sequence[LoopFrames],
        closures: Sequence[str],
    ) -> None:
        self.tree, self.cluster, self.loops = mechanism.tree, cluster, tuple(loops)
        self.names = [*(h.name for h in loops), *closures]
        self.rows = moving(cluster)
        own = [j for j in joints if j.v_slice.start in cluster.rows]
        self._joints_by_transform(own)
        self._coordinates(own, mechanism.position)
        self._axes()
        self._ends()
        n = len(self.loops)
        chosen = [6 * k + i for k in range(n) for i in _rows_of(self.loops[k].type)]
        self._chosen = np.array(chosen, dtype=np.intp)
        self._all_chosen = len(chosen) == 6 * n
        self.loop_of_row = np.array(
            [i // 6 for i in chosen] + [n + k for k, c in enumerate(cluster.closings) for _ in range(c.size)]
        )
        self.is_length = np.array([i % 6 < 3 for i in chosen] + [False] * (len(self.loop_of_row) - len(chosen)))
        """Rows that are lengths."""

    # constants

    def _joints_by_transform(self, own: list[MovingJoint]) -> None:
        """Set up joints as nodes, parents first; the last node is the handle on a joint's path."""
        tree = self.tree
        node = {r: k for k, j in enumerate(own) for r in range(j.v_slice.start, j.v_slice.stop)}
        self._node, root = node, len(own)
        first = [j.v_slice.start for j in own]
        self._fixed = np.zeros((root + 1, 4, 4))
        self._fixed[:, 3, 3] = 1.0
        self._fixed[root] = np.eye(4)
        for k, r in enumerate(first):
            self._fixed[k, :3, :3], self._fixed[k, :3, 3] = tree.rotation[r], tree.translation[r]
        parents = np.array([node.get(tree.parent[r], root) for r in first] + [root], dtype=np.intp)
        self._jumps = []  # parents, grandparents, and so on by powers of two
        while (parents != root).any():
            self._jumps.append(parents)
            parents = parents[parents]
        self._kinds = {kind: [k for k, r in enumerate(first) if tree.kind[r] == kind] for kind in range(INNER)}

    def _coordinates(self, own: list[MovingJoint], places: Sequence[int]) -> None:
        """Set up the indices of each joint's coordinates, among those of all joints and of the joints that follow none."""
        following = {f.row for f in self.cluster.followers}
        self._start: list[int] = []
        self.coordinates: list[Coordinates] = []
        taken: list[int] = []
        x, v, start = 0, 0, 0
        for j in own:
            self._start.append(start)
            if j.v_slice.start not in following:
                kind = j.type
                self.coordinates.append(Coordinates(kind, slice(x, x + kind.nq), slice(v, v + kind.nv), j.lower, j.upper))
                taken += range(start, start + kind.nq)
                x, v = x + kind.nq, v + kind.nv
            start += j.type.nq
        self._taken, self._width, self.nx = np.array(taken, dtype=np.intp), start, x
        first = {j.v_slice.start: s for j, s in zip(own, self._start, strict=True)}
        self._first = first
        at = [places[self.tree.q_index[j.v_slice.start] + i] for j in own for i in range(j.type.nq)]
        self.places = np.array([at[k] for k in taken], dtype=np.intp)

    def _axes(self) -> None:
        """Set up the indices of the axis and the origin of each row of the cluster among the numbers of poses.

        Rows include those of followers.
        """
        rows = self.cluster.rows
        axis = np.array([self.tree.axis[r] for r in rows], dtype=np.intp)
        first = 16 * np.array([self._node[r] for r in rows], dtype=np.intp) + 4 * np.arange(3)[:, None]
        self._axis_entries, self._origin_entries = first + axis % 3, first + 3
        self._angular = axis < 3
        self._any_linear = not self._angular.all()
        self._column = {r: k for k, r in enumerate(rows)}
        self._moving_columns = np.array([self._column[r] for r in self.rows], dtype=np.intp)
        self.slides = ~self._angular[self._moving_columns]
        """Rows, of those that move, whose velocities are lengths."""

    def _ends(self) -> None:
        """Set up the frames of loops: nodes, placements, and whether a row moves B alone (1), A alone (-1), or neither (0)."""
        root = len(self._fixed) - 1
        ends = [(h.a, h.b) for h in self.loops]
        self._end_nodes = np.array([[self._node.get(e.row, root) for e in pair] for pair in ends], dtype=np.intp).reshape(-1, 2)
        self._end_places = np.zeros((len(ends), 2, 4, 4))
        self._end_places[..., 3, 3] = 1.0
        self._sign = np.zeros((len(ends), 1, len(self.cluster.rows)))
        for k, pair in enumerate(ends):
            for i, end in enumerate(pair):
                self._end_places[k, i, :3, :3], self._end_places[k, i, :3, 3] = end.R, end.p
                row = end.row
                while row in self._column:
                    self._sign[k, 0, self._column[row]] += 2 * i - 1
                    row = self.tree.parent[row]
        kinds = [h.type for h in self.loops]
        self._angles: list[tuple[LoopType, Any]] = []
        for kind in dict.fromkeys(kinds):
            own = [k for k, mine in enumerate(kinds) if mine == kind]
            self._angles.append((kind, slice(None) if len(own) == len(kinds) else np.array(own)))

    # functions of configurations

    def residual(self, x: Array) -> Array:
        """Return the misclosure of loops (batch, m) [m, rad]."""
        return self._evaluated(x, False, False)[0]

    def __call__(self, x: Array, as_sines: bool = False) -> tuple[Array, Array]:
        """Return the misclosure of loops (batch, m), and its derivatives (batch, m, n) by velocities of the rows.

        `as_sines` selects the measures of the equations of motion, which differ from the others where some rows are not zero.
        """
        return self._evaluated(x, True, as_sines)

    def _evaluated(self, x: Array, slopes: bool, as_sines: bool) -> tuple[Array, Array]:
        S = self._spanning(x)
        T = self._poses(S)
        ends = product(T[:, self._end_nodes], self._end_places)
        a, b = ends[:, :, 0], ends[:, :, 1]
        back = a[..., :3, :3].swapaxes(-1, -2)
        p = b[..., :3, 3]
        r = np.zeros((*p.shape[:2], 6))
        r[..., :3] = times(back, p - a[..., :3, 3])
        Q = self._measure_angles(product(back, b[..., :3, :3]), r, as_sines)
        flat = r.reshape(len(x), 6 * len(self.loops))
        flat = flat if self._all_chosen else flat[:, self._chosen]
        for c in self.cluster.closings:
            own = [np.broadcast_to(y, len(x))[:, None] for y in c.value.run(self._of(c, S))]
            flat = np.concatenate([flat, *own], axis=1)
        return flat, self._columns(self._rates(T, back, p, Q), S) if slopes else flat

    def _spanning(self, x: Array) -> Array:
        """Return the coordinates of all joints, including followers."""
        if not self.cluster.followers:
            return x
        S = np.zeros((len(x), self._width))
        S[:, self._taken] = x
        for f in self.cluster.followers:
            S[:, self._first[f.row]] = f.offset + sum(polyval(S[:, self._first[r]], (0.0, *c)) for r, c in f.terms)
        return S

    def _of(self, c: Closing, S: Array) -> list[Array]:
        return [S[:, self._first[r]] for r in c.rows]

    def _poses(self, S: Array) -> Array:
        """Return the frame of each node in the frame of the handle (batch, nodes, 4, 4)."""
        T = np.repeat(self._fixed[None], len(S), axis=0)
        start = self._start
        if own := self._kinds[REVOLUTE]:
            q = S[:, [start[k] for k in own], None]
            sine, cosine = sincos(q)
            _turn(T, own, self._fixed[own], cosine, sine)
        if own := self._kinds[PRISMATIC]:
            T[..., 3][:, own] += S[:, [start[k] for k in own], None] * self._fixed[own, :, 2]
        for k in self._kinds[PLANAR]:
            q = S[:, start[k] : start[k] + 4]
            T[:, k, :3, 3] += times(self._fixed[k, :3, :2], q[:, :2])
            length = lengths(q[:, 2:])
            _turn(T, [k], self._fixed[[k]], (q[:, 2] / length)[:, None, None], (q[:, 3] / length)[:, None, None])
        for k in self._kinds[SPHERICAL]:
            T[:, k, :3, :3] = product(self._fixed[k, :3, :3], _orientation(S, start[k]))
        for k in self._kinds[FLOATING]:
            T[:, k, :3, 3] += times(self._fixed[k, :3, :3], S[:, start[k] : start[k] + 3])
            T[:, k, :3, :3] = product(self._fixed[k, :3, :3], _orientation(S, start[k] + 3))
        for parents in self._jumps:
            T = product(T[:, parents], T)
        return T

    def _rates(self, T: Array, back: Array, p: Array, Q: Array) -> Array:
        """Return the derivatives (batch, loops, 6, rows) of points of B, seen from A, and of angles.

        Derivatives are by the velocities of all rows.
        """
        flat = T.reshape(len(T), 16 * T.shape[1])
        e, o = flat[:, self._axis_entries], flat[:, self._origin_entries]  # (batch, 3, rows)
        twist = np.empty((len(T), 1, 6, e.shape[-1]))  # angular; linear, for the point at the handle's origin
        twist[:, 0, :3] = e * self._angular
        twist[:, 0, 3:] = o[:, NEXT] * e[:, LAST] - o[:, LAST] * e[:, NEXT]
        if self._any_linear:
            twist[:, 0, 3:] = np.where(self._angular, twist[:, 0, 3:], e)
        seen = np.zeros((*p.shape[:2], 6, 6))
        seen[..., :3, :3] = -product(back, cross_matrix(p))
        seen[..., :3, 3:] = back
        seen[..., 3:, :3] = product(Q, back)
        return product(seen, self._sign * twist)

    def _measure_angles(self, R: Array, r: Array, as_sines: bool) -> Array:
        """Write the measures of angles; return their rates (batch, loops, 3, 3) by angular velocities, seen from A."""
        Q = np.zeros_like(R)
        for kind, own in self._angles:
            measure = ANGLES[kind]
            if as_sines:
                r[:, own, 3:], Q[:, own] = sines(R[:, own], ALIGNMENTS[kind][1])
            elif measure is not None:
                r[:, own, 3:], Q[:, own] = measure(R[:, own])
        return Q

    def _columns(self, J: Array, S: Array) -> Array:
        """Return the rows that count, including user-defined constraints, and the columns of the rows that move.

        The columns include the motion of followers.
        """
        batch, width = len(J), J.shape[-1]
        whole = J.reshape(batch, 6 * len(self.loops), width)
        whole = whole if self._all_chosen else whole[:, self._chosen]
        for c in self.cluster.closings:
            entries = c.jacobian.run(self._of(c, S))
            K = np.zeros((batch, c.size, width))
            for k in range(c.size):
                for i, row in enumerate(c.rows):
                    K[:, k, self._column[row]] += entries[k * len(c.rows) + i]
            whole = np.concatenate([whole, K], axis=1)
        for f in reversed(self.cluster.followers):
            for row, coefficients in f.terms:
                slope = polyval(S[:, self._first[row]], polyder((0.0, *coefficients)))
                whole[:, :, self._column[row]] += slope[:, None] * whole[:, :, self._column[f.row]]
        return whole[:, :, self._moving_columns] if self.cluster.followers else whole

    @cached_property
    def limits(self) -> tuple[Array, Array, Array, Array]:
        """The lower and upper limits of the joints that have limits, and their indices in x and in the moving rows."""
        own = [c for c in self.coordinates if c.type.nq == 1 and (math.isfinite(c.lower) or math.isfinite(c.upper))]
        return (
            np.array([c.lower for c in own]),
            np.array([c.upper for c in own]),
            np.array([c.q.start for c in own], dtype=np.intp),
            np.array([c.v.start for c in own], dtype=np.intp),
        )

    def moved(self, x: Array, step: Array) -> Array:
        """Return configurations (..., nx) after steps (..., n) of the rows."""
        if self.nx == len(self.rows):
            return np.asarray(x + step)
        return np.asarray(configuration.integrate(self.coordinates, x, step))


def _rows_of(kind: LoopType) -> list[int]:
    """Return the rows that count, of the six rows of a loop, for a loop joint of this type."""
    points, axes = ALIGNMENTS[kind]
    return [*points, *range(3, 3 + len(axes))]


def _turn(T: Array, nodes: list[int], fixed: Array, c: Array, s: Array) -> None:
    """Rotate frames about their z axes."""
    x, y = fixed[..., 0], fixed[..., 1]
    T[..., 0][:, nodes] = c * x + s * y
    T[..., 1][:, nodes] = c * y - s * x


def _orientation(S: Array, k: int) -> Array:
    """Return the rotation matrices of quaternions that start at index k."""
    R = quaternion_at(S.T, k).normalized().matrix()
    return np.moveaxis(np.array([[*row] for row in R]), -1, 0)
