"""L1-L4, L9, L10, L13, L14: whom a request's head lets in, at the port and at the private socket."""

import string

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
        return self.gate.admit(given, self.gate.reader(given))


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


@pytest.mark.parametrize("site", ["same-site", "cross-site", "", "Same-Origin", "same-origin, none"])
def test_l2_l11_a_picture_or_a_link_on_another_site_is_refused_without_an_origin_too(desk, site):
    says = ("sec-fetch-site", site)
    for path in ("/", "/enter", "/v1/openapi.json", "/v1/devices", "/static/style.css"):
        for headers in ((says,), (says, ("origin", OWN)), (says, desk.secret), (says, bearer("program"))):
            with pytest.raises(OriginRefused):
                desk.gate.reader(asked("GET", path, *headers))
    # Who was let in says who it is, and a file of ours begins the entering.
    assert desk.gate.reader(asked("GET", "/v1/devices", says, ("origin", APP_ORIGIN))) == APP_ORIGIN
    assert desk.admit(asked("POST", "/enter", says, ("origin", "null"))).caller.kind is CallerKind.STRANGER


def test_l3_an_origin_twice_is_refused(desk):
    with pytest.raises(InvalidRequest):
        desk.gate.reader(asked("GET", "/", ("origin", APP_ORIGIN), ("origin", "https://evil.example")))


# --- an address that others had before ----------------------------------------------------------------------


@given(
    host=st.sampled_from(ALL),
    path=st.sampled_from(
        ["/", "/enter", "/leave", "/v1/devices", "/v1/pairings", "/v1/proposals/p-1/approve"]
    ),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "OPTIONS"]),
    origin=st.sampled_from([None, "null", APP_ORIGIN, *(f"http://{host}" for host in ALL)]),
    site=st.sampled_from([None, "none", "same-origin", "same-site", "cross-site"]),
    session=st.booleans(),
)
def test_l15_l16_what_a_browser_runs_at_a_lasting_address_is_no_page_of_ours(
    host, path, method, origin, site, session
):
    """A worker that an earlier program left there knows the address and may have a session's secret."""
    desk = Desk()
    said = [("origin", origin), ("sec-fetch-site", site), desk.secret if session else ("x", None)]
    request = asked(method, path, *((name, value) for name, value in said if value is not None), host=host)
    try:
        kind = desk.admit(request).caller.kind
    except LoopbackError:
        return
    if host != HOST:
        assert kind is CallerKind.STRANGER
        assert not request.enters
        assert origin in {None, APP_ORIGIN}
        assert site in {None, "none"} or origin == APP_ORIGIN
    if kind is CallerKind.PAGE:
        assert session
        assert origin in {None, OWN}
    if request.enters:
        assert origin in {None, "null", OWN}


# --- an app's token -----------------------------------------------------------------------------------------


