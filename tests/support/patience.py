"""How long a test waits for what must happen. It bounds a test that hangs, and judges no speed:
the machine may be busy.
"""

PATIENCE = 90.0
