"""Child processes that end with their parent, however it ends.
A program that is killed cannot stop its children. So each child inherits the read end of a pipe whose write
end only the parent has: the kernel closes it when the parent ends. The child then gets SIGTERM, and exits at
once if it does not end in time. Linux's parent-death signal is no substitute: other systems lack it, and it
is sent when the *thread* that started the child ends (prctl(2)). Device workers watch the channel to their
bridge in the same way (``firmware_bridge.worker``).
"""

import os
import signal
import sys
import threading
import time
from functools import cache
from typing import Final

# From SIGTERM until the process exits without clean-up.
FAREWELL_SECONDS: Final = 10.0


@cache
def passed() -> tuple[int]:
    """What this program's children inherit (``pass_fds``): the read end. The write end is never written to,
    nor closed before the program ends.
    """
    read, _write = os.pipe()
    return (read,)


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a child that runs ``module`` with our interpreter, and that gets ``passed()``.

    Nothing is imported from the folder that the program was started in (``-P``): another user may own it.
    """
    (end,) = passed()
    return [sys.executable, "-P", "-m", "custody.common.children", str(end), module, *arguments]


def _watch(end: int) -> None:
    # Nothing is ever written: this returns when the other end is closed, or was closed before.
    os.read(end, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(FAREWELL_SECONDS)
    os._exit(1)


def main() -> None:
    """In the child: ``END MODULE ARGUMENTS``."""
    import runpy

    end, module = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_watch, args=(end,), name="lifeline", daemon=True).start()
    sys.argv[:3] = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
