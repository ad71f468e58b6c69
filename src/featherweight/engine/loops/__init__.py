"""Kernels with loops: a typed subset of Python, compiled from its syntax trees.

`kernels` has what users of this room import. A *plan* (`planner`, of the nodes in `plan`) is what a kernel computes, typed and
in order; a writer (`loop_writer`) puts it in the words of a machine.
"""
