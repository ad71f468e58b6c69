"""Algorithms for mechanisms with loops and couplings (Chignoli, Adrian, Kim and Wensing 2023).

They are always traced, because the constants of clusters are as irregular as their mechanisms.
"""
