"""Tests of counts of disassembled code."""

from __future__ import annotations

from pathlib import Path

import pytest
import sass
from sass import count, disassembled

TEXT = """
	.section	.text.k,"ax",@progbits
k:
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
        /*0020*/              @!PT LDS.128 R8, [R3] ;
        /*0030*/                   STL.64 [R1+0xba8], R10          (*"SpillRefill"*);
        /*0040*/                   LDL.LU.64 R6, [R1+0xba8] ;
        /*0050*/                   LDL R7, [R1] ;
        /*0060*/                   LDG.E.64 R2, desc[UR4][R2.64] ;
        /*0070*/                   DFMA R2, R2, R4, R6 ;
        /*0080*/             @!UP1 DADD R2, R2, R4 ;
        /*0090*/                   FFMA.FTZ R2, R2, R4, R6 ;
        /*00a0*/                   MUFU.RCP64H R5, R9 ;
        /*00b0*/                   ST.E.64 desc[UR4][R2.64], R6 ;
.L_x_1:
        /*10c0*/                   BRA `(.L_x_1);
        /*10d0*/                   NOP;
"""


def test_instructions_are_counted_by_name_and_bytes_by_width() -> None:
    found = count(TEXT)
    assert found.total == 13  # without NOP
    assert (found.by_name["FFMA"], found.double, found.special) == (1, 2, 1)
    assert found.local_bytes == 8 + 8 + 4 + 8  # STL, LDL twice, ST
    assert found.shared_bytes == 16
    assert found.described == "13 instructions: 1 FFMA, 1 DFMA, 1 DADD, 1 MUFU, 2 LDL, 1 STL, 1 ST, 1 LDS, 1 LDG"


def test_no_disassembler_is_no_error_and_a_refusal_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sass, "tool", lambda name: None)
    assert disassembled(b"") is None
    refuses = tmp_path / "nvdisasm"
    refuses.write_text("#!/bin/sh\necho no code >&2\nexit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setattr(sass, "tool", lambda name: refuses)
    with pytest.raises(RuntimeError, match="nvdisasm failed: no code"):
        disassembled(b"")
