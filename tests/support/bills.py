"""PSBTs that an app hands over: payments of the pinned vault's or the profile's coins without a proposal."""

from multisig import ChangeTo, Policy, Psbt, build_psbt, sats
from tests.support.desk import VAULT
from tests.support.wallets import fund, pay

COIN, FEE = 100_000, 1_000


def bill(number: int = 0, amount: int = 50_000, policy: Policy = VAULT) -> Psbt:
    """A payment that spends a coin of its own for each ``number``."""
    coin = fund(policy, COIN, index=10 + number)
    change = ChangeTo(sats(COIN - amount - FEE), 1, 20 + number)
    return build_psbt(policy, [coin], [pay(amount, "bill"), change], 0)
