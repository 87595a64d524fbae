"""Every call, by noun."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, Final

from custody.schemas.call import Call

# Their modules, in the order of the OpenAPI document.
NOUNS: Final = tuple(
    import_module(f"custody.schemas.{noun}")
    for noun in (
        "auth",
        "users",
        "roles",
        "keys",
        "vaults",
        "limits",
        "address_book",
        "onboarding",
        "proposals",
        "proofs",
        "sending",
        "asset_tokens",
        "logs",
        "purchases",
        "webhooks",
        "changes",
        "service_accounts",
        "history",
        "identity_providers",
    )
)


def named_calls(noun: ModuleType) -> Iterator[tuple[str, Call[Any, Any]]]:
    """The noun's calls in their order, by the name of their constant."""
    return ((name, each) for name, each in vars(noun).items() if isinstance(each, Call))


CALLS: Final[tuple[Call[Any, Any], ...]] = tuple(call for noun in NOUNS for _, call in named_calls(noun))
# By path: the calls that a second person may have to confirm.
CONFIRMABLE: Final[Mapping[str, Call[Any, Any]]] = MappingProxyType(
    {call.path: call for call in CALLS if call.second_person}
)
