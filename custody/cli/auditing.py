"""``custody audit tail``: the end of a workspace's audit log, and new entries as they are written."""

import json
from typing import TYPE_CHECKING, Final

import click

from custody.cli.access import Access, in_workspace
from custody.common.terminal import put

if TYPE_CHECKING:
    from custody.client import Client
    from custody.schemas.logs import AuditLogEntry

PAUSE_SECONDS: Final = 5.0
MAX_LINES: Final = 500
_HEADER: Final = ("WHEN", "WHO", "WHAT", "")


@click.command("tail")
@click.option("--lines", "-n", "count", default=20, type=click.IntRange(1, MAX_LINES), help="How many.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@in_workspace
def tail_command(access: Access, count: int, follow: bool) -> None:
    """Show the end of the workspace's audit log. With --follow, --json answers one value a line."""
    log = _Log(access.client, access.workspace.org_id, access.workspace_id)
    entries = log.end(count)
    if not follow:
        access.give_list(entries, _HEADER, map(_cells, entries))
        return
    while True:
        for entry in entries:
            _line(entry, as_json=access.as_json)
        access.desk.outside.sleep(PAUSE_SECONDS)
        access.desk.freshen(access.client)
        entries = log.more()


class _Log:
    """The log of a workspace, read from its end on. Its entries are numbered without gaps: a cursor is the
    number of the last one that was read.
    """

    def __init__(self, client: "Client", org_id: int, workspace_id: int) -> None:
        self._client = client
        self._place = (org_id, workspace_id)
        self._read = 0

    def end(self, count: int) -> "list[AuditLogEntry]":
        total = self._client.logs(*self._place, page_size=1).total
        self._read = max(0, total - count)
        return self.more()

    def more(self) -> "list[AuditLogEntry]":
        found: list[AuditLogEntry] = []
        while True:
            page = self._client.logs(*self._place, cursor=str(self._read), page_size=MAX_LINES)
            found += page.logs
            self._read += len(page.logs)
            if page.next_cursor is None or not page.logs:
                return found


def _line(entry: "AuditLogEntry", *, as_json: bool) -> None:
    if as_json:
        put(json.dumps(entry.model_dump(mode="json", by_alias=True)))
        return
    from custody.common.text import plain

    put("  ".join(map(plain, _cells(entry))))


def _cells(entry: "AuditLogEntry") -> tuple[str, ...]:
    when = f"{entry.timestamp:%Y-%m-%d %H:%M:%S}"
    return when, entry.user_name, f"{entry.category}.{entry.action}".lower(), entry.description
