"""A title says what the bytes prove, in one line; names are the person's own, and nothing of the platform's
words gets into it (L8, S13). What a person compares stands first as the device writes it; no text moves a
terminal's cursor.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.common.text import LONGEST_TEXT, amount, plain, said, short_address, short_ids
from firmware_bridge import Family
from multisig import MAX_INDEX, RECEIVE, Network, encode_address
from multisig.tokens import Function
from signerd.core.addresses import RECOGNISED_ADDRESSES, on_screen, receive_scripts
from signerd.core.review import ProposalReview, review
from signerd.core.text import as_compared, canonical, line_of
from signerd.core.titles import (
    LONGEST_MEMO,
    NOT_JUDGED,
    btc,
    labels_paid,
    memo_of,
    proposer_of,
    title_of,
)
from signerd.daemon.devices import FIRST, written_on
from tests.support.desk import NETWORK, VAULT, make_pin, review_context, snapshot_of
from tests.support.examples import examples
from tests.support.payments import SHOP, forward_of, forward_psbt, neighbour_of, shop, spend_of, with_profile
from tests.support.tokens import GOLD, HOLDER, call, token_snapshot
from tests.support.wallets import foreign_script, pay

ACME = {pay(1, "shop").script_pubkey: "Acme"}
TREASURY = {HOLDER: "Treasurer"}
BEFORE = neighbour_of(shop((1,), psbt_id="8bdd12345678"))
UNKNOWN = "tokens that this machine does not know"


def found(snapshot, **context) -> ProposalReview:
    return review(snapshot, review_context(**context))


def bumped(psbt, **says) -> ProposalReview:
    return found(snapshot_of(psbt, "p-2", replaces="8bdd12345678", **says), neighbours=(BEFORE,))


def short(script: bytes) -> str:
    return short_address(on_screen(script, NETWORK) or "")


SHOPS = short(pay(1, "shop").script_pubkey)
TWO = spend_of((1,), (("shop", 5_000), ("other", 6_000)))
THREE = spend_of((1,), (("shop", 5_000), ("other", 6_000), ("third", 7_000), ("shop", 2_000)))


@pytest.mark.parametrize(
    ("seen", "labels", "title"),
    [
        (found(shop((1,))), ACME, "Pay 0.0005 BTC to Acme"),
        (found(shop((1,))), {}, f"Pay 0.0005 BTC to {SHOPS}"),
        # The one that gets the most is named, wherever it stands.
        (
            found(snapshot_of(TWO)),
            ACME,
            f"Pay 0.00011 BTC to 2 payees, 0.00006 BTC of it to {short(foreign_script('other'))}",
        ),
        (found(snapshot_of(THREE)), ACME, "Pay 0.0002 BTC to 3 payees, 0.00007 BTC of it to Acme"),
        (found(snapshot_of(spend_of((1,), ()))), ACME, "Pay nobody: 0.00099 BTC stay in the vault"),
        (
            found(snapshot_of(spend_of((1,), (), data=b"hello"))),
            ACME,
            "Publish 5 bytes of data, and pay nobody",
        ),
        (bumped(spend_of((1,), SHOP, 2_000)), ACME, "Pay 0.0005 BTC to Acme, at a higher fee than 8bdd1234"),
        (bumped(spend_of((1,), (), 2_000)), ACME, "Take 8bdd1234 back: 0.00098 BTC return"),
        # It says that it replaces, and stops nothing: the check refuses it, and no title repeats it.
        (bumped(spend_of((2,), (), 2_000)), ACME, "Pay nobody: 0.00098 BTC stay in the vault"),
        (
            review(forward_of(forward_psbt()), with_profile()),
            ACME,
            "Move 0.0006 BTC from your profile into 'Treasury'",
        ),
        # It says that it is a forward, and pays somebody else.
        (
            review(forward_of(forward_psbt(to=foreign_script("thief"))), with_profile()),
            {},
            f"Pay 0.0006 BTC to {short(foreign_script('thief'))}",
        ),
        (found(shop((1,)), pin=None), ACME, NOT_JUDGED),
        (found(snapshot_of(b"no PSBT")), ACME, NOT_JUDGED),
    ],
)
def test_it_says_what_the_bytes_prove(seen, labels, title):
    assert title_of(seen, labels) == title


@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize("function", Function)
def test_a_tokens_call_is_named_in_its_own_decimals_only_where_its_bytes_are_proven(function, proven):
    seen = found(token_snapshot(call(function)), token=GOLD if proven else None)
    title = title_of(seen, TREASURY)
    assert ("GOLD tokens" if proven else UNKNOWN) in title or function.takes_address
    assert (("12.50 GOLD" if proven else "1250 raw units of tokens") in title) is function.takes_amount
    assert ("GOLD" in title) is (proven and "tokens" in title)
    assert ("Treasurer" in title) is function.takes_address
    assert labels_paid(seen, TREASURY) == (("Treasurer",) if function.takes_address else ())


def test_a_deployment_tells_the_supply_that_its_own_bytes_have():
    seen = found(token_snapshot(GOLD.deployment))
    assert title_of(seen, {}) == "Make a new token: 1000.00 GOLD tokens at first"


def test_a_label_is_told_once_and_only_of_whom_it_pays():
    assert labels_paid(found(snapshot_of(THREE)), {**ACME, HOLDER: "Treasurer"}) == ("Acme",)
    assert labels_paid(found(shop((1,)), pin=None), ACME) == ()


@settings(max_examples=examples(10))
@given(description=st.text(), name=st.text(), number=st.text())
def test_l8_nothing_that_the_platform_says_alone_gets_into_a_title_and_its_words_are_one_tame_line(
    description, name, number
):
    lies = {"description": description, "created_by_name": name, "created_by": number}
    assert title_of(found(shop((1,), **lies)), {}) == f"Pay 0.0005 BTC to {SHOPS}"
    for shown, most in ((memo_of(description), LONGEST_MEMO), (proposer_of(name, number), 40)):
        assert plain(shown) == shown
        assert "\n" not in shown
        assert len(shown) <= most


def test_l8_the_name_of_a_vault_is_bounded_and_tame():
    pin = replace(make_pin(), name="T\x1b[2J\u202e" + "y" * 200)
    shown = title_of(review(forward_of(forward_psbt()), with_profile(pin=pin)), {})
    assert plain(shown) == shown
    assert len(shown) < 100


def test_who_made_it_is_the_name_that_the_platform_gives_else_a_number():
    assert proposer_of("Ada  Lovelace\n", "7") == "Ada Lovelace"
    assert proposer_of(" ", "7") == "user 7"
    assert proposer_of("", "Sparrow", imported=True) == "Sparrow"


@given(st.integers(0, 21_000_000 * 100_000_000))
def test_an_amount_in_short_is_the_amount(sats):
    figures, unit = btc(sats).split(" ")
    whole, _, fraction = figures.partition(".")
    assert (int(whole) * 100_000_000 + int(fraction.ljust(8, "0")), unit) == (sats, "BTC")


@given(st.lists(st.text("0123456789abcdef", min_size=9, max_size=32), unique=True))
def test_no_two_ids_of_a_list_are_shortened_to_the_same(ids):
    told = short_ids(ids)
    assert len(set(told.values())) == len(ids)
    assert all(one.startswith(shown) and len(shown) >= 8 for one, shown in told.items())


SCRIPT = foreign_script("a shop")


@pytest.mark.parametrize("network", Network)
def test_only_on_regtest_the_device_writes_another_form(network):
    screen, address = on_screen(SCRIPT, network), encode_address(SCRIPT, network)
    assert (screen == address) is (network is not Network.REGTEST)
    assert as_compared(screen, address).startswith(screen)
    assert (address in as_compared(screen, address)[len(screen) :]) is (network is Network.REGTEST)
    assert on_screen(b"\x51", network) is None


@pytest.mark.parametrize("family", Family)
def test_a_family_that_knows_regtest_writes_its_own_form(family):
    prefix = "bcrt1" if family is Family.JADE else "tb1"
    assert written_on(VAULT, FIRST, family).startswith(prefix)


@pytest.mark.parametrize(
    ("following", "first", "last"),
    [
        (0, 0, RECOGNISED_ADDRESSES - 1),
        (500, 400, 599),
        (MAX_INDEX + 1, MAX_INDEX + 1 - RECOGNISED_ADDRESSES, MAX_INDEX),
    ],
)
def test_no_further_than_a_bound_and_to_the_end_of_the_chain(following, first, last):
    found = receive_scripts(VAULT, following)
    assert list(found.values()) == list(range(first, last + 1))
    assert found[VAULT.script_pubkey(RECEIVE, last)] == last


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb\u202ec\u200bd\ne", "a·[2Jb·c·d·e"),
        ("Miete für März — 家賃 🏠", "Miete für März — 家賃 🏠"),
        ("x" * 5_000, "x" * LONGEST_TEXT + "… (cut)"),
    ],
)
def test_what_moves_a_cursor_shows_as_a_dot_and_what_is_long_is_cut(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_each_value_is_written_in_one_way() -> None:
    assert amount(12_345) == "0.00012345 BTC (12,345 sats)"
    assert amount(-1) == "-0.00000001 BTC (-1 sats)"
    assert said(ValueError("no.")) == said(ValueError("no")) == "no."
    assert canonical({"b": 1, "a": ["ü", None]}) == '{"a":["ü",null],"b":1}'.encode()


TEXT = """\
a.b = 1
[c]
# d = 2
d = 3
[c.e]   # a section
f = 4
["g h".i]
'j' = 5
[[k]]
l = 6
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("a b", 1),
        ("a", 1),
        ("c", 2),
        ("c d", 4),
        ("c d deeper", 4),
        ("c e f", 6),
        ("c e g", 5),
        ("g_h i j", 8),
        ("g_h", 7),
        ("k l", 10),
        ("z", None),
    ],
)
def test_where_a_key_stands(key: str, line: int | None) -> None:
    assert line_of(TEXT, tuple(part.replace("_", " ") for part in key.split())) == line


def test_what_no_parser_takes_is_no_key() -> None:
    assert line_of('["\\q"]\n"\\q" = 1\n', ("q",)) is None
