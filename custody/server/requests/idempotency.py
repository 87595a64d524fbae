"""Repeated requests: the answer is stored in the transaction of its effect, and returned again."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256

from sqlalchemy.orm import Session

from custody.server.errors import IdempotencyInProgress, IdempotencyKeyReused, StateConflict
from custody.server.requests.rates import UnderWay
from custody.server.rules.ports import Clock
from custody.server.store.models import IdempotencyRecordRow

# A later repetition counts as a new request: far beyond the life of a proposal, because it would pay again.
RETENTION = timedelta(days=366)


@dataclass(frozen=True)
class Scope:
    """A caller's key counts for one user, method and path."""

    user_id: int
    method: str
    path: str
    key: str


class Idempotency:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._under_way = UnderWay()

    def guard(self, scope: Scope) -> AbstractContextManager[None]:
        """Held during the whole request, and taken before any lock of the database.

        Raises IdempotencyInProgress for the same key at the same time. In another process the second request
        waits at the database, and then finds the stored answer.
        """
        refusal = IdempotencyInProgress("A request with this Idempotency-Key is being worked on.")
        return self._under_way.one(scope, 1, refusal)

    def known(self, db: Session, scope: Scope, body: bytes) -> bytes | None:
        """The stored answer to this request, if there is one. Raises IdempotencyKeyReused where the key came
        with another body (P41).
        """
        return self._answer(_stored(db, scope), body)

    def once(
        self,
        db: Session,
        scope: Scope,
        body: bytes,
        effect: Callable[[], bytes],
        has_secret: Callable[[], bool],
    ) -> bytes:
        """The stored answer to this request, or that of ``effect``, which is stored in the same transaction
        unless it has a secret.

        Raises IdempotencyKeyReused; StateConflict where the answer had a secret.
        """
        stored = _stored(db, scope)
        if (known := self._answer(stored, body)) is not None:
            return known
        row = stored or IdempotencyRecordRow(**vars(scope))
        response = effect()
        row.response = b"" if has_secret() else response
        row.body_hash, row.created_at = sha256(body).digest(), self._clock()
        db.add(row)
        return response

    def _answer(self, stored: IdempotencyRecordRow | None, body: bytes) -> bytes | None:
        if stored is None or stored.created_at <= self._clock() - RETENTION:
            return None
        if stored.body_hash != sha256(body).digest():
            raise IdempotencyKeyReused("This Idempotency-Key came with another request before.")
        if not stored.response:
            raise StateConflict(
                "This was done already, and its secret was shown that once.",
                hint="Look at what was made before you make anything again: a new secret may end one that is "
                "in use.",
            )
        return stored.response


def _stored(db: Session, scope: Scope) -> IdempotencyRecordRow | None:
    return db.get(IdempotencyRecordRow, (scope.user_id, scope.method, scope.path, scope.key))
