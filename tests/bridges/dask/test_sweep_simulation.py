"""Sweeps give what one rollout gives, also where a worker dies in the middle."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherweight as fw

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

ROBOTS, STEPS = 24, 12


def make() -> fw.Simulation:
    """A ball on a plane, pushed."""
    inertia = fw.Inertia(1.0, (0.0, 0.0, 0.0), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
    slide = fw.Joint("slide", fw.JointType.PRISMATIC, None, "carriage", axis=(1.0, 0.0, 0.0))
    lift = fw.Joint("lift", fw.JointType.PRISMATIC, "carriage", "ball", axis=(0.0, 0.0, 1.0))
    robot = fw.build(fw.describe([fw.Body("carriage", inertia), fw.Body("ball", inertia)], [slide, lift], name="ball"))
    return fw.Simulation(robot, 5e-3, spheres=[fw.ContactSphere("ball", 0.1)], ground=fw.Plane(), threads=1)


def starts() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    q = np.stack([rng.normal(size=ROBOTS), rng.uniform(0.1, 0.12, ROBOTS)], axis=-1)
    v = rng.normal(size=(ROBOTS, 2))
    return q, v, rng.normal(size=(ROBOTS, STEPS, 2)), rng.uniform(0.0, 2.0, ROBOTS)


def chunked(*arrays: Any, robots: int = 5) -> list[Any]:
    return [da.from_array(x, chunks=(robots, *(-1,) * (x.ndim - 1))) for x in arrays]


def test_a_sweep_is_one_rollout() -> None:
    q, v, tau, friction = starts()
    one = make()
    one.reset(q, v)
    one.vary(friction=friction)
    expected = one.rollout(q, v, tau=tau, every=4)
    here = fw.sweep(make, q, v, tau=tau, every=4, vary={"friction": friction})
    a, c, d = chunked(q, tau, friction)
    there = fw.sweep(make, a, v, tau=c, every=4, vary={"friction": d})
    assert there.q.chunks == ((5, 5, 5, 5, 4), (4,), (2,)) and there.failed.dtype == bool
    with dask.config.set(scheduler="synchronous"):
        computed = dask.compute(*there)
    for x, y, z in zip((*expected, one.failed), here, computed, strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(x, z)
    assert np.ptp(expected[0][:, -1, 0] - make().rollout(q, v, tau=tau)[0][:, -1, 0]) > 1e-4  # friction has its effect
    pushed = fw.sweep(make, a, tau=tau[:1]).q
    with dask.config.set(scheduler="threads"):
        np.testing.assert_array_equal(pushed.compute(), make().rollout(q, tau=tau[:1])[0])


def test_what_is_wrong_with_a_sweep_is_told_at_once() -> None:
    q, v, tau, friction = starts()
    lazy = chunked(q)[0]
    wrong: Callable[[], Any]
    for wrong, message in (
        (lambda: fw.sweep(make, lazy), "steps="),
        (lambda: fw.sweep(make, lazy, v[:3], 5), "v must have a row for each of 24 robots"),
        (lambda: fw.sweep(make, lazy, steps=5, tau=tau), "tau is for 12 steps; got steps=5"),
        (lambda: fw.sweep(make, lazy, steps=5, vary={"friction": friction[:1]}), "friction must have a row"),
        (lambda: fw.sweep(make, lazy[0], steps=5), r"q must have shape \(robots, nq\)"),
        (lambda: fw.sweep(make, lazy[:, :1], steps=5), r"q must have shape \(robots, 2\)"),
        (lambda: fw.sweep(make, lazy[lazy[:, 0] > 0], steps=5), "their number known"),
        (lambda: fw.sweep(make, q, steps=5, every=0), "every"),
        (
            lambda: fw.sweep(make, lazy, steps=5, vary={"frction": friction}),
            r"vary has no 'frction' \(is it 'friction'\?\); it has parameters",
        ),
        (lambda: fw.sweep(make, lazy, steps=5, vary={"q": friction}), "vary has no 'q'"),
        (lambda: fw.sweep(make, np.ma.masked_greater(q, 0.0), steps=5), "q has masked elements"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    for no_function, message in ((make(), "a function that makes a Simulation; got Simulation"), (lambda: 3, "it made int")):
        for x in (q, lazy):
            with pytest.raises(TypeError, match=message):
                fw.sweep(no_function, x, steps=5)  # type: ignore[arg-type]


def test_what_cannot_be_sent_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    """By the name of the argument, and with what pickle says about it; with NumPy's arrays nothing is sent."""
    q = starts()[0]
    file = tmp_path / "results"
    with file.open("w") as written, file.open("rb") as read:
        for held, message in ((threading.Lock(), "lock"), (written, "not opened for reading"), (read, "BufferedReader")):

            def holding(held: Any = held) -> fw.Simulation:
                return make()

            with pytest.raises(TypeError, match=f"^make cannot be sent to Dask's workers: .*{message}.*inside make$"):
                fw.sweep(holding, chunked(q)[0], steps=2)
            assert fw.sweep(holding, q, steps=2).q.shape == (ROBOTS, 3, 2)


def test_lambdas_and_local_functions_are_sent() -> None:
    import cloudpickle

    q, step = starts()[0], 4e-3

    def local() -> fw.Simulation:
        return fw.Simulation(make().robot, step, threads=1)

    for maker in (lambda: make(), local):
        there = cloudpickle.loads(cloudpickle.dumps(fw.sweep(maker, chunked(q)[0], steps=2).q))
        with dask.config.set(scheduler="threads"):
            np.testing.assert_array_equal(there.compute(), fw.sweep(maker, q, steps=2).q)


def kill_after(folder: Path, pids: list[int], portions: int) -> None:
    """One process, once some portions have been begun."""
    while len(list(folder.iterdir())) < portions:
        time.sleep(0.01)
    os.kill(pids[0], 9)


@pytest.mark.filterwarnings("ignore")
def test_a_sweep_is_complete_where_a_worker_is_killed(tmp_path: Path) -> None:
    """Two processes, one of which is killed after it has done a part: all is there, bit for bit what it is here."""
    distributed = pytest.importorskip("distributed")
    q, v, _, _ = starts()
    lazy = chunked(q, v, robots=2)
    where = str(tmp_path)

    def slowly() -> fw.Simulation:
        simulation = make()
        rollout = simulation.rollout

        def noted(*args: Any, **named: Any) -> Any:
            Path(where, f"{time.time_ns()}").touch()
            time.sleep(0.1)
            return rollout(*args, **named)

        simulation.rollout = noted  # type: ignore[method-assign]
        return simulation

    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no tests
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killer = threading.Thread(target=kill_after, args=(tmp_path, pids, 5))
        killer.start()
        found = client.compute(fw.sweep(slowly, lazy[0], lazy[1], steps=STEPS), sync=True)
        killer.join()
        assert pids[0] not in client.run(os.getpid).values()
    for x, y in zip(found, fw.sweep(make, q, v, steps=STEPS), strict=True):
        np.testing.assert_array_equal(x, y)
