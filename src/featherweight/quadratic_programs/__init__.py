"""Quadratic programs of some tens of variables, solved many times per second."""
