"""pair, apps, open: apps, and the page. No secret is put on a command line or into a URL (L10)."""

import contextlib
import os
import secrets
import threading
import time
import webbrowser
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.common.naming import LEAST
from custody.common.private_files import folder_fault, write_private
from custody.common.terminal import Exit, answer, aside, say, table
from custody.common.text import count
from signerd.callers import rights_words
from signerd.cli import naming
from signerd.cli.desk import Desk, answering, json_option
from signerd.cli.progress import Tell
from signerd.errors import DaemonNotRunning, InvalidRequest, UnknownPairing
from signerd.shapes.limits import DAYS

if TYPE_CHECKING:
    from signerd.client import DaemonClient, EventSubscription
    from signerd.shapes import AppView, OpenPairing, PageEntry


PROGRAM = "a program of this machine"


def pairing_text(pairing: "OpenPairing", rights: Collection[str], days: int) -> str:
    """The request without its code: the person has to type the code that the app shows."""
    taken = [right for right in pairing.rights if right not in rights]
    lines = [
        "An app asks to be paired.",
        f"  Name   {pairing.name}  (its own word)",
        f"  From   {pairing.origin or PROGRAM}",
        *([f"  NOTE   {pairing.warning}"] if pairing.warning else []),
        f"  For {count(days, 'day', 'days')} it may",
        *(f"    {line}" for line in rights_words(rights)),
        *([f"  Not granted: {', '.join(taken)}"] if taken else []),
        f"  Answer within {pairing.seconds_left} s. Where you began no pairing yourself, refuse it.",
    ]
    return "\n".join(lines)


def _row(app: "AppView") -> tuple[str, ...]:
    return (
        app.id,
        app.name,
        app.origin or PROGRAM,
        ", ".join(app.rights),
        app.expires,
        app.last_used or "never",
        app.state if app.revoked is None else f"{app.state} {app.revoked}",
    )


# As long as a request lasts.
WAIT_SECONDS = 120.0
PAIRING = "pairing"
QUESTION = "Type the six digits that the app shows, or 'no' to refuse it"
NO = frozenset({"n", "no"})


@click.argument("pairing_id", required=False, metavar="ID", help="Which request, where several are open.")
@click.option(
    "--origin", metavar="URL", help="Let the pages of this site ask for five minutes, and wait for them."
)
@click.option("--only", metavar="RIGHTS", help="Grant no more than these: read,xpub")
@click.option("--days", default=DAYS, type=int, help="How long its token is good.")
@click.option("--code", help="The six digits that the app shows; else they are asked for.")
@click.option(
    "--refuse", is_flag=True, help="Refuse it; by its ID also one that was let in and has no token yet."
)
@answering
def pair(
    desk: Desk,
    pairing_id: str | None,
    origin: str | None,
    only: str | None,
    days: int,
    code: str | None,
    refuse: bool,
) -> None:
    """Pair an app: see which rights it asks for, remove some, and type the code that it shows."""
    pairing = _requested(desk, pairing_id, origin, accepted=refuse and pairing_id is not None)
    rights = _rights_to_grant(pairing, only)
    desk.tell(pairing_text(pairing, rights, days))
    typed = "no" if refuse else desk.answers.line(QUESTION) if code is None else code
    declined = typed.strip().lower() in NO
    if declined:
        answered = desk.daemon.refuse_pairing(pairing.id)
    else:
        answered = desk.daemon.accept_pairing(pairing.id, typed, frozenset(rights), days)  # type: ignore[arg-type]  # rights that the daemon named
    desk.give(
        answered,
        "Refused." if declined else f"Accepted: the app may fetch its token now. {_withdrawal(pairing)}",
    )
    raise click.exceptions.Exit(Exit.DECLINED if declined and not refuse else Exit.OK)


def _withdrawal(pairing: "OpenPairing") -> str:
    return f"Until it has, `signerd pair {pairing.id} --refuse` takes it back."


def _requested(desk: Desk, pairing_id: str | None, origin: str | None, *, accepted: bool) -> "OpenPairing":
    daemon, after = desk.daemon, desk.daemon.status().position
    exact = None
    if origin is not None:
        exact = daemon.let_in(origin).origin
        desk.tell(f"The pages of {exact} may ask for five minutes.")
    pairing = _found(daemon, pairing_id, exact, accepted=accepted)
    if pairing is None and pairing_id is not None:
        raise UnknownPairing(f"no request '{pairing_id}' is open")
    return pairing or _wait_for_request(daemon, exact, after, desk.tell)


def _wait_for_request(daemon: "DaemonClient", origin: str | None, after: int, tell: Tell) -> "OpenPairing":
    """Raises UnknownPairing where no app asks in time, DaemonNotRunning where signerd stops."""
    ends = time.monotonic() + WAIT_SECONDS
    tell("Waiting for an app to ask, two minutes at most. Ctrl-C ends it.")
    with daemon.follow(after=after, subject=PAIRING) as lines:
        for _line in lines:
            pairing, left = _found(daemon, None, origin), ends - time.monotonic()
            if pairing is not None:
                return pairing
            if left <= 0:
                raise UnknownPairing("no app asked", hint="Start pairing in the app, then run this again.")
            tell(f"Waiting, {left:.0f} seconds more.")
    raise DaemonNotRunning("signerd stopped while this waited for an app")


