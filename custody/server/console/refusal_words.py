"""Refusals of the audit log in words: what was tried, by the path of the call, and why not, by the code."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from custody.change_words import TITLES
from custody.schemas.calls import CALLS
from custody.schemas.errors import ErrorCode


def tried_words(path: str) -> str:
    """Goes on after ``tried to``; empty for a call that is not in the table."""
    title = TITLES.get(path, "")
    return title[:1].lower() + title[1:] or _TRIED.get(path.removeprefix("/api/v1/"), "")


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
# Calls within a workspace that `TITLES` does not name.
_TRIED: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: words
        for words, names in {
            "sweep a replaced vault": "sweep-vault",
            "see the limits": "max-send",
            "see the payments": "psbt",
        }.items()
        for name in names.split()
    }
    | {call.path.removeprefix("/api/v1/"): call.attempt for call in CALLS if call.attempt}
)  # fmt: skip
