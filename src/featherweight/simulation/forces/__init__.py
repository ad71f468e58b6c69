"""Forces of joints, drives, tendons and fluids in a step."""
