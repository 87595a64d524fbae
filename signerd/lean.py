"""What a process leaves out of its memory and of its start."""

import sys

# httpx imports its own command line where that can be, and with it a terminal's colours and a highlighter of
# syntax: nine megabytes. It goes without where the import fails.
COMMAND_LINES = ("httpx._main",)
# http.client goes without it where there is none; a private socket needs none, and it takes a tenth of a
# short program.
TLS = ("ssl",)


def leave_out(names: tuple[str, ...]) -> None:
    """Before anything else is imported. An entry of None makes an import fail (Python's reference, "The
    module cache").
    """
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
