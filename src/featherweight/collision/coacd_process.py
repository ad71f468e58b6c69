"""The program that decomposes one mesh, in a process of its own: `python coacd_process.py MESH PARTS OPTIONS`.

CoACD is native code that ends its process for some damaged meshes, prints, and does not stop at Ctrl-C. MESH is an .npz file
with `vertices` and `faces`; PARTS is the file to write, with the vertices of each part; OPTIONS are keywords of
`coacd.run_coacd` in JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np


def main(mesh: str, parts: str, options: str) -> None:
    import coacd

    coacd.set_log_level("off")
    with np.load(mesh) as given:
        found = coacd.run_coacd(coacd.Mesh(given["vertices"], given["faces"]), **json.loads(options))
    np.savez(parts, *(vertices for vertices, _ in found))


if __name__ == "__main__":
    main(*sys.argv[1:])
