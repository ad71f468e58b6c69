"""Time limit for events that must happen in tests.

A machine may be busy with other work. So no test says how fast something is, and a wait ends after minutes, where a program
hangs.
"""

PATIENCE = 600.0  # [s]
