"""Damage to files: to their bytes, and to their elements."""

# ruff: noqa: E501 (lines of files, and lists of words)

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

Rng = np.random.Generator

NASTY = (
    "nan", "inf", "-inf", "-0", "0", "1e308", "-1e308", "5e-324", "1e-300", "1e30", "-1e30", "1e160", "1e9", "-1", "-3",
    "1e-12", "1e17", "", " ", "x", "0x10", "1_0", "1,5", "١", "1e999", "0 0 0", "0 0 1", "1 2", "1 0 0 0", "1e30 1e30 1e30",
    "1e-30 0 0", "-0 -0 -0", "true", "false", "none", "world", "universe", "root", "base", "\u200b", "ü", "🤖", "a" * 300,
    "9" * 400, "../../..", ".", "/dev/zero", "/dev/random", "pipe", "pipe.stl", "huge.stl", "package://", "file://", "data:,x",
    "floating", "fixed", "spherical", "planar", "free", "ball", "slide", "hinge", "mesh", "sdf", "hfield", "weld", "3.14159265",
)  # fmt: skip
INSERTED = {
    "urdf": (
        '<joint name="jx" type="floating"><parent link="base"/><child link="x"/></joint>', '<link name="x"/>',
        '<mimic joint="shoulder"/>', '<mimic joint="elbow" multiplier="1e20"/>', '<origin xyz="1e20 0 0" rpy="1e20 0 0"/>',
        '<mesh filename="pipe.stl"/>', '<geometry><mesh filename="huge.stl"/></geometry>', '<axis xyz="0 0 0"/>',
        '<loop name="lx" type="weld"><predecessor link="base"/><successor link="tip"/></loop>',
        '<coupling name="cx"><predecessor link="upper"/><successor link="tip"/><ratio value="0"/></coupling>',
        '<transmission name="t"><joint name="shoulder"/></transmission>', "<gazebo/>", "text &lt; and more",
    ),
    "mjcf": (
        '<replicate count="1000000000" offset="1 0 0"><geom size="1"/></replicate>', '<replicate count="-5"><site/></replicate>',
        '<replicate count="30"><replicate count="30"><replicate count="30"><site/></replicate></replicate></replicate>',
        '<include file="pipe"/>', '<include file="mutant.xml"/>', '<include file="/dev/zero"/>', '<include file="nowhere.xml"/>',
        '<asset><hfield name="big" nrow="1000000" ncol="1000000" size="1 1 1 1"/></asset>', '<geom type="hfield" hfield="big"/>',
        '<asset><mesh name="hull" file="pipe.stl"/></asset>', '<asset><mesh name="h2" file="huge.stl"/></asset>',
        '<asset><mesh name="hull" builtin="supersphere" params="1000000 1 1"/></asset>', '<geom type="mesh" mesh="h2"/>',
        '<asset><texture name="t" builtin="flat" type="2d" width="1000000" height="1000000"/></asset>',
        '<asset><model name="m" file="pipe"/></asset>', '<asset><model name="m" file="mutant.xml"/></asset>',
        '<attach body="world" prefix="z"/>', '<Include file="pipe"/>', '<body mass="nan(1)"/>', '<geom solref="inf 0x1p9999"/>',
        '<composite type="cable" count="1000000 1 1" size="1 1 1"/>',
        '<flexcomp type="grid" name="f" count="100000 100000 10" dim="3"/>', '<size nkey="2000000000"/>',
        '<size nuser_geom="2000000000"/>', '<custom><numeric name="n" size="2000000000"/></custom>', "<freejoint/>",
        '<joint type="free" name="fx"/>', '<joint type="ball"/>', '<inertial pos="0 0 0" mass="1e-14" diaginertia="1 1 1"/>',
        '<equality><joint joint1="knee" polycoef="0 1e30 1e30 1e30 1e30" joint2="hip"/></equality>',
        '<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>', '<equality><weld body1="thigh"/></equality>',
        '<default><joint armature="-3" damping="-1"/></default>', '<compiler coordinate="global" autolimits="false"/>',
        '<compiler balanceinertia="true" boundmass="1e20" angle="degree" fusestatic="true"/>', "<body/>", '<body name="world"/>',
        '<actuator><muscle name="mu" joint="hip"/></actuator>', '<body mocap="true"><geom size="1"/></body>',
        '<tendon><fixed name="tx"><joint joint="hip" coef="1"/></fixed></tendon>', '<compiler lengthrange="all"/>',
    ),
}  # fmt: skip
DEEP = 5_000  # nested elements
NUMBER = re.compile(rb"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
VALUE = re.compile(rb'"[^"]*"')


def damaged_bytes(text: bytes, format: str, rng: Rng) -> bytes:
    """Return the file with a few spans of bytes changed, mostly in numbers and attributes."""
    data = bytearray(text)
    for _ in range(rng.geometric(0.7)):
        kind = rng.integers(9)
        at = int(rng.integers(len(data) + 1))
        end = min(len(data), at + int(rng.geometric(0.1)))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end] * int(rng.integers(1, 4))
        elif kind == 3:
            data[at:at] = rng.bytes(int(rng.geometric(0.3)))
        elif kind == 4 and rng.random() < 0.2:
            del data[at:]
        elif kind == 4 and rng.random() < 0.1:
            at = data.find(b">", at) + 1
            data[at:at] = b"<body>" * DEEP + b"</body>" * DEEP
        elif kind == 5:
            there = int(rng.integers(len(data) + 1))
            data[there:there] = data[at:end]
        else:
            spans = [m.span() for m in (NUMBER if kind < 8 else VALUE).finditer(data)]
            if spans:
                start, stop = spans[rng.integers(len(spans))]
                word = nasty(rng).encode()
                data[start:stop] = word if kind < 8 else b'"' + word + b'"'
    return bytes(data)


