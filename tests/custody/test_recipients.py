"""Payment links: the examples of BIP-321, and every link of its grammar against a second reading of it."""

import re
from decimal import Decimal
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from custody.common.recipients import Recipient, read_recipient, typed_address
from multisig import MultisigError, Network
from tests.support.examples import examples

OLD = "175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W"
V0 = "bc1qufgy354j3kmvuch987xe4s40836x3h0lg8f5nq"
V1 = "bc1p5swkugezn97763tl0yty6556856uug0q6jflljvep9m4p7339x5qzyrh4q"
TESTNET = "tb1qghfhmd4zh7ncpmxl3qzhmq566jk8ckq4gafnmq"
LINKS = {
    OLD: (OLD, None),
    f"bitcoin:{OLD}": (OLD, None),
    f"bitcoin:{OLD}?label=Luke-Jr": (OLD, None),
    f"bitcoin:{OLD}?amount=20.3&label=Luke-Jr": (OLD, 2_030_000_000),
    f"bitcoin:{OLD}?amount=50&label=Luke-Jr&message=Donation%20for%20project%20xyz": (OLD, 5_000_000_000),
    f"bitcoin:{OLD}?lightning=lnbc420bogusinvoice": (OLD, None),
    f"bitcoin:{OLD}?sp=sp1qsilentpayment": (OLD, None),
    f"bitcoin:{OLD}?somethingyoudontunderstand=50&somethingelseyoudontget=999": (OLD, None),
    f"bitcoin:?bc={V0}&bc={V1}": (V0, None),
    f"BITCOIN:{V0.upper()}?BC={V1.upper()}": (V0.upper(), None),
    f"BITCOIN:?BC={V0.upper()}&BC={V1.upper()}": (V0.upper(), None),
    # Not paid by this network's vaults: the address says so when it is decoded.
    f"bitcoin:?tb={TESTNET}": (TESTNET, None),
    f"bitcoin:?tb={TESTNET}&bc={V0}": (V0, None),
    f"bitcoin:{OLD}?pop=initiatingapp%3a": (OLD, None),
    f"bitcoin:{OLD}?pop=https%3aiwantyouripaddress.com": (OLD, None),
    # Beyond its examples: its grammar, and keys in any case.
    f"bitcoin:{OLD}?AMOUNT=0.01": (OLD, 1_000_000),
    f"BitCoin:{OLD}?aMount=.5": (OLD, 50_000_000),
    f"bitcoin:{OLD}?amount=5.": (OLD, 500_000_000),
    f"bitcoin:{OLD}?amount=0005.100000000": (OLD, 510_000_000),
    f"bitcoin:{OLD}?%61mount=%31": (OLD, 100_000_000),
    f"bitcoin:{OLD}?&&amount=1&x&=1": (OLD, 100_000_000),
    f"bitcoin:{OLD}?label=a%26amount%3D2&amount=1": (OLD, 100_000_000),
}
REFUSED = {
    f"bitcoin:{OLD}?label=Luke-Jr&label=Matt": "label twice",
    f"bitcoin:{OLD}?amount=42&amount=10": "amount twice",
    f"bitcoin:{OLD}?amount=42&AMOUNT=42": "amount twice",
    f"bitcoin:{OLD}?message=a&Message=b": "message twice",
    f"bitcoin:{OLD}?pop=callback%3a&req-pop=callback%3a": "requires 'req-pop'",
    f"bitcoin:{OLD}?req-pop=https%3aevilwebsite.com": "requires 'req-pop'",
    f"bitcoin:{OLD}?req-somethingyoudontunderstand=50&req-somethingelseyoudontget=999": "requires",
    f"bitcoin:{OLD}?REQ-X": "requires 'req-x'",
    f"bitcoin:{OLD}?%72eq-amount=1": "requires 'req-amount'",
    f"bitcoin:?bc={TESTNET}": "does not begin with bc1",
    "bitcoin:?lightning=lnbc420bogusinvoice": "only a Lightning invoice",
    "bitcoin:?lno=lno1bogusoffer&sp=sp1qsilentpayment": "a Lightning offer and a silent payment address",
    "bitcoin:?label=x": "names no address",
    "bitcoin:": "names no address",
    f"bitcoin:{OLD}?label=x#&amount=1": "#",
    **{
        f"bitcoin:{OLD}?amount={text}": "amount"
        for text in ("", ".", "0", "0.000000000", "1e3", "-1", "+1", "NaN", "1,5", "50,000.00", "0.000000001",
                     "21000001", "1_0", "\N{ARABIC-INDIC DIGIT ONE}", "1=1", "1?label=x", "9" * 5_000)
    },
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), LINKS.items())
def test_the_links_of_the_bip(text, said):
    assert read_recipient(text, Network.MAINNET) == Recipient(*said)


