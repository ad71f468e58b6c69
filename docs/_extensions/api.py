"""Directives that write the reference from the Python objects: signatures, fields, docstrings, and shapes of compiled
functions.

    ```{api} featherweight             ```{api} featherweight
    Robot.inverse_dynamics             :members:
    Robot.forward_dynamics             Joint
    ```                                ```

The directive lists the named objects in the given order. The second form adds the members of classes. The first sentence of
a docstring stands beside its name, for readers of the pages in a clone; `docs/write_reference.py` writes it. The build of the
site fails (`--fail-on-warning`) if no page lists a public name, or if a sentence is not that of the docstring.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import public_names
from docstrings import first_sentence, markdown, summary
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from source_facts import Field, own_fields, plain, required, signature
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from symbolic_shapes import Example, example

from featherweight import CompiledFunction

_log = logging.getLogger(__name__)
_FENCES = "`" * 8, "`" * 6
SAID = "  # "  # between a name and a sentence
_SHAPE = "shape "


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives, and the check that the pages list every public name."""
    app.add_directive("api", Api)
    app.add_directive("api-table", Table)
    app.connect("env-check-consistency", _nothing_left_out)
    app.connect("missing-reference", _class_of_a_result)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def name_and_sentence(line: str) -> tuple[str, str]:
    name, _, sentence = line.partition(SAID)
    return name.rstrip(), sentence


class Listing(SphinxDirective):  # type: ignore[misc]  # Sphinx is where the site is built, and not where types are checked
    """Base class of directives whose content is a list of names of a module, one name a line."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the Markdown that `lines` yields."""
        made = nodes.Element()
        # module of the entries and of the names in their annotations
        module = self.env.ref_context["py:module"] = self.arguments[0]
        own = {n.removeprefix(f"{module}."): x for n, x in public_names.exported().items() if n.rpartition(".")[0] == module}
        listed = dict(name_and_sentence(line) for line in self.content if line)
        names = [*listed] or sorted(own, key=lambda n: public_names.is_class(own[n]))
        for gone in [n for n in names if f"{module}.{n}" not in public_names.all_names()]:
            _log.warning("%s.%s is not public: it was renamed, or removed", module, gone, location=self.get_location())
            names.remove(gone)
        for name in names if listed else ():
            if listed[name] != first_sentence(public_names.docstring(f"{module}.{name}")):
                _log.warning("%s.%s: run docs/write_reference.py", module, name, location=self.get_location())
        lines = list(self.lines(module, names))
        self.state.nested_parse(StringList(lines, self.get_source_info()[0]), self.content_offset, made)
        for text in made.findall(addnodes.desc_sig_literal_string):
            # shapes are quoted in annotations, because a tuple would lose its brackets
            if text.astext().startswith(f"'{_SHAPE}"):
                text.children = [nodes.Text(text.astext().removeprefix(f"'{_SHAPE}").removesuffix("'"))]
        children: list[nodes.Node] = made.children
        return children

    def lines(self, module: str, names: list[str]) -> Iterator[str]:
        """Yield the Markdown of the names."""
        raise NotImplementedError


class Api(Listing):
    """Directive `api`: entries of the reference."""

    option_spec: ClassVar = {"members": directives.flag}

    def lines(self, module: str, names: list[str]) -> Iterator[str]:
        """Yield one entry for each name."""
        for name in names:
            entry = Entry(module, name)
            yield from entry.lines("members" in self.options)


class Table(Listing):
    """Directive `api-table`: a table with one line for each name."""

    def lines(self, module: str, names: list[str]) -> Iterator[str]:
        """Yield a table of links and first sentences of docstrings."""
        yield from ("| | |", "|---|---|")
        for name in names:
            text = summary(public_names.docstring(f"{module}.{name}"), public_names.lookup(None, module)).replace("|", "\\|")
            yield f"| {{py:obj}}`{name} <{module}.{name}>` | {text} |"


