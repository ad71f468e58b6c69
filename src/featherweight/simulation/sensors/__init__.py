"""Sensors of simulations: what they measure, their history, delays and noise."""
