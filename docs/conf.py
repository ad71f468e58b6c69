"""How the site is built: `make docs`. Nothing is downloaded, then or when it is read."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "Featherweight"
version = release = runpy.run_path(str(HERE.parent / "src" / "featherweight" / "version.py"))["__version__"]
copyright = "the authors of Featherweight, Apache-2.0"

extensions = ["stand_ins", "myst_parser", "api", "command_line", "mathml", "offline", "root_pages"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # as GitHub makes them, for links such as simulation.md#a-step
smartquotes = False  # "local" is what one types
exclude_patterns = ["_extensions"]

html_theme = "furo"
html_title = f"Featherweight {version}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["formulas.css", "code.css"]
html_copy_source = False
html_show_sphinx = False

# Names in signatures that are not of this package: NumPy's and Python's, whose inventories are elsewhere.
nitpick_ignore_regex = [("py:.*", r"(?!featherweight\.).*")]
