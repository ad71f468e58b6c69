"""Arguments of calls from Python in the entry: the table of a function, classification of objects, copies to the stack."""

from __future__ import annotations

from . import python_objects as objects
from .ir import Function, Type

ROOM = 128  # greatest number of arguments and results
MOST_RANK = 4  # greatest number of axes of their core shapes
STACK_BYTES = 16_384  # greatest size of gathered arguments

# The table of a function: words, then a record for each argument and result, then the names of arguments and "out".
WORDS = (
    *("general", "descr", "result_class", "single", "loop", "most_states", "other", "entry_of_other"),
    *("inputs", "outputs", "gathers", "records", "names", "watched", "limit", "hidden", "brief"),
)
RECORD = ("rank", "bytes", "offset", *(f"dim{d}" for d in range(MOST_RANK)))  # bytes of one state; offset of gathered elements

# bits that classify an argument
SINGLE, BATCH, PLAIN, SAME, OTHER, NUMBERS_OF_PYTHON = 1, 2, 4, 8, 16, 32


def interface(f: Function, name: str) -> str:
    """Return an address provided by Python or NumPy, by its name in `Interfaces`."""
    return f.load("ptr", "@interfaces", objects.Interfaces._fields.index(name))


def word(f: Function, name: str, kind: str = "i64") -> str:
    """Return a word of the table, by its name in `WORDS`."""
    return f.load(kind, "%table", WORDS.index(name))


def of_record(f: Function, record: str, name: str) -> str:
    return f.load("i64", record, RECORD.index(name))


def record_of(f: Function, k: str) -> str:
    """Return the address of the record of argument k."""
    return f.at("i64", word(f, "records", "ptr"), f.mul(k, len(RECORD)))


def has(f: Function, bits: str, wanted: int) -> str:
    return f.equal(f.value(f"and i32 {bits}, {wanted}"), wanted, "i32")


def kind_of_argument(type: Type) -> Function:
    """Return the function that classifies an object as an argument of a core shape: bits, or 0 for the general call."""
    f = Function("i32", f"kind.{type.precision}", ["ptr %table", "ptr %object", "ptr %record"])
    rank = of_record(f, "%record", "rank")
    is_a = f.field("ptr", "%object", objects.TYPE)
    f.branch(f.equal(is_a, interface(f, "array_class"), "ptr"), "array", "python")
    f.label("python")
    f.branch(f.equal(rank, 1), "sequence", "scalar")
    for label, classes in {"sequence": ("list", "tuple"), "scalar": ("float", "float64", "int")}.items():
        f.label(label)
        if label == "scalar":
            f.require(f.equal(rank, 0), "none")
        for name in classes:
            on = f.fresh("no")
            f.branch(f.equal(is_a, interface(f, f"{name}_class"), "ptr"), "numbers", on)
            f.label(on)
        f.jump("none")
    f.label("numbers")
    f.line(f"ret i32 {SINGLE | NUMBERS_OF_PYTHON}")
    f.label("array")
    flags = f.field("i32", "%object", objects.FLAGS)
    f.require(has(f, flags, objects.ALIGNED), "none")
    axes = f.field("i32", "%object", objects.NDIM)
    wide = f.value(f"sext i32 {axes} to i64")
    extra = f.value(f"sub i64 {wide}, {rank}")
    f.require(f.value(f"icmp ult i64 {extra}, 2"), "none")
    dims, core = f.field("ptr", "%object", objects.DIMS), f.at("i64", "%record", RECORD.index("dim0"))
    with f.loop(rank) as i:
        f.require(f.equal(f.load("i64", dims, f.add(extra, i)), f.load("i64", core, i)), "none")
    shape = f.value(f"select i1 {f.equal(extra, 0)}, i32 {SINGLE}, i32 {BATCH}")
    descr = f.field("ptr", "%object", objects.DESCR)
    f.branch(f.equal(descr, word(f, "descr", "ptr"), "ptr"), "same", "described")
    f.label("described")  # unpickled arrays have their own descriptors
    f.require(f.equal(f.field("i8", descr, objects.KIND_OF_DESCR), ord("f"), "i8"), "none")
    f.require(f.equal(f.field("i8", descr, objects.ORDER_OF_DESCR), ord("="), "i8"), "none")
    number, on = f.field("i32", descr, objects.NUMBER_OF_DESCR), f.fresh("no")
    f.branch(f.equal(number, objects.NUMBERS[type.precision], "i32"), "same", on)
    f.label(on)
    f.require(f.equal(number, objects.NUMBERS[other_precision(type)], "i32"), "none")
    f.line(f"ret i32 {f.value(f'or i32 {shape}, {OTHER}')}")
    f.label("same")
    more = f.value(f"select i1 {has(f, flags, objects.CONTIGUOUS)}, i32 {SAME | PLAIN}, i32 {SAME}")
    f.line(f"ret i32 {f.value(f'or i32 {shape}, {more}')}")
    f.label("none")
    f.line("ret i32 0")
    return f


def other_precision(type: Type) -> str:
    return "float" if type.precision == "double" else "double"


