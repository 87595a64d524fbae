"""An id, the beginning of one, or a name: what is meant is one thing, and is said; what could be two is
refused with both. No name stands in for an id that is whole (S16).
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.cli.access import chosen
from custody.cli.common import Stop
from custody.common.naming import LEAST, LONGEST, NamedRecord, next_name
from custody.common.terminal import Exit
from multisig import encode_address
from signerd.cli.naming import named
from signerd.core.addresses import on_screen
from signerd.errors import InvalidRequest
from tests.support.command import signerd
from tests.support.daemons import make_config
from tests.support.desk import NETWORK, VAULT, VAULT_ID, snapshot_of
from tests.support.payments import spend_of
from tests.support.served import make_outer, served_daemon
from tests.support.wallets import pay

CODE = VAULT.verification_code


@pytest.mark.parametrize(
    ("name", "taken", "following"),
    [
        ("Cold", ["Cold"], "Cold 2"),
        ("Cold", ["Cold", "COLD  2"], "Cold 3"),
        ("Cold 7", ["Cold 7", "Cold"], "Cold 8"),
        ("7", ["7"], "7 2"),
        ("x" * LONGEST, [], "x" * (LONGEST - 2) + " 2"),
    ],
)
def test_the_next_name_is_one_that_nobody_has(name, taken, following):
    assert next_name(name, taken) == following


IDS = ("8bdd1234", "8bdd9999", "8BDD5678", "ffff0000", "cold0001")
# Letters whose cases have other lengths, the beginning of another, a code, and ids.
WORDS = st.sampled_from(["Cold", "Cold reserve", "Straße", "İzmir", "Ǆeta", "8bdd", "AAAA-BBBB", *IDS])
SPELLINGS = (str, str.upper, str.lower, str.swapcase, "{} ".format, " {}".format, "{:.4}".format)
# Few words in many spellings, so that the names of several differ in case alone.
NAMES = st.lists(WORDS | st.text(max_size=5), min_size=1, max_size=2).flatmap(
    lambda words: st.lists(
        st.builds(lambda word, spell: spell(word), st.sampled_from(words), st.sampled_from(SPELLINGS)),
        min_size=7,
        max_size=7,
    )
)


def at_the_signer(typed: str, records: list[NamedRecord]) -> tuple[list[str], str]:
    try:
        meant = named(typed, records, "vault")
    except InvalidRequest as error:
        return [], f"{error}\n{error.hint}"
    return [] if meant is None else [meant.id], ""


def at_the_platform(typed: str, records: list[NamedRecord]) -> tuple[list[str], str]:
    try:
        return [chosen(typed, records, "vault", "none such")], ""
    except Stop as stop:
        return [], "" if stop.hint == "none such" else f"{stop}\n{stop.hint}"


@pytest.mark.parametrize("door", [at_the_signer, at_the_platform])
@given(NAMES)
def test_what_is_typed_means_one_thing_or_none_and_what_could_be_several_is_refused_with_all(door, names):
    """A whole id means itself, whatever others are called. Else it is the beginning of an id, or a name: in
    another case only where nothing has exactly that name.
    """
    called = {one: [*names[nth::5]] for nth, one in enumerate(IDS)}
    records = [NamedRecord(one, tuple(called[one]), f"'{called[one][0]}'", one) for one in IDS]
    for typed in sorted({spell(word) for word in (*IDS, *names, "Hot", "") for spell in SPELLINGS}):
        could_be = {typed} if typed in IDS else bearers(typed.strip(), called)
        found, told = door(typed, records)
        assert found == [*could_be] * (len(could_be) == 1)
        if len(could_be) > 1:
            assert f"'{typed}' could be any of {len(could_be)} vaults" in told
            assert {one for one in IDS if f"    {one}  '" in told} == could_be


def bearers(typed: str, called: dict[str, list[str]]) -> set[str]:
    if not typed:
        return set()
    begun = {one for one in called if len(typed) >= LEAST and one.lower().startswith(typed.lower())}
    exact = {one for one, names in called.items() if typed in [each.strip() for each in names]}
    wanted = typed.casefold()
    folded = {one for one, names in called.items() if wanted in [each.strip().casefold() for each in names]}
    return begun | (exact or folded)


SHOP = pay(1, "shop").script_pubkey
ACME = encode_address(SHOP, NETWORK)


@pytest.fixture
def desk(tmp_path):
    outer = make_outer(tmp_path)
    outer.platform.proposals = {
        "8bdd1234": snapshot_of(spend_of((1,), (("shop", 50_000),)), "8bdd1234"),
        "8bee5678": snapshot_of(spend_of((2,), (("other", 40_000),)), "8bee5678"),
    }
    with served_daemon(tmp_path / "s", outer, config=make_config(addresses={"Acme": ACME})) as daemon:
        daemon.until(lambda: len(tuple(daemon.service.journal.records())) == 2)
        daemon.outer = outer
        yield daemon


@pytest.mark.parametrize("given", ["8bdd1234", "8bdd", "acme"])
def test_a_proposal_is_shown_by_its_id_its_beginning_or_whom_it_pays_and_said(desk, given):
    shown = signerd("show", given, state=desk.state)
    assert shown.out.startswith("Pay 0.0005 BTC to Acme\nProposal 8bdd1234 ")
    assert f" to {on_screen(SHOP, NETWORK)} (Acme)\n" in shown.out
    said = "" if given == "8bdd1234" else f"'{given}' is the proposal 8bdd1234: Pay 0.0005 BTC to Acme\n"
    assert shown.err == said
    assert "8bdd1234  Pay 0.0005 BTC to Acme\n" in signerd("proposals", state=desk.state).out


def test_with_yes_no_person_looks_so_the_id_must_be_complete_and_no_name_of_the_persons(desk):
    """The platform makes the ids: one may be called as whom the person pays."""
    desk.outer.platform.proposals["acme"] = snapshot_of(spend_of((3,), (("mallory", 30_000),)), "acme")
    desk.until(lambda: len(tuple(desk.service.journal.records())) == 3)
    for words, told in (("8bdd", "named by its whole id"), ("acme", "'acme' is an id and your own name")):
        refused = signerd("approve", words, "--yes", state=desk.state, ends=Exit.USAGE)
        assert refused.out == ""
        assert told in " ".join(refused.err.split())
    # Without it the whole id means itself, and is shown.
    assert signerd("show", "acme", state=desk.state).out.startswith("Pay 0.0003 BTC to ")
    signerd("approve", "8bdd1234", "--yes", state=desk.state)


def test_a_vault_is_named_and_its_id_and_code_are_said_and_pinning_asks_for_the_code_all_the_same(desk):
    named_so = signerd("addresses", "treasury", state=desk.state)
    assert named_so.err == f"'treasury' is the vault {VAULT_ID}: 'Treasury', verification code {CODE}\n"
    assert named_so.out == signerd("addresses", VAULT_ID, state=desk.state).out
    signerd("unpin", "Treasury", state=desk.state, typed="AAAA-BBBB\n", ends=Exit.NOT_DECIDED)
    signerd("addresses", "Hot", state=desk.state, ends=Exit.NOT_FOUND)
