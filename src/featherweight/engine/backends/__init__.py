"""Back ends, by the name of their execution; `protocol` defines their interface."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import cast

from ..cache import notice_changed_files
from .protocol import Backend

BACKENDS = {"traced": ".llvm.backend", "rolled": ".rolled", "interpreted": ".interpreted"}
EXECUTIONS = ("auto", *BACKENDS)


def backend(execution: str) -> Backend:
    """Return the back end of an execution, importing it on first use."""
    new = f"{__name__}{BACKENDS[execution]}" not in sys.modules
    module = import_module(BACKENDS[execution], __name__)
    if new:
        notice_changed_files()
    return cast(Backend, module)
