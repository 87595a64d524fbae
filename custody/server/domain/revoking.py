"""Why a key was revoked, and what may follow upon what.

``active → revoked`` is final. The reason may only grow worse: a device that was replaced and then stolen must be stopped,
and nothing gives a lost one its voice back.
"""

from custody.schemas.keys import RevokedReason
from custody.server.domain.errors import StateConflict


def changes_anything(current: RevokedReason | None, wanted: RevokedReason) -> bool:
    """False where the key stands so already; ``current`` is None while it is active. Raises StateConflict."""
    if current == wanted:
        return False
    if current == "lost":
        raise StateConflict("The key was marked lost, and that is final.")
    return True


def may_move_on(reason: RevokedReason | None) -> bool:
    """A superseded key still approves what stays in the workspace, for signer sets are fixed; a lost one nothing (P47)."""
    return reason == "superseded"
