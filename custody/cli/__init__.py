"""``custody``: the everyday commands of people who spend from vaults, over the platform's API. The operators'
commands are in ``custody.server.cli``, loaded only when one of them is called.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The ``custody`` program."""
    from custody.common.interpreter import prepare

    prepare("custody")
    try:
        from custody.cli.program import program

        program()
    except KeyboardInterrupt:
        # Ctrl-C while the modules were still being imported.
        from custody.common.terminal import Exit

        sys.exit(Exit.INTERRUPTED)
