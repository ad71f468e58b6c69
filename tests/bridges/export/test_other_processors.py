"""Tests of exported files on other machines, emulated: programs on Linux, and on microcontrollers without a system."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from bridges.export.c_programs import (
    BARE,
    BARE_STDIO,
    STRICT,
    TRIGONOMETRY,
    one_by_one,
    program,
    quaternion_robot,
    run_in_c,
    states,
)
from featherweight.engine.backends.llvm.jit import host
from featherweight.exporting.elf import Elf
from featherweight.exporting.export_targets import TARGETS, ExportTarget


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    return quaternion_robot()


EMULATED = {  # compilers and emulators, by Debian's names: gcc-aarch64-linux-gnu and so on, qemu-user(-static)
    "cortex-a76": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "cortex-a7": ("arm-linux-gnueabihf-gcc", "qemu-arm"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
}


@pytest.mark.parametrize("target", EMULATED)
def test_other_processors_give_the_bits_of_this_one(target: str, tmp_path: Path, robot: fw.Robot) -> None:
    compiler, emulator = EMULATED[target]
    emulator = shutil.which(emulator) or shutil.which(f"{emulator}-static") or ""
    if not shutil.which(compiler) or not emulator or not host().fma:
        pytest.skip(f"needs {compiler} and qemu, and a processor with fma here")
    for f, name in ((robot.forward_dynamics, "forward_dynamics"), (TRIGONOMETRY, "trigonometry")):
        fw.export(f, tmp_path, name="tree", target=target, files="static")
        (tmp_path / "main.c").write_text(program(f, name, "tree.h", "double"))
        subprocess.run([compiler, *STRICT, "-static", "main.c", "libtree.a", "-o", "main"], cwd=tmp_path, check=True)
        given = states(f, robot, np.float64)
        given[-1][-1] *= 1e8  # include a large angle
        for a, b in zip(run_in_c([emulator, str(tmp_path / "main")], f, given, np.float64), one_by_one(f, given), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_older_processors_of_this_kind_agree(target: str, tmp_path: Path, robot: fw.Robot) -> None:
    """Check bitwise if a product and a sum are one instruction."""
    t = TARGETS[target]
    if not shutil.which("gcc") or not host().triple.startswith("x86_64") or host().vector_bytes < t.vector_bytes:
        pytest.skip("needs gcc and a processor with the features of the target")
    f = robot.forward_dynamics
    fw.export(f, tmp_path, name="tree", target=target, files="static")
    (tmp_path / "main.c").write_text(program(f, f.name, "tree.h", "double"))
    subprocess.run(["gcc", *STRICT, "main.c", "libtree.a", "-o", "main"], cwd=tmp_path, check=True)
    given = states(f, robot, np.float64)
    [got], [expected] = run_in_c([str(tmp_path / "main")], f, given, np.float64), one_by_one(f, given)
    np.testing.assert_allclose(got, expected, rtol=0, atol=0 if t.fma and host().fma else 1e-11 * abs(expected).max())


def test_our_linkers_library_runs_on_aarch64(tmp_path: Path, robot: fw.Robot) -> None:
    """Check code at the address of the system's loader; the address of a constant is encoded differently than on x86-64."""
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not compiler or not emulator:
        pytest.skip("needs aarch64-linux-gnu-gcc and qemu")
    f = robot.inverse_dynamics.derivative("q")
    fw.export({"slopes": f, "trigonometry": TRIGONOMETRY}, tmp_path, name="tree", target="cortex-a76", files="shared")
    (tmp_path / "main.c").write_text(program(f, "slopes", "tree.h", "double"))
    subprocess.run([compiler, *STRICT, "main.c", "libtree.so", "-o", "main"], cwd=tmp_path, check=True)
    system = Path(compiler).parents[1] / "aarch64-linux-gnu"
    given = states(f, robot, np.float64)
    command = [emulator, "-L", str(system), "-E", f"LD_LIBRARY_PATH={tmp_path}:{system / 'lib'}", str(tmp_path / "main")]
    [got] = run_in_c(command, f, given, np.float64)
    np.testing.assert_allclose(got, f(*given), rtol=0, atol=1e-13 * abs(got).max())  # its vectors have another length


BOARDS = {  # boards of Debian's qemu-system-arm
    "cortex-m7": ("mps2-an500", "cortex-m7", "fpv5-d16"),
    "cortex-m7-single": ("mps2-an500", "cortex-m7", "fpv5-sp-d16"),
    "cortex-m4": ("mps2-an386", "cortex-m4", "fpv4-sp-d16"),
}


@pytest.mark.parametrize("target", BOARDS)
def test_microcontrollers_without_system_and_library_give_the_bits_of_this_machine(
    target: str, tmp_path: Path, robot: fw.Robot
) -> None:
    """Check object files without libraries; the source would need the C library."""
    board, cpu, fpu = BOARDS[target]
    compiler = shutil.which("arm-none-eabi-gcc") or shutil.which("arm-linux-gnueabihf-gcc")
    emulator = shutil.which("qemu-system-arm")
    if not compiler or not emulator or not host().fma:
        pytest.skip("needs arm-none-eabi-gcc or arm-linux-gnueabihf-gcc, qemu-system-arm, and a processor with fma here")
    precision = TARGETS[target].precisions[0]
    dtype = np.float64 if precision == "double" else np.float32
    (tmp_path / "stdio.h").write_text(BARE_STDIO)
    flags = [f"-mcpu={cpu}", f"-mfpu={fpu}", *BARE]
    for f, name in ((robot.forward_dynamics, "forward_dynamics"), (TRIGONOMETRY, "trigonometry")):
        fw.export(f, tmp_path, name="tree", target=target, precision=precision, files="static")
        (tmp_path / "main.c").write_text(program(f, name, "tree.h", precision).replace("<stdio.h>", '"stdio.h"'))
        given = states(f, robot, dtype)
        given[-1][-1] *= 1e8  # include a large angle
        expected = one_by_one(f, given)
        subprocess.run([compiler, *flags, "main.c", "libtree.a", "-o", "main"], cwd=tmp_path, check=True, capture_output=True)
        command = [emulator, "-M", board, "-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config"]
        command += ["enable=on,target=native", "-kernel", str(tmp_path / "main")]
        for a, b in zip(run_in_c(command, f, given, dtype), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("triple", ["thumbv7em-none-eabihf", "thumbv7em-unknown-none-eabihf", "armv7-linux-gnueabihf"])
def test_objects_for_arm_say_that_numbers_go_in_registers_of_their_own(triple: str, tmp_path: Path, robot: fw.Robot) -> None:
    """Check the attribute Tag_ABI_VFP_args = 1, as linkers demand, with the vendor name or without."""
    fw.export(robot.gravity_force, tmp_path, files="object", target=ExportTarget("mine", triple, "cortex-m7"))
    elf = Elf((tmp_path / "gravity_force.o").read_bytes())
    [attributes] = [elf.content(s) for s in elf.sections if s.name == ".ARM.attributes"]
    assert b"\x1c\x01" in attributes
