"""HWI's own program and signerd-hwi, asked the same of one virtual device: what is alike, and each difference
by its name.
"""

import pytest

from firmware_bridge import Family
from multisig import Psbt, checksum, verify_signatures
from tests.support.examples import drawn
from tests.support.hwi_parity import FINGERPRINT, PROFILE, commands_of
from tests.support.namespace import run_isolated
from tests.support.wallets import make_spend

# What is not told: accounts that signerd would not sign for (BIP-44, -49, -86), neither alone nor among the
# descriptors. What is told otherwise: a no whose words differ, with the same code.
DIFFERENCES = {
    "trezor": {"getxpub elsewhere", "getdescriptors", "promptpin", "bad descriptor"},
    "coldcard": {"getxpub elsewhere", "getdescriptors"},
    "ledger": {"getxpub elsewhere", "getdescriptors"},
}


pytestmark = [pytest.mark.namespace, pytest.mark.slow("ten programs of HWI one after the other")]


@pytest.fixture(scope="module", params=drawn(sorted(DIFFERENCES), 1, of=__name__))
def seen(request):
    # Some ten programs, one after the other, each of which loads the whole of multisig.
    found = run_isolated("hwi_parity", request.param, deadline=1200)
    return request.param, found["theirs"], found["ours"]


def test_everything_else_is_alike_in_keys_types_and_values(seen):
    family, theirs, ours = seen
    # What is signed may be written in another order, or with another nonce: it is compared below.
    alike = set(commands_of(Family(family))) - DIFFERENCES[family] - {"signtx"}
    assert {name: ours[name] for name in alike} == {name: theirs[name] for name in alike}
    assert {name for name in DIFFERENCES[family] if ours[name] == theirs[name]} == set(), "no longer differs"


def test_both_sign_the_same_transaction_and_both_signatures_verify(seen):
    _family, theirs, ours = seen
    for answer in (theirs["signtx"], ours["signtx"]):
        assert answer["signed"] is True
        signed = Psbt.parse(answer["psbt"])
        assert signed.tx == make_spend(PROFILE).tx
        assert verify_signatures(signed, PROFILE).progress == 1


def test_the_descriptor_that_is_told_is_among_hwi_s(seen):
    _family, theirs, ours = seen
    for name in ("receive", "internal"):
        (text,) = ours["getdescriptors"][name]
        assert text in theirs["getdescriptors"][name]
        assert text.startswith(f"wpkh([{FINGERPRINT}/84h/1h/0h]")
        assert checksum(text.partition("#")[0]) == text.partition("#")[2]


def test_where_both_say_no_the_code_is_the_same(seen):
    family, theirs, ours = seen
    for name in DIFFERENCES[family] & {"promptpin", "bad descriptor"}:
        assert ours[name]["code"] == theirs[name]["code"], name
    assert ours["getxpub elsewhere"]["code"] == -9
