"""Operations, traces, derivatives, programs and their compilers: the room that knows no robotics.

A function is a `Program`, which a `CompiledFunction` compiles and calls.

Other rooms use these modules:

    ambient_program             derivatives by arrays in place of tangents
    arguments                   arguments of a call: names, shapes, batch axes
    backends.cuda.code          kernels on devices
    backends.cuda.device_loop   kernels with loops on devices
    backends.cuda.driver        devices
    backends.host_arrays        arguments as arrays of NumPy
    backends.llvm.emit          code of a plan
    backends.llvm.ir            text of LLVM's functions
    backends.llvm.jit           machine code of this process
    backends.llvm.lanes         code of several states at once
    backends.llvm.python_objects   fields of Python's objects
    backends.llvm.trig          sines and cosines
    backends.straight_plan      the plan of a trace's code
    backends.straight_steps     its steps
    cache                       compiled code on disk
    cache_folder                the folder of the cache
    dual_numbers                derivatives by dual numbers
    derivative_program          derivatives of programs
    devices                     the device where arrays are
    differentiation             zeros among rates
    function                    compiled functions
    graph                       expressions
    lane_trace                  traces in lanes
    loops.array_types           types of kernels' arrays
    loops.batch_calls           calls for many states
    loops.kernels               kernels with loops
    loops.prepared_calls        calls whose arguments stay
    operations                  the table of operations, and counts
    program                     programs
    program_trace               the trace of a program
    progress                    progress of long work
    result_class                named tuples of results
    sources                     hashes of kernels' sources
    tape                        rolled kernels
    threads                     shares of processors
    together                    several functions as one
    trace                       traces, and their evaluation
    waiting                     messages of long waits
"""
