"""The vault on a card, in each form; and makes that read none."""

import pytest

from firmware_bridge.airgap import (
    Content,
    EnrolmentForm,
    NameTaken,
    bbqr,
    enrolment_text,
    require_airgap,
    write_enrolment,
)
from firmware_bridge.enrolment import coldcard_file
from firmware_bridge.errors import Unsupported
from firmware_bridge.model import Family
from multisig import Network, OriginKey, Vault
from tests.support.vectors import official
from tests.support.wallets import ALICE, BOB, make_vault

VAULT = make_vault()


def test_coldcard_s_own_text(tmp_path):
    path = write_enrolment(VAULT, "Our savings", tmp_path)
    assert path.name == "Our-savings.txt"
    assert path.read_text() == coldcard_file(VAULT, "Our savings")


def test_a_descriptor(tmp_path):
    path = write_enrolment(VAULT, "Savings", tmp_path, EnrolmentForm.DESCRIPTOR)
    assert path.name == "Savings-descriptor.txt"
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


def test_what_a_coldcard_does_not_take(tmp_path):
    with pytest.raises(Unsupported, match="printable ASCII"):
        write_enrolment(VAULT, "Zürich", tmp_path)
    assert not list(tmp_path.iterdir())


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
