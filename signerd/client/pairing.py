"""Getting a token as one call: ask, show the code, wait for the person, keep what was granted (ADR 19)."""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from signerd import shapes
from signerd.client.flow import CallArguments, Plan, Wait, method, read, to_send
from signerd.errors import NotAllowed, UnsafeFolder
from signerd.shapes import calls

# Somebody looks for the page and compares six digits: a second more is not noticed.
ASK_AGAIN_SECONDS = 1.0
PRIVATE_FILE = 0o600


@dataclass(frozen=True)
class Granted:
    """``rights``: what the person left of those that were asked for. ``expires``: RFC 3339, UTC."""

    token: str = field(repr=False)
    app_id: str
    rights: tuple[str, ...]
    expires: str


class PairingCalls:
    @method
    @staticmethod
    def pair(
        name: str,
        rights: Collection[str],
        show: Callable[[str, int], None],
        store: Path | None = None,
    ) -> Plan[Granted]:
        """Ask to be paired, and wait for the person's answer. ``show`` gets the code to show and how long it is good, seconds.

        ``store``: a file for the token, which nobody else can read (0600); what stood there is replaced.

        Raises:
            NotAllowed: the person said no. UnknownPairing: nobody answered in time. UnsafeFolder: the token cannot be
            stored; the app is paired then, and can be revoked. Those of ``ask_pairing`` beside.
        """
        asked = yield from _ask(name, rights)
        show(asked.code, asked.seconds)
        granted = yield from _answer(asked)
        if store is not None:
            store_token(store, granted.token)
        return granted


def _ask(name: str, rights: Collection[str]) -> Plan[shapes.Pairing]:
    reply = yield to_send(calls.ASK_PAIRING, CallArguments(body={"name": name, "rights": sorted(rights)}))
    assert reply is not None, "something was sent"
    return read(reply, calls.ASK_PAIRING)


def _answer(asked: shapes.Pairing) -> Plan[Granted]:
    """The daemon forgets a request in time, and says so: this ends."""
    given = CallArguments({"pairing_id": asked.id}, body={"secret": asked.secret})
    while True:
        reply = yield to_send(calls.COLLECT_PAIRING, given)
        assert reply is not None, "something was sent"
        found = read(reply, calls.COLLECT_PAIRING)
        if found.state == "refused":
            raise NotAllowed("the person did not let this app in")
        if found.state == "accepted":
            return _granted(found)
        yield Wait(ASK_AGAIN_SECONDS)


def _granted(found: shapes.Collected) -> Granted:
    return Granted(found.token or "", found.app_id or "", found.rights, found.expires or "")


def store_token(path: Path, token: str) -> None:
    """Whole or not at all, and never readable by others, not even for a moment. Raises UnsafeFolder."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
        with os.fdopen(made, "w") as file:
            file.write(token + "\n")
        beside.replace(path)
    except OSError as error:
        raise UnsafeFolder(f"the token cannot be stored at {path}: {error.strerror}") from error


def stored_token(path: Path) -> str | None:
    """None where there is none. Raises UnsafeFolder for one that others may have read."""
    try:
        found = path.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise UnsafeFolder(
                f"{path} belongs to another user, or is open to others",
                hint="Revoke the app on the page, remove the file and pair again.",
            )
        return path.read_text().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeFolder(f"{path} cannot be read: {error.strerror}") from error
