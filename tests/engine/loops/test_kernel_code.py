"""Tests of object code in the package, which is loaded only for its kernel and its kind of processor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from featherweight.engine.backends.llvm.jit import host
from featherweight.engine.loops import kernel_code
from featherweight.engine.loops.compiled_functions import CompiledKernel
from featherweight.engine.loops.kernel_code import Facts, Specialization

pytestmark = pytest.mark.skipif(not host().fma, reason="needs a processor with fused multiply-add")


def weighted_sum(x: np.ndarray, y: np.ndarray) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


def longest(x: np.ndarray) -> int:
    best = 0
    for i in range(len(x)):
        if x[i] > x[best]:
            best = i
    return best


X, Y = np.random.default_rng(0).standard_normal((2, 100))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the names of kernels that are compiled, without a cache."""
    names: list[str] = []
    monkeypatch.setenv("FEATHERWEIGHT_CACHE_SIZE", "0")
    monkeypatch.setattr(
        kernel_code, "compilation_observers", [lambda kernel, facts, ir: names.append(kernel.function.__name__)]
    )
    kernel_code._folder_for_host.cache_clear()
    yield names
    kernel_code._folder_for_host.cache_clear()


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[str]) -> Path:
    """Create a folder with the kernel `weighted_sum` for all targets, which the package ships."""

    def ship(kernel: Specialization, facts: Facts, ir: str) -> None:
        assert len([*kernel_code.ship(kernel.name, facts, ir, tmp_path)]) == len(kernel_code.TARGETS)

    kernel_code.compilation_observers.append(ship)
    CompiledKernel(weighted_sum)(X, Y)
    kernel_code.compilation_observers.remove(ship)
    compiled.clear()
    monkeypatch.setattr(kernel_code, "FOLDER", tmp_path)
    kernel_code._folder_for_host.cache_clear()
    return tmp_path


def run_all() -> float:
    assert CompiledKernel(longest)(X) == np.argmax(X)
    return CompiledKernel(weighted_sum)(X, Y)


def test_only_other_kernels_and_types_are_compiled(objects: Path, compiled: list[str]) -> None:
    if not any(target.suits_host() for target in kernel_code.TARGETS):
        pytest.skip("no target suits this processor")
    expected = CompiledKernel(weighted_sum).python(X, Y)
    assert run_all() == pytest.approx(expected, rel=1e-14)
    assert compiled == ["longest"]
    CompiledKernel(weighted_sum)(X, np.arange(100))  # integers
    assert compiled == ["longest", "weighted_sum"]


def test_targets_that_suit_the_processor_give_the_same_bits(
    objects: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suiting = [target for target in kernel_code.TARGETS if target.suits_host()]
    found = set()
    for target in suiting:
        monkeypatch.setattr(kernel_code, "TARGETS", (target,))
        kernel_code._folder_for_host.cache_clear()
        found.add(CompiledKernel(weighted_sum)(X, Y))
    assert compiled == []
    monkeypatch.setattr(kernel_code, "TARGETS", ())
    kernel_code._folder_for_host.cache_clear()
    assert found <= {CompiledKernel(weighted_sum)(X, Y)}
    assert compiled == ["weighted_sum"]


def test_code_of_other_sources_is_not_found(objects: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_code, "_package_digest", lambda: "of other files")
    run_all()
    assert compiled == ["longest", "weighted_sum"]


def test_a_damaged_file_is_not_loaded(objects: Path, compiled: list[str]) -> None:
    for file in objects.rglob("*.bin"):
        file.write_bytes(file.read_bytes()[:-1])
    run_all()
    assert compiled == ["longest", "weighted_sum"]


@pytest.mark.parametrize("lacking", ["fma", "avx2", "bmi2"])
def test_a_processor_that_lacks_a_feature_compiles(
    lacking: str, objects: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    has = llvm.get_host_cpu_features()
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {**has, lacking: False})
    monkeypatch.setattr(kernel_code, "TARGETS", [t for t in kernel_code.TARGETS if t.cpu != "generic"])
    run_all()
    assert compiled == ["longest", "weighted_sum"]


def test_a_clone_has_none() -> None:
    assert not kernel_code.FOLDER.exists()
