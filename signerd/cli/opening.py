"""open: the way from the terminal to the page. No secret goes through a command line or an address (L10)."""

import contextlib
import html
import os
import secrets
import stat
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, desk_of
from signerd.cli.output import Exit, answer, aside, say

if TYPE_CHECKING:
    from signerd.client import DaemonClient
    from signerd.client.clients import Following
    from signerd.shapes import PageEntry

# It posts itself; where scripts are off, the button does.
_FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>signerd</title></head>
<body><form method="post" action="{action}">
<input type="hidden" name="code" value="{code}">
<button type="submit">Open the page of signerd</button>
</form><script>document.forms[0].submit()</script></body></html>
"""
_BY_HAND = """Open {url} in a browser of yours on this machine, and type this code within {seconds} seconds:

  {code}

From another machine, forward the very same port, and open the same address there:
  ssh -o ExitOnForwardFailure=yes -L {port}:127.0.0.1:{port} you@this-machine
Every user of that machine reaches a forwarded port: docs/page.md says what that means."""
_NO_BROWSER = "No browser could be started from here. Run `signerd open --print` for a code to type."
_NOT_ENTERED = (
    "Nobody entered the page in time. Where the browser may not read the file (snap, flatpak), "
    "run `signerd open --print` for a code to type."
)


def open_page(
    context: typer.Context,
    by_hand: Annotated[bool, typer.Option("--print", help="Print the address and a code to type.")] = False,
    as_json: Json = False,
) -> None:
    """Open the page in your browser."""
    desk = desk_of(context)
    with desk.daemon() as daemon:
        if as_json:
            answer(daemon.enter_page())
        elif by_hand:
            say(_words(daemon.enter_page()))
        else:
            _open(daemon, desk.state)


def _words(entry: "PageEntry") -> str:
    port = entry.url.rstrip("/").rpartition(":")[2]
    return _BY_HAND.format(url=entry.url, code=entry.code, seconds=entry.seconds, port=port)


def _open(daemon: "DaemonClient", state: Path) -> None:
    from signerd.loopback.page.entering import SUBJECT

    # Before there is a code: nothing that happens is missed.
    with daemon.follow(subject=SUBJECT) as lines:
        entry = daemon.enter_page()
        with _form_file(_folder(state), entry) as path:
            if not webbrowser.open(path.as_uri()):
                aside(_NO_BROWSER)
                raise typer.Exit(Exit.FAILED)
            entered = _entered(lines, entry.seconds)
    if not entered:
        aside(_NOT_ENTERED)
        raise typer.Exit(Exit.FAILED)
    say(f"The page is open: {entry.url}")


def _entered(lines: "Following", seconds: float) -> bool:
    """Whether somebody did, while the code is good: the file is not needed longer."""
    over = threading.Timer(seconds, lines.stop)
    over.start()
    try:
        return any(line is not None for line in lines)
    finally:
        over.cancel()


@contextlib.contextmanager
def _form_file(folder: Path, entry: "PageEntry") -> Iterator[Path]:
    """With the code in it, for this user's eyes; its name is nobody's guess."""
    path = folder / f"signerd-open-{secrets.token_hex(8)}.html"
    action = html.escape(f"{entry.url}enter", quote=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_FORM.format(action=action, code=html.escape(entry.code, quote=True)))
        yield path
    finally:
        path.unlink(missing_ok=True)


def _folder(state: Path) -> Path:
    """Memory where the system has a folder in it for this user alone; else the state folder, which is private."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    with contextlib.suppress(OSError):
        found = Path(given).lstat()
        private = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
        if Path(given).is_absolute() and stat.S_ISDIR(found.st_mode) and private:
            return Path(given)
    return state


COMMANDS = (open_page,)
