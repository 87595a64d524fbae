"""L1-L4, L9, L10, L13, L14: whom a request's head lets in, at the port and at the private socket."""

import string
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signerd.callers import CallerKind, LoopbackCaller, Right
from signerd.errors import (
    HostRefused,
    InvalidRequest,
    LoopbackError,
    NotForBrowsers,
    NotPaired,
    OriginRefused,
    TooManyRequests,
)
from signerd.loopback.access.gates import LASTING_NAMES, Admitted, AppRates, PortGate, SocketGate, hosts_at
from signerd.loopback.access.headers import RequestHead
from signerd.loopback.access.sessions import IDLE_SECONDS, PageSessions
from tests.support.served import ScriptedTokens

PORT = 17_707
NAME = "0123456789abcdef.localhost"
HOST = f"{NAME}:{PORT}"
LASTING = sorted(hosts_at(PORT, *LASTING_NAMES))
ALL = [HOST, *LASTING]
OWN = f"http://{HOST}"
APP_ORIGIN = "https://wallet.example"
PROGRAM = LoopbackCaller(CallerKind.APP, "Program", frozenset({Right.ANYONE, Right.READ}), "a-1")
SITE = LoopbackCaller(CallerKind.APP, "Site", frozenset({Right.ANYONE, Right.READ}), "a-2")


def asked(
    method: str = "GET", path: str = "/v1/devices", *headers: tuple[str, str], host: str = HOST
) -> RequestHead:
    return RequestHead(method, path, (("host", host), *headers))


