"""register --file and pin --enrolment-file: against a real daemon over a scripted platform, and no device on
a cable (docs/sign/airgap.md).
"""

import pytest

from firmware_bridge import DeviceState
from multisig import profile_account_path
from signerd.cli.terminal import Exit
from tests.support.command import signerd
from tests.support.desk import NETWORK, VAULT, VAULT_ID
from tests.support.served import make_outer, served_daemon
from tests.support.ur_keys import proof
from tests.support.wallets import ALICE, MALLORY


@pytest.fixture
def outer(tmp_path):
    outer = make_outer(tmp_path)
    outer.bridge.state = DeviceState.ABSENT
    return outer


@pytest.fixture
def desk(tmp_path, outer):
    with served_daemon(tmp_path / "s", outer, prepared=False) as daemon:
        yield daemon


@pytest.fixture
def card(tmp_path):
    folder = tmp_path / "card"
    folder.mkdir()
    keys = (ALICE.vault_key(NETWORK), ALICE.origin_key(profile_account_path(NETWORK)))
    (folder / "keys.txt").write_text("\n".join(map(str, keys)))
    return folder


def challenge_of(desk, card) -> str:
    """The scripted platform always says the same one."""
    setup, exports = desk.service.airgap_setup, ((card / "keys.txt").read_text(),)
    preview = desk.on_loop(setup.preview, exports)
    return desk.on_loop(setup.challenge, exports, preview.digest).challenge


def register(desk, card, answer: str, *more: str):
    given = ("register", "--file", str(card / "keys.txt"), "--challenge-file", str(card), *more)
    return signerd(*given, state=desk.state, typed=f"y\n{answer}\n")


def test_keys_from_a_file_are_shown_proven_and_registered(desk, outer, card):
    challenge = challenge_of(desk, card)
    (card / "signed.txt").write_text(f"-----BEGIN BITCOIN SIGNATURE-----\ntb1q\n{proof(challenge)}\n")
    ended = register(desk, card, str(card / "signed.txt"))
    assert ended.status == Exit.OK, ended.err
    for part in (str(ALICE.fingerprint), "m/48h/1h/0h/2h", "compare each with your device", challenge):
        assert part in ended.out
    assert (card / "challenge.txt").read_text().splitlines() == [challenge, "m/48h/1h/0h/2h/0/0", "p2wpkh"]
    assert outer.platform.keys[0]["MasterFingerprint"]["String"] == str(ALICE.fingerprint)
    assert outer.bridge.messages == []


def test_the_signature_may_be_typed(desk, outer, card):
    assert register(desk, card, proof(challenge_of(desk, card))).status == Exit.OK
    assert len(outer.platform.keys) == 1


@pytest.mark.parametrize(
    ("answer", "status"),
    [("", Exit.USAGE), ("no signature", Exit.NOT_DECIDED), (proof("x"), Exit.NOT_DECIDED)],
)
def test_s15_without_its_proof_nothing_is_registered(desk, outer, card, answer, status):
    assert register(desk, card, answer).status == status
    assert outer.platform.keys == []


def test_s15_a_foreign_proof_registers_nothing(desk, outer, card):
    ended = register(desk, card, proof(challenge_of(desk, card), MALLORY))
    assert ended.status == Exit.NOT_DECIDED
    assert "not a signature of the challenge" in ended.err
    assert outer.platform.keys == []


def test_what_is_no_export(desk, card):
    for content in (b"", b"{}", b"\xff\xfe", b"[" * 20_000):
        (card / "keys.txt").write_bytes(content)
        assert register(desk, card, "").status in {Exit.USAGE, Exit.NOT_DECIDED}, content[:9]
    assert signerd("register", "--file", str(card / "none"), state=desk.state).status == Exit.USAGE


@pytest.fixture
def registered(desk, card):
    assert register(desk, card, proof(challenge_of(desk, card))).status == Exit.OK
    desk.until(lambda: bool(desk.service.journal.claims()))
    return desk


def pin(desk, card, said: str):
    code = VAULT.verification_code
    return signerd(
        "pin", VAULT_ID, "--code", code, "--enrolment-file", str(card), state=desk.state, typed=said
    )


def vault_of(desk):
    (vault,) = signerd("vaults", "--json", state=desk.state).json
    return vault


def test_a_vault_is_pinned_by_its_file_and_the_persons_look(registered, card):
    ended = pin(registered, card, "same\n")
    assert ended.status == Exit.OK, ended.err
    assert "Policy: 2 of 3" in (card / "Treasury.txt").read_text()
    # As a device writes it.
    assert "tb1q" in ended.out
    assert vault_of(registered)["address_shown"]


def test_another_address_pins_nothing_and_is_an_alarm(registered, card):
    ended = pin(registered, card, "another\n")
    assert ended.status == Exit.NOT_DECIDED
    assert "ALARM" in ended.err
    assert not vault_of(registered)["pinned"]


def test_any_other_word_pins_nothing(registered, card):
    assert pin(registered, card, "yes\n").status == Exit.DECLINED
    assert not vault_of(registered)["pinned"]