@pytest.mark.parametrize(("text", "words"), REFUSED.items())
def test_what_is_no_link_or_asks_for_more_is_refused_whole(text, words):
    with pytest.raises(MultisigError, match=re.escape(words)):
        read_recipient(text, Network.MAINNET)


# --- every link of the grammar ------------------------------------------------------------------------------


def cased(text: str) -> st.SearchStrategy[str]:
    return st.tuples(*(st.sampled_from((each.lower(), each.upper())) for each in text)).map("".join)


KEYS = st.sampled_from(
    ("amount", "label", "message", "pop", "req-pop", "req-", "req-amount", "bc", "tb", "bcrt", "sp", "x", "")
).flatmap(cased)
NUMBERS = st.from_regex(r"[0-9]{0,9}(\.[0-9]{0,9})?", fullmatch=True)
VALUES = st.one_of(NUMBERS, st.sampled_from((V0, V1.upper(), TESTNET, OLD)), st.text(max_size=6).map(quote))
PARAMETERS = st.tuples(KEYS, st.just("=") | st.just(""), VALUES).map(
    lambda parts: parts[0] + (parts[1] and parts[1] + parts[2])
)
WRITTEN = st.tuples(
    cased("bitcoin"), st.sampled_from((OLD, V0, V0.upper(), "")), st.lists(PARAMETERS, max_size=5)
).map(lambda parts: f"{parts[0]}:{parts[1]}?{'&'.join(parts[2])}")


def oracle(text: str) -> tuple[str, int | None] | None:
    """None for a link that must not be paid. Of the standard library, and the rules in the BIP's words."""
    split = urlsplit(text)
    pairs = [(key.casefold(), value) for key, value in parse_qsl(split.query, keep_blank_values=True)]
    keys = [key for key, _ in pairs]
    addresses = [(key, value) for key, value in pairs if key in {"bc", "tb", "bcrt"}]
    own = [value for key, value in addresses if key == "bc"] + [value for _, value in addresses]
    address = split.path or (own and own[0])
    if (
        not address
        or any(key[:4] == "req-" for key in keys)
        or any(keys.count(key) > 1 for key in ("amount", "label", "message", "pop"))
        or any(value.casefold().split("1")[0] != key or "1" not in value for key, value in addresses)
    ):
        return None
    written = dict(pairs).get("amount", "")
    if "amount" not in keys:
        return address, None
    if not set(written) <= set("0123456789.") or written.count(".") > 1:
        return None
    amount = Decimal(f"0{written}0" if "." in written else written or "0") * 100_000_000
    return (address, int(amount)) if amount == int(amount) and 0 < amount <= 2_100_000_000_000_000 else None


def answer(text: str) -> tuple[str, int | None] | None:
    try:
        read = read_recipient(text, Network.MAINNET)
    except MultisigError:
        return None
    return read.address, read.amount


@settings(max_examples=examples(400))
@given(WRITTEN)
@example(f"BITCOIN:{V0.upper()}?AMOUNT=0.01")
@example(f"bitcoin:{OLD}?amount=.5")
def test_every_link_of_the_grammar_is_read_as_by_another_program(text):
    assert answer(text) == oracle(text)


@given(st.text(max_size=40) | st.text(max_size=30).map("bitcoin:{}".format))
def test_any_text_is_read_or_refused(text):
    answer(text)


@given(WRITTEN)
def test_a_person_s_entry_that_is_a_link_stays_one(text):
    assert typed_address(text) == text
