"""L13: whatever is asked, answered, revoked or waited for, in whatever order, a token works exactly while it
should.
"""

import asyncio
import shutil
import tempfile
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from signerd.callers import GRANTABLE, Right
from signerd.core.audit import first_fault
from signerd.errors import (
    AlreadyAsking,
    NameTaken,
    NotAllowed,
    NotPaired,
    TooManyPairings,
    UnknownPairing,
    WrongPairingCode,
)
from signerd.shapes import Pairing
from tests.support.examples import examples
from tests.support.pairing import World

SITES = (None, "https://one.example", "https://two.example")
# By the design (L6, L7), and not by the program: a bound that is one too high lets one more through.
MOST_WAIT, MOST_ASK, MOST_ASK_ALIKE, MOST_TRIES, MINUTE, LIFE = 3, 6, 3, 3, 60, 120
NAMES = st.sampled_from(["A", "a", " \uff21 ", *"BCDEFG"])
# A token that is none, and origins that are nobody's.
NO_TOKENS, NO_SITES = (
    ("signerd_" + "A" * 43, "", "\udcff"),
    ("https://evil.example", SITES[1] + ".", SITES[1].upper()),
)
ALL = [str(right) for right in GRANTABLE]
RIGHTS = st.frozensets(st.sampled_from(ALL), min_size=1)


def plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().lower()


@dataclass(frozen=True)
class Request:
    """As the model has it. ``granted``: what the person left of it, None while nothing was answered."""

    pairing: Pairing = field(repr=False)
    name: str
    site: str | None
    rights: frozenset[str]
    until: float
    granted: frozenset[str] | None = None
    refused: bool = False
    mistyped: int = 0
    days: int = 0

    @property
    def waits(self) -> bool:
        return self.granted is None and not self.refused

    @property
    def open(self) -> bool:
        return not self.refused


@dataclass(frozen=True)
class Token:
    app_id: str
    text: str
    name: str
    site: str | None
    rights: frozenset[str]
    expires: datetime
    revoked: bool = False


