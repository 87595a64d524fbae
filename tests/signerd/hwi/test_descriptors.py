"""Descriptors from strangers: whatever is written, the answer is an address that was asked for, or a no;
never a crash.
"""

import json
from argparse import Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import MultisigError
from signerd.asking import Values, parse
from signerd.errors import DaemonFailed
from signerd.hwi.codes import HwiError
from signerd.hwi.keys import address
from signerd.hwi.listing import Chosen
from signerd.shapes import AccountKeys, KeyView
from tests.support.desk import PROFILE, VAULT

F = str(PROFILE.key.fingerprint)
CHOSEN = Chosen(
    AccountKeys(
        network="regtest",
        fingerprint=F,
        keys=(KeyView(purpose="profile", account=0, path="m/84h/1h/0h", xpub=str(PROFILE.key.xpub)),),
    ),
    F,
    device=None,
)
PINNED = {"pinned": True, "vault_id": "vault-1", "descriptor": VAULT.descriptor}
PIECES = [
    "wpkh(", "wsh(", "sh(", "tr(", "sortedmulti(2,", "multi(2,", "sortedmulti(99,",
    ")", "))", ",", "#", "/0/5", "/1/0",
    "/0/*", "/<0;1>/*", "/0h/5", "/4294967295", f"[{F}/84h/1h/0h]", f"[{F}]", "[00000000/0]",
    "[", "]", "02" * 33,
    str(PROFILE.key), str(PROFILE.key.xpub), *(f"{key}/0/7" for key in VAULT.cosigners), "é", "\x00",
]  # fmt: skip


class Asked:
    """The daemon's side: one pinned vault, and what it is asked to show."""

    def __init__(self, answered=None):
        self.shown = []
        self.answered = answered

    def vaults(self):
        return [parse(json.dumps(PINNED))]

    def show_vault_address(self, vault_id, index, chain):
        return self._show(vault_id, VAULT, chain, index)

    def show_profile_address(self, index, chain):
        return self._show("profile", PROFILE, chain, index)

    def _show(self, whose, policy, chain, index):
        self.shown.append((whose, chain, index))
        return Values({"address": self.answered or policy.address(chain, index)})


def ask(daemon, text):
    return address(daemon, CHOSEN, Namespace(path=None, desc=text, addr_type="wit"))


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join) | st.text(max_size=60))
def test_nonsense_is_a_no_and_reaches_no_device(text):
    daemon = Asked()
    try:
        ask(daemon, text)
    except (HwiError, MultisigError):
        assert daemon.shown == []


@given(st.integers(0, 1), st.integers(0, 1_000_000), st.permutations(VAULT.cosigners))
def test_every_place_of_the_pinned_vault_is_found(chain, index, keys):
    daemon = Asked()
    text = f"wsh(sortedmulti(2,{','.join(f'{key}/{chain}/{index}' for key in keys)}))"
    assert ask(daemon, text) == {"address": VAULT.address(chain, index)}
    assert daemon.shown == [("vault-1", chain, index)]


@given(st.data())
def test_keys_at_different_places_are_no_address_of_the_vault(data):
    places = data.draw(st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(lambda p: len(set(p)) > 1))
    keys = ",".join(f"{key}/0/{place}" for key, place in zip(VAULT.cosigners, places, strict=True))
    daemon = Asked()
    with pytest.raises((HwiError, MultisigError)):
        ask(daemon, f"wsh(sortedmulti(2,{keys}))")
    assert daemon.shown == []


def test_s13_another_address_than_the_one_asked_for_is_never_passed_on():
    with pytest.raises(DaemonFailed, match="not the address"):
        ask(Asked(PROFILE.address(0, 6)), f"wpkh({PROFILE.key}/0/5)")
