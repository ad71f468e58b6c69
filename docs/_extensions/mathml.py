"""Formulas as MathML, which browsers draw without scripts or downloaded fonts."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_converted(node, "inline"))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_converted(node, "block")}</div>')
    raise nodes.SkipNode


def _converted(node: nodes.TextElement, display: str) -> str:
    try:
        return str(convert(node.astext(), display=display))
    except Exception as error:  # errors of latex2mathml have no common base class
        _log.warning("formula %r: %r", node.astext(), error, location=node)
        return ""
