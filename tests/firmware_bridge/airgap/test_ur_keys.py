"""Public keys that devices show as UR 2: the published vectors, and altered ones."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.airgap import BadTransfer, Content, Scanner, cbor, parse_signer_keys
from firmware_bridge.airgap.cbor import Tag
from firmware_bridge.airgap.ur_keys import key_lines
from firmware_bridge.airgap.vault_files import keys_in
from multisig import HARDENED, DerivationPath, Network, WrongNetwork
from tests.support.ur_keys import account_of, animated, cbor_of, hdkey, keys_of, whole
from tests.support.wallets import ALICE

VECTORS = json.loads((Path(__file__).parent / "vectors" / "ur_keys.json").read_text())
# BCR-2020-015 and BCR-2023-019, "Example/Test Vector": one account in both versions, and its keys.
ACCOUNT, ACCOUNT_2 = VECTORS["crypto_account"], VECTORS["account_descriptor"]
# BCR-2020-007: a key without its master's fingerprint (m/44h/1h/1h/0/1), and a private master key.
WITHOUT_MASTER, PRIVATE = VECTORS["without_master"], VECTORS["private"]
KEY, OWN = keys_of(ALICE)
MASTER = int.from_bytes(bytes(ALICE.fingerprint))


@pytest.mark.parametrize("text", [ACCOUNT, ACCOUNT_2, ACCOUNT.upper()], ids=["account", "second", "capitals"])
def test_the_published_accounts_give_the_two_keys_that_are_registered(text):
    keys = parse_signer_keys([text], Network.MAINNET)
    assert [str(key) for key in keys] == [VECTORS["vault_key"], VECTORS["profile_key"]]


def test_an_animated_account_is_read_from_a_screen_with_losses():
    shown = animated("crypto-account", account_of(ALICE))
    scanner = Scanner()
    for text in shown[1::2] + shown[::2]:
        scanner.add(text)
    assert scanner.result is not None
    assert scanner.result.content is Content.TEXT
    assert scanner.result.data.decode() == f"{KEY}\n{OWN}\n"
    # The texts of its codes, a line each, are as good as a file.
    assert parse_signer_keys(["\n".join(shown)], Network.REGTEST) == (KEY, OWN)


def test_what_a_key_says_of_its_use_is_held_against_its_path():
    for use, taken in (({2: 1}, True), ({1: 0, 2: 1}, True), ({}, False), ({1: 60, 2: 1}, False)):
        text = whole("crypto-hdkey", hdkey(KEY) | {5: Tag(305, use)})
        if taken:
            assert keys_in(text, Network.REGTEST)[0] == KEY
            continue
        with pytest.raises(BadTransfer, match="another coin or network"):
            keys_in(text, Network.REGTEST)


HARDENED_LEVEL = True


def _levels(*levels):
    return {6: Tag(304, {1: levels, 2: MASTER})}


def _origin(path, depth=None):
    levels = (part for index in DerivationPath.parse(path) for part in (index % HARDENED, index >= HARDENED))
    return {6: Tag(304, {1: tuple(levels), 2: MASTER} | ({} if depth is None else {3: depth}))}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({2: True}, "a private key"),
        ({3: b"\x05" * 33}, "no valid compressed public key"),
        ({3: 7}, "no public key of a supported form"),
        ({4: b"\1" * 31}, "out of range"),
        (_origin("48h/60h/0h/2h"), "not one for Bitcoin"),
        (_origin("45h"), "not one for Bitcoin"),
        (_origin(""), "not one for Bitcoin"),
        (_levels(48, 1), "no public key of a supported form"),
        (_levels(48, HARDENED_LEVEL, (0, 5), HARDENED_LEVEL), "no public key of a supported form"),
        (_levels(HARDENED, HARDENED_LEVEL), "no public key of a supported form"),
        (_origin("48h/1h/0h/2h", depth=9), "does not begin at the master key"),
        ({6: Tag(303, {})}, "no public key of a supported form"),
        ({6: 1}, "no public key of a supported form"),
    ],
)
def test_s15_a_key_that_is_altered_or_of_something_else_is_refused(changes, said):
    with pytest.raises(BadTransfer, match=said):
        keys_in(whole("crypto-hdkey", hdkey(KEY) | changes), Network.REGTEST)


@pytest.mark.parametrize("left_out", [4, 6, 8])
def test_a_key_from_which_no_xpub_can_be_written_is_refused(left_out):
    found = {field: item for field, item in hdkey(KEY).items() if field != left_out}
    with pytest.raises(BadTransfer, match="without its path, its chain code or its parent"):
        keys_in(whole("crypto-hdkey", found), Network.REGTEST)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRIVATE, "a private key"),
        (WITHOUT_MASTER, "names no master fingerprint"),
        (whole("crypto-account", account_of(ALICE) | {2: ()}), "no key for a vault"),
        (
            whole("crypto-account", account_of(ALICE) | {2: (Tag(401, Tag(303, hdkey(KEY))),), 1: 5}),
            "two master",
        ),
        (whole("crypto-account", account_of(ALICE) | {2: (1,) * 40}), "no public key of a supported form"),
        (whole("crypto-account", {1: 5}), "no public key of a supported form"),
        (whole("crypto-seed", {1: b"0" * 16}), "holds a crypto-seed"),
    ],
)
def test_what_is_no_account_for_vaults_says_so(text, said):
    with pytest.raises(BadTransfer, match=said):
        Scanner().add(text)


def test_a_message_that_is_too_long_for_keys_is_not_read():
    with pytest.raises(BadTransfer, match="too large for keys: 16384 bytes"):
        key_lines("crypto-account", cbor_of({1: MASTER, 9: "x" * 20_000}))


def test_s14_an_account_of_another_network_is_refused():
    with pytest.raises(WrongNetwork):
        parse_signer_keys([ACCOUNT], Network.REGTEST)


items = st.recursive(
    st.booleans() | st.integers(0, 2**32 - 1) | st.binary(max_size=40) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.integers(0, 400), inner, max_size=4)
        | st.builds(Tag, st.integers(0, 70_000), inner)
    ),
    max_leaves=20,
)


@given(items)
def test_cbor_reads_what_was_written_and_nothing_shorter_or_longer(item):
    written = cbor_of(item)
    assert cbor.item_of(written) == item
    for wrong in (written[:-1], written + b"\0"):
        with pytest.raises(BadTransfer):
            cbor.item_of(wrong)


@pytest.mark.parametrize(
    "hexadecimal",
    [
        "",
        "1801",
        "190001",
        "5801ff",
        "20",
        "f6",
        "f90000",
        "9f01ff",
        "a2010101f5",
        "a16161f5",
        "61ff",
        "81" * 20 + "01",
    ],
)
def test_s23_cbor_in_no_shortest_form_is_refused(hexadecimal):
    with pytest.raises(BadTransfer):
        cbor.item_of(bytes.fromhex(hexadecimal))


@given(item=items, name=st.sampled_from(["crypto-account", "account-descriptor", "crypto-hdkey", "hdkey"]))
def test_s23_nothing_but_an_outcome_leaves(item, name):
    with contextlib.suppress(BadTransfer):
        key_lines(name, cbor_of(item))
