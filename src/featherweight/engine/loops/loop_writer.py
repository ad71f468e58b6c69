"""A plan as LLVM IR for one robot: control flow, lists, checks, and long tuples in memory.

Long tuples are in memory where they are arguments or variables: functions that pass them on pass an address, and load the words
that they use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from ..backends.llvm.ir import Function
from ..backends.llvm.ir import Type as MachineType
from ..backends.llvm.python_objects import DATA, DIMS
from ..backends.llvm.trig import sincos_ir
from . import plan as nodes
from .kernel_sources import INDEX, LENGTH, RANGE, KernelError
from .kernel_types import ArrayType, TableType, TupleType, Type
from .kernel_writer import (
    ATTRIBUTES,
    BYTES,
    ITEMS,
    KernelWriter,
    Registers,
    bundle,
    is_number,
    members,
    real,
    words_of,
    write_return,
)
from .views import LANES, TILE
from .workspaces import (
    ALLOCATE,
    Mark,
    begin_workspace,
    end_workspace,
    has_failed,
    holds_arrays,
    loops_that_release,
    mark_workspace,
    release_workspace,
    that_allocate,
    workspace_parts,
)

WORKSPACE, FAILED_BLOCK = "%workspace", "no.memory"  # in functions that make lists
RESULT = "%result"  # the address of a long result
SUBTRACT, WRITE = "subtract_product", "write_product"  # functions of matrix products
LONG = 16  # words from which a tuple is in memory


def is_long(type: Type) -> bool:
    """Return whether values of a type are in memory where they are arguments or variables."""
    return isinstance(type, TupleType) and len(words_of(type)) >= LONG


def element_kind(type: ArrayType) -> str:
    """Return the machine type of an array's elements in memory."""
    return f"[{len(words_of(type.dtype))} x i64]" if isinstance(type.dtype, TupleType) else ITEMS[type.dtype]


def element_bytes(type: ArrayType) -> int:
    return 8 * len(words_of(type.dtype)) if isinstance(type.dtype, TupleType) else BYTES[ITEMS[type.dtype]]


