"""``signerd-hwi``: HWI's command line, and Bitcoin Core's ``-signer=``, answered by the running daemon.

Core starts it for each request, so it imports only what a command needs.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The ``signerd-hwi`` program."""
    from custody.common.interpreter import prepare

    prepare("signerd-hwi")
    # http.client works without it. A private socket needs no TLS, whose import takes a tenth of a short
    # program's time. An entry of None makes an import fail (Python's reference, "The module cache").
    sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]
    from signerd.hwi.program import program

    program()
