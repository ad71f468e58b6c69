"""Windows that follow a simulation."""

from __future__ import annotations

import numpy as np

from ..checks import checked
from ..simulation import Simulation
from .drawn_ground import heights_of, level_of
from .server import LOOPBACK
from .window import Window


@checked
def view(simulation: Simulation, host: str = LOOPBACK, port: int | None = None) -> Window:
    """Open a window that shows the robot of a simulation (the first of many) and its ground, and follows `Simulation.run`.

    `host` and `port` are as for `Window`.
    """
    window = Window(
        simulation.robot, host=host, port=port, q=np.atleast_2d(simulation.q)[0], ground=level_of(simulation.ground)
    )
    heights = heights_of(simulation.ground)
    if heights is not None:
        window.add_heights(*heights)
    simulation.watch(window)
    return window
