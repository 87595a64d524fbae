"""What a process that stays for weeks leaves out of its memory."""

import sys

# httpx imports its own command line where that can be, and with it a terminal's colours and a highlighter of syntax: nine
# megabytes. It goes without where the import fails.
_PROGRAMS = ("httpx._main",)


def leave_out_programs() -> None:
    """Before anything else is imported. An entry of None makes an import fail (Python's reference, "The module cache")."""
    for name in _PROGRAMS:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
