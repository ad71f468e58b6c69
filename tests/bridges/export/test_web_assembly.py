"""Modules of WebAssembly that our linker makes, run by Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import featherweight as fw
from featherweight import generators
from featherweight.exporting.wasm_module import link_wasm

NODE = shutil.which("node")
CALL = """
const [file, name, sizes, given] = JSON.parse(process.argv[1]);
const bytes = require("fs").readFileSync(file);
const m = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
m.memory.grow(4);
const at = [];
let top = m.__heap_base.value;
for (const n of [...sizes, 4096]) { at.push(top); top += 8 * n; }
given.forEach((x, k) => new Float64Array(m.memory.buffer, at[k], x.length).set(x));
const code = m[name](...at), last = sizes.length - 1;
const result = [...new Float64Array(m.memory.buffer, at[last], sizes[last])];
console.log(JSON.stringify([code, m[name](...at.slice(0, -1), 0), m[name + "_workspace_bytes"](), result]));
"""


@pytest.fixture(scope="module")
def robot() -> fw.Robot:
    return fw.build(generators.random_tree(4, seed=3))


@pytest.mark.skipif(NODE is None, reason="no Node.js on this machine")
def test_functions_linked_together_give_what_they_give_here(tmp_path: Path, robot: fw.Robot) -> None:
    rng = np.random.default_rng(0)
    functions = [robot.forward_dynamics, robot.integrate, robot.potential_energy]  # two with sines, whose tables are data
    _, path = fw.export(functions, tmp_path, name="tree", target="wasm32", files="shared")
    for f in functions:
        given = [robot.random_configuration(rng=rng), *(rng.normal(size=x.size) for x in f.program.inputs[1:])]
        given[0][0] = 1e6  # beyond what sines reduce without a table
        sizes = [*(x.size for x in f.program.inputs), *(x.size for x in f.program.outputs)]
        call = json.dumps([str(path), f.name, sizes, [x.tolist() for x in given]])
        done = subprocess.run([NODE or "", "-e", CALL, call], capture_output=True, text=True, check=True)
        code, without, workspace, result = json.loads(done.stdout)
        assert (code, without) == (0, 1 if workspace else 0)
        expected = np.ravel(f(*given))
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12 * abs(expected).max())  # no fused multiplication


def test_the_linker_of_modules_refuses_what_it_cannot_link(tmp_path: Path, robot: fw.Robot) -> None:
    fw.export(robot.gravity_force, tmp_path, name="tree", target="wasm32", files=("object", "shared"))
    with pytest.raises(ValueError, match="this is not one"):
        link_wasm([b"\x7fELF"], [])
    with pytest.raises(ValueError, match="this is a linked module"):
        link_wasm([(tmp_path / "libtree.wasm").read_bytes()], [])
    with pytest.raises(ValueError, match="no object has a function 'other'"):
        link_wasm([(tmp_path / "gravity_force.o").read_bytes()], ["other"])
