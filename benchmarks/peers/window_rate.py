"""Frame rate of the viewer with a moving humanoid, in a headless Chromium that draws in software.

    python benchmarks/peers/window_rate.py [--seconds S] [--faces N]

Talos, with a free-flyer and all its meshes, moves all its joints; its state is sent sixty times per second. A frame counts if
it shows a new configuration. SwiftShader draws the canvas. The rest of the page is drawn by the processor, as in Chromium
without a graphics card, or also by SwiftShader. In the first row of each, the page chooses the canvas' resolution, as for all
users with slow machines; in the second, it has the window's resolution.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time

import numpy as np
from chromium import SIZE, SOFTWARE, SOFTWARE_CANVAS, Counted, Page, chromium
from measure import FILES, ROBOTS, machine, markdown

import featherweight
from featherweight.viewer import Window
from featherweight.viewer.figure import FACES, Layer

RATE = 60.0
DRAWN_BY = {"processor, canvas by SwiftShader": SOFTWARE_CANVAS, "SwiftShader": SOFTWARE}
SETTLE = 4.0  # [s] for the page to load, compile its shaders and move


def pushed(window: Window, seconds: float, begun: float) -> int:
    """Send states for a time [s]; return their number."""
    robot = window.robot
    rest, phases = robot.neutral(), np.arange(robot.nq - 7)
    sent, first = 0, time.perf_counter()
    while (now := time.perf_counter()) < first + seconds:
        q = rest.copy()
        q[7:] = 0.3 * np.sin(2.0 * (now - begun) + phases)
        window.live(q)
        sent += 1
        time.sleep(max(0.0, first + sent / RATE - time.perf_counter()))
    return sent


def measured(window: Window, page: Page, seconds: float, query: str) -> tuple[Counted, float]:
    """Return the frames of the page, and the number of states sent per second."""
    page.open(window.url + query)
    begun = time.perf_counter()
    pushed(window, SETTLE, begun)
    page.count()
    sent = pushed(window, seconds, begun)
    return page.counted(), sent / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--faces", type=int, nargs="*", default=[FACES])
    given = parser.parse_args()
    print(f"{machine()}; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; page {SIZE[0]} x {SIZE[1]}\n")
    robot = featherweight.load(ROBOTS / FILES["talos_reduced"][0], "floating")
    rows = []
    for faces, (name, options) in itertools.product(given.faces, DRAWN_BY.items()):
        with Window(robot, port=0, faces=faces) as window, chromium(SIZE, *options) as page:
            triangles = sum(len(s.faces) for many in window.figure.layer(Layer.VISUAL).values() for s in many)
            for query in ("", "/?fixedDpr=1"):
                c, sent = measured(window, page, given.seconds, query)
                spent = f"{1e3 * c.processor / max(c.frames, 1):.0f} ms"
                rows.append([f"{triangles}", name, f"{c.width} x {c.height}", f"{sent:.0f}", f"{c.rate:.1f}", spent])
    print(markdown(["triangles", "page drawn by", "canvas", "states sent / s", "new frames / s", "processor time"], rows))


if __name__ == "__main__":
    main()
