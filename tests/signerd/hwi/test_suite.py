"""HWI's own suite of three makers, from the checkout that HWI names, on their virtual devices: signerd-hwi
passes all but what it refuses, each test with its reason (docs/build/hwi.md).
"""

import os
from pathlib import Path

import pytest

from tests.support.bitcoind import MISSING, find_bitcoind
from tests.support.examples import drawn
from tests.support.hwi_suite import OURS, THEIRS, WORDS
from tests.support.namespace import run_isolated

pytestmark = [pytest.mark.namespace, pytest.mark.slow("HWI's suite twice: a quarter of an hour a maker")]

# Keys, descriptors or addresses of BIP-44, -49 or -86, or of the master key.
PURPOSES = {
    "test_expert_getxpub", "test_getxpub", "test_fingerprint_autodetect", "test_path_type",
    "test_type_only_autodetect", "test_getdescriptors", "test_getkeypool", "test_big_tx",
    "test_display_address_descriptor", "test_display_address_path",
}  # fmt: skip
# A vault that nobody pinned.
VAULTS = {"test_signtx", "test_display_address_multisig", "test_register_descriptor"}
# A signed message.
MESSAGES = {"test_sign_msg"}
# A device that is wiped, set up or backed up, or a passphrase on the command line.
SEEDS = {
    "test_setup_wipe",
    "test_passphrase",
    "test_pins",
    "TestTrezorManCommands.test_label",
    "TestColdcardManCommands.test_backup",
}
REFUSED = PURPOSES | VAULTS | MESSAGES | SEEDS


def passed(told):
    return [name for name, why in told if why is None]


@pytest.fixture(scope="module", params=drawn(sorted(WORDS), 1, of=__name__))
def seen(request):
    checkout = os.environ.get("HWI")
    if checkout is None:
        pytest.skip("HWI names no checkout of HWI, whose suite this is")
    if find_bitcoind() is None:
        pytest.skip(MISSING)
    path = str(Path(checkout).resolve())
    if path.startswith("/tmp/"):
        pytest.skip("the namespace has a /tmp of its own: the checkout belongs elsewhere")
    programs = (THEIRS, OURS)
    return {one: run_isolated("hwi_suite", request.param, one, path, deadline=1800) for one in programs}


def test_signerd_hwi_passes_what_hwi_does_but_for_what_it_refuses(seen):
    names = [name for name, _why in seen[OURS]]
    refused = [name for name in names if {name, name.partition(".")[2]} & REFUSED]
    assert passed(seen[OURS]) == [name for name in names if name not in refused]
    assert set(passed(seen[OURS])) <= set(passed(seen[THEIRS]))
    assert [name for name, _why in seen[THEIRS]] == names
