"""Dynamics of a robot under constraints on its bodies and on the whole robot: operational space (Khatib 1987)."""