class LoopWriter(KernelWriter):
    """Writes one function of a plan, for one robot."""

    def __init__(
        self,
        plan: nodes.FunctionPlan,
        names: dict[int, str],
        fused: bool,
        allocating: set[int],
        checked: bool,
        dispatcher: str = "",
        kernel: bool = False,
    ) -> None:
        super().__init__(plan, fused, set())
        self.names, self.allocating, self.checked, self.dispatcher, self.kernel = names, allocating, checked, dispatcher, kernel
        self.allocates = id(plan) in allocating
        self.releasing = loops_that_release(plan, allocating) if self.allocates else set()
        self.long_result = is_long(plan.result) and not kernel
        self.result = ["i1"] * checked + ([] if self.long_result else words_of(plan.result))
        self.loops: list[tuple[str, str]] = []  # labels of the next iteration and of the end of each open loop
        self.mark: Mark | None = None  # size of the workspace in use before the function
        self.products: set[str] = set()  # functions of matrix products that the module needs

    def written(self) -> Function:
        parameters = self.plan.parameters
        registers = [tuple(f"%a{v.number}.{k}" for k in range(len(words_of(v.type)))) for v in parameters]
        arguments = [f"ptr {WORKSPACE}"] * self.allocates + ["ptr %record"] * self.checked
        arguments += [f"ptr noalias {RESULT}"] * self.long_result
        for v, words in zip(parameters, registers, strict=True):
            if self.by_address(v):
                arguments.append(f"ptr noalias readonly %a{v.number}")
            else:
                arguments += [f"{w} {r}" for w, r in zip(words_of(v.type), words, strict=True)]
        f = Function(bundle(self.result), self.names[id(self.plan)], arguments, attributes=ATTRIBUTES)
        self.begin(f)
        for v, words in zip(parameters, registers, strict=True):
            if not self.by_address(v):
                self.set(v, words)
            elif v.number in self.scopes.final:
                self.values[v.number] = (f"%a{v.number}",)
            else:
                self.set(v, self.loaded(f"%a{v.number}", v.type))
        if self.allocates and not holds_arrays(self.plan.result):
            self.mark = mark_workspace(f, WORKSPACE)
        self.block(self.plan.body)
        f.line("unreachable")
        if self.allocates:  # reached without memory, here or in a called function
            f.label(FAILED_BLOCK)
            f.ret(bundle(self.result), "zeroinitializer") if self.result else f.ret()
        self.end()
        return f

    def by_address(self, v: nodes.Variable[Type]) -> bool:
        """Return whether a parameter is passed by its address."""
        return is_long(v.type) and not self.kernel

    # control flow

    def loop_for(self, s: nodes.For) -> None:
        f = self.f
        (begin,), (end,) = self.registers(s.begin), self.registers(s.end)
        mark = mark_workspace(f, WORKSPACE) if id(s) in self.releasing else None
        following, done = f.fresh("next"), f.fresh("done")
        first, stop = (int(x) if is_number(x) else x for x in (begin, end))
        with f.loop(stop, first, s.step) as index:
            if mark is not None:
                release_workspace(f, WORKSPACE, mark)
            self.values[s.counter.number] = (index,)
            self.iteration(s.body, following, done)
        f.jump(done)
        f.label(done)

    def loop_while(self, s: nodes.While) -> None:
        f = self.f
        head, body, following, done = f.fresh("head"), f.fresh("body"), f.fresh("next"), f.fresh("done")
        mark = mark_workspace(f, WORKSPACE) if id(s) in self.releasing else None
        f.jump(head)
        f.label(head)
        if mark is not None:
            release_workspace(f, WORKSPACE, mark)
        self.block(s.head)
        f.branch(self.registers(s.test)[0], body, done)
        f.label(body)
        self.iteration(s.body, following, done)
        f.jump(head)
        f.label(done)

    def rounds(self, s: nodes.Rounds) -> None:
        done = self.f.fresh("done")
        for statements in s.rounds:
            self.iteration(statements, self.f.fresh("next"), done)
        self.f.jump(done)
        self.f.label(done)

    def iteration(self, statements: list[nodes.Statement], following: str, done: str) -> None:
        """Write an iteration of a loop, which ends at the label `following`; `Break` jumps to `done`."""
        self.loops.append((following, done))
        self.block(statements)
        self.loops.pop()
        self.f.jump(following)
        self.f.label(following)

    def leave_loop(self, s: nodes.Break) -> None:
        self.jump(self.loops[-1][1])

    def end_iteration(self, s: nodes.Continue) -> None:
        self.jump(self.loops[-1][0])

    def jump(self, label: str) -> None:
        """Jump to a label; begin a block that LLVM removes, because it is never reached."""
        self.f.jump(label)
        self.f.label(self.f.fresh("never"))

    def leave_function(self, s: nodes.Return) -> None:
        f = self.f
        found = self.registers(s.value)
        if self.long_result:
            self.write(RESULT, self.plan.result, found)
            found = ()
        if self.mark is not None:
            release_workspace(f, WORKSPACE, self.mark)
        write_return(f, self.result, (*["false"] * self.checked, *found))
        f.label(f.fresh("never"))

    # checks of checked kernels

    def require(self, condition: str, what: int, where: int, *values: str) -> None:
        """Continue if a condition holds; otherwise leave the kernel, with the place and the values in the record."""
        f = self.f
        on, failed = f.fresh("on"), f.fresh("failed")
        f.branch(condition, on, failed, odds=(1_000_000, 1))
        f.label(failed)
        for k, x in enumerate((str(what), str(where), *values)):
            f.store("i64", x, f.at("i64", "%record", k))
        self.leave_failed()
        f.label(on)

    def leave_failed(self) -> None:
        """Return from a function of a failed kernel."""
        value = "true" if len(self.result) == 1 else f"{{ i1 true, {', '.join(f'{w} poison' for w in self.result[1:])} }}"
        self.f.ret(bundle(self.result), value)

    # arrays

    def moved(self, type: ArrayType, array: Registers, count: str) -> Registers:
        return (self.f.at(element_kind(type), array[0], count),)

    def fetched(self, type: ArrayType, place: Registers) -> str:
        return self.f.load(ITEMS[type.dtype], place[0])

    def get(self, type: ArrayType, place: Registers) -> Registers:
        return self.loaded(place[0], type.dtype) if isinstance(type.dtype, TupleType) else super().get(type, place)

    def put(self, type: ArrayType, place: Registers, values: Registers) -> None:
        if isinstance(type.dtype, TupleType):
            self.write(place[0], type.dtype, values)
        else:
            self.f.store(ITEMS[type.dtype], self.narrowed(type, values[0]), place[0])

    def fill_with(self, type: ArrayType, array: Registers, size: str, values: Registers) -> None:
        if all(x in (real(0.0), "0", "false") for x in values):
            self.f.clear_bytes(array[0], self.times(size, str(element_bytes(type))))
        else:
            super().fill_with(type, array, size, values)

    def allocate(self, x: nodes.Allocate) -> Registers:
        f = self.f
        shape = [self.registers(n)[0] for n in x.shape]
        size = self.times(self.product(shape), str(element_bytes(x.type)))
        data = f.call("ptr", f"@{ALLOCATE}", f"ptr {WORKSPACE}", f"i64 {size}")
        there = f.fresh("there")
        f.branch(f.value(f"icmp eq ptr {data}, null"), FAILED_BLOCK, there)
        f.label(there)
        return (data, *shape)

    # long tuples

    def words(self, v: nodes.Variable[Type], begin: int, end: int) -> Registers:
        if is_long(v.type):
            address = self.f.at("i64", self.values[v.number][0], begin)
            return tuple(loaded_words(self.f, words_of(v.type)[begin:end], address))
        return super().words(v, begin, end)

    def set(self, v: nodes.Variable[Type], values: Registers) -> None:
        if not is_long(v.type):
            super().set(v, values)
            return
        if v.number not in self.values:
            self.values[v.number] = (self.memory_for(v.type),)
        self.write(self.values[v.number][0], v.type, values)

    def assign(self, s: nodes.Assign) -> None:
        v = s.variable
        if is_long(v.type) and v.number in self.scopes.final and (self.stays(s.value) or isinstance(s.value, nodes.Call)):
            self.values[v.number] = (self.in_memory(s.value),)
        else:
            super().assign(s)

    def stays(self, x: nodes.Value) -> bool:
        """Return whether the memory of a value stays as it is while a variable that is set once has this value."""
        while isinstance(x, nodes.TupleItem):
            x = x.whole
        return isinstance(x, nodes.Read) and x.variable.number in self.scopes.final

    def address(self, x: nodes.Value) -> str:
        """Return the address of a variable in memory, or of an item of it; an empty text for other values."""
        if isinstance(x, nodes.Read):
            return self.values[x.variable.number][0] if is_long(x.variable.type) else ""
        if isinstance(x, nodes.TupleItem) and (whole := self.address(x.whole)):
            return self.f.at("i64", whole, sum(len(words_of(t)) for t in x.whole.type.items[: x.number]))
        return ""

    def in_memory(self, x: nodes.Value) -> str:
        """Return the address of a long tuple, which is written to memory unless it is there."""
        if not isinstance(x, nodes.Call) and (address := self.address(x)):
            return address
        address = self.memory_for(x.type)
        if isinstance(x, nodes.Call):
            self.call_function(x, address)
        else:
            self.write(address, x.type, self.registers(x))
        return address

    def memory_for(self, type: Type) -> str:
        return self.memory("i64", len(words_of(type)))

    def write(self, address: str, type: Type, registers: Registers) -> None:
        """Write the words of a value to memory."""
        f = self.f
        for k, (w, r) in enumerate(zip(words_of(type), registers, strict=True)):
            f.store(*(("i64", f.cast("zext", "i1", r, "i64")) if w == "i1" else (w, r)), f.at("i64", address, k), align=8)

    def loaded(self, address: str, type: Type) -> Registers:
        """Return the registers of a value in memory."""
        return tuple(loaded_words(self.f, words_of(type), address))

    # calls

    def call(self, x: nodes.Call) -> Registers:
        return self.loaded(self.in_memory(x), x.type) if is_long(x.type) else self.call_function(x)

    def call_function(self, x: nodes.Call, result: str = "") -> Registers:
        """Write a call; a long result goes to the address `result`."""
        allocates = id(x.function) in self.allocating
        given = [f"ptr {WORKSPACE}"] * allocates + ["ptr %record"] * self.checked + [f"ptr {result}"] * bool(result)
        for argument in x.arguments:
            if is_long(argument.type):
                given.append(f"ptr {self.in_memory(argument)}")
            else:
                given += [f"{w} {r}" for w, r in zip(words_of(argument.type), self.registers(argument), strict=True)]
        f, words = self.f, ["i1"] * self.checked + ([] if result else words_of(x.type))
        value = f.call(bundle(words), f"@{self.names[id(x.function)]}", *given)
        if allocates:
            there = f.fresh("there")
            f.branch(has_failed(f, WORKSPACE), FAILED_BLOCK, there)
            f.label(there)
        registers = tuple(members(f, words, value))
        if self.checked:
            failed, on = f.fresh("failed"), f.fresh("on")
            f.branch(registers[0], failed, on, odds=(1, 1_000_000))
            f.label(failed)
            self.leave_failed()
            f.label(on)
        return registers[self.checked :]

    def machine_call(self, x: nodes.Special, arguments: list[Registers]) -> Registers:
        """Call `int f(double **arguments)` at a nonzero address, or the dispatcher's function for this number."""
        if not self.dispatcher:
            return super().machine_call(x, arguments)
        (address,), (pointers, _) = arguments
        self.f.call("void", f"@{self.dispatcher}", f"i64 {address}", f"ptr {pointers}")
        return ()


