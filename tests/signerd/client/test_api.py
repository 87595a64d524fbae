"""Every row of the daemon's table has a call, and the call is there for programs that wait and for those that
await.
"""

import inspect

import pytest

from custody.exchange import method
from signerd.client import AsyncDaemonClient, DaemonClient
from signerd.loopback.endpoints import ROUTES
from signerd.shapes import calls as table

STREAM = ("GET", table.EVENTS.path)
SHELLS = (DaemonClient, AsyncDaemonClient)


def calls(shell):
    return dict(inspect.getmembers(shell, lambda one: isinstance(one, method)))


def places(shell):
    rows = [one.row for one in calls(shell).values() if one.row is not None]
    return {(row.method, row.path) for row in rows} | {STREAM}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
def test_a_row_has_a_call_in_both_shells(shell, row):
    assert (row.method, row.path) in places(shell)


def test_no_row_stands_in_the_table_twice():
    assert len(ROUTES) == len({(row.method, row.path) for row in ROUTES})


@pytest.mark.parametrize("shell", SHELLS)
def test_no_call_asks_for_a_row_that_is_not_there(shell):
    assert places(shell) - {(row.method, row.path) for row in ROUTES} == set()


@pytest.mark.parametrize("name", calls(DaemonClient))
def test_a_call_shows_what_it_takes(name):
    """help() and a notebook read it from there; the answer of a row's own function is what it puts where."""
    with DaemonClient.at("http://127.0.0.1:9") as client:
        shown = inspect.signature(getattr(client, name))
    assert "args" not in shown.parameters
