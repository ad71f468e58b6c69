"""Kernels with loops: a typed subset of Python, compiled from its syntax trees.

`kernels` has the names that other packages import. A *plan* (made by `planner` from the nodes in `plan`) is the typed
computation of a kernel, in order; a writer (`loop_writer` for one robot, `lane_writer` for robots in vector lanes; both are a
`kernel_writer`) translates it to the language of a machine.
"""