def write_multiples(w: LoopWriter, x: nodes.Special, arguments: list[Registers], from_zero: bool = False) -> Registers:
    """Write `subtract_multiples` with vectors: LLVM could not know that rows of one matrix do not overlap."""
    f, lanes = w.f, MachineType("double", LANES)
    (data, size), (target,), (source,), (stride,), (length,), *factors = arguments
    starts = [f.add(source, f.mul(stride, k)) for k in range(len(factors))]
    require_lanes(w, [(start, size) for start in (target, *starts)], length, x.where)
    spread = [f.shuffle(lanes, f.insert(lanes, "poison", a, 0), "poison", [0] * LANES) for (a,) in factors]
    with f.loop(length, step=LANES) as j:
        place = f.at("double", data, f.add(target, j))
        total = "zeroinitializer" if from_zero else f.load(lanes.ir, place, align=8)
        for start, factor in zip(starts, spread, strict=True):
            row = f.load(lanes.ir, f.at("double", data, f.add(start, j)), align=8)
            total = less_product(f, lanes, total, factor, row, w.fuses)
        f.store(lanes.ir, total, place, align=8)
    return ()


def less_product(f: Function, type: MachineType, total: str, a: str, b: str, fused: bool) -> str:
    """Return total - a b, rounded once if `fused`."""
    if fused:
        return f.intrinsic("fma", type, f.value(f"fneg {type.ir} {a}"), b, total)
    return f.binary("fsub", type.ir, total, f.binary("fmul", type.ir, a, b))


