"""Elements and attributes of MJCF that the installed MuJoCo reads."""

from __future__ import annotations

import re

import mujoco


def schema() -> dict[str, set[str]]:
    """Return attributes by path, such as "mujoco/tendon/fixed/joint"."""
    found: dict[str, set[str]] = {}
    path: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        depth, words = (len(line) - len(line.lstrip())) // 3, line.split()
        if len(words) > 1 and re.fullmatch(r"\([!*?R]\)", words[1]):
            path = [*path[:depth], words[0].replace("(world)body", "worldbody/body")]
            words = words[2:]
        found.setdefault("/".join(path), set()).update(words)
    return found
