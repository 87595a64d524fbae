"""``signerd-hwi``: HWI's command line, and Bitcoin Core's ``-signer=``, answered by the running daemon.

It starts quickly, because Core starts it for each question: nothing is imported here that a command does not
need.
"""

from typing import NoReturn


def main() -> NoReturn:
    """The ``signerd-hwi`` program."""
    from custody.interpreter import prepare

    prepare("signerd-hwi")
    from signerd.runtime import TLS, leave_out

    leave_out(TLS)
    from signerd.hwi.program import program

    program()
