"""Tests of NVIDIA's linker on our code, without a device: cuda-core with the library nvJitLink."""

from __future__ import annotations

from typing import Any

import pytest

from engine.kernels import swinging
from featherweight.engine.backends.cuda import driver
from featherweight.engine.backends.cuda.code import assembly
from featherweight.engine.backends.cuda.driver import assembled
from featherweight.engine.backends.cuda.emit_thread import NVIDIA
from featherweight.engine.backends.cuda.kernel import KernelLayout, emit_module
from featherweight.engine.backends.llvm.ir import Type

ELF, CUDA = b"\x7fELF", (190).to_bytes(2, "little")


@pytest.fixture
def core() -> Any:
    core = pytest.importorskip("cuda.core")
    pytest.importorskip("cuda.bindings.nvjitlink")
    if core.Linker.which_backend() != "nvJitLink":
        pytest.skip("without the library nvJitLink: pip install nvidia-nvjitlink")
    return core


@pytest.mark.parametrize("registers", [None, 64])
def test_our_code_becomes_machine_code(core: Any, registers: int | None) -> None:
    f = swinging(4)
    layout = KernelLayout((True,) * 3, True, 32)
    ptx = assembly(emit_module(f.trace, f.program.shapes, Type("double", 1), layout, NVIDIA), (9, 0))
    cubin = assembled(ptx, (9, 0), registers)
    assert cubin.startswith(ELF) and cubin[18:20] == CUDA and b"fw_kernel" in cubin


def test_the_words_of_the_assembler_are_in_the_error(core: Any) -> None:
    with pytest.raises(Exception, match=r"(?s)Parsing error near 'nonsense'"):
        assembled(b".version 7.0\n.target sm_75\n.address_size 64\nnonsense", (9, 0))


def test_without_a_device_or_its_package_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"no {name}")

    with monkeypatch.context() as patch:
        patch.setattr(driver, "import_module", missing)
        driver.core.cache_clear()
        with pytest.raises(ImportError, match=r"CUDA needs the package cuda-core: pip install .*\[cuda\]"):
            driver.device(0)
    driver.core.cache_clear()
    pytest.importorskip("cuda.core")
    with pytest.raises(RuntimeError, match=r"CUDA device 1000 cannot be used; a device needs NVIDIA's driver: "):
        driver.device(1000)
