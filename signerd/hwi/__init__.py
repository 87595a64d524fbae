"""``signerd-hwi``: HWI's command line, and Bitcoin Core's ``-signer=``, answered by the running daemon.

Core starts it for each request, so it imports only what a command needs.
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