def write_product(w: LoopWriter, x: nodes.Special, arguments: list[Registers], name: str = SUBTRACT) -> Registers:
    """Write `subtract_product` as a call of a shared function."""
    f = w.f
    (data, size), *numbers = arguments
    (target,), (stride,), (source,), (step,), (at,), (across,), (along,), (rows,), (length,), (count,) = numbers
    if w.checked:
        some = f.both(f.less(0, rows), f.less(0, count))
        last, further = (f.select(some, f.sub(x, 1), 0) for x in (rows, count))
        ends = [target, f.add(target, f.mul(last, stride)), source, f.add(source, f.mul(further, step))]
        require_lanes(w, [(x, size) for x in ends], f.select(some, length, 0), x.where)
        for row, factor in product(("0", last), ("0", further)):
            corner = f.add(at, f.add(f.mul(row, across), f.mul(factor, along)))
            inside = f.both(f.less(-1, corner), f.less(corner, size))
            w.require(f.either(inside, f.negation(some)), INDEX, x.where, corner, size)
    w.products.add(name)
    f.call("void", f"@{name}", f"ptr {data}", *(f"i64 {x}" for (x,) in numbers))
    return ()


def product_function(name: str, fused: bool) -> Function:
    """Return the function of `subtract_product`, or of the same from zero: a few rows at a time stay in registers."""
    lanes = MachineType("double", LANES)
    words = "target", "stride", "source", "step", "at", "across", "along", "rows", "length", "count"
    f = Function("void", name, ["ptr %data", *(f"i64 %{x}" for x in words)], "internal", f"noinline {ATTRIBUTES}")
    done: str | int = 0
    for tile in (TILE, 2, 1):
        tiles = f.add(done, f.mul(f.div(f.sub("%rows", done), tile), tile))
        with f.loop(tiles, begin=done, step=tile) as i:
            first, factors = f.add("%target", f.mul(i, "%stride")), f.add("%at", f.mul(i, "%across"))
            rows = [f.add(first, f.mul("%stride", t)) for t in range(tile)]
            starts = [f.add(factors, f.mul("%across", t)) for t in range(tile)]
            with f.loop("%length", step=LANES) as j:
                places = [f.at("double", "%data", f.add(row, j)) for row in rows]
                begin = ["zeroinitializer" if name == WRITE else f.load(lanes.ir, x, align=8) for x in places]
                totals = _tile(f, lanes, begin, starts, f.add("%source", j), fused)
                for x, total in zip(places, totals, strict=True):
                    f.store(lanes.ir, total, x, align=8)
        done = tiles
    f.ret()
    return f


