"""What the daemon answers, and what it takes, under ``/v1``: one file for each thing that can be spoken of."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Every shape of them, for type checkers alone: a list of the names would say them a second time.
    from signerd.shapes.account import *  # noqa: F403
    from signerd.shapes.proposals import *  # noqa: F403
    from signerd.shapes.vaults import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """A shape is imported where it is first used: a command that only prints an answer needs none (PEP
    562). Its name begins with a capital, a module's does not.
    """
    for place in ("account", "proposals", "vaults") if name[:1].isupper() else ():
        module = import_module(f"{__name__}.{place}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
