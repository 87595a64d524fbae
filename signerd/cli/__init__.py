"""The command line: a thin layer over ``signerd.client``, quick to start because a command imports what it
needs.
"""

from typing import NoReturn


def main() -> NoReturn:
    """The ``signerd`` program."""
    from custody.interpreter import prepare

    prepare("signerd")
    from signerd.cli.program import program

    program()