def _tile(f: Function, lanes: MachineType, begin: list[str], factors: list[str], source: str, fused: bool) -> list[str]:
    """Subtract all source rows from some target rows in registers."""
    head, body, done = (f.fresh(name) for name in ("head", "body", "done"))
    before, k, following = f.block, f"%{f.fresh('k')}", f"%{f.fresh('n')}"
    sums, nexts = ([f"%{f.fresh(name)}" for _ in begin] for name in ("sum", "next"))
    f.jump(head)
    f.label(head)
    f.line(f"{k} = phi i64 [ 0, %{before} ], [ {following}, %{body} ]")
    for total, new, old in zip(sums, nexts, begin, strict=True):
        f.line(f"{total} = phi {lanes.ir} [ {old}, %{before} ], [ {new}, %{body} ]")
    f.branch(f.less(k, "%count"), body, done)
    f.label(body)
    row = f.load(lanes.ir, f.at("double", "%data", f.add(source, f.mul(k, "%step"))), align=8)
    for total, new, at in zip(sums, nexts, factors, strict=True):
        x = f.load("double", "%data", f.add(at, f.mul(k, "%along")))
        x = f.shuffle(lanes, f.insert(lanes, "poison", x, 0), "poison", [0] * LANES)
        made = less_product(f, lanes, total, x, row, fused)
        f.line(f"{new} = bitcast {lanes.ir} {made} to {lanes.ir}")
    f.line(f"{following} = add i64 {k}, 1")
    f.jump(head)
    f.label(done)
    return sums