def damaged_elements(text: bytes, format: str, rng: Rng) -> bytes:
    """Return the file with a few elements or attributes changed, moved, duplicated or omitted."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:  # the file was not XML
        return damaged_bytes(text, format, rng)
    for _ in range(rng.geometric(0.7)):
        nodes = list(root.iter())
        parents = {child: parent for parent in nodes for child in parent}
        KINDS[rng.integers(len(KINDS))](nodes, parents, format, rng)
    return ElementTree.tostring(root)


def nasty(rng: Rng) -> str:
    return str(NASTY[rng.integers(len(NASTY))])


def one_of(items: Any, rng: Rng) -> Any:
    return items[rng.integers(len(items))]


Parents = dict[Element, Element]


def _delete(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    node = one_of(nodes, rng)
    if node in parents:
        parents[node].remove(node)


def _double(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    node = one_of(nodes, rng)
    if node in parents and len(nodes) < 5_000:
        parents[node].append(deepcopy(node))


def _move(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    node, target = one_of(nodes, rng), one_of(nodes, rng)
    if node in parents and target not in set(node.iter()):
        parents[node].remove(node)
        target.insert(int(rng.integers(len(target) + 1)), node)


def _swap(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    """Swap the attributes of two elements, which have the same tag if possible."""
    node = one_of(nodes, rng)
    other = one_of([n for n in nodes if n.tag == node.tag], rng)
    node.attrib, other.attrib = other.attrib, node.attrib


def _value(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    node = one_of([n for n in nodes if n.attrib] or nodes, rng)
    if node.attrib:
        node.set(one_of(list(node.attrib), rng), nasty(rng))


def _number(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    """Change one of several numbers."""
    node = one_of([n for n in nodes if n.attrib] or nodes, rng)
    if node.attrib:
        key = one_of(list(node.attrib), rng)
        words = node.attrib[key].split() or [""]
        words[rng.integers(len(words))] = (
            nasty(rng) if rng.random() < 0.7 else f"{rng.normal() * 10.0 ** rng.integers(-12, 13):.6g}"
        )
        node.set(key, " ".join(words))


def _forget(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    node = one_of([n for n in nodes if n.attrib] or nodes, rng)
    if node.attrib:
        del node.attrib[one_of(list(node.attrib), rng)]


def _rename(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    """Replace a name, or a reference to one, by another name of the file."""
    keys = ("name", "link", "joint", "joint1", "joint2", "body1", "body2", "parent", "child", "mesh", "class", "type")
    named = [(n, k) for n in nodes for k in keys if k in n.attrib]
    if named:
        (node, key), (other, taken) = one_of(named, rng), one_of(named, rng)
        node.set(key, other.attrib[taken])


def _attach(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    """Give a joint another parent or child; in MJCF, move a body into another."""
    ends = [n for n in nodes if n.tag in ("parent", "child", "predecessor", "successor") and "link" in n.attrib]
    links = [n.get("name", "") for n in nodes if n.tag == "link"]
    if ends and links:
        one_of(ends, rng).set("link", one_of(links, rng))
    else:
        _move([n for n in nodes if n.tag in ("body", "worldbody", "frame")] or nodes, parents, format, rng)


def _insert(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    node = one_of(nodes, rng)
    new = ElementTree.fromstring(f"<x>{one_of(INSERTED[format], rng)}</x>")
    node.text = (node.text or "") + (new.text or "")
    node[0:0] = list(new)


def _wrap(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    """Nest an element in many elements of the same tag."""
    node = one_of(nodes, rng)
    if node in parents:
        place = list(parents[node]).index(node)
        around = node
        for _ in range(int(one_of((1, 3, 60), rng))):
            outer = Element(node.tag if rng.random() < 0.5 else "body", {"name": nasty(rng)} if rng.random() < 0.1 else {})
            outer.append(around)
            around = outer
        parents[node][place] = around


def _tag(nodes: list[Element], parents: Parents, format: str, rng: Rng) -> None:
    one_of(nodes, rng).tag = one_of(nodes, rng).tag


Damage = Callable[[list[Element], Parents, str, Rng], None]
KINDS: tuple[Damage, ...] = (
    _delete, _double, _move, _swap, _value, _value, _number, _number, _number, _forget, _rename, _attach, _insert, _wrap, _tag,
)  # fmt: skip
