"""Check that the first step with contacts on a new machine, with an installed wheel, compiles no kernel that all robots share.

    python release/first_simulation.py

Prints the wall-clock and processor seconds from before `import featherweight` until after the first step.
"""

from __future__ import annotations

import time

CLOCKS = time.perf_counter, time.process_time
BEGUN = [clock() for clock in CLOCKS]

import featherweight as fw  # noqa: E402  # its import counts

MOST = 3.0  # processor seconds: three times the measurement on a slow machine


def ball_on_the_ground(cone: str | None = None) -> None:
    """Step a ball that touches the ground rigidly or, with a `cone`, by the law of MJCF files."""
    body = fw.Body("ball", fw.Inertia(1.0, (0, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01)))
    ball = fw.Description("ball", "", (body,), (), cone=cone)
    robot = fw.build(ball, base="floating")
    q = robot.neutral()
    q[2] = 0.0999
    sim = fw.Simulation(robot, dt=1e-3, q=q, spheres=[fw.ContactSphere("ball", 0.1)], ground=fw.Plane())
    sim.step()
    assert len(sim.contacts()[0]) == 1


def main() -> None:
    ball_on_the_ground()
    wall, processor = (clock() - begun for clock, begun in zip(CLOCKS, BEGUN, strict=True))
    print(f"{wall:.2f} s wall-clock time, {processor:.2f} s processor time")
    assert processor < MOST, f"the first step took {processor:.1f} s"


if __name__ == "__main__":
    from featherweight.engine.loops.kernel_code import compilation_observers

    compiled: list[str] = []
    compilation_observers.append(lambda kernel, facts, ir: compiled.append(kernel.what))
    main()
    ball_on_the_ground("pyramidal")
    assert not compiled, f"the wheel lacks {', '.join(compiled)}"
