"""Rasterizer of triangles and planes on the processor: a depth buffer, one sun with its shadow, and a bright sky.

Cameras look along the z axis of their frame, with x to the right and y down. Depth buffers hold 1/z (a perspective camera) or
-z (the sun, which is far away). Both are linear across the screen, and larger for nearer points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Array
from ..engine.loops.kernels import compiled

Triple = tuple[float, float, float]

AMBIENT, SUN, SHINE, GLOSS = 0.42, 0.75, 0.10, 24.0  # light of the sky, of the sun, its reflections, and their sharpness


class PixelView(NamedTuple):
    """A camera."""

    R: Array  # (3, 3): its axes in the world frame, in rows
    p: Array  # (3,): its position [m]
    focal: float  # focal length in pixels of a perspective camera; pixels per metre of the sun
    center: Array  # (2,): the pixel on the optical axis
    near: float  # [m] near plane of a perspective camera; 0 for the sun


class Surfaces(NamedTuple):
    """Triangles in the world frame, for several robots with the same triangles."""

    points: Array  # (robots, n, 3) [m]
    normals: Array  # (robots, n, 3)
    faces: Array  # (k, 3)
    colors: Array  # (k, 4): linear light and opacity


class Planes(NamedTuple):
    """Infinite planes with a pattern of squares."""

    frames: Array  # (m, 4, 3): a point, and three axes; the last is the normal
    cell: float  # side of the squares [m]
    colors: Array  # (2, 3): linear light


class LitWorld(NamedTuple):
    """Visible surfaces and planes, and their light."""

    surfaces: Surfaces
    planes: Planes
    sun: PixelView
    shadow: Array  # (n, n): the sun's depth buffer
    sky: Array  # (2, 3): linear light at the horizon, and how it changes up to the zenith
    reach: float  # [m] greatest distance at which ground is visible


@compiled
def place(vertices: Array, normals: Array, bodies: Array, T: Array, points: Array, turned: Array) -> None:
    """Compute points and normals (n, 3) of bodies at placements T (b, 4, 4)."""
    for i in range(len(vertices)):
        A = T[bodies[i]]
        x, y, z = vertices[i, 0], vertices[i, 1], vertices[i, 2]
        u, v, w = normals[i, 0], normals[i, 1], normals[i, 2]
        for r in range(3):
            points[i, r] = A[r, 0] * x + A[r, 1] * y + A[r, 2] * z + A[r, 3]
            turned[i, r] = A[r, 0] * u + A[r, 1] * v + A[r, 2] * w


@compiled
def _fill(a: Triple, b: Triple, c: Triple, name: int, opacity: float, depth: Array, owner: Array) -> None:
    """Fill the pixels whose centre is in a triangle (corners x, y, depth), if the triangle is nearest there.

    Transparent surfaces leave out some pixels, by a fixed pattern.
    """
    (ax, ay, aw), (bx, by, bw), (cx, cy, cw) = a, b, c
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    if not abs(area) > 1e-9:
        return
    height, width = depth.shape
    left, right = max(0, int(np.ceil(min(ax, bx, cx) - 0.5))), min(width - 1, int(np.floor(max(ax, bx, cx) - 0.5)))
    top, bottom = max(0, int(np.ceil(min(ay, by, cy) - 0.5))), min(height - 1, int(np.floor(max(ay, by, cy) - 0.5)))
    for i in range(top, bottom + 1):
        y = i + 0.5
        for j in range(left, right + 1):
            x = j + 0.5
            u = ((cx - bx) * (y - by) - (cy - by) * (x - bx)) / area
            v = ((ax - cx) * (y - cy) - (ay - cy) * (x - cx)) / area
            t = 1.0 - u - v
            if u < 0.0 or v < 0.0 or t < 0.0:
                continue
            w = u * aw + v * bw + t * cw
            if w > depth[i, j] and (opacity >= 1.0 or ((5 * i + 3 * j + 7 * (i // 2) * (j // 2)) % 8 + 0.5) / 8.0 < opacity):
                depth[i, j] = w
                owner[i, j] = name


@compiled
def draw(view: PixelView, surfaces: Surfaces, seen: Array, depth: Array, owner: Array) -> None:
    """Fill a depth buffer, and store for each pixel the triangle in front: triangle f of robot k is k len(faces) + f.

    `seen` (n, 3) is workspace.
    """
    points, faces, colors = surfaces.points, surfaces.faces, surfaces.colors
    R, p, f, near = view.R, view.p, view.focal, view.near
    mx, my = view.center[0], view.center[1]
    for k in range(len(points)):
        for i in range(len(seen)):
            x, y, z = points[k, i, 0] - p[0], points[k, i, 1] - p[1], points[k, i, 2] - p[2]
            for r in range(3):
                seen[i, r] = R[r, 0] * x + R[r, 1] * y + R[r, 2] * z
        for n in range(len(faces)):
            a, b, c = seen[faces[n, 0]], seen[faces[n, 1]], seen[faces[n, 2]]
            name, opacity = k * len(faces) + n, colors[n, 3]
            if near == 0.0:
                _fill(_flat(a, f, mx, my), _flat(b, f, mx, my), _flat(c, f, mx, my), name, opacity, depth, owner)
                continue
            behind = (a[2] < near) + (b[2] < near) + (c[2] < near)
            if behind == 3:
                continue
            while (behind == 1 and not a[2] < near) or (behind == 2 and a[2] < near):  # the odd one out first
                a, b, c = b, c, a
            first, second, third = _project(a, f, mx, my), _project(b, f, mx, my), _project(c, f, mx, my)
            if behind > 0:
                ab, ac = _cut(a, b, f, mx, my, near), _cut(a, c, f, mx, my, near)
                if behind == 2:
                    second, third = ab, ac
                else:
                    _fill(ab, third, ac, name, opacity, depth, owner)
                    first = ab
            _fill(first, second, third, name, opacity, depth, owner)


@compiled
def _flat(a: Array, f: float, mx: float, my: float) -> Triple:
    return f * a[0] + mx, f * a[1] + my, -a[2]


@compiled
def _project(a: Array, f: float, mx: float, my: float) -> Triple:
    w = 1.0 / a[2]
    return f * a[0] * w + mx, f * a[1] * w + my, w


@compiled
def _cut(a: Array, b: Array, f: float, mx: float, my: float, near: float) -> Triple:
    """Return the point on the screen where a line crosses the near plane."""
    t = (near - a[2]) / (b[2] - a[2])
    w = 1.0 / near
    return f * (a[0] + t * (b[0] - a[0])) * w + mx, f * (a[1] + t * (b[1] - a[1])) * w + my, w


@compiled
def _lit(point: Triple, sun: PixelView, shadow: Array, bias: float) -> float:
    """Return the fraction of sunlight that reaches a point, from the four nearest pixels of the sun's depth buffer."""
    R, p = sun.R, sun.p
    x, y, z = point[0] - p[0], point[1] - p[1], point[2] - p[2]
    u = sun.focal * (R[0, 0] * x + R[0, 1] * y + R[0, 2] * z) + sun.center[0] - 0.5
    v = sun.focal * (R[1, 0] * x + R[1, 1] * y + R[1, 2] * z) + sun.center[1] - 0.5
    w = bias - (R[2, 0] * x + R[2, 1] * y + R[2, 2] * z)
    height, width = shadow.shape
    if not (0.0 <= u < width - 1 and 0.0 <= v < height - 1):
        return 1.0
    j, i = int(u), int(v)
    s, t = u - j, v - i
    upper = (1.0 - s) * (shadow[i, j] <= w) + s * (shadow[i, j + 1] <= w)
    lower = (1.0 - s) * (shadow[i + 1, j] <= w) + s * (shadow[i + 1, j + 1] <= w)
    lit: float = (1.0 - t) * upper + t * lower
    return lit


