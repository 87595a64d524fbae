"""signtx: a PSBT is brought, the person is told where to approve it, and its end is waited for."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any, Final

from signerd.asking import segment
from signerd.core.text import amount, plain
from signerd.errors import SignerdError
from signerd.hwi.codes import Code, HwiError, device_code
from signerd.hwi.connection import DaemonConnection
from signerd.hwi.listing import Chosen
from signerd.hwi.values import Imported, read, read_all

Clock = Callable[[], float]
_INTERRUPTED: Final = "interrupted"
# How what was brought may end without a signature, and what HWI would say. What was interrupted at the device could be
# approved again; but who called waits for one attempt, as with HWI, and may call again: for another attempt.
ENDS: Final = {
    "declined": Code.ACTION_CANCELED,
    "withdrawn": Code.ACTION_CANCELED,
    "expired": Code.ACTION_CANCELED,
    "refused": Code.INVALID_TX,
    "quarantined": Code.INVALID_TX,
    "superseded": Code.INVALID_TX,
    "broadcast": Code.INVALID_TX,
    "confirmed": Code.INVALID_TX,
    _INTERRUPTED: None,
}
_HAPPENED: Final = b"data: "
_NEWS: Final = (_HAPPENED, b":")
# As if the daemon had said that it is there.
_NOW: Final = b":"


def signed(
    daemon: DaemonConnection, chosen: Chosen, psbt: str, seconds: float, clock: Clock = time.monotonic
) -> dict[str, Any]:
    """Raises HwiError, KeyboardInterrupt: what was brought for this call is taken back then."""
    chosen.require_registered()
    text = "".join(psbt.split())
    before = read_all(lambda line: line["psbt_id"], daemon.get("/psbts"))
    brought = read(Imported.read, daemon.post("/psbts", {"psbt": text}))
    # Somebody else of the same person may wait for the same transaction.
    ours = brought.psbt_id not in before
    try:
        found = _awaited(daemon, brought, clock() + seconds, clock)
    except BaseException:
        if ours:
            _take_back(daemon, brought)
        raise
    return {"psbt": found, "signed": found != text}


def _awaited(daemon: DaemonConnection, brought: Imported, deadline: float, clock: Clock) -> str:
    if brought.signed_psbt is not None:
        return brought.signed_psbt
    _tell(brought)
    # An attempt before this call is no end of it: what was interrupted waits for the person, who is asked again.
    attempted = brought.state != _INTERRUPTED
    while clock() < deadline:
        try:
            # Opened before the first look, so that nothing happens in between.
            with daemon.happenings(brought.psbt_id) as lines:
                for line in chain((_NOW,), lines):
                    if clock() >= deadline:
                        break
                    if not line.startswith(_NEWS):
                        continue
                    now = _look(daemon, brought)
                    attempted = attempted or line.startswith(_HAPPENED) or now.state != _INTERRUPTED
                    if (found := _outcome(now, attempted=attempted)) is not None:
                        return found
        except TimeoutError:
            # Not even a heartbeat: another stream tells whether the daemon is there.
            continue
    raise HwiError(
        "it was not approved and signed in time. Ask again when you are at the device.",
        Code.ACTION_CANCELED,
    )


def _look(daemon: DaemonConnection, brought: Imported) -> Imported:
    return read(Imported.read, daemon.get(f"/psbts/{segment(brought.psbt_id)}"))


def _outcome(now: Imported, *, attempted: bool) -> str | None:
    """The signed PSBT; None while it is undecided. ``attempted``: since it was asked for. Raises HwiError."""
    if now.signed_psbt is not None:
        return now.signed_psbt
    if now.state not in ENDS or (now.state == _INTERRUPTED and not attempted):
        return None
    why = plain(now.reason) or f"it is {now.state}"
    raise HwiError(f"not signed: {why}", ENDS[now.state] or device_code(now.reason))


def _tell(brought: Imported) -> None:
    paid = "" if brought.paid_sats is None else f", which pays {amount(brought.paid_sats)}"
    whose = "" if brought.vault_name is None else f" from '{plain(brought.vault_name)}'"
    sys.stderr.write(
        f"signerd-hwi: a transaction{whose}{paid} waits for you: approve it on signerd's page "
        f"(`signerd open`) or with `signerd approve {brought.psbt_id}`.\n"
    )
    sys.stderr.flush()


def _take_back(daemon: DaemonConnection, brought: Imported) -> None:
    """What cannot be taken back, because a device is being asked or the daemon has gone, ends by itself: at last in a day."""
    with suppress(SignerdError):
        daemon.delete(f"/psbts/{segment(brought.psbt_id)}")
