"""Many forces at once, one for each column of the inverse inertia matrix, for Drumwright's algorithm.

Forces are stored in blocks of LANES, so that the compiler vectorizes the loops over a block: Y[block][component][lane]. Loops
may write beyond the requested columns, but only to columns that are computed later.
"""

from __future__ import annotations

from ..spatial import Force, Mobility, Motion, Vec3

LANES = 8
TILE = 64


def columns(n: int):
    """Return empty forces for n columns."""
    return [[[0.0] * LANES for _ in range(6)] for _ in range(n // LANES + 1)]


def column_force(Y, k: int) -> Force:
    """Return the force of column k."""
    a, b, c, f, g, h = Y[k // LANES]
    l = k % LANES
    return Force(Vec3(a[l], b[l], c[l]), Vec3(f[l], g[l], h[l]))


def set_force(Y, k: int, W: Force) -> None:
    """Start column k with the force W."""
    y = Y[k // LANES]
    l = k % LANES
    for c in range(6):
        y[c][l] = W.component(c)


def sweep_columns(Y, row, Q: Motion, s: Motion, W: Force, r: Vec3, begin: int, stop: int) -> None:
    """Write Q^T Y for columns begin to stop - 1 to `row`, and propagate their forces past the joint: Y - (s^T Y) W."""
    for b in range(begin // LANES, stop // LANES):
        _entries(Y[b], row, b * LANES, LANES, Q)
        _pass(Y[b], LANES, s, W, r)
    b = stop // LANES
    if b * LANES < stop and begin < stop:
        _entries(Y[b], row, b * LANES, stop - b * LANES, Q)
        _pass(Y[b], stop - b * LANES, s, W, r)


def propagate_columns(Y, s: Motion, W: Force, r: Vec3, begin: int, stop: int) -> None:
    """Propagate the forces of columns begin to stop - 1 past the joint."""
    for k in range(begin, stop):
        Yk = column_force(Y, k)
        set_force(Y, k, (Yk - Yk.power(s) * W).translate(r))


def transform_columns(Y, P, k: int, begin: int, stop: int) -> None:
    """Replace the forces f of columns begin to stop - 1 by P f, for the matrix with columns P[k] to P[k + 5]."""
    for b in range(begin // LANES, (stop + LANES - 1) // LANES):
        _turn(Y[b], P, k, max(begin - b * LANES, 0), min(stop - b * LANES, LANES))


def write_mobility_products(Y, inverse, O: Mobility, i0: int, i1: int, begin: int, stop: int) -> None:
    """Write Y_i^T O Y_k for rows i from i0 to i1 - 1 and columns k from begin to stop - 1."""
    for i in range(i0, i1):
        z = O.motion(column_force(Y, i))
        row = inverse[i]
        low = (begin + LANES - 1) // LANES
        high = stop // LANES
        for k in range(begin, min(low * LANES, stop)):
            row[k] = column_force(Y, k).power(z)
        for b in range(low, high):
            _entries(Y[b], row, b * LANES, LANES, z)
        for k in range(max(high, low) * LANES, stop):
            row[k] = column_force(Y, k).power(z)


def clear_block(inverse, i0: int, i1: int, begin: int, stop: int) -> None:
    """Write zeros to rows i0 to i1 - 1 and columns begin to stop - 1: trees that meet only at the ground."""
    for i in range(i0, i1):
        for k in range(begin, stop):
            inverse[i][k] = 0.0


def _entries(y, row, at: int, count: int, Q: Motion) -> None:
    y0, y1, y2, y3, y4, y5 = y[0], y[1], y[2], y[3], y[4], y[5]
    for l in range(count):
        row[at + l] = (Q.ang.x * y0[l] + Q.ang.y * y1[l] + Q.ang.z * y2[l]) + (
            Q.lin.x * y3[l] + Q.lin.y * y4[l] + Q.lin.z * y5[l]
        )


def _pass(y, count: int, s: Motion, W: Force, r: Vec3) -> None:
    y0, y1, y2, y3, y4, y5 = y[0], y[1], y[2], y[3], y[4], y[5]
    for l in range(count):
        u = (s.ang.x * y0[l] + s.ang.y * y1[l] + s.ang.z * y2[l]) + (s.lin.x * y3[l] + s.lin.y * y4[l] + s.lin.z * y5[l])
        fx = y3[l] - u * W.lin.x
        fy = y4[l] - u * W.lin.y
        fz = y5[l] - u * W.lin.z
        y0[l] = (y0[l] - u * W.ang.x) + (r.y * fz - r.z * fy)
        y1[l] = (y1[l] - u * W.ang.y) + (r.z * fx - r.x * fz)
        y2[l] = (y2[l] - u * W.ang.z) + (r.x * fy - r.y * fx)
        y3[l] = fx
        y4[l] = fy
        y5[l] = fz


def _turn(y, P, k: int, begin: int, stop: int) -> None:
    y0, y1, y2, y3, y4, y5 = y[0], y[1], y[2], y[3], y[4], y[5]
    a, b, c, d, e, f = P[k], P[k + 1], P[k + 2], P[k + 3], P[k + 4], P[k + 5]
    for l in range(begin, stop):
        g = (y0[l] * a + y1[l] * b + y2[l] * c) + (y3[l] * d + y4[l] * e + y5[l] * f)
        y0[l], y1[l], y2[l] = g.ang.x, g.ang.y, g.ang.z
        y3[l], y4[l], y5[l] = g.lin.x, g.lin.y, g.lin.z


def mirror_upper(inverse, first: int, stop: int) -> None:
    """Copy columns first to stop - 1 above the diagonal to the transposed entries, tile by tile."""
    for k0 in range(first, stop, TILE):
        k1 = min(k0 + TILE, stop)
        for i0 in range(0, k1, TILE):
            for k in range(k0, k1):
                row = inverse[k]
                for i in range(i0, min(i0 + TILE, k)):
                    row[i] = inverse[i][k]
