"""Rigid contact: solvers for impulses that dissipate the most energy, and their derivative."""
