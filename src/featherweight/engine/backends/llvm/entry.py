"""Calls from Python at the overhead of a C extension.

A call of inverse dynamics of Panda takes 0.4 µs through the entry, and 34 µs through the general call, which Python runs
(process time). Functions have this entry in LLVM IR, and Python calls it by the vectorcall protocol (`direct_calls`). It
accepts positional and keyword arguments, reads NumPy's arrays in place, makes the results, and releases the GIL around the
kernel. `docs/how_it_works/calls.md` explains it. The arguments determine the path:

    single     contiguous arrays of the core shapes
    gathered   arrays of any strides, of either precision, lists and tuples of numbers: copied to the stack first
    batch      contiguous rows of few states, for one thread: the loop of the ufunc, without the ufunc

All other calls, above all those with invalid arguments, go to the general call. So do calls of a guarded program, once they
have been computed, if the strain of a state, the last result, exceeds the limit. All functions of a precision
share one code. Each function has a table, an array that Python passes to the entry as `self`: shapes, names, and the addresses
of the machine code, once it exists. Until then, the general call computes the results.
"""

from __future__ import annotations

from . import python_objects as objects
from .entry_arguments import (
    BATCH,
    MOST_RANK,
    NUMBERS_OF_PYTHON,
    PLAIN,
    RECORD,
    ROOM,
    SAME,
    SINGLE,
    STACK_BYTES,
    gather,
    has,
    interface,
    kind_of_argument,
    number_of_object,
    of_record,
    record_of,
    word,
)
from .ir import Function, Type


def emit_entry(precision: str) -> str:
    """Return a module with `ptr @entry(ptr self, ptr args, i64 nargs, ptr kwnames)` of a precision, and `@interfaces`.

    `@called` is the vectorcallfunc of objects that are called directly (`direct_calls`).
    """
    type = Type(precision, 1)
    functions = kind_of_argument(type), number_of_object(type), gather(type), _Entry(type).written(), _called()
    addresses = f"@interfaces = global [{len(objects.Interfaces._fields)} x ptr] zeroinitializer"
    return "\n".join([addresses, *map(str, functions), "attributes #0 = { nounwind }"])


def _called() -> Function:
    """Call the entry with the table of an object; the highest bit of the number of arguments is a flag."""
    f = Function("ptr", "called", ["ptr %object", "ptr %args", "i64 %n", "ptr %names"], linkage="external")
    table, nargs = f.field("ptr", "%object", objects.DATA_OF_CALLED), f.value(f"and i64 %n, {(1 << 63) - 1}")
    rest = ("ptr %args", f"i64 {nargs}", "ptr %names")
    f.line(f"ret ptr {f.call('ptr', '@entry', f'ptr {table}', *rest)}")
    return f


