"""The workspace of TALOS's left hand: a hundred million states of torso and arm, on a laptop or a cluster.

    python examples/reachable_workspace.py [--states 1e8] [--workers 2] [--scheduler ADDRESS] [--output output]

    pip install 'featherweight[demo,dask]' zarr

Joint angles are uniformly random within their limits, the other joints are locked, and collisions are ignored. For each cell of
4 cm, the example counts the states that place the hand there, and stores the largest manipulability (Yoshikawa 1985: the volume
of the velocities of the hand position). The maps are in workspace.zarr, and the picture is reachable_workspace.png.

The computation is fast for three reasons: one compiled function evaluates all quantities of a state, the precision is single,
and blocks of states stay in the processor's cache from the random numbers to the maps, in reused memory. A Dask task is two
thousand blocks and returns only maps.
"""

import argparse
import math
import time
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, progress, wait
from pictures import picture_of_cells

import featherweight as fw

TALOS = "talos_reduced"
HAND = "gripper_left_base_link"
MOVING = ("torso_", "arm_left_")
LOW, CELL, CELLS = np.array([-1.2, -1.0, -1.2], np.float32), np.float32(0.04), (60, 60, 65)  # corner, size [m], number
BLOCK = 1024  # states per block, whose data stay in the processor's cache
PORTION = 2048 * BLOCK  # states per task, about a second


def arm():
    """Return TALOS with all other joints locked at zero."""
    description = fw.read(fw.example(TALOS))
    joints = [j.name for j in fw.build(description).joints]
    return fw.build(description.locked({name: 0.0 for name in joints if not name.startswith(MOVING)}))


def limits(robot):
    """Return the lower and upper limits (nq,) of all joints."""
    return np.array([(j.lower, j.upper) for j in robot.joints], np.float32).T


def cells_of(places):
    """Return the cell indices (n,) of positions (n, 3) [m]."""
    return np.ravel_multi_index(tuple(np.floor((places - LOW) / CELL).astype(int).T), CELLS)


def manipulability(J):
    """Return √det J Jᵀ (n,) of Jacobians (n, 3, nv)."""
    by_element = np.ascontiguousarray(J.transpose(1, 2, 0))  # the innermost loop runs over states
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = np.einsum("ijn,kjn->ikn", by_element, by_element)
    determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return np.sqrt(np.maximum(determinant, 0.0))


def explored(portion, hand, lower, upper, blocks):
    """Return counts and largest manipulabilities (1, 2, cells) of the states of the portion with this index (1,)."""
    random = np.random.default_rng([0, *portion])  # the same states on every worker and in every run
    counts, best = np.zeros((2, np.prod(CELLS)))
    q = np.empty((BLOCK, len(lower)), np.float32)
    place, jacobian = found = hand(q, threads=1)  # reused by all blocks: new memory would cost more than the writes
    for _ in range(blocks):
        random.random(out=q, dtype=np.float32)
        q *= upper - lower
        q += lower
        hand(q, out=found, threads=1)
        cells = cells_of(place[:, :3, 3])
        np.add.at(counts, cells, 1.0)
        np.maximum.at(best, cells, manipulability(jacobian[:, :3]))
    return np.stack([counts, best])[None]


def maps(robot, portions, blocks=PORTION // BLOCK):
    """Return counts and largest manipulabilities, each of shape CELLS, as lazy Dask arrays."""
    hand = robot.together(place=robot.frame_placement(HAND), jacobian=robot.frame_jacobian(HAND))
    shape = {"new_axis": (1, 2), "chunks": (1, 2, int(np.prod(CELLS)))}
    found = da.map_blocks(explored, da.arange(portions, chunks=1), hand, *limits(robot), blocks, dtype=float, **shape)
    return found[:, 0].sum(axis=0, split_every=8).reshape(CELLS), found[:, 1].max(axis=0, split_every=8).reshape(CELLS)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=float, default=1e8)
    parser.add_argument("--workers", type=int, default=2, help="processes on this machine")
    parser.add_argument("--threads", type=int, default=1, help="threads per process")
    parser.add_argument("--scheduler", help="address of a running cluster, tcp://...; --workers and --threads are then ignored")
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder for the maps and the picture")
    return parser.parse_args()


def main():
    given = options()
    given.output.mkdir(parents=True, exist_ok=True)
    cluster = given.scheduler or LocalCluster(n_workers=given.workers, threads_per_worker=given.threads, dashboard_address=None)
    with Client(cluster) as client:
        robot, portions = arm(), math.ceil(given.states / PORTION)
        states = portions * PORTION
        begun = time.perf_counter()
        found = client.persist(maps(robot, portions))
        progress(found)
        wait(found)
        passed = time.perf_counter() - begun
        print(f"\n{states} states in {passed:.1f} s: {states / passed / 1e6:.2f} million per second")
        da.to_zarr(found[0], str(given.output / "workspace.zarr"), component="count", overwrite=True)
        da.to_zarr(found[1], str(given.output / "workspace.zarr"), component="manipulability", overwrite=True)
        counts, volumes = client.gather(client.compute(found))
    print(f"{np.count_nonzero(counts)} of {counts.size} cells are reachable, {np.count_nonzero(counts) * CELL**3:.2f} m³")
    picture_of_cells(given.output / "reachable_workspace.png", counts, volumes, LOW, CELL, skeleton(robot))


def skeleton(robot):
    """Return lines (points, 3) of the arm with all joints in the middle of their ranges."""
    names = ["torso_2_link", *(f"arm_left_{k}_link" for k in range(1, 8)), HAND]
    return robot.frame_placement(names)(np.mean(limits(robot), axis=0))[..., :3, 3]


if __name__ == "__main__":
    main()
