"""export, import: against a real daemon over a scripted platform, and no device on a cable
(docs/sign/airgap.md).
"""

import base64

import pytest

from custody.common.terminal import Exit
from firmware_bridge import DeviceState
from firmware_bridge.airgap import CodeSeries, Content, series_of
from multisig import Psbt, profile_account_path
from multisig.coordinator_files import CONVERTED
from signerd.daemon import airgap_setup
from tests.support.airgap import slip132
from tests.support.command import signerd
from tests.support.daemons import noted
from tests.support.desk import NETWORK, VAULT, VAULT_ID
from tests.support.ur_keys import proof
from tests.support.wallets import ALICE


@pytest.fixture
def outer(outer):
    outer.bridge.state = DeviceState.ABSENT
    return outer


@pytest.fixture
def card(tmp_path):
    folder = tmp_path / "card"
    folder.mkdir()
    return folder


def test_a_card_goes_to_the_device_and_its_answer_comes_back(desk, outer, card):
    ended = signerd("export", "p-1", "--out", str(card), state=desk.state, typed="y\n")
    assert "Sign it on your device" in ended.err
    (request,) = card.iterdir()
    assert request.name.startswith("Treasury-")
    answer = card / "signed.psbt"
    answer.write_bytes(ALICE.sign(Psbt.parse(request.read_bytes())).to_bytes())
    assert "the platform has your signature" in signerd("import", str(answer), state=desk.state).out
    assert outer.platform.signatures("p-1")


def test_while_the_device_is_on_its_cable_it_refuses_before_it_asks(desk, outer, card):
    desk.on_loop(outer.bridge.becomes, DeviceState.READY)
    ended = signerd("export", "p-1", "--out", str(card), state=desk.state, ends=Exit.NOT_DECIDED)
    assert list(card.iterdir()) == []
    assert "unplug the device and export again" in ended.err
    assert signerd("show", "p-1", "--json", state=desk.state).json["state"] == "waiting-for-person"
    assert outer.bridge.asked == 0


def test_no_file_is_overwritten_and_the_export_stands(desk, card):
    other = card / "x.psbt"
    other.write_text("mine")
    ended = signerd("export", "p-1", "--yes", "--out", str(other), state=desk.state, ends=Exit.USAGE)
    assert "recorded as exported" in ended.err
    assert other.read_text() == "mine"
    signerd("export", "p-1", "--out", str(card / "y.psbt"), state=desk.state)


def test_it_is_shown_as_codes_and_the_answers_texts_are_read(desk, tmp_path):
    ended = signerd("export", "p-1", "--yes", "--qr", "ur", state=desk.state, typed="\n" * 999)
    assert "Code 1 of" in ended.out
    given = base64.b64decode(signerd("export", "p-1", "--json", state=desk.state).json["psbt"])
    signed = ALICE.sign(Psbt.parse(given)).to_bytes()
    texts = tmp_path / "texts"
    texts.write_text("\n".join(series_of(signed, Content.PSBT, CodeSeries.UR, 400)))
    signerd("import", str(texts), state=desk.state)


@pytest.fixture
def keyed(tmp_path):
    folder = tmp_path / "card"
    folder.mkdir()
    keys = (ALICE.vault_key(NETWORK), ALICE.origin_key(profile_account_path(NETWORK)))
    (folder / "keys.txt").write_text("\n".join(map(str, keys)))
    return folder


def challenge_of(new_desk, keyed) -> str:
    """The scripted platform always says the same one."""
    exports = ((keyed / "keys.txt").read_text(),)
    preview = new_desk.on_loop(airgap_setup.preview, new_desk.service, exports)
    return new_desk.on_loop(airgap_setup.challenge, new_desk.service, exports, preview.digest).challenge


def test_keys_from_a_file_are_registered_and_a_vault_is_pinned_by_its_file_and_the_persons_look(
    new_desk, outer, keyed
):
    challenge = challenge_of(new_desk, keyed)
    # Krux and SeedSigner write such a prefix: the same key.
    vault_key = ALICE.vault_key(NETWORK).xpub
    (keyed / "keys.txt").write_text(
        (keyed / "keys.txt").read_text().replace(str(vault_key), slip132(vault_key))
    )
    (keyed / "signed.txt").write_text(f"-----BEGIN BITCOIN SIGNATURE-----\ntb1q\n{proof(challenge)}\n")
    files = ("--file", str(keyed / "keys.txt"), "--challenge-file", str(keyed))
    ended = signerd("register", *files, state=new_desk.state, typed=f"y\n{keyed / 'signed.txt'}\n")
    for part in (
        str(ALICE.fingerprint),
        "m/48h/1h/0h/2h",
        "compare each with your device",
        challenge,
        CONVERTED,
    ):
        assert part in ended.out
    assert (keyed / "challenge.txt").read_text().splitlines() == [challenge, "m/48h/1h/0h/2h/0/0", "p2wpkh"]
    assert outer.platform.keys[0]["MasterFingerprint"]["String"] == str(ALICE.fingerprint)
    new_desk.until(lambda: bool(new_desk.service.journal.claims()))
    pin = ("pin", VAULT_ID, "--code", VAULT.verification_code, "--enrolment-file", str(keyed))
    assert "ALARM" in signerd(*pin, state=new_desk.state, typed="another\n", ends=Exit.NOT_DECIDED).err
    assert not signerd("vaults", "--json", state=new_desk.state).json[0]["pinned"]
    (note,) = new_desk.on_loop(noted, new_desk.service, "address-differs")
    assert note.subject == VAULT_ID
    (keyed / "Treasury.txt").unlink()
    ended = signerd(*pin, state=new_desk.state, typed="same\n")
    assert "Policy: 2 of 3" in (keyed / "Treasury.txt").read_text()
    # As a device writes it.
    assert "tb1q" in ended.out
    assert signerd("vaults", "--json", state=new_desk.state).json[0]["address_shown"]
    (note,) = new_desk.on_loop(noted, new_desk.service, "pinned")
    assert note.facts["address_on_device"] == "compared by the person"
    assert outer.bridge.messages == []
