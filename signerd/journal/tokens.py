"""What the journal holds of tokens: bytecode by its hash, and which contract's it is, each proven before it is kept."""

import sqlite3
from dataclasses import dataclass
from functools import lru_cache

from multisig.tokens import Bytecode, Call, Deploy, Payload, bytecode_hash, parse_bytecode
from signerd.core.tokens import Published, payload_of_bytes, prove_blob, prove_token
from signerd.core.values import Snapshot


@dataclass(frozen=True)
class TokenBook:
    """Reads at any time; writes within the journal's transaction only."""

    connection: sqlite3.Connection

    def named_by(self, snapshot: Snapshot) -> Bytecode | None:
        """That of the token which a proposal's payload names; None where it carries none, or this machine cannot prove it."""
        payload = _payload(snapshot.psbt) if snapshot.is_of_token else None
        return None if payload is None else self.bytecode(payload)

    def bytecode(self, payload: Payload) -> Bytecode | None:
        digest = payload.bytecode_hash if isinstance(payload, Deploy) else self._hash(payload.contract_id)
        if digest is None:
            return None
        row = self.connection.execute("SELECT blob FROM bytecodes WHERE hash = ?", (digest,)).fetchone()
        return None if row is None else _bytecode(row["blob"])

    def _hash(self, contract_id: str) -> bytes | None:
        query = "SELECT hash FROM tokens WHERE contract_id = ?"
        row = self.connection.execute(query, (contract_id,)).fetchone()
        return None if row is None else bytes(row["hash"])

    def write(self, payload: Payload, published: Published) -> Bytecode:
        """Keep what proves the payload's token; for good, for nothing else could. Raises NotProven."""
        if isinstance(payload, Call):
            proven = prove_token(payload.contract_id, published)
        else:
            proven = prove_blob(payload.bytecode_hash, published.bytecode)
        digest = bytecode_hash(published.bytecode)
        self.connection.execute("INSERT OR IGNORE INTO bytecodes VALUES (?,?)", (digest, published.bytecode))
        if isinstance(payload, Call):
            self.connection.execute(
                "INSERT OR IGNORE INTO tokens VALUES (?,?,?)",
                (payload.contract_id, digest, published.deployment),
            )
        return proven


@lru_cache(maxsize=256)
def _payload(psbt: bytes) -> Payload | None:
    return payload_of_bytes(psbt)


@lru_cache(maxsize=32)
def _bytecode(blob: bytes) -> Bytecode:
    """A list of a thousand addresses takes milliseconds to read; every look at a proposal asks for it."""
    return parse_bytecode(blob)
