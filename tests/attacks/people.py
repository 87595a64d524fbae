"""Whose keys the corpus is about: three cosigners, the first of them a virtual device, and Mallory, all from
fixed seeds.
"""

from device_simulators.seed import Seed
from multisig import Network
from tests.conformance.rigs import COSIGNERS, NETWORK
from tests.support.wallets import Holder, make_vault

VAULT_ID = "vault-1"
WORKSPACE = 1
NAME = "Savings"

ALICE, BOB, CAROL = COSIGNERS
MALLORY = Holder(Seed.from_entropy(b"M" * 16), NETWORK)

VAULT = make_vault(COSIGNERS)
MALLORYS = make_vault((MALLORY, BOB, CAROL))
ONE_OF_THREE = make_vault(COSIGNERS, threshold=1)
TWO_OF_TWO = make_vault((ALICE, BOB))
OTHER_ACCOUNT = make_vault(COSIGNERS, account=1)
MAINNET = make_vault(COSIGNERS, network=Network.MAINNET)