def write_products(w: LoopWriter, x: nodes.Special, arguments: list[Registers]) -> Registers:
    """Write `sum_of_products` with vectors: LLVM would not change the order of a sum."""
    f, lanes = w.f, MachineType("double", LANES)
    (a, size), (b, other), (at,), (begin,), (length,) = arguments
    require_lanes(w, [(at, size), (begin, other)], length, x.where)
    head, body, done = (f.fresh(name) for name in ("head", "body", "done"))
    following, more, before = f"%{f.fresh('j')}", f"%{f.fresh('more')}", f.block
    f.jump(head)
    f.label(head)
    j = f.phi("i64", (0, before), (following, body))
    sums = f.phi(lanes.ir, ("zeroinitializer", before), (more, body))
    f.branch(f.less(j, length), body, done)
    f.label(body)
    rows = [f.load(lanes.ir, f.at("double", data, f.add(start, j)), align=8) for data, start in ((a, at), (b, begin))]
    if w.fuses:
        total = f.intrinsic("fma", lanes, *rows, sums)
    else:
        total = f.binary("fadd", lanes.ir, sums, f.binary("fmul", lanes.ir, *rows))
    f.line(f"{more} = bitcast {lanes.ir} {total} to {lanes.ir}")
    f.line(f"{following} = add i64 {j}, {LANES}")
    f.jump(head)
    f.label(done)
    count = LANES
    while count > 2:
        wide, count = MachineType("double", count), count // 2
        low, high = (f.shuffle(wide, sums, "poison", range(first, first + count)) for first in (0, count))
        sums = f.binary("fadd", MachineType("double", count).ir, low, high)
    low, high = (f.value(f"extractelement <2 x double> {sums}, i64 {lane}") for lane in (0, 1))
    return (f.binary("fadd", "double", low, high),)


def require_lanes(w: LoopWriter, starts: list[tuple[str, str]], length: str, where: int) -> None:
    """Check ranges of `length` numbers, each given by its start and the size of its array."""
    f = w.f
    if w.checked:
        for start, size in starts:
            w.require(f.less(-1, start), RANGE, where, start, f.add(start, length), size)
            w.require(f.less(f.add(start, length), f.add(size, 1)), RANGE, where, start, f.add(start, length), size)
        w.require(f.equal(f.binary("and", "i64", length, LANES - 1), 0), LENGTH, where, length)


LoopWriter.specials = {
    "call_machine": LoopWriter.machine_call, "subtract_multiples": write_multiples,
    "write_multiples": partial(write_multiples, from_zero=True), "subtract_product": write_product,
    "write_product": partial(write_product, name=WRITE), "sum_of_products": write_products,
}  # fmt: skip


def write_module(
    plan: nodes.Plan, fused: bool, fma: bool, checked: bool = False, dispatcher: str = ""
) -> tuple[list[str], str]:
    """Return the text of a plan's functions with everything they need, and the name of the last one, the kernel.

    Calls of machine code go to `void dispatcher(i64 number, ptr arguments)`, if it has a name, with numbers instead of
    addresses.
    """
    names = {id(p): f'"{p.name}.{k}"' for k, p in enumerate(plan.functions)}
    allocating = that_allocate(plan)
    kernel = plan.functions[-1]
    writers = [LoopWriter(p, names, fused, allocating, checked, dispatcher, p is kernel) for p in plan.functions]
    texts: list[str] = []
    declarations: dict[str, None] = {}
    for w in writers:
        f = w.written()
        texts.append(str(f))
        declarations |= f.declarations
    if any(w.sincos for w in writers):
        made = sincos_ir("double", 1, fma)
        declarations |= dict.fromkeys(made.declarations)
        texts.append(made.definition)
    for name in sorted({name for w in writers for name in w.products}):
        shared = product_function(name, fused)
        declarations |= shared.declarations
        texts.append(str(shared))
    if allocating:
        further, functions = workspace_parts()
        declarations |= dict.fromkeys(further)
        texts += functions
    return [*declarations, *texts, "!0 = !{}"], names[id(plan.functions[-1])]


