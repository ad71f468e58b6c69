"""Configuration of the site (`make docs`). Neither the build nor the pages download anything."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "Featherweight"
version = release = runpy.run_path(str(HERE.parent / "src" / "featherweight" / "version.py"))["__version__"]
copyright = "the authors of Featherweight, Apache-2.0"

extensions = ["stand_ins", "myst_parser", "api", "command_line", "mathml", "notebooks", "offline", "root_pages"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # anchors as on GitHub, for links such as simulation.md#a-step
smartquotes = False  # keep the quotes of code such as "local"
exclude_patterns = ["_extensions"]

html_theme = "furo"
html_title = f"Featherweight {version}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["formulas.css", "code.css"]
html_copy_source = False
html_show_sphinx = False

# names of NumPy and Python in signatures; the site has no inventories of these packages
nitpick_ignore_regex = [("py:.*", r"(?!featherweight\.).*")]
