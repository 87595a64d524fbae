"""Runs a function in a forked process that may be killed: no ``finally`` runs there, nothing is flushed."""

import gc
import os
import traceback
from collections.abc import Callable


def in_child(run: Callable[[], object]) -> int:
    """The signal that ended the child, or 0. Raises SystemExit where the child fails otherwise."""
    child = os.fork()
    if child == 0:
        # The child lives for a second, of which a garbage collection would take a fifth.
        gc.disable()
        status = 1
        try:
            run()
            status = 0
        except BaseException:  # noqa: BLE001 - the child's outermost border: it says what happened and ends
            traceback.print_exc()
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    if os.WIFSIGNALED(how):
        return os.WTERMSIG(how)
    if os.WEXITSTATUS(how):
        raise SystemExit("the forked process failed by itself")
    return 0
