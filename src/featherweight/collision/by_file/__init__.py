"""Contact points where MuJoCo chooses others than the closest: the same points, by its own rules."""