class Lives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(self.folder)
        self.world.open()
        self.loop = asyncio.new_event_loop()
        self.requests: list[Request] = []
        self.tokens: list[Token] = []
        # When each request was made, and by whom.
        self.lately: list[tuple[float, str]] = []
        self.let_in: dict[str, datetime] = {}
        self.noes: set[tuple[str, str | None]] = set()

    def teardown(self) -> None:
        assert first_fault(self.world.journal.audit()) is None
        self.world.journal.close()
        self.loop.close()
        shutil.rmtree(self.folder)

    def does(self, what):
        return self.loop.run_until_complete(what)

    def fails(self, what, *errors) -> None:
        try:
            self.does(what)
        except errors:
            return
        raise AssertionError("it was done")

    def live_requests(self) -> list[Request]:
        return [one for one in self.requests if one.until > self.world.seconds]

    def chosen(self, number: int) -> Request:
        return self.requests[number % len(self.requests)]

    def put(self, before: Request, after: Request) -> None:
        self.requests[self.requests.index(before)] = after

    def another(self, name, site, others) -> bool:
        """Whether one of them has the name, and is not the same site."""
        same = (one for one in others if plain(one.name) == plain(name))
        return any(site is None or one.site != site for one in same)

    def too_many(self, waiting: int, asker: str) -> bool:
        lately = [who for at, who in self.lately if self.world.seconds - at < MINUTE]
        return waiting >= MOST_WAIT or len(lately) >= MOST_ASK or lately.count(asker) >= MOST_ASK_ALIKE

    @rule(name=NAMES, site=st.sampled_from(SITES), rights=RIGHTS)
    def ask(self, name, site, rights) -> None:
        live = [one for one in self.tokens if not one.revoked and self.world.wall < one.expires]
        apps, waiting = self.world.apps, [one for one in self.live_requests() if one.waits]
        same = [one for one in waiting if site is not None and one.site == site]
        replaced = [one for one in same if rights <= one.rights]
        asker = site or plain(name)
        if site is not None and not self.let_in.get(site, self.world.wall) > self.world.wall:
            self.fails(apps.ask(name, rights, site), NotAllowed)
        elif self.another(name, site, live):
            self.fails(apps.ask(name, rights, site), NameTaken)
        elif same != replaced or (
            site is None and any((one.site, plain(one.name)) == (None, plain(name)) for one in waiting)
        ):
            self.fails(apps.ask(name, rights, site), AlreadyAsking)
        elif self.too_many(len(waiting) - len(replaced), asker):
            self.fails(apps.ask(name, rights, site), TooManyPairings)
        elif self.another(name, site, [one for one in self.live_requests() if not one.refused]):
            self.fails(apps.ask(name, rights, site), NameTaken)
        else:
            pairing = self.does(apps.ask(name, rights, site))
            self.lately.append((self.world.seconds, asker))
            # The page was loaded again: the code of its first request lets nothing in any more.
            for one in replaced:
                self.fails(apps.accept(one.pairing.id, one.pairing.code, rights=None, days=1), UnknownPairing)
            self.requests = [one for one in self.requests if one not in replaced]
            self.requests.append(Request(pairing, name, site, rights, self.world.seconds + LIFE))

    @initialize(names=st.permutations("ABCDEFG"), rights=RIGHTS)
    def meet_every_bound(self, names, rights) -> None:
        self.many_ask(names, rights, are_refused=False)
        self.pass_time(LIFE)
        self.many_ask(names, rights, are_refused=True)
        self.pass_time(MINUTE)
        self.many_ask(names[:1] * (MOST_ASK_ALIKE + 1), rights, are_refused=True)
        self.pass_time(MINUTE)
        self.ask(names[0], None, rights)
        for right_code in (*[False] * MOST_TRIES, True):
            self.accept(len(self.requests) - 1, rights, 1, right_code=right_code)
        self.let_one_in(SITES[1], 60)
        for wanted in (ALL[:1], ALL, ALL[:1]):
            self.ask("H", SITES[1], frozenset(wanted))
        self.pass_time(LIFE)
        self.ask("I", None, rights)
        self.ask("i", SITES[1], rights)
        self.pair("J", None, rights, rights, 1)
        self.ask(" \uff2a ", SITES[1], rights)
        self.ask("j", None, rights)

    @rule(names=st.lists(NAMES, min_size=4, max_size=9), rights=RIGHTS, are_refused=st.booleans())
    def many_ask(self, names, rights, are_refused) -> None:
        """One after the other; where each is refused at once, none waits."""
        for name in names:
            count = len(self.requests)
            self.ask(name, None, rights)
            if are_refused and len(self.requests) > count:
                self.refuse(count)

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0), left=RIGHTS, days=st.integers(1, 3), right_code=st.booleans())
    def accept(self, number, left, days, right_code) -> None:
        request = self.chosen(number)
        right = request.pairing.code
        wrong = ("", "é", f"{(int(right) + 1) % 1_000_000:06d}")[number % 3]
        granted = (request.rights & left) or request.rights
        code = right if right_code else wrong
        accepting = self.world.apps.accept(request.pairing.id, code, rights=granted, days=days)
        if request not in self.live_requests() or not request.waits:
            self.fails(accepting, UnknownPairing)
        elif right_code:
            self.does(accepting)
            until = self.world.seconds + LIFE
            self.put(request, replace(request, granted=granted, days=days, until=until))
        else:
            self.fails(accepting, WrongPairingCode)
            counted = replace(request, mistyped=request.mistyped + 1)
            over = counted.mistyped == MOST_TRIES
            until = self.world.seconds + LIFE if over else request.until
            self.put(request, replace(counted, refused=over, until=until))

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0))
    def refuse(self, number) -> None:
        request = self.chosen(number)
        refusing = self.world.apps.refuse(request.pairing.id)
        if request not in self.live_requests() or not request.open:
            self.fails(refusing, UnknownPairing)
        else:
            self.does(refusing)
            self.put(request, replace(request, refused=True, until=self.world.seconds + LIFE))

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0), own_secret=st.booleans())
    def collect(self, number, own_secret) -> None:
        request = self.chosen(number)
        secret = request.pairing.secret if own_secret else "A" * 43
        collecting = self.world.apps.collect(request.pairing.id, secret)
        if request not in self.live_requests() or not own_secret:
            self.fails(collecting, UnknownPairing)
            return
        collected = self.does(collecting)
        if request.waits:
            assert (collected.state, collected.token) == ("waiting", None)
            return
        self.requests.remove(request)
        if request.refused:
            assert (collected.state, collected.token) == ("refused", None)
            return
        assert request.granted is not None
        expires = self.world.wall + timedelta(days=request.days)
        token = Token(collected.app_id, collected.token, request.name, request.site, request.granted, expires)
        self.tokens.append(token)

    @rule(name=NAMES, site=st.sampled_from(SITES), rights=RIGHTS, left=RIGHTS, days=st.integers(1, 3))
    def pair(self, name, site, rights, left, days) -> None:
        """All of it at once: by single steps alone a token would be rare."""
        if site is not None:
            self.let_one_in(site, 5)
        count = len(self.requests)
        self.ask(name, site, rights)
        if len(self.requests) > count:
            self.accept(count, left, days, right_code=True)
            self.collect(count, own_secret=True)

    @precondition(lambda self: self.tokens)
    @rule(number=st.integers(0))
    def revoke(self, number) -> None:
        token = self.tokens[number % len(self.tokens)]
        self.does(self.world.apps.revoke(token.app_id))
        self.tokens[self.tokens.index(token)] = replace(token, revoked=True)

    @rule(site=st.sampled_from(SITES[1:]), minutes=st.integers(1, 60))
    def let_one_in(self, site, minutes) -> None:
        self.does(self.world.apps.let_in(site, minutes))
        self.let_in[site] = self.world.wall + timedelta(minutes=minutes)

    @rule(site=st.sampled_from(SITES[1:]))
    def shut_one_out(self, site) -> None:
        self.does(self.world.apps.shut_out(site))
        self.let_in.pop(site, None)
        self.requests = [one for one in self.requests if one.site != site]
        self.tokens = [replace(one, revoked=one.revoked or one.site == site) for one in self.tokens]

    @rule(seconds=st.sampled_from([1, 30, 60, 119, 120, 3_600, 86_400]))
    def pass_time(self, seconds) -> None:
        self.world.pass_time(seconds)

    @rule()
    def restart(self) -> None:
        """What was granted stays; what was asked is forgotten."""
        self.world.restart()
        self.requests.clear()
        self.lately.clear()

    def works(self, token: str, site: str | None) -> bool:
        """Every reason why it does not reads the same."""
        try:
            self.world.apps.caller(token, site)
        except NotPaired as no:
            self.noes.add((str(no), no.hint))
            assert len(self.noes) == 1
            return False
        return True

    @invariant()
    def what_is_no_token_lets_nobody_in(self) -> None:
        assert not any(self.works(token, site) for token in NO_TOKENS for site in SITES)

    @invariant()
    def a_token_works_for_its_site_and_rights_while_it_is_neither_revoked_nor_over(self) -> None:
        for token in self.tokens:
            good = not token.revoked and self.world.wall < token.expires
            for site in (*SITES, *NO_SITES):
                assert self.works(token.text, site) == (good and site == token.site)
            if good:
                rights = self.world.apps.caller(token.text, token.site).rights
                assert rights == {Right.ANYONE, *map(Right, token.rights)}

    @invariant()
    def no_two_live_apps_have_one_name_but_those_of_one_site(self) -> None:
        live = [one for one in self.does(self.world.apps.list()) if one.state == "live"]
        for one in live:
            for other in live:
                same = plain(one.name) == plain(other.name)
                assert one is other or not same or one.origin == other.origin is not None

    @invariant()
    def the_person_sees_what_waits_and_the_apps_that_there_are(self) -> None:
        shown = {one.id: one.state for one in self.does(self.world.apps.open_requests())}
        assert shown == {
            one.pairing.id: "waiting" if one.waits else "accepted" for one in self.live_requests() if one.open
        }
        assert {one.id: one.state for one in self.does(self.world.apps.list())} == {
            one.app_id: "revoked" if one.revoked else "live" if self.world.wall < one.expires else "expired"
            for one in self.tokens
        }

    @invariant()
    def an_origin_gets_in_while_something_of_it_is_open(self) -> None:
        now = self.world.wall
        wanted = {site for site, until in self.let_in.items() if now < until}
        wanted |= {one.site for one in self.live_requests()}
        wanted |= {one.site for one in self.tokens if not one.revoked and now < one.expires}
        assert self.world.apps.origins() == wanted - {None}


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=examples(15), stateful_step_count=40)