class _Entry:
    """The entry of one precision."""

    def __init__(self, type: Type) -> None:
        self.type = type
        self.f = Function("ptr", "entry", ["ptr %self", "ptr %args", "i64 %nargs", "ptr %kwnames"], linkage="external")

    def written(self) -> Function:
        f = self.f
        f.line(f"%table = load ptr, ptr {f.at('i8', '%self', objects.DATA)}")
        self.n, self.m = word(f, "inputs"), word(f, "outputs")
        self.given = f.slot("ptr", ROOM + 1)  # the inputs and `out`
        self.kinds = f.slot("i32", ROOM)
        self.data = f.slot("ptr", ROOM)  # addresses of the kernel's arguments
        self.results = f.slot("ptr", ROOM)
        self.ends = f.slot("i64", 2 * ROOM)  # extents of arguments in memory
        self.dims = f.slot("i64", 1 + MOST_RANK)
        self.steps = f.slot("i64", (1 + MOST_RANK) * ROOM)
        self.every, self.some = f.slot("i32"), f.slot("i32")
        self.without_memory = f.slot("i64")  # whether there was no memory for the workspace
        self.states, self.extra = f.slot("i64"), f.slot("i64")  # number of states, and of axes before the core
        self.index, self.step, self.out_arrays = f.slot("i64"), f.slot("i64"), f.slot("ptr")
        self.buffer = f.slot("i8", STACK_BYTES, 64)
        self._bind()
        self._classify()
        self._find_data()
        self._find_results()
        self._compute()
        self._watch()
        self._return()
        f.label("other")
        other = word(f, "other", "ptr")
        f.require(f.value(f"icmp ne ptr {other}, null"), "general")
        rest = ("ptr %args", "i64 %nargs", "ptr %kwnames")
        f.line(f"ret ptr {f.call('ptr', word(f, 'entry_of_other', 'ptr'), f'ptr {other}', *rest)}")
        f.label("general")
        general = word(f, "general", "ptr")
        f.line(f"ret ptr {f.call('ptr', interface(f, 'vectorcall'), f'ptr {general}', *rest)}")
        f.label("no.memory")
        self._drop(self.m)
        f.line(f"ret ptr {f.call('ptr', interface(f, 'no_memory'))}")
        f.label("failed")
        f.line("ret ptr null")
        return f

    def _bind(self) -> None:
        """Bind positional arguments, then keyword arguments: names are interned, so addresses identify them."""
        f, n = self.f, self.n
        f.require(f.value(f"icmp ule i64 %nargs, {n}"), "general")
        with f.loop("%nargs") as i:
            f.store("ptr", f.load("ptr", "%args", i), self.given, i)
        with f.loop(f.add(n, 1), "%nargs") as i:
            f.store("ptr", "null", self.given, i)
        f.branch(f.equal("%kwnames", "null", "ptr"), "bound", "named")
        f.label("named")
        names, values, known = (
            f.at("i8", "%kwnames", objects.ITEMS_OF_TUPLE),
            f.at("ptr", "%args", "%nargs"),
            word(f, "names", "ptr"),
        )
        with f.loop(f.field("i64", "%kwnames", objects.SIZE_OF_TUPLE)) as i:
            name = f.load("ptr", names, i)
            f.store("i64", -1, self.index)
            with f.loop(f.add(n, 1)) as k:
                place = f.load("i64", self.index)
                this = f.equal(name, f.load("ptr", known, k), "ptr")
                f.store("i64", f.value(f"select i1 {this}, i64 {k}, i64 {place}"), self.index)
            place = f.load("i64", self.index)
            f.require(f.value(f"icmp sge i64 {place}, 0"), "general")
            f.require(f.equal(f.load("ptr", self.given, place), "null", "ptr"), "general")
            f.store("ptr", f.load("ptr", values, i), self.given, place)
        f.jump("bound")
        f.label("bound")
        self.out = f.load("ptr", self.given, n)
        self.makes = f.equal(self.out, "null", "ptr")

    def _classify(self) -> None:
        """Classify each argument, and collect the bits that all or some of them have."""
        f = self.f
        f.store("i32", -1, self.every)
        f.store("i32", 0, self.some)
        with f.loop(self.n) as k:
            a = f.load("ptr", self.given, k)
            f.require(f.value(f"icmp ne ptr {a}, null"), "general")
            kind = self._kind_of(a, k)
            f.require(f.value(f"icmp ne i32 {kind}, 0"), "general")
            f.store("i32", kind, self.kinds, k)
            f.store("i32", f.value(f"and i32 {f.load('i32', self.every)}, {kind}"), self.every)
            f.store("i32", f.value(f"or i32 {f.load('i32', self.some)}, {kind}"), self.some)

    def _kind_of(self, object: str, k: str) -> str:
        record = record_of(self.f, k)
        return self.f.call("i32", f"@kind.{self.type.precision}", "ptr %table", f"ptr {object}", f"ptr {record}")

    def _find_data(self) -> None:
        """Determine the address of each argument, and the number of states."""
        f = self.f
        every, some = f.load("i32", self.every), f.load("i32", self.some)
        f.store("i64", 1, self.states)
        f.store("i64", 0, self.extra)
        with f.loop(self.n) as k:  # arrays only; Python's numbers are copied below
            array = f.load("ptr", self.given, k)
            f.store("ptr", f.field("ptr", array, objects.DATA), self.data, k)
        f.branch(has(f, every, SINGLE | PLAIN), "found", "look")
        f.label("look")
        f.require(f.value(f"icmp ne i32 {f.value(f'and i32 {some}, {SAME | NUMBERS_OF_PYTHON}')}, 0"), "other")
        f.branch(has(f, some, BATCH), "batch", "gather")
        f.label("gather")
        f.require(f.value(f"icmp ne i64 {word(f, 'gathers')}, 0"), "general")
        if self.type.precision == "float":  # results are double unless all arguments are single
            f.require(has(f, every, SAME), "general")
        with f.loop(self.n) as k:
            kind, on, copied = f.load("i32", self.kinds, k), f.fresh("on"), f.fresh("copied")
            f.branch(has(f, kind, PLAIN), on, copied)
            f.label(copied)
            record = record_of(f, k)
            copy = f.at("i8", self.buffer, of_record(f, record, "offset"))
            f.store("ptr", copy, self.data, k)
            array = f.load("ptr", self.given, k)
            arguments = (f"ptr {record}", f"ptr {array}", f"ptr {copy}", f"i32 {kind}")
            f.require(f.call("i1", f"@gather.{self.type.precision}", *arguments), "general")
            f.jump(on)
            f.label(on)
        f.jump("found")
        f.label("batch")
        f.require(has(f, every, PLAIN), "general")
        self._batch()
        f.jump("found")
        f.label("found")

    def _batch(self) -> None:
        """Determine the number of states, on which all arguments with an axis before the core must agree, and NumPy's steps."""
        f = self.f
        f.store("i64", 1, self.extra)
        f.store("i64", -1, self.states)
        arrays = f.add(self.n, self.m)
        f.store("i64", arrays, self.index)  # position of the steps of the next core shape
        with f.loop(arrays) as k:
            record = record_of(f, k)
            bytes, rank = of_record(f, record, "bytes"), of_record(f, record, "rank")
            f.store("i64", bytes, self.steps, k)
            begin = f.load("i64", self.index)
            f.store("i64", self.type.item_bytes, self.step)
            with f.loop(rank) as back:
                d = f.value(f"sub i64 {f.value(f'sub i64 {rank}, 1')}, {back}")
                inner = f.load("i64", self.step)
                f.store("i64", inner, self.steps, f.add(begin, d))
                size = f.load("i64", f.at("i64", record, RECORD.index("dim0")), d)
                f.store("i64", f.mul(inner, size), self.step)
            f.store("i64", f.add(begin, rank), self.index)
        with f.loop(self.n) as k:
            rows, one, on = f.fresh("rows"), f.fresh("one"), f.fresh("on")
            f.branch(has(f, f.load("i32", self.kinds, k), BATCH), rows, one)
            f.label(one)
            f.store("i64", 0, self.steps, k)
            f.jump(on)
            f.label(rows)
            count, before = (
                f.load("i64", f.field("ptr", f.load("ptr", self.given, k), objects.DIMS)),
                f.load("i64", self.states),
            )
            f.require(f.either(f.equal(before, -1), f.equal(before, count)), "general")
            f.store("i64", count, self.states)
            f.jump(on)
            f.label(on)
        states = f.load("i64", self.states)
        few = f.value(f"icmp sle i64 {states}, {word(f, 'most_states')}")
        f.require(f.both(few, f.value(f"icmp sgt i64 {states}, 0")), "general")

    def _find_results(self) -> None:
        """Get arrays for the results: the caller's, or new ones."""
        f = self.f
        many = f.equal(f.load("i64", self.extra), 1)
        self.code = f.value(f"select i1 {many}, ptr {word(f, 'loop', 'ptr')}, ptr {word(f, 'single', 'ptr')}")
        f.require(f.value(f"icmp ne ptr {self.code}, null"), "general")
        f.branch(self.makes, "make", "use")
        f.label("use")
        self._use_given()
        f.jump("compute")
        f.label("make")
        self._make()
        f.jump("compute")

    def _make(self, begin: str | int = 0) -> None:
        """Make arrays for the results from one on."""
        f, new = self.f, interface(self.f, "new_array")
        extra = f.load("i64", self.extra)
        f.store("i64", f.load("i64", self.states), self.dims)
        with f.loop(self.m, begin) as j:
            k = f.add(self.n, j)
            record = record_of(f, k)
            rank, core = of_record(f, record, "rank"), f.at("i64", record, RECORD.index("dim0"))
            with f.loop(rank) as d:
                f.store("i64", f.load("i64", core, d), self.dims, f.add(d, extra))
            axes = f.value(f"trunc i64 {f.add(rank, extra)} to i32")
            descr = word(f, "descr", "ptr")
            f.call("void", interface(f, "increment"), f"ptr {descr}")  # the array takes the reference
            what = (f"ptr {interface(f, 'array_class')}", f"ptr {descr}", f"i32 {axes}", f"ptr {self.dims}")
            array = f.call("ptr", new, *what, "ptr null", "ptr null", "i32 0", "ptr null")
            fine, gone = f.fresh("made"), f.fresh("gone")
            f.branch(f.equal(array, "null", "ptr"), gone, fine)
            f.label(gone)
            self._drop(j, begin)
            f.jump("failed")
            f.label(fine)
            f.store("ptr", array, self.results, j)
            f.store("ptr", f.field("ptr", array, objects.DATA), self.data, k)

    def _drop(self, stop: str, start: str | int = 0) -> None:
        """Free a range of results."""
        f = self.f
        with f.loop(stop, start) as i:
            f.call("void", interface(f, "decrement"), f"ptr {f.load('ptr', self.results, i)}")

    def _use_given(self) -> None:
        """Use the caller's arrays, if they fit and do not overlap others; NumPy handles overlaps. Make a hidden result."""
        f = self.f
        m = f.value(f"sub i64 {self.m}, {word(f, 'hidden')}")
        several, one, begun = f.fresh("several"), f.fresh("one"), f.fresh("begun")
        f.branch(f.equal(m, 1), one, several)
        f.label(several)
        is_a = f.field("ptr", self.out, objects.TYPE)
        tuples = (interface(f, "tuple_class"), word(f, "result_class", "ptr"))
        f.require(f.either(*(f.equal(is_a, x, "ptr") for x in tuples)), "general")
        f.require(f.equal(f.field("i64", self.out, objects.SIZE_OF_TUPLE), m), "general")
        f.store("ptr", f.at("i8", self.out, objects.ITEMS_OF_TUPLE), self.out_arrays)
        f.jump(begun)
        f.label(one)
        f.store("ptr", f.at("ptr", self.given, self.n), self.out_arrays)
        f.jump(begun)
        f.label(begun)
        arrays = f.load("ptr", self.out_arrays)
        states, extra = f.load("i64", self.states), f.load("i64", self.extra)
        with f.loop(self.n) as k:
            self._note_range(k, f.load("ptr", self.data, k), states)
        bits = f.value(f"select i1 {f.equal(extra, 1)}, i32 {BATCH | PLAIN}, i32 {SINGLE | PLAIN}")
        with f.loop(m) as j:
            k, array = f.add(self.n, j), f.load("ptr", arrays, j)
            f.require(f.equal(f.value(f"and i32 {self._kind_of(array, k)}, {bits}"), bits, "i32"), "general")
            f.require(has(f, f.field("i32", array, objects.FLAGS), objects.WRITEABLE), "general")
            rows, fits = f.fresh("rows"), f.fresh("fits")
            f.branch(f.equal(extra, 1), rows, fits)
            f.label(rows)
            f.require(f.equal(f.load("i64", f.field("ptr", array, objects.DIMS)), states), "general")
            f.jump(fits)
            f.label(fits)
            data = f.field("ptr", array, objects.DATA)
            begin, end = self._note_range(k, data, states)
            with f.loop(k) as i:
                other, other_end = f.load("i64", self.ends, f.mul(i, 2)), f.load("i64", self.ends, f.add(f.mul(i, 2), 1))
                before, after = f.value(f"icmp ule i64 {end}, {other}"), f.value(f"icmp ule i64 {other_end}, {begin}")
                f.require(f.either(before, after), "general")
            f.store("ptr", array, self.results, j)
            f.store("ptr", data, self.data, k)
        self._make(m)
        with f.loop(m) as j:
            f.call("void", interface(f, "increment"), f"ptr {f.load('ptr', self.results, j)}")

    def _note_range(self, k: str, data: str, states: str) -> tuple[str, str]:
        """Return an upper bound of the extent of an argument or result in memory."""
        f = self.f
        begin = f.value(f"ptrtoint ptr {data} to i64")
        end = f.add(begin, f.mul(of_record(f, record_of(f, k), "bytes"), states))
        f.store("i64", begin, self.ends, f.mul(k, 2))
        f.store("i64", end, self.ends, f.add(f.mul(k, 2), 1))
        return begin, end

    def _compute(self) -> None:
        """Compute one state or many, without the GIL; one state of a brief function with it."""
        f = self.f
        f.label("compute")
        f.store("i64", 0, self.without_memory)
        many = f.equal(f.load("i64", self.extra), 1)
        brief = f.both(f.value(f"xor i1 {many}, true"), f.equal(word(f, "brief"), 1))
        f.branch(brief, "briefly", "release")
        f.label("briefly")
        self._compute_one()
        f.jump("finished")
        f.label("release")
        thread = f.call("ptr", interface(f, "save_thread"))
        f.branch(many, "many", "one")
        f.label("one")
        self._compute_one()
        f.jump("computed")
        f.label("many")
        f.call("void", self.code, f"ptr {self.data}", f"ptr {self.states}", f"ptr {self.steps}", f"ptr {self.without_memory}")
        f.jump("computed")
        f.label("computed")
        f.call("void", interface(f, "restore_thread"), f"ptr {thread}")
        f.jump("finished")
        f.label("finished")
        f.require(f.equal(f.load("i64", self.without_memory), 0), "no.memory")

    def _compute_one(self) -> None:
        f = self.f
        f.store("i64", f.cast("zext", "i32", f.call("i32", self.code, f"ptr {self.data}"), "i64"), self.without_memory)

    def _watch(self) -> None:
        """Go to the general call if the strain of a state exceeds the limit."""
        f = self.f
        f.branch(f.equal(word(f, "watched"), 0), "fine", "watch")
        f.label("watch")
        last = f.value(f"sub i64 {f.add(self.n, self.m)}, 1")
        limit, strains = word(f, "limit", "double"), f.load("ptr", self.data, last)
        with f.loop(f.load("i64", self.states)) as i:
            strain = f.load(self.type.precision, strains, i)
            strain = strain if self.type.precision == "double" else f.cast("fpext", "float", strain, "double")
            f.require(f.value(f"fcmp ult double {strain}, {limit}"), "strained")
        f.jump("fine")
        f.label("strained")
        self._drop(self.m)
        f.jump("general")
        f.label("fine")

    def _return(self) -> None:
        """Return the result, or a named tuple of results; results without axes are numbers, unless the caller gave arrays."""
        f = self.f
        new = f.both(self.makes, f.equal(f.load("i64", self.extra), 0))
        f.branch(new, "convert", "bundle")
        f.label("convert")
        with f.loop(self.m) as j:
            number, on = f.fresh("number"), f.fresh("on")
            f.branch(f.equal(of_record(f, record_of(f, f.add(self.n, j)), "rank"), 0), number, on)
            f.label(number)
            scalar = f.call("ptr", interface(f, "array_or_scalar"), f"ptr {f.load('ptr', self.results, j)}")
            f.store("ptr", scalar, self.results, j)
            f.jump(on)
            f.label(on)
        f.jump("bundle")
        f.label("bundle")
        m = f.value(f"sub i64 {self.m}, {word(f, 'hidden')}")
        self._drop(self.m, m)
        f.branch(f.equal(m, 1), "alone", "several")
        f.label("alone")
        f.line(f"ret ptr {f.load('ptr', self.results)}")
        f.label("several")
        named = f.call("ptr", interface(f, "allocate"), f"ptr {word(f, 'result_class', 'ptr')}", f"i64 {m}")
        f.branch(f.equal(named, "null", "ptr"), "unnamed", "named.results")
        f.label("unnamed")
        self._drop(m)
        f.jump("failed")
        f.label("named.results")
        items = f.at("i8", named, objects.ITEMS_OF_TUPLE)
        with f.loop(m) as j:
            f.store("ptr", f.load("ptr", self.results, j), items, j)
        f.line(f"ret ptr {named}")