@compiled
def shade(view: PixelView, world: LitWorld, depth: Array, owner: Array, bright: Array, picture: Array) -> None:
    """Compute the picture (height, width, 3) from depth buffers that have several samples for each pixel.

    `bright` is the table of screen values for light from 0 to 1.
    """
    height, width = picture.shape[:2]
    many = depth.shape[0] // height
    for i in range(height):
        for j in range(width):
            top, left = i * many, j * many
            mean, alike = 0.0, True
            for k in range(many * many):
                mean += depth[top + k // many, left + k % many]
                alike &= owner[top + k // many, left + k % many] == owner[top, left]
            r, g, b = 0.0, 0.0, 0.0
            count = 1 if alike else many * many
            for k in range(count):
                row, column = top + k // many, left + k % many
                if alike:
                    at, wide = (left + 0.5 * many, top + 0.5 * many, mean / (many * many)), many
                else:
                    at, wide = (column + 0.5, row + 0.5, float(depth[row, column])), 1
                red, green, blue = _sample(at, owner[row, column], wide, view, world)
                r, g, b = r + red, g + green, b + blue
            for k, light in enumerate((r, g, b)):
                picture[i, j, k] = bright[min(len(bright) - 1, int(light * (len(bright) - 1) / count))]


@compiled
def _sample(at: Triple, name: int, wide: int, view: PixelView, world: LitWorld) -> Triple:
    """Return the light at a sample (x, y, 1/z) of the depth buffer, `wide` pixels wide: of a triangle or of the background."""
    (column, row, w), planes, sun, sky = at, world.planes, world.sun, world.sky
    R, p = view.R, view.p
    u, v = (column - view.center[0]) / view.focal, (row - view.center[1]) / view.focal
    dx, dy, dz = R[0, 0] * u + R[1, 0] * v + R[2, 0], R[0, 1] * u + R[1, 1] * v + R[2, 1], R[0, 2] * u + R[1, 2] * v + R[2, 2]
    front = -1
    for k in range(len(planes.frames)):
        o, n = planes.frames[k, 0], planes.frames[k, 3]
        away = (o[0] - p[0]) * n[0] + (o[1] - p[1]) * n[1] + (o[2] - p[2]) * n[2]
        inverse = (dx * n[0] + dy * n[1] + dz * n[2]) / away
        if inverse > w:
            w, front = inverse, k
    length = np.sqrt(dx * dx + dy * dy + dz * dz)
    up = max(0.0, dz / length)
    hr, hg, hb = sky[0, 0] + up * sky[1, 0], sky[0, 1] + up * sky[1, 1], sky[0, 2] + up * sky[1, 2]
    if w <= 0.0:
        return hr, hg, hb
    x, y, z = p[0] + dx / w, p[1] + dy / w, p[2] + dz / w
    if front >= 0:
        F = planes.frames[front]
        nx, ny, nz = F[3, 0], F[3, 1], F[3, 2]
        share = _squares((x, y, z), (dx / length, dy / length, dz / length), wide / (w * view.focal), F, planes.cell)
        cr, cg, cb = _between(planes.colors[0], planes.colors[1], share)
    else:
        nx, ny, nz = _normal((x, y, z), name, world.surfaces)
        color = world.surfaces.colors[name % len(world.surfaces.faces)]
        cr, cg, cb = color[0], color[1], color[2]
    facing = nx * dx + ny * dy + nz * dz
    if facing > 0.0:
        nx, ny, nz = -nx, -ny, -nz
    lx, ly, lz = -sun.R[2, 0], -sun.R[2, 1], -sun.R[2, 2]
    toward = nx * lx + ny * ly + nz * lz
    light, shine = AMBIENT * (0.72 + 0.28 * nz), 0.0
    if toward > 0.0:
        step = 2.0 / sun.focal
        lit = _lit((x + step * nx, y + step * ny, z + step * nz), sun, world.shadow, step)
        light += SUN * toward * lit
        if front < 0:
            mx, my, mz = lx - dx / length, ly - dy / length, lz - dz / length
            along = (nx * mx + ny * my + nz * mz) / np.sqrt(mx * mx + my * my + mz * mz)
            shine = SHINE * lit * max(0.0, along) ** GLOSS
    r, g, b = light * cr + shine, light * cg + shine, light * cb + shine
    if front < 0:
        return r, g, b
    far = length / (w * world.reach)
    clear = 1.0 / (1.0 + far * far * far * far)
    return hr + clear * (r - hr), hg + clear * (g - hg), hb + clear * (b - hb)


@compiled
def _between(a: Array, b: Array, t: float) -> Triple:
    return a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])


