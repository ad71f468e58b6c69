"""Rows of ordinary arrays into lanes, x[index][lane], and back: W x W tiles transposed in registers.

Of an argument, tiles that the kernel does not read are left where they are. Of a result, the kernel leaves each value once,
in a slot; a table says which slot each element comes from, so that symmetric entries and constants cost it nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from ...program import CoreShape
from .ir import CACHE_LINE, Function, Type, Vector

LONG_RUN = 4  # tiles that are worth a call to clear them


class Mover(ABC):
    """Functions, with names that end in `tag`, that move W rows of an array between memory and lanes.

    `copies` takes rows of any strides, fewer than W, too: (first row, bytes from row to row, rows, strides..., lanes).
    `turns` takes W rows of adjacent elements: (first row, bytes from row to row, lanes).
    """

    def __init__(self, type: Type, shape: CoreShape, tag: str) -> None:
        self.type, self.shape, self.tag = type, shape, tag
        self.size = math.prod(shape)
        self.row_bytes = self.size * type.item_bytes
        self.tiles: Sequence[int] = range(self.size // type.lanes)  # the whole ones that are moved
        self.fixed: Sequence[int] = ()  # first columns of whole ones that are constant, in a table of rows
        self.empty: Sequence[tuple[int, int]] = ()  # columns, from one up to another, that are zero for all states
        self.copies, self.turns = f"fw.copy.{tag}", f"fw.turn.{tag}"  # names of functions
        self.half = Vector(type.precision, type.lanes // 2)
        self.tables: list[str] = []  # what the functions look up, as the module has it

    def functions(self) -> list[Function]:
        return [self.copy(), self.turn()]

    # one element, column or tile: to lanes or from them

    @abstractmethod
    def _move(self, f: Function, memory: str, lanes: str) -> None:
        """One element."""

    @abstractmethod
    def _column(self, f: Function, rows: Sequence[str], column: int) -> None:
        """One element of every row."""

    @abstractmethod
    def _tile(self, f: Function, rows: Sequence[str], column: str | int, width: int) -> None:
        """Transpose the tile of W rows and `width` columns that starts at `column`."""

    def _constant_tiles(self, f: Function, rows: Sequence[str]) -> None:
        """Write the tiles that are the same for all states."""
        T, align = self.type, self.type.item_bytes
        with f.rounds(len(self.fixed)) as tile:
            values = f.load(T.ir, f.at(T.precision, f"@fw.rows.{self.tag}", f.mul(tile, T.lanes)), align=align)
            column = self._look_up(f, "fixed", tile)
            for row in rows:
                f.store(T.ir, values, f.at(T.precision, row, column), align=align)

    def _empty_tiles(self, f: Function, rows: Sequence[str]) -> None:
        """Clear what is zero for all states, row by row: memory takes what goes on longer than what goes to and fro."""
        for row in rows:
            with f.rounds(len(self.empty)) as run:
                begin, bytes = (self._look_up(f, "empty", f.add(f.mul(run, 2), k)) for k in (0, 1))
                f.clear_bytes(f.at("i8", row, begin), bytes)

    @abstractmethod
    def _filled(self, rows: str) -> str | int:
        """How many lanes are moved where there are so many rows."""

    def _slot(self, f: Function, element: str | int) -> str | int:
        """Where the lanes of an element lie."""
        return element

    def _first_column(self, f: Function, tile: str) -> str:
        return f.mul(tile, self.type.lanes)

    # functions

    def copy(self) -> Function:
        """Move rows element by element, any strides. Lanes without a row take the last row's elements."""
        strides = [f"%stride{d}" for d in range(len(self.shape))]
        arguments = ["ptr %begin", "i64 %step", "i64 %rows", *(f"i64 {s}" for s in strides), "ptr %lanes"]
        f = Function("void", self.copies, arguments)
        last = f.sub("%rows", 1)
        with f.loop(self._filled("%rows")) as lane:
            row = f.at("i8", "%begin", f.mul(f.least(lane, last), "%step"))
            self._elements(f, row, strides, "0", lane)
        f.ret()
        return f

    def _elements(self, f: Function, begin: str, strides: Sequence[str], element: str, lane: str) -> None:
        """The loops over the axes that are left, from one element on, and the move of what is found inside them."""
        if not strides:
            item = f.add(f.mul(self._slot(f, element), self.type.lanes), lane)
            self._move(f, begin, f.at(self.type.precision, "%lanes", item))
            return
        length = self.shape[-len(strides)]
        before = f.mul(element, length)
        with f.loop(length) as i:
            self._elements(f, f.at("i8", begin, f.mul(i, strides[0])), strides[1:], f.add(before, i), lane)

    def turn(self) -> Function:
        """W whole rows into lanes, or back: W x W tiles transposed in registers, then what is left.

        A few columns go one by one. More are a tile that overlaps the one before, or that is masked where there is none.
        """
        f = Function("void", self.turns, ["ptr %rows", "i64 %step", "ptr %lanes"])
        W, n = self.type.lanes, self.size
        rows = [f.at("i8", "%rows", f.mul("%step", r)) for r in range(W)]
        if self.tiles:
            with f.rounds(len(self.tiles)) as tile:
                self._tile(f, rows, self._first_column(f, tile), W)
        if self.fixed:
            self._constant_tiles(f, rows)
        if self.empty:
            self._empty_tiles(f, rows)
        rest = n % W
        if rest <= W // 4:
            for column in range(n - rest, n):
                self._column(f, rows, column)
        elif n > W:
            self._tile(f, rows, n - W, W)
        else:
            self._tile(f, rows, 0, rest)
        f.ret()
        return f

    # pieces

    def _look_up(self, f: Function, table: str, index: str | int) -> str:
        return f.load("i64", f"@fw.{table}.{self.tag}", index)

    def _table(self, name: str, entries: Sequence[int]) -> None:
        words = ", ".join(f"i64 {i}" for i in entries)
        self.tables.append(f"@fw.{name}.{self.tag} = internal constant [{len(entries)} x i64] [{words}]")

    def _places(self, f: Function, column: str | int, width: int) -> list[str]:
        """Where the lanes of columns lie."""
        return [f.at(self.type.ir, "%lanes", self._slot(f, f.add(column, k))) for k in range(width)]

    def _halves(self, width: int) -> list[tuple[int, int]]:
        """Columns of half a tile: where they start, and how many there are."""
        H = self.half.lanes
        return [(0, min(width, H)), (H, max(0, width - H))]