def number_of_object(type: Type) -> Function:
    """Store the value of a Python number; return whether the object is one.

    Floats are read in place, and Python converts integers.
    """
    f = Function("i1", f"number.{type.precision}", ["ptr %object", "ptr %to"])
    is_a = f.field("ptr", "%object", objects.TYPE)
    floats = [f.equal(is_a, interface(f, name), "ptr") for name in ("float_class", "float64_class")]
    f.branch(f.either(*floats), "real", "whole")
    f.label("real")
    f.store("double", f.field("double", "%object", objects.VALUE_OF_FLOAT), "%to")
    f.line("ret i1 true")
    f.label("whole")
    f.require(f.equal(is_a, interface(f, "int_class"), "ptr"), "none")
    f.store("double", f.call("double", interface(f, "int_as_double"), "ptr %object"), "%to")
    f.branch(f.equal(f.call("ptr", interface(f, "error_occurred")), "null", "ptr"), "fine", "failed")
    f.label("fine")
    f.line("ret i1 true")
    f.label("failed")  # too large for a double
    f.call("void", interface(f, "error_clear"))
    f.jump("none")
    f.label("none")
    f.line("ret i1 false")
    return f


def gather(type: Type) -> Function:
    """Copy the elements of an argument that @kind accepts to a buffer; return whether all of them are numbers."""
    T = type.precision
    f = Function("i1", f"gather.{T}", ["ptr %record", "ptr %object", "ptr %buffer", "i32 %kind"])
    rank, core = of_record(f, "%record", "rank"), f.at("i64", "%record", RECORD.index("dim0"))
    index, turning, at = f.slot("i64", MOST_RANK), f.slot("i64"), f.slot("ptr")
    f.branch(has(f, "%kind", NUMBERS_OF_PYTHON), "python", "array")
    f.label("array")
    strides = f.field("ptr", "%object", objects.STRIDES)
    with f.loop(rank) as d:
        f.store("i64", 0, index, d)
    count = f.value(f"udiv i64 {of_record(f, '%record', 'bytes')}, {type.item_bytes}")
    f.store("ptr", f.field("ptr", "%object", objects.DATA), at)
    same = has(f, "%kind", SAME)
    with f.loop(count) as k:
        source = f.load("ptr", at)
        wide, narrow, on = f.fresh("same"), f.fresh("other"), f.fresh("stored")
        f.branch(same, wide, narrow)
        f.label(wide)
        f.store(T, f.load(T, source), "%buffer", k)
        f.jump(on)
        f.label(narrow)
        x = f.load(other_precision(type), source)
        f.store(T, f.value(f"{'fpext' if T == 'double' else 'fptrunc'} {other_precision(type)} {x} to {T}"), "%buffer", k)
        f.jump(on)
        f.label(on)
        f.store("i64", 1, turning)
        with f.loop(rank) as back:
            d = f.value(f"sub i64 {f.value(f'sub i64 {rank}, 1')}, {back}")
            _turn(f, (f.load("i64", core, d), f.load("i64", strides, d)), f.at("i64", index, d), turning, at)
    f.line("ret i1 true")
    f.label("python")
    if T == "double":
        _gather_numbers(f, rank, core)
    f.jump("none")
    f.label("none")
    f.line("ret i1 false")
    return f


def _turn(f: Function, axis: tuple[str, str], index: str, turning: str, at: str) -> None:
    """Advance `at` along one axis, like a wheel of an odometer, if it turns; at its end, continue with the next axis."""
    size, stride = axis
    turns = f.load("i64", turning)
    following = f.add(f.load("i64", index), turns)
    wraps = f.equal(following, size)
    f.store("i64", f.value(f"select i1 {wraps}, i64 0, i64 {following}"), index)
    back = f.mul(f.value(f"sub i64 1, {size}"), stride)
    moved = f.value(f"select i1 {wraps}, i64 {back}, i64 {f.mul(stride, turns)}")
    f.store("ptr", f.at("i8", f.load("ptr", at), moved), at)
    f.store("i64", f.value(f"zext i1 {f.both(wraps, f.equal(turns, 1))} to i64"), turning)


def _gather_numbers(f: Function, rank: str, core: str) -> None:
    """Copy Python's numbers. Booleans, and all other objects that are not exactly numbers, are left to the general call."""
    f.branch(f.equal(rank, 0), "scalar", "sequence")
    f.label("scalar")
    f.line(f"ret i1 {f.call('i1', '@number.double', 'ptr %object', 'ptr %buffer')}")
    f.label("sequence")
    is_list = f.equal(f.field("ptr", "%object", objects.TYPE), interface(f, "list_class"), "ptr")
    sizes = [f.field("i64", "%object", x) for x in (objects.SIZE_OF_LIST, objects.SIZE_OF_TUPLE)]
    wanted = f.load("i64", core)
    f.require(f.equal(f.value(f"select i1 {is_list}, i64 {sizes[0]}, i64 {sizes[1]}"), wanted), "none")
    inside = f.at("i8", "%object", objects.ITEMS_OF_TUPLE)
    behind = f.field("ptr", "%object", objects.ITEMS_OF_LIST)  # meaningless and unused for a tuple
    items = f.value(f"select i1 {is_list}, ptr {behind}, ptr {inside}")
    with f.loop(wanted) as i:
        item, to = f.load("ptr", items, i), f.at("double", "%buffer", i)
        f.require(f.call("i1", "@number.double", f"ptr {item}", f"ptr {to}"), "none")
    f.line("ret i1 true")
    f.label(f.fresh("unreached"))