class Desk:
    """A gate with a program, a site that was let in, and a session of the page."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tokens = ScriptedTokens({("program", None): PROGRAM, ("site", APP_ORIGIN): SITE}, {APP_ORIGIN})
        self.sessions = PageSessions(lambda: self.now)
        token = self.sessions.enter(self.sessions.entry())
        self.secret = ("x-signerd-session", token)
        self.session = self.sessions.find(token)
        self.rates = AppRates(lambda: self.now)
        self.gate = PortGate(PORT, NAME, self.tokens, self.sessions, self.rates)

    def admit(self, given: RequestHead) -> Admitted:
        self.gate.reader(given)
        return self.gate.admit(given)


@pytest.fixture
def desk():
    return Desk()


# --- Host ---------------------------------------------------------------------------------------------------


def test_l1_two_hosts_none_and_one_without_its_port_are_refused(desk):
    for headers in (
        (),
        (("host", NAME),),
        (("host", HOST), ("host", HOST)),
        (("host", HOST), ("host", "evil.example")),
    ):
        with pytest.raises(HostRefused):
            desk.gate.reader(RequestHead("GET", "/", headers))


_LETTERS = st.text(string.ascii_letters + string.digits + ".:[]@-/%, \t", max_size=40)
_NEAR = st.sampled_from(ALL)


@given(st.one_of(_LETTERS, st.builds("".join, st.tuples(_LETTERS, _NEAR, _LETTERS)), _NEAR.map(str.swapcase)))
def test_l1_a_host_is_ours_to_the_byte_or_refused(host):
    gate = Desk().gate
    if host in ALL:
        assert gate.reader(asked(host=host)) is None
    else:
        with pytest.raises(HostRefused):
            gate.reader(asked(host=host))


# --- Origin -------------------------------------------------------------------------------------------------


_NEAR_ORIGIN = st.builds("".join, st.tuples(_LETTERS, st.sampled_from([APP_ORIGIN, OWN]), _LETTERS))
_OPAQUE = st.sampled_from(["null", "", "*", "file://", "https://evil.example", APP_ORIGIN.upper()])


@given(_NEAR_ORIGIN | _OPAQUE)
def test_l2_l3_an_origin_is_the_one_to_the_byte_or_refused(origin):
    gate = Desk().gate
    if origin in {APP_ORIGIN, OWN}:
        assert gate.reader(asked("GET", "/", ("origin", origin))) == {APP_ORIGIN: APP_ORIGIN}.get(origin)
    else:
        with pytest.raises(OriginRefused):
            gate.reader(asked("GET", "/", ("origin", origin)))


# --- Sec-Fetch-Site, the method and a session ---------------------------------------------------------------


def test_l2_l4_l9_l11_l15_l16_who_is_let_in_by_every_head_that_a_browser_sends(desk):
    """A worker that an earlier program left at a lasting address knows the page's and a session's secret."""
    paths = ("/", "/enter", "/v1/devices", "/v1/proposals/p-1/approve", "/static/style.css")
    methods = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "TRACE")
    origins = (None, "null", "https://evil.example", APP_ORIGIN, *(f"http://{host}" for host in ALL))
    sites = (None, "none", "same-origin", "same-site", "cross-site", "", "Same-Origin", "same-origin, none")
    unknown = tuple(("x-signerd-session", value) for value in ("", "0" * 64, "\xff"))
    for host, path, method, origin, site, secret in product(
        ALL, paths, methods, origins, sites, (None, desk.secret, *unknown)
    ):
        said = [("origin", origin), ("sec-fetch-site", site), *([secret] if secret else [])]
        request = asked(
            method, path, *((name, value) for name, value in said if value is not None), host=host
        )
        at_page, ours = host == HOST, origin in {None, OWN}
        no_other_site = site in {None, "none"} or (at_page and site == "same-origin")
        if request.enters:
            wanted = CallerKind.STRANGER if at_page and (ours or origin == "null") else None
        elif not (origin == APP_ORIGIN or (no_other_site and (origin is None or (at_page and ours)))):
            wanted = None
        elif secret is None:
            wanted = CallerKind.STRANGER
        elif not at_page or not (origin == OWN or (origin is None and method in {"GET", "HEAD"})):
            wanted = None
        else:
            wanted = CallerKind.PAGE if secret == desk.secret else CallerKind.STRANGER
        try:
            kind = desk.admit(request).caller.kind
        except LoopbackError:
            kind = None
        assert kind == wanted, request.headers


# --- an app's token -----------------------------------------------------------------------------------------


def bearer(token: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {token}")


@pytest.mark.parametrize(
    ("given", "origin", "caller"),
    [
        ("Bearer program", None, PROGRAM),
        ("bearer program", None, PROGRAM),
        ("Bearer site", APP_ORIGIN, SITE),
        ("Bearer site", None, None),
        ("Bearer program", APP_ORIGIN, None),
        ("Bearer site", OWN, None),
        ("Bearer program", OWN, None),
        ("Bearer unknown", None, None),
        *((other, None, None) for other in ("Basic cHJvZ3JhbTo=", "Bearer", "Bearer ", "program", "")),
    ],
)
def test_l3_l13_a_token_speaks_for_its_app_at_its_own_origin_alone(desk, given, origin, caller):
    request = asked("GET", "/", ("authorization", given), *([("origin", origin)] if origin else []))
    if caller is None:
        with pytest.raises(NotPaired):
            desk.admit(request)
    else:
        assert desk.admit(request).caller is caller


def test_l3_what_is_said_twice_is_refused(desk):
    """Of two readers each could take another one."""
    for headers in (
        (("origin", APP_ORIGIN), ("origin", "https://evil.example")),
        (bearer("program"), bearer("program")),
        (bearer("program"), desk.secret),
        (desk.secret, desk.secret),
    ):
        with pytest.raises(InvalidRequest):
            desk.admit(asked("GET", "/", *headers))


# --- the page's session -------------------------------------------------------------------------------------

FROM_OURS = ("sec-fetch-site", "same-origin")


def test_a_page_that_was_left_open_asks_by_itself_and_does_not_last_for_that(desk):
    alone = (
        asked("GET", "/v1/events", desk.secret, FROM_OURS),
        asked("GET", "/parts/notes", desk.secret, FROM_OURS, ("hx-request", "true")),
    )
    desk.now = IDLE_SECONDS - 1
    for request in alone:
        assert desk.admit(request).caller.kind is CallerKind.PAGE
    desk.now = IDLE_SECONDS
    for request in alone:
        assert desk.admit(request).caller.kind is CallerKind.STRANGER


def test_l10_a_head_shows_no_secret(desk):
    given = asked("GET", "/", bearer("program"), desk.secret)
    assert "program" not in repr(given)


def test_no_other_protocol_is_spoken(desk):
    upgrade = ("upgrade", "websocket")
    with pytest.raises(InvalidRequest):
        desk.gate.reader(asked("GET", "/", upgrade))
    with pytest.raises(InvalidRequest):
        SocketGate(desk.tokens, desk.rates).reader(asked("GET", "/", upgrade, host="signerd"))


# --- the private socket -------------------------------------------------------------------------------------


def test_a_caller_on_the_socket_is_the_terminal_and_a_token_there_has_its_own_rights(desk):
    gate = SocketGate(desk.tokens, desk.rates)
    plain, with_token = asked(host="signerd"), asked("GET", "/", bearer("program"), host="signerd")
    assert gate.reader(plain) is None
    assert gate.admit(plain).caller.kind is CallerKind.TERMINAL
    assert gate.reader(with_token) is None
    assert gate.admit(with_token).caller is PROGRAM
    for token in ("site", "unknown"):
        with pytest.raises(NotPaired):
            gate.admit(asked("GET", "/", bearer(token), host="signerd"))


@pytest.mark.parametrize("host", ALL)
def test_l1_the_ports_names_are_not_the_sockets(desk, host):
    with pytest.raises(NotForBrowsers):
        SocketGate(desk.tokens, desk.rates).reader(asked(host=host))


def test_l6_requests_cost_one_token_each_which_comes_back_with_time():
    now = [0.0]
    rates = AppRates(lambda: now[0])
    for _ in range(int(rates.burst)):
        rates.take("a-1")
    with pytest.raises(TooManyRequests) as refused:
        rates.take("a-1")
    assert refused.value.seconds == 1
    # No other caller is limited for it.
    rates.take("a-2")
    now[0] += 1
    for _ in range(int(rates.per_second)):
        rates.take("a-1")
    with pytest.raises(TooManyRequests):
        rates.take("a-1")
