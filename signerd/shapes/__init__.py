"""The shapes of requests and answers under ``/v1``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # For type checkers only.
    from signerd.shapes.account import *  # noqa: F403
    from signerd.shapes.proposals import *  # noqa: F403
    from signerd.shapes.vaults import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Imports a shape at its first use (PEP 562): a command that only prints an answer needs none. A shape's
    name begins with a capital letter, a module's does not.
    """
    for place in ("account", "proposals", "vaults") if name[:1].isupper() else ():
        module = import_module(f"{__name__}.{place}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
