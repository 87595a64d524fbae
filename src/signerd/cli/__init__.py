"""The command line: a thin layer over ``signerd.client``, quick to start because it imports what a command needs."""

from typing import NoReturn


def main() -> NoReturn:
    """The ``signerd`` program."""
    from signerd.cli.main import program

    program()
