"""How long tests wait for something that must happen.

A machine may be busy with other work. So no test says how fast something is, and a wait ends after minutes, where a program
hangs.
"""

PATIENCE = 600.0  # [s]
