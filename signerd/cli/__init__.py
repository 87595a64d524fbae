"""The command line: a thin layer over ``signerd.client``. A command imports only what it needs, so that it
starts quickly.
"""

from typing import NoReturn


def main() -> NoReturn:
    """The ``signerd`` program."""
    from custody.common.interpreter import prepare

    prepare("signerd")
    from signerd.cli.program import program

    program()
