"""Where the arguments of a described call go, and that each call is answered."""

import inspect
import json
from urllib.parse import urlsplit

import pytest

from signerd.api.account import AccountApi, EventsApi
from signerd.api.apps import AppsApi
from signerd.api.described import described
from signerd.api.devices import DevicesApi
from signerd.api.proposals import ProposalsApi
from signerd.api.vaults import VaultsApi
from signerd.asking import DaemonAddress
from signerd.client import AsyncDaemonClient, DaemonClient
from signerd.loopback.answers import ROUTES
from signerd.loopback.binding import body_of

GROUPS = (AccountApi, DevicesApi, VaultsApi, ProposalsApi, AppsApi, EventsApi)
CALLS = [call for group in GROUPS for call in vars(group).values() if isinstance(call, described)]
ADDRESS = DaemonAddress("http://127.0.0.1:9")
ACCOUNTS, FOLLOW = DevicesApi.device_accounts, EventsApi.follow


def sent(call, *args, **named):
    request = call.request(ADDRESS, *args, **named)
    url = urlsplit(request.url)
    return url.path, url.query, None if request.content is None else json.loads(request.content)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (sent(ACCOUNTS, "d", account=2), ("/v1/devices/d/accounts", "", {"account": 2})),
        (sent(ACCOUNTS, "d", 2), ("/v1/devices/d/accounts", "", {"account": 2})),
        (sent(ACCOUNTS, "d"), ("/v1/devices/d/accounts", "", {})),
        (sent(ProposalsApi.imported_psbt, psbt_id="b", version="2"), ("/v1/psbts/b", "version=2", None)),
        (sent(ProposalsApi.proposals, ended=True), ("/v1/proposals", "ended=true", None)),
        (sent(FOLLOW, None, "p-1", 3), ("/v1/events", "subject=p-1", None)),
        (
            sent(ProposalsApi.approve, "p", "00", frozenset({"b", "a"})),
            ("/v1/proposals/p/approve", "", {"digest": "00", "acknowledged": ["a", "b"]}),
        ),
    ],
)
def test_each_argument_has_its_place_and_what_is_not_given_is_not_sent(given, expected):
    assert given == expected


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), {}),
        (("a", 1, 2), {}),
        (("a",), {"acount": 1}),
        (("a",), {"device_id": "b"}),
        ((), {"account": 1}),
    ],
)
def test_an_argument_that_is_missing_or_not_described_is_a_mistake(args, named):
    with pytest.raises(TypeError):
        ACCOUNTS.request(ADDRESS, *args, **named)


def test_l10_what_a_body_holds_is_in_no_repr():
    assert "hunter2" not in repr(AccountApi.sign_in.request(ADDRESS, "a@example.org", "hunter2"))
    assert "hunter2" not in repr(body_of(AccountApi.sign_in)(email="a@example.org", password="hunter2"))


def test_every_call_is_answered_once():
    assert set(ROUTES) == set(CALLS)
    assert len(CALLS) == len({(call.method, call.path) for call in CALLS})
    assert len(CALLS) == len({call.operation for call in CALLS})


@pytest.mark.parametrize("call", [call for call in CALLS if call.body], ids=lambda call: call.name)
def test_calls_that_name_the_same_body_take_the_same(call):
    fields = body_of(call).model_fields
    taken = {n: one for n, one in inspect.signature(call.takes).parameters.items() if call.place(n) == "body"}
    assert list(fields) == list(taken)
    for name, one in taken.items():
        assert fields[name].is_required() == (one.default is one.empty)
        assert one.default is one.empty or fields[name].default == one.default


@pytest.mark.parametrize("call", CALLS[:-1], ids=lambda call: call.name)
@pytest.mark.parametrize("shell", [DaemonClient, AsyncDaemonClient])
def test_a_client_has_every_call_but_the_stream_and_help_shows_what_it_takes(shell, call):
    assert getattr(shell, call.name) is call
    shown = inspect.signature(getattr(DaemonClient.at("http://127.0.0.1:9"), call.name))
    assert shown.parameters == inspect.signature(call.takes).parameters
