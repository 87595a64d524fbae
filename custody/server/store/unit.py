"""What a use case may have done around the commit of its transaction."""

from collections.abc import Callable
from typing import Final

from sqlalchemy.orm import Session

_AT_LAST: Final = "before it is committed"
_AFTERWARDS: Final = "once it is committed"


def before_commit(db: Session, call: Callable[[], object]) -> None:
    """Has it called as the last that is done in the transaction: what it changes, nobody looks at before."""
    db.info.setdefault(_AT_LAST, []).append(call)


def after_commit(db: Session, call: Callable[[], object]) -> None:
    """Has it called once the transaction is on the disk; never, where it is rolled back."""
    db.info.setdefault(_AFTERWARDS, []).append(call)


def settle(db: Session) -> None:
    """Does what was asked for before the commit."""
    for call in db.info.pop(_AT_LAST, ()):
        call()


def committed(db: Session) -> None:
    """Does what was asked for, in the order in which it was."""
    for call in db.info.pop(_AFTERWARDS, ()):
        call()
