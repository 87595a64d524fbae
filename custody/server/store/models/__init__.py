"""Every table. The first name that is asked for here fills ``Base.metadata``, from which a new database is
made; a command that reads few tables imports their module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from custody.server.store.models.accounts import *  # noqa: F403
    from custody.server.store.models.base import *  # noqa: F403
    from custody.server.store.models.bookkeeping import *  # noqa: F403
    from custody.server.store.models.organisations import *  # noqa: F403
    from custody.server.store.models.proposals import *  # noqa: F403
    from custody.server.store.models.tokens import *  # noqa: F403
    from custody.server.store.models.vaults import *  # noqa: F403
else:
    _MODULES = ("accounts", "base", "bookkeeping", "organisations", "proposals", "tokens", "vaults")

    def __getattr__(name: str) -> Any:
        for module in [import_module(f"{__name__}.{each}") for each in _MODULES]:
            if name in vars(module):
                return vars(module)[name]
        raise AttributeError(f"{__name__} has no {name}")