def _found(
    daemon: "DaemonClient", pairing_id: str | None, origin: str | None, *, accepted: bool = False
) -> "OpenPairing | None":
    """``accepted``: also one that was let in and has no token yet. Raises InvalidRequest where several could
    be meant.
    """
    pairings = [
        pairing
        for pairing in daemon.pairings()
        if (pairing_id is None or (len(pairing_id) >= LEAST and pairing.id.startswith(pairing_id)))
        and origin in {None, pairing.origin}
        and (accepted or pairing.state == "waiting")
    ]
    if len(pairings) > 1:
        requests = "; ".join(
            f"{pairing.id} ({pairing.origin or PROGRAM}, '{pairing.name}')" for pairing in pairings
        )
        raise InvalidRequest(
            f"{len(pairings)} apps ask: {requests}", hint="Name one of them: `signerd pair ID`."
        )
    return pairings[0] if pairings else None


def _rights_to_grant(pairing: "OpenPairing", only: str | None) -> tuple[str, ...]:
    """The rights to grant of those that were asked for. Raises InvalidRequest."""
    if only is None:
        return pairing.rights
    named = {word.strip() for word in only.split(",")}
    if not named <= set(pairing.rights):
        raise InvalidRequest(
            "--only can name no right that the app did not ask for",
            hint=f"It asks for: {','.join(pairing.rights)}.",
        )
    return tuple(right for right in pairing.rights if right in named)


@click.group(invoke_without_command=True)
@click.pass_context
@click.option("--all", "ended", is_flag=True, help="Also those that are revoked or expired.")
@json_option
def apps(context: click.Context, ended: bool, as_json: bool) -> None:
    """List the apps that are paired, and what each may do."""
    if context.invoked_subcommand is not None:
        return
    daemon = context.obj.daemon
    every = daemon.apps()
    listed = [one for one in every if ended or one.state == "live"]
    if as_json:
        answer(listed)
        return
    if listed:
        table(("ID", "NAME", "FROM", "RIGHTS", "UNTIL", "LAST USED", "STATE"), [_row(one) for one in listed])
    else:
        say("No app is paired. Let one in with `signerd pair`.")
    if len(listed) < len(every):
        say(f"Revoked or expired: {len(every) - len(listed)}. `signerd apps --all` shows them.")
    for one in (one for one in daemon.pairings() if one.state == "accepted"):
        say(
            f"'{one.name}' ({one.origin or PROGRAM}) was let in and has not fetched its token. "
            f"{_withdrawal(one)}"
        )


@apps.command()
@click.argument("app_id", metavar="ID|NAME", help="As `signerd apps` lists it.")
@answering
def revoke(desk: Desk, app_id: str) -> None:
    """Revoke an app's token, at once and for good."""
    gone = desk.daemon.revoke_app(naming.app_id(desk.daemon, app_id))
    desk.give(gone, f"'{gone.name}' is not paired any more.")


@apps.command("shut-out")
@click.argument("origin", metavar="URL", help="Of the site, as `signerd apps` shows it.")
@answering
def shut_out(desk: Desk, origin: str) -> None:
    """Stop a site's pages from asking, and revoke its apps."""
    shut = desk.daemon.shut_out(origin)
    desk.give(shut, f"{shut.origin} is shut out, and no app of it is paired any more.")


_BY_HAND = """Open {url} in a browser of yours on this machine, and type this code within {seconds} seconds:

  {code}

From another machine, forward the very same port, and open the same address there:
  ssh -o ExitOnForwardFailure=yes -L {port}:127.0.0.1:{port} you@this-machine
Every user of that machine reaches a forwarded port:
see the page 'The page and the port' of the documentation."""
_NOT_ENTERED = (
    "No browser entered the page in time. Where none can be started from here, or it may not read the file "
    "(snap, flatpak), run `signerd open --print` for a code to type."
)


@click.option("--print", "by_hand", is_flag=True, help="Print the address and a code to type.")
@answering
def open_page(desk: Desk, by_hand: bool) -> None:
    """Open the page in your browser."""
    if by_hand or desk.as_json:
        entry = desk.daemon.enter_page()
        port = entry.url.rstrip("/").rpartition(":")[2]
        desk.give(entry, _BY_HAND.format(url=entry.url, code=entry.code, seconds=entry.seconds, port=port))
    else:
        _open(desk.daemon, desk.state)


def _open(daemon: "DaemonClient", state: Path) -> None:
    from signerd.loopback.page.entering import SUBJECT

    # Subscribed before the code exists, so that no event is missed.
    with daemon.follow(subject=SUBJECT) as lines:
        entry = daemon.enter_page()
        with _form_file(_folder(state), entry) as path:
            entered = webbrowser.open(path.as_uri()) and _entered(lines, entry.seconds)
    if not entered:
        aside(_NOT_ENTERED)
        raise click.exceptions.Exit(Exit.FAILED)
    say(f"The page is open: {entry.url}")


def _entered(lines: "EventSubscription", seconds: float) -> bool:
    """Wait until a browser entered, while the code is valid. The file is removed afterwards."""
    over = threading.Timer(seconds, lines.stop)
    over.start()
    try:
        return any(line is not None for line in lines)
    finally:
        over.cancel()


@contextlib.contextmanager
def _form_file(folder: Path, entry: "PageEntry") -> Iterator[Path]:
    """A file with the code, readable by this user only; its name cannot be guessed."""
    from signerd.loopback.page.entering import entry_form

    path = folder / f"signerd-open-{secrets.token_hex(8)}.html"
    try:
        write_private(path, entry_form(entry).encode())
        yield path
    finally:
        path.unlink(missing_ok=True)


def _folder(state: Path) -> Path:
    """The user's private runtime folder, which is in memory; else the state folder."""
    given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    return given if given.is_absolute() and given.is_dir() and folder_fault(given) is None else state