class Entry:
    """One name of a module: a function, a class, or a member of a class."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.full = f"{module}.{name}"
        owner = self.full.rpartition(".")[0]
        found = public_names.public()
        self.owner = found.get(owner)
        self.object = found[self.full] if self.owner is None else public_names.members(self.owner)[name.rpartition(".")[2]]

    def lines(self, with_members: bool, depth: int = 0) -> Iterator[str]:
        """Yield the directive for this kind of object, with its text and, if `with_members` is true, the entries of its
        members.
        """
        kind, argument, options, text = self._parts()
        fence = _FENCES[depth]
        yield f"{fence}{{py:{kind}}} {argument}"
        yield from (f":{key}: {json.dumps(value)}" for key, value in options.items())
        yield ""
        yield from text
        yield ""
        if public_names.is_class(self.object) and with_members:
            for member in public_names.members(self.object):
                yield from Entry(self.module, f"{self.name}.{member}").lines(False, depth + 1)
        yield fence
        yield ""

    def _parts(self) -> tuple[str, str, dict[str, str], list[str]]:
        """Return kind, signature, options and text of the directive."""
        x = self.object
        if isinstance(x, CompiledFunction):
            text = list(markdown(inspect.cleandoc(x.program.doc), public_names.lookup(None, self.module)))
            return "function", f"{self.name}{x.__signature__}", {}, text
        if isinstance(x, str):
            return self._field(next(f for f in own_fields(self.owner) if f.name == x))
        if inspect.isclass(x):
            kind = "exception" if issubclass(x, BaseException) else "class"
            return kind, f"{self.name}{self._constructor(x)}", {}, self._doc(x)
        if isinstance(x, (property, cached_property)):
            return self._property(plain(x))
        if inspect.isfunction(plain(x)):
            return self._function(x)
        return "data", self.name, {"type": type(x).__name__}, []

    def _field(self, field: Field) -> tuple[str, str, dict[str, str], list[str]]:
        options = {"type": field.annotation, "value": field.default}
        return "attribute", self.name, {k: v for k, v in options.items() if v}, [_sentence(field.comment)]

    def _property(self, get: Any) -> tuple[str, str, dict[str, str], list[str]]:
        compiled = self._compiled()
        if compiled is None:
            return "attribute", self.name, {"type": signature(get, True)[1]}, self._doc(get)
        shapes, f = compiled
        return "method", f"{self.name}({_arguments(shapes, f)}) -> '{_SHAPE}{_results(shapes, f)}'", {}, self._doc(get)

    def _compiled(self) -> tuple[Example, CompiledFunction[Any]] | None:
        """Return the example and its compiled function if this member of the example is a compiled function."""
        shapes = example(self.owner)
        value = getattr(shapes.object, self.name.rpartition(".")[2]) if shapes else None
        return (shapes, value) if shapes and isinstance(value, CompiledFunction) else None

    def _function(self, x: Any) -> tuple[str, str, dict[str, str], list[str]]:
        function = plain(x)
        bound = self.owner is not None and not isinstance(x, staticmethod)
        parameters, returns = signature(function, bound)
        text = self._doc(function)
        shapes = example(self.owner) if returns.startswith("CompiledFunction") else None
        if shapes and (f := shapes.made(getattr(shapes.object, function.__name__), required(function))):
            takes = ", ".join(f"{name}: {shape}" for name, shape, optional in shapes.takes(f) if not optional)
            text = [f"Gives a function ({takes}) → {_results(shapes, f)}.", "", *text]
        kind = "function" if self.owner is None else "method"
        flags = {"staticmethod": staticmethod, "classmethod": classmethod}
        options = {flag: "" for flag, type_ in flags.items() if isinstance(x, type_)}
        return kind, f"{self.name}({parameters})" + (f" -> {returns}" if returns else ""), options, text

    def _constructor(self, cls: type) -> str:
        if issubclass(cls, Enum):
            return ""
        if "__init__" in vars(cls) and inspect.isfunction(cls.__init__) and not hasattr(cls, "__dataclass_fields__"):
            return f"({signature(cls.__init__, True)[0]})"
        fields = [f for f in own_fields(cls) if f.annotation]
        return f"({', '.join(f.name + (f'={f.default}' if f.default else '') for f in fields)})" if fields else ""

    def _doc(self, x: Any) -> list[str]:
        context = self.object if inspect.isclass(self.object) else self.owner
        return list(markdown(inspect.getdoc(x) or "", public_names.lookup(context, self.module)))


def _arguments(shapes: Example, f: CompiledFunction[Any]) -> str:
    """Return the arguments as in a signature: optional arguments are keyword-only."""
    takes = shapes.takes(f)
    given = [f"{name}: '{_SHAPE}{shape}'" for name, shape, optional in takes if not optional]
    named = [f"{name}: '{_SHAPE}{shape}' = None" for name, shape, optional in takes if optional]
    return ", ".join([*given, *(["*"] if named else []), *named])


def _results(shapes: Example, f: CompiledFunction[Any]) -> str:
    return ", ".join(f"{name}: {shape}" for name, shape in shapes.gives(f))


def _sentence(comment: str) -> str:
    """Return a comment as text that begins with a capital letter."""
    return " ".join(markdown(comment[:1].upper() + comment[1:], lambda name: None))


def _class_of_a_result(app: Sphinx, env: BuildEnvironment, node: Any, text: nodes.Element) -> nodes.Node | None:
    """Resolve the class names in annotations, which do not name the module."""
    ends = f".{node.get('reftarget', '')}"
    found = [name for name, x in public_names.public().items() if inspect.isclass(x) and name.endswith(ends)]
    if len(found) != 1 or node.get("refdomain") != "py":
        return None
    here, domain = node["refdoc"], env.get_domain("py")
    return domain.resolve_xref(env, here, app.builder, "obj", found[0], node, text) if found[0] != node["reftarget"] else None


def _nothing_left_out(_app: Sphinx, env: BuildEnvironment) -> None:
    for name in sorted(public_names.all_names() - {*env.get_domain("py").objects}):
        _log.warning("no page of the reference lists %s", name)
