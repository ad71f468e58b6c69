"""Trajectory optimization and model predictive control."""
