"""The bytecode that is known here, by its hash."""

from collections.abc import Callable
from functools import cache

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.store.models import Contract
from multisig.tokens import Bytecode, parse_bytecode
from multisig.tokens.machine import BytecodeOf

# Of one chain, within one transaction.
Published = Callable[[Session, str], BytecodeOf]


def published_bytecode(db: Session, chain: str) -> BytecodeOf:
    """Finds what a member here has made a token of, else None. What was asked for is remembered."""

    @cache
    def find(bytecode_hash: bytes) -> Bytecode | None:
        of_hash = select(Contract.bytecode).where(
            Contract.chain == chain, Contract.bytecode_hash == bytecode_hash
        )
        blob = db.scalar(of_hash.limit(1))
        return None if blob is None else parse_bytecode(blob)

    return find