def bearer(token: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {token}")


def test_a_token_speaks_for_its_app(desk):
    assert desk.admit(asked("GET", "/", bearer("program"))).caller is PROGRAM
    assert desk.admit(asked("GET", "/", bearer("site"), ("origin", APP_ORIGIN))).caller is SITE
    assert desk.admit(asked("GET", "/", ("authorization", "bearer program"))).caller is PROGRAM


@pytest.mark.parametrize(
    ("token", "origin"),
    [("site", None), ("program", APP_ORIGIN), ("site", OWN), ("program", OWN), ("unknown", None)],
)
def test_l3_l13_a_token_is_worth_nothing_with_another_origin_than_its_own(desk, token, origin):
    headers = () if origin is None else (("origin", origin),)
    with pytest.raises(NotPaired):
        desk.admit(asked("GET", "/", bearer(token), *headers))


def test_l13_a_token_that_was_revoked_stands_no_longer(desk):
    admitted = desk.admit(asked("GET", "/", bearer("program")))
    assert admitted.stands()
    del desk.tokens.paired["program", None]
    assert not admitted.stands()
    with pytest.raises(NotPaired):
        desk.admit(asked("GET", "/", bearer("program")))


@pytest.mark.parametrize("given", ["Basic cHJvZ3JhbTo=", "Bearer", "Bearer ", "program", ""])
def test_other_credentials_are_no_token(desk, given):
    with pytest.raises(NotPaired):
        desk.admit(asked("GET", "/", ("authorization", given)))


def test_two_tokens_or_a_token_and_a_session_are_refused(desk):
    for headers in (
        (bearer("program"), bearer("program")),
        (bearer("program"), desk.secret),
        (desk.secret, desk.secret),
    ):
        with pytest.raises(InvalidRequest):
            desk.admit(asked("GET", "/", *headers))


# --- the page's session -------------------------------------------------------------------------------------

FROM_OURS = ("sec-fetch-site", "same-origin")


def test_the_session_is_the_page_when_it_looks(desk):
    for headers in ((), (FROM_OURS,), (("sec-fetch-site", "none"),), (("origin", OWN), FROM_OURS)):
        admitted = desk.admit(asked("GET", "/", desk.secret, *headers))
        assert (admitted.caller.kind, admitted.session) == (CallerKind.PAGE, desk.session)


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


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_l4_a_missing_origin_is_no_sign_of_a_friend(desk, method):
    with pytest.raises(OriginRefused):
        desk.admit(asked(method, "/", desk.secret, FROM_OURS))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_l4_an_apps_site_does_not_speak_in_the_pages_session(desk, method):
    with pytest.raises(OriginRefused):
        desk.admit(asked(method, "/", desk.secret, ("origin", APP_ORIGIN)))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_l4_l9_an_unknown_session_is_a_stranger(desk, method):
    for value in ("", "x", "0" * 64, "\xff"):
        given = asked(method, "/", ("x-signerd-session", value), ("origin", OWN))
        assert desk.admit(given).caller.kind is CallerKind.STRANGER


def test_l10_a_head_shows_no_secret(desk):
    given = asked("GET", "/", bearer("program"), desk.secret)
    assert "program" not in repr(given)


def test_no_other_protocol_is_spoken(desk):
    upgrade = ("upgrade", "websocket")
    with pytest.raises(InvalidRequest):
        desk.gate.reader(asked("GET", "/", upgrade))
    with pytest.raises(InvalidRequest):
        SocketGate(desk.tokens, desk.rates).reader(asked("GET", "/", upgrade, host="signerd"))


# --- anything at all ----------------------------------------------------------------------------------------

_NAMES = st.sampled_from(
    [
        "host",
        "origin",
        "cookie",
        "authorization",
        "referer",
        "sec-fetch-site",
        "sec-fetch-dest",
        "upgrade",
        "x-signerd-session",
        "content-length",
        "access-control-request-method",
    ]
)
_VALUES = st.one_of(
    st.sampled_from(
        [HOST, OWN, APP_ORIGIN, "null", "Bearer program", "Bearer site", "same-origin", "document"]
    ),
    st.text(st.characters(max_codepoint=255), max_size=20),
)


@given(
    st.sampled_from(["GET", "POST", "OPTIONS", "HEAD"]),
    st.sampled_from(["/", "/enter", "/v1/devices"]),
    st.lists(st.tuples(_NAMES, _VALUES), max_size=8),
)
def test_any_head_gives_a_caller_or_a_refusal_and_never_the_page(method, path, headers):
    desk = Desk()
    try:
        admitted = desk.admit(RequestHead(method, path, (("host", HOST), *headers)))
    except LoopbackError:
        return
    origins = [value for name, value in headers if name == "origin"]
    if admitted.caller is PROGRAM:
        assert origins == []
    elif admitted.caller is SITE:
        assert origins == [APP_ORIGIN]
    else:
        assert admitted.caller.kind is CallerKind.STRANGER


# --- the private socket -------------------------------------------------------------------------------------


def test_a_caller_on_the_socket_is_the_terminal_and_a_token_there_has_its_own_rights(desk):
    gate = SocketGate(desk.tokens, desk.rates)
    plain, with_token = asked(host="signerd"), asked("GET", "/", bearer("program"), host="signerd")
    assert gate.admit(plain, gate.reader(plain)).caller.kind is CallerKind.TERMINAL
    assert gate.admit(with_token, gate.reader(with_token)).caller is PROGRAM
    for token in ("site", "unknown"):
        with pytest.raises(NotPaired):
            gate.admit(asked("GET", "/", bearer(token), host="signerd"), None)


@pytest.mark.parametrize("host", ALL)
def test_l1_the_ports_names_are_not_the_sockets(desk, host):
    with pytest.raises(NotForBrowsers):
        SocketGate(desk.tokens, desk.rates).reader(asked(host=host))
