"""User-defined constraints, recorded once on tapes, with their exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...algorithms.mechanisms.cluster_tree import Closing
from ...engine.dual_numbers import jacobian, second_derivative
from ...engine.graph import Graph
from ...engine.tape import record


def closing(name: str, function: Callable[[Any], Any], rows: tuple[int, ...]) -> Closing:
    """Constraints function(q) = 0 on the coordinates of rows, with K and K' q'."""
    n = len(rows)
    g = Graph()
    q = [g.input(0, i) for i in range(n)]
    rates = [g.input(0, n + i) for i in range(n)]

    def flat(x: Sequence[Any]) -> list[Any]:
        array = np.empty(n, dtype=object)
        array[:] = x
        result = np.array(function(array), dtype=object)
        if result.ndim != 1 or len(result) == 0:
            raise ValueError(f"constraint {name!r} must return a sequence of at least one number; got shape {result.shape}")
        return list(result)

    values, K = jacobian(flat, q, [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)])
    bent = second_derivative(flat, q, rates, [0.0] * n)
    return Closing(rows, len(values), record(values), record([x for row in K for x in row]), record(bent))
