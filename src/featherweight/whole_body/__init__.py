"""Whole-body control: joint torques from tasks, contacts and limits, by one quadratic program in each tick."""
