"""The vault on a card, in each form; and makes that read none."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device_simulators.coldcard.wallet import Wallet
from device_simulators.coldcard.wallet_file import parse_wallet_file
from firmware_bridge.airgap import (
    Content,
    EnrolmentForm,
    NameTaken,
    bbqr,
    enrolment_text,
    require_airgap,
    write_enrolment,
)
from firmware_bridge.airgap.card import safe_label
from firmware_bridge.enrolment import coldcard_file
from firmware_bridge.errors import Unsupported
from firmware_bridge.model import Family
from multisig import Network, OriginKey, Vault
from tests.support.coldcard import SEED, vault_with_device
from tests.support.vectors import official
from tests.support.wallets import ALICE, BOB, make_vault

VAULT = make_vault()
COLDCARD_S = vault_with_device()
CODE = COLDCARD_S.verification_code.partition("-")[0]


def test_coldcard_s_own_text(tmp_path):
    path = write_enrolment(VAULT, "Our savings", tmp_path)
    assert path.name == "Our-savings.txt"
    assert path.read_text() == coldcard_file(VAULT, "Our savings")


def test_a_descriptor(tmp_path):
    path = write_enrolment(VAULT, "Savings", tmp_path, EnrolmentForm.DESCRIPTOR)
    assert path.name == "Savings.descriptor.txt"
    assert Vault.from_descriptor(path.read_text().strip(), Network.REGTEST) == VAULT


def test_a_record(tmp_path):
    path = write_enrolment(VAULT, "Savings", tmp_path, EnrolmentForm.BSMS)
    version, template, paths, address = path.read_text().split("\n")
    assert (path.name, version, paths) == ("Savings.bsms", "BSMS 1.0", "/0/*,/1/*")
    assert address == VAULT.address(0, 0)
    assert template.count("/**") == 3


@pytest.mark.parametrize(
    "vector", official("bip129.json", lambda vector: vector["id"] in {"bip129-2", "bip129-3"})
)
def test_the_records_of_the_bip(vector):
    keys = (
        OriginKey.parse(f"[{signer['master_key_fingerprint']}{signer['path'][1:]}]{signer['xpub']}")
        for signer in vector["round_1_signers"]
    )
    vault = Vault(Network.MAINNET, 2, tuple(keys))
    assert enrolment_text(vault, "any", EnrolmentForm.BSMS) == vector["round_2_descriptor_record"]


def test_the_forms_stand_beside_each_other(tmp_path):
    paths = {write_enrolment(VAULT, "Savings", tmp_path, form) for form in EnrolmentForm}
    assert len(paths) == len(EnrolmentForm)


def test_another_vault_of_the_same_name(tmp_path):
    write_enrolment(VAULT, "Savings", tmp_path)
    with pytest.raises(NameTaken):
        write_enrolment(make_vault((ALICE, BOB)), "Savings", tmp_path)


@pytest.mark.parametrize("form", [EnrolmentForm.COLDCARD, EnrolmentForm.DESCRIPTOR])
@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("Savings", "Savings"),
        ("Long-term savings", "Long-term savings"),
        ("Twenty characters ok", "Twenty characters ok"),
        ("The savings of the whole office", f"The savings of {CODE}"),
        ("Zürich", "Zurich"),
        ("金庫", CODE),
        ("Team #one", "Team one"),
        ("Fund #2", "Fund #2"),
        ("Petr(main)", "Petr (main)"),
        ("con", "con"),
        ("A/B: 50%. Really", "A/B: 50%. Really"),
    ],
)
def test_the_vault_s_name_is_the_wallet_s_name_on_a_coldcard(tmp_path, name, known_as, form):
    """In its own text it is written; of a descriptor the device takes the file's name, which has hyphens for all but letters."""
    wallet = enrolled_from(write_enrolment(COLDCARD_S, name, tmp_path, form))
    written = form is EnrolmentForm.COLDCARD
    assert wallet.name == (known_as if written else safe_label(known_as))
    assert wallet.same_keys(Wallet("x", COLDCARD_S.threshold, COLDCARD_S.cosigners))


@given(st.text(max_size=80))
@settings(deadline=None)
def test_any_name_gives_a_file_that_a_coldcard_takes(name):
    for form in (EnrolmentForm.COLDCARD, EnrolmentForm.DESCRIPTOR):
        with TemporaryDirectory() as folder:
            wallet = enrolled_from(write_enrolment(COLDCARD_S, name, Path(folder), form))
            assert 1 <= len(wallet.name) <= 20


def enrolled_from(path):
    """As the device's menu imports a file from the card."""
    stem = path.name.split(".")[0]
    return parse_wallet_file(path.read_bytes(), SEED, Network.REGTEST, stem)


def test_as_a_qr_code():
    text = enrolment_text(VAULT, "Savings")
    assembler = bbqr.Assembler()
    for part in bbqr.split(text.encode(), Content.TEXT, max_characters=400):
        assembler.add(part)
    assert assembler.result.data.decode() == text


@pytest.mark.parametrize("family", sorted(set(Family) - {Family.COLDCARD, Family.JADE}))
def test_makes_that_have_nothing_but_a_cable(family):
    with pytest.raises(Unsupported, match="cable"):
        require_airgap(family)


@pytest.mark.parametrize("family", [Family.COLDCARD, Family.JADE])
def test_makes_that_need_none(family):
    require_airgap(family)
