"""Compliant contact, as in MuJoCo: its law, and the minimum of its convex problem."""
