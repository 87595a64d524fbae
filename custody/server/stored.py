"""The platform's database and its audit log, without the use cases: an operator's command that needs no more
loads half as much.
"""

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from custody.server.audit.checkpoints import Checkpoints
from custody.server.audit.log import AuditLog
from custody.server.rules.ports import UNCOUNTED, Clock, RandomBytes
from custody.server.secrets import Secrets
from custody.server.settings import Settings, utc_now
from custody.server.store import Store

if TYPE_CHECKING:
    from custody.server.meters import Meters


@dataclass(frozen=True)
class Stored:
    """Close its store when done."""

    clock: Clock
    store: Store
    audit: AuditLog
    secrets: Secrets
    checkpoints: Checkpoints


def open_stored(
    settings: Settings,
    meters: "Meters" = UNCOUNTED,
    clock: Clock = utc_now,
    random: RandomBytes = secrets.token_bytes,
) -> Stored:
    """Creates the state folder (0700) where it is missing, and brings the database up to date."""
    settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = Store.open(settings.database, meters)
    own = Secrets(settings.secrets_file or settings.state / "secrets.json", random)
    audit = AuditLog(clock, random)
    file = settings.checkpoint_file or settings.state / "audit-checkpoints.jsonl"
    return Stored(clock, store, audit, own, Checkpoints(store, clock, random, audit, own, file))