def write_entry(plan: nodes.Plan, kernel: str, name: str, objects: bool, checked: bool) -> str:
    """Return `i64 name(ptr words, ptr results, ptr record)`, with concatenated arguments as words; results go to `results`.

    With `objects`, the word of an array is the address of NumPy's object. The entry returns 1 without memory for the kernel's
    lists, otherwise 0.
    """
    p = plan.functions[-1]
    f = Function("i64", name, ["ptr %words", "ptr %results", "ptr %record"], "external", ATTRIBUTES)
    workspace = begin_workspace(f) if id(p) in that_allocate(plan) else ""
    given = [f"ptr {workspace}"] if workspace else []
    given += ["ptr %record"] * checked
    if objects:
        given += object_words(f, [v.type for v in p.parameters])
    else:
        given += argument_words(f, [w for v in p.parameters for w in words_of(v.type)], "%words")
    words = ["i1"] * checked + words_of(p.result)
    value = f.call(bundle(words), f"@{kernel}", *given)
    for k, (w, x) in enumerate([*zip(words, members(f, words, value), strict=True)][checked:]):
        x, w = (f.cast("zext", "i1", x, "i64"), "i64") if w == "i1" else (x, w)
        f.store(w, x, f.at("i64", "%results", k))
    failed = f.cast("zext", "i1", has_failed(f, workspace), "i64") if workspace else "0"
    if workspace:
        end_workspace(f, workspace)
    f.ret("i64", failed)
    return str(f)


def object_words(f: Function, types: Sequence[Type]) -> list[str]:
    """Return arguments with their machine types, from words in which an array is NumPy's object."""
    given = []
    for k, type in enumerate(number_types(types)):
        if isinstance(type, ArrayType):
            array = f.load("ptr", f.at("i64", "%words", k))
            lengths = f.field("ptr", array, DIMS)
            given.append(f"ptr {f.field('ptr', array, DATA)}")
            given += [f"i64 {f.load('i64', lengths, axis)}" for axis in range(type.axes)]
        else:
            given += argument_words(f, words_of(type), f.at("i64", "%words", k))
    return given


def number_types(types: Sequence[Type]) -> Iterator[Type]:
    """Yield the types of numbers and arrays inside types."""
    for type in types:
        if isinstance(type, TupleType):
            yield from number_types(type.items)
        elif words_of(type):
            yield type


def argument_words(f: Function, kinds: Sequence[str], words: str) -> list[str]:
    """Return arguments with their machine types, from words in memory."""
    return [f"{w} {r}" for w, r in zip(kinds, loaded_words(f, kinds, words), strict=True)]


def loaded_words(f: Function, kinds: Sequence[str], words: str) -> list[str]:
    """Return the registers of values of machine types, one for each word in memory."""
    found = []
    for k, w in enumerate(kinds):
        word = f.load("i64" if w == "i1" else w, f.at("i64", words, k), align=8)
        found.append(f.cast("trunc", "i64", word, "i1") if w == "i1" else word)
    return found


def table_arguments(f: Function, kernel: nodes.FunctionPlan) -> list[str]:
    """Return the arguments of a kernel of tables and whole numbers, which are %x0, %x1, ... as whole numbers."""
    return [
        f"ptr {f.cast('inttoptr', 'i64', f'%x{k}', 'ptr')}" if isinstance(v.type, TableType) else f"i64 %x{k}"
        for k, v in enumerate(kernel.parameters)
    ]


def write_table_entry(plan: nodes.Plan, kernel: str, name: str, checked: bool) -> str:
    """Return `i64 name(i64 ...)`, whose arguments are addresses of tables, whole numbers, and the record if `checked`."""
    p = plan.functions[-1]
    if id(p) in that_allocate(plan):
        raise KernelError(f"{p.name}: a loop over tables cannot make lists; pass it arrays as workspace")
    parameters = [f"i64 %x{k}" for k in range(len(p.parameters))]
    f = Function("i64", name, [*parameters, *["ptr %record"] * checked], "external", ATTRIBUTES)
    given = [*["ptr %record"] * checked, *table_arguments(f, p)]
    words = ["i1"] * checked + ["i64"]
    value = f.call(bundle(words), f"@{kernel}", *given)
    f.ret("i64", f.value(f"extractvalue {bundle(words)} {value}, 1") if checked else value)
    return str(f)
