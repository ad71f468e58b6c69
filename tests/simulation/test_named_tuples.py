"""What the compiled parts of simulation share with the rolled execution, in one process."""

from __future__ import annotations

import importlib
import pkgutil

from featherweight import simulation, spatial


def test_no_field_has_the_name_of_a_spatial_method() -> None:
    """Where Numba has been taught the methods of spatial vectors, fields of these names are lost to all named tuples."""
    methods = {
        name for kind in vars(spatial).values() if isinstance(kind, type) and issubclass(kind, tuple) for name in vars(kind)
        if not name.startswith("_") and name not in getattr(kind, "_fields")  # noqa: B009
    }  # fmt: skip
    assert {"cross", "column", "rate"} <= methods
    found = 0
    for info in pkgutil.walk_packages(simulation.__path__, "featherweight.simulation."):
        module = importlib.import_module(info.name)
        for kind in vars(module).values():
            if isinstance(kind, type) and hasattr(kind, "_fields") and kind.__module__ == module.__name__:
                found += 1
                assert not methods & set(kind._fields), (module.__name__, kind.__name__)
    assert found > 5
