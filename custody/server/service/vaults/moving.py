"""What moving a vault's coins asks of its row: read past the session, for every proposal does so twice."""

from typing import NamedTuple, Protocol

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.server.store.models import Vault
from custody.server.store.statements import Query, Question


class Moved(Protocol):
    """A vault whose coins are moved: its row, or what is needed of it."""

    @property
    def id(self) -> str: ...
    @property
    def workspace_id(self) -> int: ...
    @property
    def chain(self) -> str: ...
    @property
    def descriptor(self) -> str: ...
    @property
    def m(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def next_change_index(self) -> int: ...


class MovedVault(NamedTuple):
    """As it was when it was read."""

    id: str
    workspace_id: int
    chain: str
    descriptor: str
    m: int
    n: int
    next_change_index: int


def vault_question(vault_id: str) -> Question[str, int, str, str, int, int, int]:
    """What `moved_vault` asks."""
    return _MOVED.of({"vault_id": vault_id})


def moved_vault(db: Session, vault_id: str) -> MovedVault | None:
    found = vault_question(vault_id).first(db)
    return None if found is None else MovedVault(*found)


_MOVED = Query(
    select(
        Vault.id,
        Vault.workspace_id,
        Vault.chain,
        Vault.descriptor,
        Vault.m,
        Vault.n,
        Vault.next_change_index,
    ).where(Vault.id == bindparam("vault_id"))
)
