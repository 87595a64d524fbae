"""An id, the beginning of one, or a name: what is meant is one thing, and is said; what could be two is
refused with both. No name stands in for an id that is whole (S16).
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
FIRST = NamedRecord("8bdd1234", ("Cold reserve", "AAAA-BBBB"), "first", 1)
SECOND = NamedRecord("8bdd9999", ("Hot", "cold reserve", "AAAA-CCCC"), "second", 2)
# It bears the id and the code of the first as its names.
MIMIC = NamedRecord("ffff0000", ("8bdd1234", "AAAA-BBBB"), "mimic", 3)
ALL = (FIRST, SECOND, MIMIC)


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


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("8bdd1234", FIRST),
        ("8bdd12", FIRST),
        ("8BDD9", SECOND),
        ("hot", SECOND),
        (" Hot ", SECOND),
        ("AAAA-CCCC", SECOND),
        ("ffff", MIMIC),
        ("8bd", None),
        ("Cold", None),
        ("Cold reserve", FIRST),
        ("cold reserve", SECOND),
        ("", None),
        (" ", None),
    ],
)
def test_one_thing_is_meant_or_none(given, meant):
    assert named(given, ALL, "vault") is meant


@pytest.mark.parametrize(
    ("given", "could_be"),
    [("8bdd", (FIRST, SECOND)), ("COLD RESERVE", (FIRST, SECOND)), ("aaaa-bbbb", (FIRST, MIMIC))],
)
def test_what_could_be_several_is_refused_with_all_of_them(given, could_be):
    with pytest.raises(InvalidRequest) as refused:
        named(given, ALL, "vault")
    assert str(refused.value) == f"'{given}' could be any of {len(could_be)} vaults"
    assert all(f"{one.id}  {one.words}" in refused.value.hint for one in could_be)


@given(
    st.lists(st.text("0123456789abcdef", min_size=8, max_size=8), min_size=1, max_size=6, unique=True),
    st.lists(st.text("0123456789abcdef", min_size=4, max_size=8), min_size=6, max_size=6),
)
def test_a_whole_id_means_itself_whatever_others_are_called(ids, names):
    candidates = [NamedRecord(one, (name, ids[0]), "", one) for one, name in zip(ids, names, strict=False)]
    for one in candidates:
        assert named(one.id, candidates, "vault") is one
        assert named(one.id[: LEAST - 1], candidates, "vault") is None


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
    signerd("addresses", "Hot", state=desk.state, ends=Exit.NOT_DECIDED)
