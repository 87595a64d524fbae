"""``custody``: the everyday commands of people who spend from vaults, over the platform's API. The operators'
commands are in ``custody.server.cli``, and loaded where one is named.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The ``custody`` program."""
    from custody.interpreter import prepare

    prepare("custody")
    try:
        from custody.cli.program import program

        program()
    except KeyboardInterrupt:
        # While the program was being loaded.
        from custody.terminal import Exit

        sys.exit(Exit.INTERRUPTED)
