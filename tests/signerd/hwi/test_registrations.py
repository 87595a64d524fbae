"""registerdescriptor, and displayaddress and signtx with what it gave, as HWI has them after 3.2.0."""

import base64
import hashlib

import pytest

from multisig import Vault
from signerd.errors import HwiCode
from signerd.hwi.registrations import HwiRegistration
from tests.support.bills import bill
from tests.support.command import no
from tests.support.desk import NETWORK, PROFILE, VAULT
from tests.support.wallets import ALICE, BOB

NAMED = ("--fingerprint", str(ALICE.fingerprint), "--chain", "regtest")
LEDGER, COLDCARD = "ledger:tcp:127.0.0.1:1", "coldcard:unix:/nowhere"
# What HWI itself wrote (4ae6006, pull request 842) of the vault, the name Treasury and a proof of 32 fives.
OF_HWI = "5563cce8b5918c30325dd1560702df5b815aaabfc87a5ffd7ab51dac8729a2ea"
KEPT = str(HwiRegistration("Treasury", VAULT.descriptor, "ledger"))
OTHER = Vault(NETWORK, 1, VAULT.cosigners)


@pytest.fixture
def outer(outer):
    outer.bridge.endpoint = LEDGER
    return outer


def test_the_text_is_hwi_s_own():
    written = str(HwiRegistration("Treasury", VAULT.descriptor, "ledger", b"\x05" * 32))
    assert hashlib.sha256(written.encode()).hexdigest() == OF_HWI
    assert HwiRegistration.parse(written).proof == b"\x05" * 32


@pytest.mark.parametrize("endpoint", [LEDGER, COLDCARD])
def test_a_pinned_vault_is_registered_under_its_own_name_whatever_the_order_of_its_keys(hwi, outer, endpoint):
    outer.bridge.endpoint = endpoint
    turned = Vault(NETWORK, VAULT.threshold, VAULT.cosigners[::-1]).descriptor
    for descriptor in (
        VAULT.descriptor,
        turned,
        turned.partition("#")[0].replace("h/", "'/").replace("h]", "']"),
    ):
        answered = hwi(*NAMED, "registerdescriptor", "Core's own name", descriptor).value
        told = HwiRegistration.parse(answered["registration"])
        assert (told.name, told.device_type) == ("Core's own name", endpoint.partition(":")[0])
        assert Vault.from_descriptor(told.descriptor, NETWORK).verification_code == VAULT.verification_code
        assert told.proof == b"", "signerd keeps it"
    assert outer.bridge.labels == ["Treasury"] * 3
    assert outer.bridge.shown == [VAULT.address(0, 0)] * 3


def test_a_trezor_keeps_no_vaults(hwi, outer):
    outer.bridge.endpoint = "trezor:udp:127.0.0.1:1"
    words = no(hwi(*NAMED, "registerdescriptor", "x", VAULT.descriptor), HwiCode.UNAVAILABLE_ACTION)
    assert words == "The Trezor does not support registering descriptors"
    assert hwi(*NAMED, "displayaddress", "--registration", KEPT, "--index", "0").value["address"]


NO_VAULT_OF_OURS = [
    (OTHER.descriptor, HwiCode.UNAVAILABLE_ACTION),
    (VAULT.descriptor[:-1] + "x", HwiCode.INVALID_POLICY),
    (VAULT.descriptor.partition("#")[0].replace("<0;1>", "0"), HwiCode.INVALID_POLICY),
    (f"wpkh({PROFILE.key}/<0;1>/*)", HwiCode.INVALID_POLICY),
    ("", HwiCode.INVALID_POLICY),
    ("(" * 5000, HwiCode.INVALID_POLICY),
]


def test_l5_a_vault_that_is_not_pinned_reaches_no_device(hwi, outer):
    for descriptor, code in NO_VAULT_OF_OURS:
        no(hwi(*NAMED, "registerdescriptor", "x", descriptor), code)
        kept = str(HwiRegistration("x", descriptor, "ledger"))
        no(hwi(*NAMED, "displayaddress", "--registration", kept, "--index", "0"), code)
        no(hwi(*NAMED, "signtx", bill().to_base64(), "--registration", kept), code)
    assert (outer.bridge.enrolled, outer.bridge.shown, outer.bridge.asked) == ([], [], 0)


def test_an_address_of_a_registered_vault_is_shown_with_its_place(hwi, outer):
    for chosen, chain in (((), 0), (("--multipath-index", "1"), 1), (("--change",), 1)):
        told = hwi(*NAMED, "displayaddress", "--registration", KEPT, "--index", "7", *chosen).value
        assert told == {"address": VAULT.address(chain, 7), "index": 7, "multipath_index": chain}
    assert outer.bridge.shown == [VAULT.address(0, 7), VAULT.address(1, 7), VAULT.address(1, 7)]


def test_a_place_is_complete_and_in_bounds(hwi, outer):
    for given in (
        ("--registration", KEPT),
        ("--path", "m/84h/1h/0h/0/0", "--index", "0"),
        ("--path", "m/84h/1h/0h/0/0", "--change"),
        ("--registration", KEPT, "--index", "-1"),
        ("--registration", KEPT, "--index", str(2**31)),
        ("--registration", KEPT, "--index", "0", "--multipath-index", "2"),
    ):
        no(hwi(*NAMED, "displayaddress", *given), HwiCode.BAD_ARGUMENT)
    both = hwi(
        *NAMED, "displayaddress", "--registration", KEPT, "--index", "0", "--change", "--multipath-index", "0"
    )
    assert both.status == 2
    assert outer.bridge.shown == []


def written(data):
    return base64.b64encode(data).decode()


def test_l5_nonsense_for_a_registration_is_refused(hwi, outer):
    packed = (b"rdesx\x01", b"rdesc\x02", b"rdesc\x01\x05abc", b"rdesc\x01\x01\xff\x00\x00\x00")
    for text in ("", "not base64!", *map(written, packed), KEPT * 20):
        no(hwi(*NAMED, "displayaddress", "--registration", text, "--index", "0"), HwiCode.BAD_ARGUMENT)
    no(hwi(*NAMED, "signtx", bill().to_base64(), "--registration", text), HwiCode.BAD_ARGUMENT)
    assert outer.bridge.shown == []


def test_another_device_than_the_registered_one_registers_nothing(hwi, outer):
    outer.bridge.signer = BOB
    answered = hwi("-t", "ledger", "--chain", "regtest", "registerdescriptor", "x", VAULT.descriptor)
    no(answered, HwiCode.BAD_ARGUMENT)
    assert outer.bridge.enrolled == []
