"""Many robots of one kind, each on its own floor."""

from __future__ import annotations

import numpy as np

from ..array_types import Array
from ..model.description import Description
from ..model.model import MovingJoint
from ..model.types import JointType
from ..robot.build import build
from ..robot.robot import Robot
from ..simulation import ContactOptions, Simulation
from ..simulation.starts import listed, overlaps_now
from .contact_forces import Forces
from .snapshot import HOME, Links, Snapshot, home_of

DEEP = 0.1  # [m] least overlap at the start of episodes that raises an error
BURIED = 0.3  # [m] of overlap from which on a robot has failed: noise puts feet of Gymnasium's HalfCheetah 0.05 into the floor
LIFTS = 10  # iterations on inclined floors; one suffices on level floors
EVERY = slice(None)


def root_without_place(description: Description, robot: Robot) -> MovingJoint | None:
    """Return the free root joint of a description that gives no home position for it; otherwise None."""
    placed = {name for c in description.configurations if c.name == HOME for name, _ in c.coordinates}
    free = [j for j in robot.joints if j.type is JointType.FLOATING and j.parent is None]
    return free[0] if len(free) == 1 and free[0].name not in placed else None


class ParallelRobots:
    """A simulation of robots that restart on request, and stop at a failed step."""

    def __init__(
        self, description: Description, robots: int, integrator: str | None, contact: str, threads: int | None
    ) -> None:
        robot = build(description)
        self.links, self.threads = Links(description, robot), threads
        home = home_of(robot)
        self.simulation = Simulation(
            robot, None, integrator, q=np.tile(home, (robots, 1)), on_failure="stop", threads=threads,
            contact=ContactOptions(max_penetration=BURIED, overlaps="refuse", law=contact),
        )  # fmt: skip
        root = root_without_place(description, robot)
        if root is not None:
            self._lift(home, root)
        self._require_clear(description)
        self.control = np.zeros((robots, len(robot.controls)))  # of the next steps
        self.touching_links = self._numbers_of_touching_links()

    def _lift(self, home: Array, root: MovingJoint) -> None:
        """Move the root of the robots up, from `home`, until they overlap nothing."""
        for _ in range(LIFTS):
            deepest = next((x.depth for x in overlaps_now(self.simulation) if None in x.links), 0.0)
            if deepest == 0.0:
                return
            home[root.q_slice.start + 2] += deepest
            self.links.home = self.links.order.qpos(home)
            self.simulation.reset(np.tile(home, (len(self.simulation.q), 1)))

    def _require_clear(self, description: Description) -> None:
        """Raise ValueError if robots begin with deep overlaps."""
        if deep := [x for x in overlaps_now(self.simulation) if x.depth > DEEP]:
            raise ValueError(
                f"{description.source}: episodes would begin with shapes in one another: {listed(deep)}. Begin elsewhere: "
                'featherweight.gym.register(..., q={"root_joint": [x, y, z, qx, qy, qz, qw], ...}), or correct the '
                f"configuration {HOME!r} of the file"
            )

    def begin(self, which: Array, qpos: Array, qvel: Array) -> None:
        """Place robots (k,) at qpos (k, nq), qvel (k, nv), without contacts."""
        self.simulation.reset(*self.links.order.back(qpos, qvel), which=which)
        self.control[which] = 0.0

    def advance(self, steps: int) -> None:
        """Take steps under `control`. Robots whose step fails stop."""
        self.simulation.step(None, self.control, steps=steps)

    def snapshot(self, which: Array | slice = EVERY, forces: bool = False) -> Snapshot:
        """Return the current state of all robots, or some, with or without the forces of the last step."""
        q, v = self.simulation.q, self.simulation.v
        if which is not EVERY:
            q, v = q[which], v[which]
        felt, control = (self._forces(which), self.control[which].copy()) if forces else (None, None)
        now = Snapshot(self.links, q, v, felt, control, (self.simulation, which))
        if forces:
            _ = now.cfrc_ext  # found before a later step writes to the arrays of contacts
        return now

    def _forces(self, which: Array | slice) -> Forces:
        """Return the contact forces of some robots."""
        contacts = self.simulation.contact_arrays
        if which is not EVERY:
            contacts = contacts.of(which)
        return Forces(contacts, self.touching_links, self.simulation.dt)

    def _numbers_of_touching_links(self) -> Array:
        """Return the links of `Simulation.touching_links` (n, 2) as indices among all links, -1 for the world."""
        number = {name: k for k, name in enumerate(self.links.names)} | {None: -1}
        return np.array([[number[a], number[b]] for a, b in self.simulation.touching_links], int).reshape(-1, 2)
