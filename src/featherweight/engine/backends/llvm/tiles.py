"""Rows of ordinary arrays to lanes, x[index][lane], and back: W x W tiles transposed in registers.

Tiles of an argument that the kernel does not read are skipped. The kernel writes each distinct value of a result once, to a
slot. A table gives the slot of each element, so that symmetric entries and constants cost the kernel nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...program import CoreShape
from .ir import CACHE_LINE, Function, Type, Vector

LONG_RUN = 4  # least number of tiles to clear by a call


def into_lanes(type: Type, shape: CoreShape, tag: str, live: Iterable[int]) -> Mover:
    """Return the mover of an argument's rows into lanes; it skips tiles without one of the `live` elements."""
    W = type.lanes
    wanted, whole = {k // W for k in live}, math.prod(shape) // W
    columns = [tile * W for tile in range(whole) if tile in wanted]
    return Mover(IntoLanes(type), shape, tag, Tiles(columns if len(columns) < whole else None))


def out_of_lanes(type: Type, shape: CoreShape, tag: str, slots: Sequence[int], constants: Mapping[int, float]) -> Mover:
    """Return the mover of a result's rows out of lanes, element k from slot `slots[k]`; slots of `constants` hold numbers."""
    W, size = type.lanes, math.prod(shape)
    starts = range(0, size - W + 1, W)
    constant = [k for k in starts if all(slot in constants for slot in slots[k : k + W])]
    zero = {slot for slot, x in constants.items() if x == 0.0 and math.copysign(1.0, x) > 0.0}
    empty = _long_runs([k for k in constant if zero.issuperset(slots[k : k + W])], W)
    fixed = sorted({*constant} - {k for run in empty for k in range(*run, W)})
    tiles = Tiles(
        sorted({*starts} - {*constant}) if constant else None,
        None if list(slots) == list(range(size)) else slots,
        empty,
        {k: [constants[slot] for slot in slots[k : k + W]] for k in fixed},
    )
    return Mover(OutOfLanes(type), shape, tag, tiles)


class Tiles(NamedTuple):
    """Columns of the whole tiles of a row that are moved, cleared, or filled with constants."""

    columns: Sequence[int] | None = None  # start columns of moved tiles; None for all
    slots: Sequence[int] | None = None  # slot of each element; None if slots are in order
    empty: Sequence[tuple[int, int]] = ()  # ranges of columns that are zero for all states
    fixed: Mapping[int, Sequence[float]] = {}  # numbers of other tiles that are constant for all states, by first column


class Way(ABC):
    """Direction of moves: to lanes or from lanes."""

    fills: bool  # whether lanes without a row get the last row's elements

    def __init__(self, type: Type) -> None:
        self.type = type

    @abstractmethod
    def element(self, f: Function, memory: str, lanes: str) -> None:
        """Move one element."""

    @abstractmethod
    def column(self, f: Function, rows: Sequence[str], column: int, slot: str | int) -> None:
        """Move one element of every row."""

    @abstractmethod
    def tile(self, f: Function, rows: Sequence[str], places: Sequence[str]) -> None:
        """Transpose a tile of W rows, which start at `rows`, and of columns whose lanes are at `places`."""


class Mover:
    """Functions, with names that end in `tag`, that move W rows of an array between memory and lanes.

    `copies` supports rows of any strides, also fewer than W: (first row, row stride in bytes, rows, strides..., lanes). `turns`
    moves W rows of contiguous elements: (first row, row stride in bytes, lanes).
    """

    def __init__(self, way: Way, shape: CoreShape, tag: str, tiles: Tiles) -> None:
        self.way, self.type, self.shape, self.tag, self.tiles = way, way.type, shape, tag, tiles
        self.size = math.prod(shape)
        self.row_bytes = self.size * self.type.item_bytes
        self.copies, self.turns = f"fw.copy.{tag}", f"fw.turn.{tag}"  # names of functions
        self.tables: list[str] = []  # tables of the functions, in the module
        if tiles.slots is not None:
            self._table("slots", tiles.slots)
        if tiles.columns:
            self._table("moved", tiles.columns)
        if tiles.empty:
            self._table("empty", [x * self.type.item_bytes for begin, end in tiles.empty for x in (begin, end - begin)])
        if tiles.fixed:
            one = Type(self.type.precision, 1)
            values = [one.constant(x) for numbers in tiles.fixed.values() for x in numbers]
            words = ", ".join(f"{one.ir} {x}" for x in values)
            self._table("fixed", list(tiles.fixed))
            self.tables.append(f"@fw.rows.{tag} = internal constant [{len(values)} x {one.ir}] [{words}]")

    def functions(self) -> list[Function]:
        return [self.copy(), self.turn()]

    def copy(self) -> Function:
        """Return the function that moves rows element by element, with any strides."""
        strides = [f"%stride{d}" for d in range(len(self.shape))]
        arguments = ["ptr %begin", "i64 %step", "i64 %rows", *(f"i64 {s}" for s in strides), "ptr %lanes"]
        f = Function("void", self.copies, arguments)
        last = f.sub("%rows", 1)
        with f.loop(self.type.lanes if self.way.fills else "%rows") as lane:
            row = f.at("i8", "%begin", f.mul(f.least(lane, last), "%step"))
            self._elements(f, row, strides, "0", lane)
        f.ret()
        return f

    def _elements(self, f: Function, begin: str, strides: Sequence[str], element: str, lane: str) -> None:
        """Write the loops over the remaining axes, from one element on, and the move inside."""
        if not strides:
            item = f.add(f.mul(self._slot(f, element), self.type.lanes), lane)
            self.way.element(f, begin, f.at(self.type.precision, "%lanes", item))
            return
        length = self.shape[-len(strides)]
        before = f.mul(element, length)
        with f.loop(length) as i:
            self._elements(f, f.at("i8", begin, f.mul(i, strides[0])), strides[1:], f.add(before, i), lane)

    def turn(self) -> Function:
        """Return the function that moves W whole rows: W x W tiles transposed in registers, then the rest.

        A few remaining columns are moved one by one. More form a tile that overlaps the previous one, or a masked tile if there
        is none.
        """
        f = Function("void", self.turns, ["ptr %rows", "i64 %step", "ptr %lanes"])
        W, n, tiles = self.type.lanes, self.size, self.tiles
        rows = [f.at("i8", "%rows", f.mul("%step", r)) for r in range(W)]
        moved = n // W if tiles.columns is None else len(tiles.columns)
        if moved:
            with f.rounds(moved) as tile:
                self._tile(f, rows, f.mul(tile, W) if tiles.columns is None else self._look_up(f, "moved", tile), W)
        if tiles.fixed:
            self._fixed_tiles(f, rows)
        if tiles.empty:
            self._empty_tiles(f, rows)
        rest = n % W
        if rest <= W // 4:
            for column in range(n - rest, n):
                self.way.column(f, rows, column, self._slot(f, column))
        elif n > W:
            self._tile(f, rows, n - W, W)
        else:
            self._tile(f, rows, 0, rest)
        f.ret()
        return f

    # pieces

    def _tile(self, f: Function, rows: Sequence[str], column: str | int, width: int) -> None:
        """Move the tile of W rows and `width` columns that starts at `column`."""
        T = self.type
        begins = [f.at(T.precision, row, column) for row in rows]
        self.way.tile(f, begins, [f.at(T.ir, "%lanes", self._slot(f, f.add(column, k))) for k in range(width)])

    def _fixed_tiles(self, f: Function, rows: Sequence[str]) -> None:
        """Write the tiles that are constant for all states."""
        T, align = self.type, self.type.item_bytes
        with f.rounds(len(self.tiles.fixed)) as tile:
            values = f.load(T.ir, f.at(T.precision, f"@fw.rows.{self.tag}", f.mul(tile, T.lanes)), align=align)
            column = self._look_up(f, "fixed", tile)
            for row in rows:
                f.store(T.ir, values, f.at(T.precision, row, column), align=align)

    def _empty_tiles(self, f: Function, rows: Sequence[str]) -> None:
        """Clear columns that are zero for all states, row by row, because longer contiguous writes are faster."""
        for row in rows:
            with f.rounds(len(self.tiles.empty)) as run:
                begin, bytes = (self._look_up(f, "empty", f.add(f.mul(run, 2), k)) for k in (0, 1))
                f.clear_bytes(f.at("i8", row, begin), bytes)

    def _slot(self, f: Function, element: str | int) -> str | int:
        """Return the slot of an element."""
        return element if self.tiles.slots is None else self._look_up(f, "slots", element)

    def _look_up(self, f: Function, table: str, index: str | int) -> str:
        return f.load("i64", f"@fw.{table}.{self.tag}", index)

    def _table(self, name: str, entries: Sequence[int]) -> None:
        words = ", ".join(f"i64 {i}" for i in entries)
        self.tables.append(f"@fw.{name}.{self.tag} = internal constant [{len(entries)} x i64] [{words}]")


class IntoLanes(Way):
    """Moves from memory to lanes."""

    fills = True

    def element(self, f: Function, memory: str, lanes: str) -> None:
        f.store(self.type.precision, f.load(self.type.precision, memory), lanes)

    def column(self, f: Function, rows: Sequence[str], column: int, slot: str | int) -> None:
        T = self.type
        vector = "poison"
        for r, row in enumerate(rows):
            vector = f.insert(T, vector, f.load(T.precision, row, column, T.item_bytes), r)
        f.store(T.ir, vector, "%lanes", slot, T.bytes)

    def tile(self, f: Function, rows: Sequence[str], places: Sequence[str]) -> None:
        vectors = self._load_halves(f, rows, len(places))
        for distance in reversed(_distances(self.type)):
            vectors = _exchange(f, self.type, vectors, distance)
        for vector, place in zip(vectors, places, strict=False):
            f.store(self.type.ir, vector, place, align=self.type.bytes)

    def _load_halves(self, f: Function, sources: Sequence[str], width: int) -> list[str]:
        """Do the first exchange of the transposition by loading half rows: row i beside row i + W/2."""
        vectors: list[str] = []
        half = _half(self.type)
        H = half.lanes
        for start, count in _halves(H, width):
            if count == 0:
                vectors += ["zeroinitializer"] * H
                continue
            halves = [f.load_first(half, f.at(self.type.precision, s, start), count) for s in sources]
            vectors += [f.shuffle(half, halves[i], halves[i + H], range(2 * H)) for i in range(H)]
        return vectors


class OutOfLanes(Way):
    """Moves from lanes to memory."""

    fills = False

    def element(self, f: Function, memory: str, lanes: str) -> None:
        f.store(self.type.precision, f.load(self.type.precision, lanes), memory)

    def column(self, f: Function, rows: Sequence[str], column: int, slot: str | int) -> None:
        T = self.type
        vector = f.load(T.ir, "%lanes", slot, T.bytes)
        for r, row in enumerate(rows):
            f.store(T.precision, f.extract(T, vector, r), row, column, T.item_bytes)

    def tile(self, f: Function, rows: Sequence[str], places: Sequence[str]) -> None:
        T = self.type
        vectors = [f.load(T.ir, place, align=T.bytes) for place in places] + ["poison"] * (T.lanes - len(places))
        for distance in _distances(T):
            vectors = _exchange(f, T, vectors, distance)
        self._store_halves(f, vectors, rows, len(places))

    def _store_halves(self, f: Function, vectors: Sequence[str], targets: Sequence[str], width: int) -> None:
        """Do the last exchange of the transposition by storing half vectors."""
        half = _half(self.type)
        H = half.lanes
        for start, count in _halves(H, width):
            for r, target in enumerate(targets):
                if count:
                    first = r // H * H
                    part = f.shuffle(self.type, vectors[start + r % H], "poison", range(first, first + H))
                    f.store_first(half, part, f.at(self.type.precision, target, start), count)


class Stream:
    """A function that writes W rows from a buffer, bypassing the caches."""

    def __init__(self, type: Type, size: int, tag: str) -> None:
        self.type, self.size, self.name = type, size, f"fw.stream.{tag}"
        self.row_bytes = -(-size * type.item_bytes // CACHE_LINE) * CACHE_LINE  # size of a row in the buffer

    def function(self) -> Function:
        """Return the function, which writes the whole cache lines of each row without reading what was there before."""
        f = Function("void", self.name, ["ptr %out", "i64 %step", "ptr %buffer"])
        T, bytes = self.type.precision, self.type.item_bytes
        line = Type(T, CACHE_LINE // bytes)
        with f.rounds(self.type.lanes) as r:
            to, source = f.at("i8", "%out", f.mul(r, "%step")), f.at("i8", "%buffer", f.mul(r, self.row_bytes))
            until_line = f.sub(0, f.cast("ptrtoint", "ptr", to, "i64"))
            short = f.binary("and", "i64", until_line, CACHE_LINE - 1)  # bytes before the first whole cache line
            begin = f.div(short, bytes)
            end = f.add(begin, f.mul(f.div(f.sub(self.size, begin), line.lanes), line.lanes))
            f.copy_bytes(to, source, short)
            with f.rounds(end, begin, line.lanes) as i:
                address, place = f.at(T, source, i), f.at(T, to, i)
                x = f.load(line.ir, address, align=bytes)
                f.line(f"store {line.ir} {x}, ptr {place}, align {CACHE_LINE}, !nontemporal !{{i32 1}}")
            f.copy_bytes(f.at(T, to, end), f.at(T, source, end), f.mul(f.sub(self.size, end), bytes))
        f.ret()
        return f


def _long_runs(tiles: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Return the ranges of columns of at least `LONG_RUN` neighbouring tiles."""
    runs: list[tuple[int, int]] = []
    for k in tiles:
        if runs and runs[-1][1] == k:
            runs[-1] = runs[-1][0], k + width
        else:
            runs.append((k, k + width))
    return [(begin, end) for begin, end in runs if end - begin >= LONG_RUN * width]


def _half(type: Type) -> Vector:
    return Vector(type.precision, type.lanes // 2)


def _halves(half: int, width: int) -> list[tuple[int, int]]:
    """Return the columns of half a tile: start and number."""
    return [(0, min(width, half)), (half, max(0, width - half))]


def _distances(type: Type) -> list[int]:
    """Return 1 to W/4: the exchanges of a transposition except the last, W/2, which memory operations do."""
    return [1 << k for k in range(type.lanes.bit_length() - 2)]


def _exchange(f: Function, type: Type, vectors: Sequence[str], distance: int) -> list[str]:
    """The step of a transposition that swaps blocks of `distance` lanes between vectors (Eklundh 1972)."""
    W, d = type.lanes, distance
    low = [lane if not lane & d else W + lane - d for lane in range(W)]
    high = [lane + d if not lane & d else W + lane for lane in range(W)]
    new = list(vectors)
    for i in (i for i in range(W) if not i & d):
        new[i] = f.shuffle(type, vectors[i], vectors[i + d], low)
        new[i + d] = f.shuffle(type, vectors[i], vectors[i + d], high)
    return new
