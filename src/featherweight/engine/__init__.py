"""Operations, traces, derivatives, programs and their compilers: the package that knows no robotics.

A function is a `Program`, which a `CompiledFunction` compiles and calls.

Other packages use these modules:

    ambient_program             derivatives with respect to arrays instead of tangents
    backends.cuda.code          kernels on devices
    backends.cuda.device_code   the device of a call
    backends.cuda.device_loop   kernels with loops on devices
    backends.cuda.driver        devices
    backends.host_arrays        arguments as NumPy arrays
    backends.llvm.emit          LLVM IR of a plan
    backends.llvm.ir            LLVM functions as text
    backends.llvm.jit           machine code of this process
    backends.llvm.loop          LLVM IR for many states
    backends.llvm.payne_hanek   the digits of 2/pi
    backends.llvm.python_objects   memory layouts of Python objects
    backends.llvm.single        LLVM IR for one state, and with derivatives in vector lanes
    backends.llvm.trig          sine and cosine
    backends.straight_plan      the plan of a trace's code
    backends.straight_steps     steps of a plan
    cache                       compiled code on disk
    cache_folder                the folder of the cache
    compilation_messages        messages during long compilations
    derivative_program          derivatives of programs
    differentiation             derivatives of traces
    execution                   executions of programs, and named tuples of results
    exclusive                   objects that one thread at a time may use
    forks                       locks that forked children find free
    function                    compiled functions
    fusion                      fusion of several functions into one
    graph                       expressions
    guarded                     programs whose inaccurate results others compute again
    jacobian_trace              traces of Jacobians in vector lanes
    loops.kernel_tables         tables of kernels in memory
    loops.kernel_types          types of values in kernels
    loops.kernels               kernels with loops
    loops.machine_calls         calls of machine code
    loops.memory_spans          the memory of arrays as one block
    loops.plan                  the plan of a kernel's code
    loops.planning_state        values that are the same wherever they are evaluated
    loops.prepared_calls        calls with fixed arguments or for many states, and copies to and from their arrays
    loops.standalone            kernels without Python: their inputs, results and words
    loops.variable_scopes       the scopes of a plan's variables
    loops.workspaces            the parts of a plan
    operations                  the table of operations, and counts
    program                     programs
    program_trace               the trace of a program
    progress                    progress of long work
    sources                     hashes of kernels' sources
    tape                        recorded functions
    threads                     sharing of work among threads
    trace                       traces and their evaluation
"""
