"""Tests of the names and addresses of compiled functions for `perf`."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from featherweight.engine.backends.llvm import perf_map
from featherweight.engine.backends.llvm.jit import Code, compile_object

TWO = """
define i64 @of_a_perf_map(i64 %x) {
  %y = call i64 @square(i64 %x)
  %z = add i64 %y, 7
  ret i64 %z
}
define internal i64 @square(i64 %x) noinline {
  %y = mul i64 %x, %x
  ret i64 %y
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="perf is of Linux, as are ELF objects")
@pytest.mark.parametrize("wanted", [True, False])
def test_loaded_functions_are_in_the_map_of_the_process_if_it_is_wanted(wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the function at the address that the map gives, also one that is not exported."""
    monkeypatch.setattr(perf_map, "WANTED", wanted)
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    path.unlink(missing_ok=True)
    try:
        code = Code(compile_object(TWO), "of_a_perf_map")
        assert path.exists() is wanted
        lines = [line.split() for line in path.read_text().splitlines()] if wanted else []
        mapped = {name: (int(begin, 16), int(size, 16)) for begin, size, name in lines}
        assert set(mapped) == ({"of_a_perf_map", "square"} if wanted else set())
        if wanted:
            assert mapped["of_a_perf_map"][0] == code.address("of_a_perf_map")
            number = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
            assert [number(begin)(5) for begin, _ in mapped.values()] in ([32, 25], [25, 32])
            assert all(0 < size < 200 for _, size in mapped.values())
    finally:
        path.unlink(missing_ok=True)
