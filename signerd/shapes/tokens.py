"""Tokens that a vault holds, and the calls on them: all of it the platform's words."""

from signerd.shapes.common import Answer


class HoldingView(Answer):
    """``balance`` and ``supply`` in whole tokens, in the decimals that the platform gives. ``contract`` None: not deployed yet.

    ``proven``: this machine has proven the contract's bytecode, and the name and decimals are its; the balance never is.
    """

    contract: str | None
    name: str
    balance: str
    supply: str
    owned: bool
    proven: bool


class TokenCallView(Answer):
    """``arguments``: as they were asked for, amounts in raw units."""

    uid: int
    function: str
    arguments: tuple[str, ...]
    status: str
    created_at: str
    psbt_id: str
    failure: str | None


class VaultTokens(Answer):
    """What the platform says that a vault holds, and its newest calls first. ``more``: there are older calls, or more tokens."""

    vault_id: str
    network: str
    holdings: tuple[HoldingView, ...]
    calls: tuple[TokenCallView, ...]
    more: bool