@compiled
def _squares(point: Triple, direction: Triple, width: float, F: Array, cell: float) -> float:
    """Return the fraction of a pixel's view of a plane that has the second colour; the pixel is `width` [m] wide.

    It is the mean over a rectangle, which is longer for a plane seen at an angle.
    """
    x, y, z = point[0] - F[0, 0], point[1] - F[0, 1], point[2] - F[0, 2]
    dx, dy, dz = direction
    steep = abs(dx * F[3, 0] + dy * F[3, 1] + dz * F[3, 2]) + 1e-6
    share = 1.0
    for k in (1, 2):
        at = (x * F[k, 0] + y * F[k, 1] + z * F[k, 2]) / cell
        half = 0.5 * width / cell * np.sqrt(1.0 + ((dx * F[k, 0] + dy * F[k, 1] + dz * F[k, 2]) / steep) ** 2)
        upper, lower = 0.5 * (at + half), 0.5 * (at - half)
        share *= (abs(upper - np.floor(upper) - 0.5) - abs(lower - np.floor(lower) - 0.5)) / half
    return 0.5 + 0.5 * share


@compiled
def _normal(point: Triple, name: int, surfaces: Surfaces) -> Triple:
    """Return the unit normal at a point of a triangle, interpolated between its corners."""
    k, f = name // len(surfaces.faces), surfaces.faces[name % len(surfaces.faces)]
    points, normals = surfaces.points[k], surfaces.normals[k]
    ax, ay, az = points[f[0], 0], points[f[0], 1], points[f[0], 2]
    bx, by, bz = points[f[1], 0] - ax, points[f[1], 1] - ay, points[f[1], 2] - az
    cx, cy, cz = points[f[2], 0] - ax, points[f[2], 1] - ay, points[f[2], 2] - az
    x, y, z = point[0] - ax, point[1] - ay, point[2] - az
    bb, bc, cc = bx * bx + by * by + bz * bz, bx * cx + by * cy + bz * cz, cx * cx + cy * cy + cz * cz
    xb, xc = x * bx + y * by + z * bz, x * cx + y * cy + z * cz
    scale = 1.0 / max(bb * cc - bc * bc, 1e-30)
    s, t = min(1.0, max(0.0, (cc * xb - bc * xc) * scale)), min(1.0, max(0.0, (bb * xc - bc * xb) * scale))
    nx, ny, nz = 0.0, 0.0, 0.0
    for n, part in ((f[0], 1.0 - s - t), (f[1], s), (f[2], t)):
        nx, ny, nz = nx + part * normals[n, 0], ny + part * normals[n, 1], nz + part * normals[n, 2]
    length = np.sqrt(nx * nx + ny * ny + nz * nz) + 1e-12
    return nx / length, ny / length, nz / length