class IntoLanes(Mover):
    """Rows of an argument into lanes, but for tiles without one of the `live` elements."""

    def __init__(self, type: Type, shape: CoreShape, tag: str, live: Iterable[int]) -> None:
        super().__init__(type, shape, tag)
        wanted, whole = {k // type.lanes for k in live}, self.tiles
        self.tiles = [tile for tile in whole if tile in wanted]
        self._leaves_out = len(self.tiles) < len(whole)
        if self._leaves_out and self.tiles:
            self._table("tiles", [tile * type.lanes for tile in self.tiles])

    def _filled(self, rows: str) -> str | int:
        return self.type.lanes

    def _first_column(self, f: Function, tile: str) -> str:
        return self._look_up(f, "tiles", tile) if self._leaves_out else super()._first_column(f, tile)

    def _move(self, f: Function, memory: str, lanes: str) -> None:
        f.store(self.type.precision, f.load(self.type.precision, memory), lanes)

    def _column(self, f: Function, rows: Sequence[str], column: int) -> None:
        T = self.type
        vector = "poison"
        for r, row in enumerate(rows):
            vector = f.insert(T, vector, f.load(T.precision, row, column, T.item_bytes), r)
        f.store(T.ir, vector, "%lanes", column, T.bytes)

    def _tile(self, f: Function, rows: Sequence[str], column: str | int, width: int) -> None:
        sources = [f.at(self.type.precision, row, column) for row in rows]
        places = self._places(f, column, width)
        vectors = self._load_halves(f, sources, width)
        for distance in reversed(_distances(self.type)):
            vectors = _exchange(f, self.type, vectors, distance)
        for vector, place in zip(vectors, places, strict=False):
            f.store(self.type.ir, vector, place, align=self.type.bytes)

    def _load_halves(self, f: Function, sources: Sequence[str], width: int) -> list[str]:
        """The first exchange of the transposition, done by loading half rows: row i beside row i + W/2."""
        vectors: list[str] = []
        H = self.half.lanes
        for start, count in self._halves(width):
            if count == 0:
                vectors += ["zeroinitializer"] * H
                continue
            halves = [f.load_first(self.half, f.at(self.type.precision, s, start), count) for s in sources]
            vectors += [f.shuffle(self.half, halves[i], halves[i + H], range(2 * H)) for i in range(H)]
        return vectors


class OutOfLanes(Mover):
    """Rows of a result out of lanes, element k from slot `slots[k]`; slots of `constants` have the same number in all lanes."""

    def __init__(self, type: Type, shape: CoreShape, tag: str, slots: Sequence[int], constants: Mapping[int, float]) -> None:
        super().__init__(type, shape, tag)
        self._in_order = list(slots) == list(range(self.size))
        if not self._in_order:
            self._table("slots", slots)
        W = type.lanes
        starts = [tile * W for tile in self.tiles]
        constant = [k for k in starts if all(slot in constants for slot in slots[k : k + W])]
        self._left_out = len(constant) > 0
        if self._left_out:
            moved = sorted({*starts} - {*constant})
            self.tiles = range(len(moved))
            self._table("moved", moved)
        zero = {slot for slot, x in constants.items() if x == 0.0 and math.copysign(1.0, x) > 0.0}
        self.empty = _long_runs([k for k in constant if zero.issuperset(slots[k : k + W])], W)
        if self.empty:
            self._table("empty", [x * type.item_bytes for begin, end in self.empty for x in (begin, end - begin)])
        self.fixed = sorted({*constant} - {k for run in self.empty for k in range(*run, W)})
        if self.fixed:
            one = Type(type.precision, 1)
            values = [one.constant(constants[slot]) for k in self.fixed for slot in slots[k : k + W]]
            words = ", ".join(f"{type.precision} {x}" for x in values)
            self._table("fixed", self.fixed)
            self.tables.append(f"@fw.rows.{tag} = internal constant [{len(values)} x {type.precision}] [{words}]")

    def _first_column(self, f: Function, tile: str) -> str:
        return self._look_up(f, "moved", tile) if self._left_out else super()._first_column(f, tile)

    def _filled(self, rows: str) -> str | int:
        return rows

    def _slot(self, f: Function, element: str | int) -> str | int:
        return element if self._in_order else self._look_up(f, "slots", element)

    def _move(self, f: Function, memory: str, lanes: str) -> None:
        f.store(self.type.precision, f.load(self.type.precision, lanes), memory)

    def _column(self, f: Function, rows: Sequence[str], column: int) -> None:
        T = self.type
        vector = f.load(T.ir, "%lanes", self._slot(f, column), T.bytes)
        for r, row in enumerate(rows):
            f.store(T.precision, f.extract(T, vector, r), row, column, T.item_bytes)

    def _tile(self, f: Function, rows: Sequence[str], column: str | int, width: int) -> None:
        T = self.type
        targets = [f.at(T.precision, row, column) for row in rows]
        places = self._places(f, column, width)
        vectors = [f.load(T.ir, place, align=T.bytes) for place in places] + ["poison"] * (T.lanes - width)
        for distance in _distances(T):
            vectors = _exchange(f, T, vectors, distance)
        self._store_halves(f, vectors, targets, width)

    def _store_halves(self, f: Function, vectors: Sequence[str], targets: Sequence[str], width: int) -> None:
        """The last exchange of the transposition, done by storing half vectors."""
        H = self.half.lanes
        for start, count in self._halves(width):
            for r, target in enumerate(targets):
                if count:
                    first = r // H * H
                    half = f.shuffle(self.type, vectors[start + r % H], "poison", range(first, first + H))
                    f.store_first(self.half, half, f.at(self.type.precision, target, start), count)


class Stream:
    """A function that writes W rows from a buffer past the caches."""

    def __init__(self, type: Type, size: int, tag: str) -> None:
        self.type, self.size, self.name = type, size, f"fw.stream.{tag}"
        self.row_bytes = -(-size * type.item_bytes // CACHE_LINE) * CACHE_LINE  # in the buffer

    def function(self) -> Function:
        """Of each row, the part that is whole cache lines is written without reading what was there before."""
        f = Function("void", self.name, ["ptr %out", "i64 %step", "ptr %buffer"])
        T, bytes = self.type.precision, self.type.item_bytes
        line = Type(T, CACHE_LINE // bytes)
        with f.rounds(self.type.lanes) as r:
            to, source = f.at("i8", "%out", f.mul(r, "%step")), f.at("i8", "%buffer", f.mul(r, self.row_bytes))
            until_line = f.sub(0, f.cast("ptrtoint", "ptr", to, "i64"))
            short = f.binary("and", "i64", until_line, CACHE_LINE - 1)  # bytes before the first whole line
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
    """First columns of `LONG_RUN` neighbouring tiles or more, and the columns after their last."""
    runs: list[tuple[int, int]] = []
    for k in tiles:
        if runs and runs[-1][1] == k:
            runs[-1] = runs[-1][0], k + width
        else:
            runs.append((k, k + width))
    return [(begin, end) for begin, end in runs if end - begin >= LONG_RUN * width]


def _distances(type: Type) -> list[int]:
    """1 to W/4: the exchanges of a transposition but for the last, W/2, which memory does."""
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
