"""A plan as LLVM IR that computes one robot in each vector lane.

Varying conditions become masks (Pharr and Mark 2012): both branches are executed, each for its lanes, and a branch without
lanes is skipped. A loop runs while any lane takes part. A lane does exactly what the kernel does for one robot, so its results
are bitwise the same.

Arrays are shared by all lanes, or interleaved: for each element, the numbers of all lanes. An array is an address, the number
of its first element and its lengths. An interleaved array is read by one instruction if the index is uniform; if it varies,
each lane reads separately.

A function is rewritten until it is known which variables vary. There is one version of each function for each choice of varying
arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..backends.llvm.ir import Function
from ..backends.llvm.trig import sincos_ir
from . import plan as nodes
from .kernel_sources import KernelError
from .kernel_types import ArrayType, Type
from .kernel_writer import (
    ALL_BITS,
    ATTRIBUTES,
    BYTES,
    ITEMS,
    KernelWriter,
    Registers,
    Varying,
    bundle,
    members,
    real,
    vary,
    words_of,
    write_return,
)
from .loop_writer import table_arguments
from .variable_scopes import may_end
from .views import LANES

ALL = "splat (i1 true)"
MANGLED = {"double": "f64", "float": "f32", "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8"}
MASKED = 8  # number of lanes from which processors have instructions that scatter under a mask
PLACE = "ptr", "i64"  # an array's address, and the number of its first element


class LaneFunction(NamedTuple):
    """A written function: its name, and which words of its result vary."""

    name: str
    varies: tuple[bool, ...]


class LaneModule:
    """The functions of a plan for some lanes, each for all choices of varying arguments."""

    def __init__(self, lanes: int, fused: bool) -> None:
        self.lanes, self.fused = lanes, fused
        self.functions: dict[tuple[int, tuple[bool, ...], bool], LaneFunction] = {}
        self.written: list[Function] = []
        self.sincos: set[int] = set()  # vector widths of sine and cosine

    def function(self, plan: nodes.FunctionPlan, varying: tuple[bool, ...], by_all: bool) -> LaneFunction:
        """Return a function for this choice of varying arguments; `by_all` says whether all lanes execute it."""
        key = id(plan), varying, by_all
        if key not in self.functions:
            name = f'"{plan.name}.{len(self.functions)}"'
            self.functions[key] = LaneFunction(name, ())  # reserves its name
            writer = LaneWriter(self, plan, name, varying, by_all)
            self.functions[key] = LaneFunction(name, writer.written())
            self.written.append(writer.f)
        return self.functions[key]


class _Again(Exception):
    """Signal that more words vary than was known, and that a function is called with them."""


class LaneLoop(NamedTuple):
    """A loop that is being written: its statement, its position among blocks, and the lanes that left it or its iteration."""

    statement: Any
    depth: int
    left: str
    skipped: str


class LaneWriter(KernelWriter):
    """Writes one function for lanes."""

    place = PLACE

    def __init__(
        self, module: LaneModule, plan: nodes.FunctionPlan, name: str, varying: tuple[bool, ...], by_all: bool
    ) -> None:
        super().__init__(plan, module.fused, module.sincos)
        self.module, self.name, self.given, self.lanes = module, name, varying, module.lanes
        self.by_all = by_all
        self.result = self.words_of(plan.result)
        self.varying_results = [False] * len(self.result)
        self.varying_loops: set[int] = set()
        self.lanes_end = False  # whether some lanes may return, or leave a loop or its iteration, while others continue

    def written(self) -> tuple[bool, ...]:
        """Write the function until no further words vary; return which words of the result do."""
        while True:
            self.changed = False
            try:
                self._write()
            except _Again:
                continue
            if not self.changed:
                return tuple(self.varying_results)

    def _write(self) -> None:
        arguments, given = [f"{self.vector('i1')} %live"], iter(self.given)
        parameters: list[tuple[nodes.Variable[Type], Registers]] = []
        for v in self.plan.parameters:
            registers = []
            for k, word in enumerate(self.words_of(v.type)):
                text, varies = f"%a{v.number}.{k}", next(given)
                registers.append(Varying(text) if varies else text)
                arguments.append(f"{self.type(word, varies)} {text}")
            parameters.append((v, tuple(registers)))
        self.kinds = [self.type(w, v) for w, v in zip(self.result, self.varying_results, strict=True)]
        self.result_varies = tuple(self.varying_results)
        f = Function(bundle(self.kinds), self.name, arguments, attributes=ATTRIBUTES)
        self.begin(f)
        self.results = [self.memory(kind) for kind in self.kinds]
        self.live_slot = self.memory(self.vector("i1"))
        self.loops: list[LaneLoop] = []
        self.blocks: list[tuple[int, bool]] = []  # open blocks, and whether lanes may have left them
        self.live = ALL_BITS if self.by_all else "%live"
        self.blocks.append((id(self.plan.body), False))
        for v, values in parameters:
            self.set(v, values)
        self.blocks.pop()
        self.block(self.plan.body)
        write_return(f, self.kinds, [f.load(kind, slot) for kind, slot in zip(self.kinds, self.results, strict=True)])
        self.end()

    # lanes

    @property
    def numbers(self) -> str:
        """Return the numbers of the lanes."""
        return f"<{', '.join(f'i64 {k}' for k in range(self.lanes))}>"

    def any(self, mask: str) -> str:
        """Return whether a mask contains any lane."""
        n = self.lanes
        return self.f.value(f"icmp ne i{n} {self.f.value(f'bitcast <{n} x i1> {self.bits(mask)} to i{n}')}, 0")

    @property
    def live(self) -> str:
        """Return the active lanes as a mask."""
        return self.f.load(self.vector("i1"), self.live_slot)

    @live.setter
    def live(self, mask: str) -> None:
        self.f.store(self.vector("i1"), mask, self.live_slot)

    def first(self, x: str) -> str:
        """Return the whole number x of the first active lane; zero without any."""
        if not vary(x):
            return x
        f, n = self.f, self.lanes
        bits, count = f.value(f"bitcast <{n} x i1> {self.bits(self.live)} to i{n}"), f"@llvm.cttz.i{n}"
        f.declarations[f"declare i{n} {count}(i{n}, i1)"] = None
        lane = f.binary("and", f"i{n}", f.call(f"i{n}", count, f"i{n} {bits}", "i1 false"), n - 1)
        return f.value(f"extractelement {self.vector('i64')} {self.both(x, self.live)}, i{n} {lane}")

    def both(self, a: str, b: str) -> str:
        return self.f.binary("and", self.vector("i1"), a, b)

    def either(self, a: str, b: str) -> str:
        return self.f.binary("or", self.vector("i1"), a, b)

    def without(self, a: str, b: str) -> str:
        """Return the lanes of a that are not in b."""
        return self.both(a, self.f.binary("xor", self.vector("i1"), b, ALL_BITS))

    def mask_slot(self) -> str:
        """Return memory for a mask."""
        return self.memory(self.vector("i1"))

    def passed_lanes(self) -> list[str]:
        mask = self.mask_slot()
        self.f.store(self.vector("i1"), self.live, mask)
        return [f"ptr {mask}"]

    # memory

    def addresses(self, kind: str, interleaved: bool, data: str, at: str) -> str:
        """Return addresses of an element for each lane; inactive lanes get a readable address."""
        f, many = self.f, self.vector("i64")
        number = self.both(self.spread(at, "i64"), self.live)
        if interleaved:
            shifted = f.binary("shl", many, number, f"splat (i64 {self.lanes.bit_length() - 1})")
            number = f.binary("or", many, shifted, self.numbers)
        base = f"{self.type('ptr', vary(data))} {data}"
        return f.value(f"getelementptr {kind}, {base}, {many} {number}")

    def gathered(self, kind: str, places: str, bits: str) -> str:
        """Return the elements at addresses."""
        n, size, wide = self.lanes, BYTES[kind], f"<{self.lanes} x {kind}>"
        name = f"@llvm.masked.gather.v{n}{MANGLED[kind]}.v{n}p0"  # with LLVM 20's form of the alignment
        self.f.declarations[f"declare {wide} {name}(<{n} x ptr>, i32, <{n} x i1>, {wide})"] = None
        return self.f.call(wide, name, f"<{n} x ptr> {places}", f"i32 {size}", f"<{n} x i1> {bits}", f"{wide} poison")

    def scattered(self, kind: str, x: str, places: str, bits: str) -> None:
        """Write elements to addresses."""
        n, size, wide = self.lanes, BYTES[kind], f"<{self.lanes} x {kind}>"
        name = f"@llvm.masked.scatter.v{n}{MANGLED[kind]}.v{n}p0"
        self.f.declarations[f"declare void {name}({wide}, <{n} x ptr>, i32, <{n} x i1>)"] = None
        self.f.call("void", name, f"{wide} {x}", f"<{n} x ptr> {places}", f"i32 {size}", f"<{n} x i1> {bits}")

    def moved(self, type: ArrayType, array: Registers, count: str) -> Registers:
        return (array[0], self.added(array[1], count))

    def fetched(self, type: ArrayType, place: Registers) -> str:
        f, kind, (data, at) = self.f, ITEMS[type.dtype], place
        if vary(data, at):
            places = self.addresses(kind, type.interleaved, data, at)
            return Varying(self.gathered(kind, places, self.bits(self.live) if vary(data) else ALL))
        if not type.interleaved:
            return f.load(kind, data, at)
        return Varying(f.load(f"<{self.lanes} x {kind}>", data, at, align=self.lanes * BYTES[kind]))

    def put(self, type: ArrayType, place: Registers, values: Registers) -> None:
        """Write a number to a place, in the active lanes."""
        f, kind, n, (data, at) = self.f, ITEMS[type.dtype], self.lanes, place
        wide = f"<{n} x {kind}>"
        x = self.narrowed(type, Varying(self.spread(values[0], words_of(type.item)[0])))
        bits = self.bits(self.live)
        if not vary(data, at):
            if not type.interleaved:
                self.require_knowledge()
                raise KernelError(f"{self.plan.name}: all lanes write to the same element of a shared array")
            address = f.at(wide, data, at)
            old = f.load(wide, address, align=n * BYTES[kind])
            f.store(wide, self.merged(kind, x, old, bits), address, align=n * BYTES[kind])
            return
        places = self.addresses(kind, type.interleaved, data, at)
        if type.interleaved and not vary(data) and n < MASKED:  # inactive lanes write their old number again
            x, bits = f.select(bits, x, self.gathered(kind, places, ALL), wide, f"<{n} x i1>"), ALL
        self.scattered(kind, x, places, bits)

    def merged(self, kind: str, new: str, old: str, bits: str) -> str:
        """Return numbers for memory, new in the active lanes.

        Bit operations select them, because masked stores are slow on many processors.
        """
        f, wide = self.f, f"<{self.lanes} x {kind}>"
        if BYTES[kind] != 8:
            return f.select(bits, new, old, wide, f"<{self.lanes} x i1>")
        words, mask = self.vector("i64"), self.live
        a, b = (x if kind == "i64" else f.cast("bitcast", wide, x, words) for x in (new, old))
        chosen = self.either(self.both(a, mask), self.without(b, mask))
        return chosen if kind == "i64" else f.cast("bitcast", words, chosen, wide)

    @contextmanager
    def each(self, count: str, step: int = 1) -> Iterator[str]:
        """Write a loop over indices below a count, separate for each lane."""
        f = self.f
        if not vary(count):
            with super().each(count, step) as i:
                yield i
            return
        before, head, body, done = self.live, f.fresh("head"), f.fresh("body"), f.fresh("done")
        entry, index, following = f.block, f"%{f.fresh('i')}", f"%{f.fresh('j')}"
        f.jump(head)
        f.label(head)
        mark = f.reserve()
        mask = self.both(before, self.less(index, count))
        self.live = mask
        f.branch(self.any(mask), body, done)
        f.label(body)
        yield index
        f.line(f"{following} = add i64 {index}, {step}")
        f.fill_in(mark, [f"  {index} = phi i64 [ 0, %{entry} ], [ {following}, %{f.block} ]"])
        f.jump(head)
        f.label(done)
        self.live = before

    # statements

    def block(self, statements: list[nodes.Statement], varies: bool = False) -> None:
        """Write statements; `varies` says whether active lanes of the surrounding block may be inactive here.

        The code that follows is executed in any case, possibly without lanes.
        """
        f = self.f
        rest = f.fresh("rest")
        self.blocks.append((id(statements), varies))
        for k, s in enumerate(statements):
            self.statement(s)
            if isinstance(s, (nodes.Return, nodes.Break, nodes.Continue)):
                break
            if may_end(s) and k + 1 < len(statements):
                on = f.fresh("on")
                f.branch(self.any(self.live), on, rest)
                f.label(on)
        self.blocks.pop()
        f.jump(rest)
        f.label(rest)

    def set_slots(self, v: nodes.Variable[Type], values: Registers) -> None:
        """Set a variable in the active lanes."""
        block = self.scopes.block[v.number]
        depth = next(k for k in range(len(self.blocks) - 1, -1, -1) if self.blocks[k][0] == block)
        some = any(varies for _, varies in self.blocks[depth + 1 :])
        bits = ""
        for k, (slot, x) in enumerate(zip(self.slots_of(v), values, strict=True)):
            if not slot.varies:
                if vary(x) or some:
                    self.varying.add((v.number, k))
                    self.changed = True
                else:
                    self.f.store(slot.word, x, slot.address)
                continue
            text, kind = self.spread(x, slot.word), self.vector(slot.word)
            if some:
                bits = bits or self.bits(self.live)
                text = self.blended(bits, text, self.f.load(kind, slot.address), slot.word)
            self.f.store(kind, text, slot.address)

    def branch_on(self, condition: str, s: nodes.If) -> None:
        if not vary(condition):
            super().branch_on(condition, s)
            return
        f = self.f
        before = self.live
        yes, no = self.both(before, condition), self.without(before, condition)
        remaining = []
        for lanes, statements in ((yes, s.then), (no, s.otherwise)):
            if not statements:
                remaining.append(lanes)
                continue
            some, none = f.fresh("some"), f.fresh("none")
            self.live = lanes
            f.branch(self.any(lanes), some, none)
            f.label(some)
            self.block(statements, True)
            f.jump(none)
            f.label(none)
            remaining.append(self.live)
        self.live = self.either(*remaining)

    def loop_for(self, s: nodes.For) -> None:
        f, counter = self.f, s.counter
        (begin,), (end,) = self.registers(s.begin), self.registers(s.end)
        loop, outside = self.open(s)
        varies = vary(begin, end) or id(s) in self.varying_loops
        head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
        [(slot, _, wide)] = self.slots_of(counter)
        if vary(begin) and not wide:
            self.varying.add((counter.number, 0))
            self.changed = True
        kind = self.type("i64", wide)
        f.store(kind, self.spread(begin, "i64") if wide else begin, slot)
        f.jump(head)
        f.label(head)
        i = self.value(f"load {kind}, ptr {slot}", wide)
        self.test(self.compared(f"icmp {'slt' if s.step > 0 else 'sgt'}", "i64", i, end), outside, body, done)
        self.round(loop, s.body, varies)
        f.store(kind, self.binary("add", "i64", self.value(f"load {kind}, ptr {slot}", wide), str(s.step)), slot)
        f.branch(self.any(self.live), head, done) if may_end(s.body) else f.jump(head)
        f.label(done)
        self.close(loop, outside)

    def loop_while(self, s: nodes.While) -> None:
        f = self.f
        loop, outside = self.open(s)
        head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
        f.jump(head)
        f.label(head)
        if s.head:
            self.block(s.head, id(s) in self.varying_loops)
        (condition,) = self.registers(s.test)
        if vary(condition) and id(s) not in self.varying_loops:
            self.varying_loops.add(id(s))
            self.changed = True
        self.test(condition, outside, body, done)
        self.round(loop, s.body, id(s) in self.varying_loops)
        f.branch(self.any(self.live), head, done) if may_end(s.body) else f.jump(head)
        f.label(done)
        self.close(loop, outside)

    def rounds(self, s: nodes.Rounds) -> None:
        f = self.f
        loop, outside = self.open(s)
        done = f.fresh("done")
        for statements in s.rounds:
            self.round(loop, statements, id(s) in self.varying_loops)
            if may_end(statements):
                following = f.fresh("next")
                f.branch(self.any(self.live), following, done)
                f.label(following)
        f.jump(done)
        f.label(done)
        self.close(loop, outside)

    def open(self, s: nodes.Statement) -> tuple[LaneLoop, str]:
        """Begin a loop; return it, and memory for the lanes that its test ends."""
        loop = LaneLoop(s, len(self.blocks), self.mask_slot(), self.mask_slot())
        outside = self.mask_slot()
        for slot in (loop.left, loop.skipped, outside):
            self.f.store(self.vector("i1"), "zeroinitializer", slot)
        return loop, outside

    def test(self, condition: str, outside: str, body: str, done: str) -> None:
        """Continue in the lanes for which a condition holds."""
        f, kind = self.f, self.vector("i1")
        if not vary(condition):
            f.branch(condition, body, done)
        else:
            before = self.live
            f.store(kind, self.either(f.load(kind, outside), self.without(before, condition)), outside)
            on = self.both(before, condition)
            self.live = on
            f.branch(self.any(on), body, done)
        f.label(body)

    def round(self, loop: LaneLoop, statements: list[nodes.Statement], varies: bool) -> None:
        """Write one iteration of a loop."""
        self.loops.append(loop)
        self.block(statements, varies)
        self.loops.pop()
        kind = self.vector("i1")
        self.live = self.either(self.live, self.f.load(kind, loop.skipped))
        self.f.store(kind, "zeroinitializer", loop.skipped)

    def close(self, loop: LaneLoop, outside: str) -> None:
        """Continue after a loop with all lanes that reached it."""
        kind = self.vector("i1")
        self.live = self.either(self.either(self.live, self.f.load(kind, outside)), self.f.load(kind, loop.left))

    def leave_loop(self, s: nodes.Break) -> None:
        self.end_round(self.loops[-1].left)

    def end_iteration(self, s: nodes.Continue) -> None:
        self.end_round(self.loops[-1].skipped)

    def end_round(self, slot: str) -> None:
        """Move the active lanes to those of a slot."""
        loop, kind = self.loops[-1], self.vector("i1")
        self.note_end(any(varies for _, varies in self.blocks))
        if any(varies for _, varies in self.blocks[loop.depth + 1 :]) and id(loop.statement) not in self.varying_loops:
            self.varying_loops.add(id(loop.statement))
            self.changed = True
        self.f.store(kind, self.either(self.f.load(kind, slot), self.live), slot)
        self.live = "zeroinitializer"

    def note_end(self, varies: bool) -> None:
        """Note that lanes end here, some of them alone."""
        if varies and not self.lanes_end:
            self.lanes_end = self.changed = True

    def leave_function(self, s: nodes.Return) -> None:
        f, values = self.f, self.registers(s.value)
        some = any(varies for _, varies in self.blocks)
        self.note_end(some)
        for k, (word, x) in enumerate(zip(self.result, values, strict=True)):
            if (vary(x) or some) and not self.varying_results[k]:
                self.varying_results[k] = True
                self.changed = True
            if self.result_varies[k]:
                kind = self.kinds[k]
                old = f.load(kind, self.results[k])
                f.store(kind, self.blended(self.bits(self.live), self.spread(x, word), old, word), self.results[k])
            elif not vary(x):
                f.store(word, x, self.results[k])
        self.live = "zeroinitializer"

    def require_knowledge(self) -> None:
        """Continue if everything that varies was known before."""
        if self.changed:
            raise _Again

    def call(self, x: nodes.Call) -> Registers:
        f = self.f
        given, registers = [""], list[str]()
        for argument in x.arguments:
            values = self.registers(argument)
            given += [f"{self.type(w, vary(r))} {r}" for w, r in zip(self.words_of(argument.type), values, strict=True)]
            registers += values
        self.require_knowledge()
        by_all = self.by_all and not self.lanes_end and not any(varies for _, varies in self.blocks)
        function = self.module.function(x.function, tuple(map(vary, registers)), by_all)
        given[0] = f"{self.vector('i1')} {self.live}"
        kinds = [self.type(w, v) for w, v in zip(self.words_of(x.type), function.varies, strict=True)]
        results = members(f, kinds, f.call(bundle(kinds), f"@{function.name}", *given))
        return tuple(Varying(r) if v else r for r, v in zip(results, function.varies, strict=True))


def write_multiples(w: LaneWriter, x: nodes.Special, arguments: list[Registers]) -> Registers:
    """Write `subtract_multiples`."""
    type, (array, (target,), (source,), (stride,), (length,), *factors) = x.arguments[0].type, arguments
    assert isinstance(type, ArrayType)
    with w.each(length) as j:
        place, start = w.moved(type, array, w.added(target, j)), source
        total = real(0.0) if x.name == "write_multiples" else w.get(type, place)[0]
        for (factor,) in factors:
            total = w.less_product(total, factor, *w.get(type, w.moved(type, array, w.added(start, j))))
            start = w.added(start, stride)
        w.put(type, place, (total,))
    return ()


def write_product(w: LaneWriter, x: nodes.Special, arguments: list[Registers]) -> Registers:
    """Write `subtract_product`."""
    type, (array, *numbers) = x.arguments[0].type, arguments
    assert isinstance(type, ArrayType)
    (target,), (stride,), (source,), (step,), (at,), (across,), (along,), (rows,), (length,), (count,) = numbers

    def place(begin: str, k: str) -> Registers:
        return w.moved(type, array, w.added(begin, k))

    with w.each(rows) as i:
        row, factors = w.added(target, w.times(i, stride)), w.added(at, w.times(i, across))
        if x.name == "write_product":
            with w.each(length) as j:
                w.put(type, place(row, j), (real(0.0),))
        with w.each(count) as k:
            (factor,) = w.get(type, place(factors, w.times(k, along)))
            begin = w.added(source, w.times(k, step))
            with w.each(length) as j:
                (old,), (new,) = w.get(type, place(row, j)), w.get(type, place(begin, j))
                w.put(type, place(row, j), (w.less_product(old, factor, new),))
    return ()


def write_products(w: LaneWriter, x: nodes.Special, arguments: list[Registers]) -> Registers:
    """Write `sum_of_products`, with as many partial sums as for one robot."""
    f, kind = w.f, w.vector("double")
    first_type, second_type = (a.type for a in x.arguments[:2] if nodes.is_array(a))
    a, b, (at,), (begin,), (length,) = arguments
    slots = [w.memory(kind) for _ in range(LANES)]
    for slot in slots:
        f.store(kind, "zeroinitializer", slot)
    first, second = w.moved(first_type, a, at), w.moved(second_type, b, begin)
    with w.each(length, LANES) as j:
        bits = w.bits(w.live) if vary(length) else ""
        for k, slot in enumerate(slots):
            index = w.added(j, str(k))
            left, right = w.moved(first_type, first, index), w.moved(second_type, second, index)
            factors = *w.get(first_type, left), *w.get(second_type, right)
            old = Varying(f.load(kind, slot))
            if w.fuses:
                total = w.intrinsic("fma", *factors, old)
            else:
                total = w.binary("fadd", "double", old, w.binary("fmul", "double", *factors))
            f.store(kind, w.blended(bits, total, old, "double") if bits else total, slot)
    sums: list[str] = [Varying(f.load(kind, slot)) for slot in slots]
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [w.binary("fadd", "double", x, y) for x, y in zip(sums[:half], sums[half:], strict=True)]
    return (sums[0],)


LaneWriter.specials = {
    "call_machine": LaneWriter.machine_call, "subtract_multiples": write_multiples, "write_multiples": write_multiples,
    "subtract_product": write_product, "write_product": write_product, "sum_of_products": write_products,
    "lane": lambda w, *_: (Varying(w.numbers),), "first_of_lanes": lambda w, _, arguments: (w.first(*arguments[0]),),
}  # fmt: skip


def write_lanes(plan: nodes.Plan, lanes: int, fused: bool, fma: bool, name: str) -> str:
    """Return a module with `i64 name(i64 ...)`, a kernel of tables and whole numbers in `lanes` lanes.

    The function returns the sum of the lanes' results.
    """
    module, p = LaneModule(lanes, fused), plan.functions[-1]
    kernel = module.function(p, (False,) * len(p.parameters), True)
    f = Function("i64", name, [f"i64 %x{k}" for k in range(len(p.parameters))], "external", ATTRIBUTES)
    given = [f"<{lanes} x i64> {ALL_BITS}", *table_arguments(f, p)]
    kind = f"<{lanes} x i64>" if kernel.varies[0] else "i64"
    value = f.call(kind, f"@{kernel.name}", *given)
    if kernel.varies[0]:
        reduce = f"@llvm.vector.reduce.add.v{lanes}i64"
        f.declarations[f"declare i64 {reduce}({kind})"] = None
        value = f.call("i64", reduce, f"{kind} {value}")
    f.ret("i64", value)
    functions = [*module.written, f]
    texts, declarations = [str(x) for x in functions], {d: None for x in functions for d in x.declarations}
    for width in sorted(module.sincos):
        made = sincos_ir("double", width, fma)
        declarations |= dict.fromkeys(made.declarations)
        texts.append(made.definition)
    return "\n".join([*declarations, *texts, "!0 = !{}"])
