"""Refusals of the audit log in words: what was tried, by the path of the call, and why not, by the code."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from custody.schemas.calls import CALLS
from custody.schemas.errors import ErrorCode


def tried_words(path: str) -> str:
    """Goes on after ``tried to``; empty for a path of no call."""
    words = _TRIED.get(path, "")
    return words[:1].lower() + words[1:]


_TRIED: Final[Mapping[str, str]] = MappingProxyType(
    {call.path: call.second_person or call.attempt for call in CALLS}
)


# By the code of the refusal.
WHY: Final[Mapping[str, str]] = MappingProxyType(
    {
        ErrorCode.PERMISSION_DENIED: "they have no permission for it",
        ErrorCode.NOT_ORG_MEMBER: "they are no member of the organisation",
        ErrorCode.NOT_A_SIGNER: "they are no signer of the vault, or may not approve what they proposed",
        ErrorCode.KEY_REVOKED: "their key is revoked",
        ErrorCode.ROLE_LIMIT_EXCEEDED: "it is above what the limit of their role leaves",
        ErrorCode.VAULT_LIMIT_EXCEEDED: "it is above the limit of the vault",
        ErrorCode.NOT_IN_ADDRESS_BOOK: "a recipient is not in the address book",
    }
)
