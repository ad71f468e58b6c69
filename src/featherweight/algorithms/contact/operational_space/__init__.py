"""What constraints on bodies, and on the robot as a whole, make of its dynamics: operational space (Khatib 1987)."""
