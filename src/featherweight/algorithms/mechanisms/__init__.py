"""Algorithms for mechanisms with loops and couplings (Chignoli, Adrian, Kim and Wensing 2023).

They are traced only: a cluster's constants are as irregular as its mechanism.
"""
