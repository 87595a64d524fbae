"""How many of its device's vault accounts a signer registers, and when more are needed.

Each vault takes one BIP-48 account of each signer. Accounts are hardened, so the platform cannot derive the next one: the
device gives it, and its person approves once for many. The platform's figures are not proven. A wrong one asks for
too many keys or for too few; it never changes what is signed.
"""

from dataclasses import dataclass

from custody.schemas.keys import MAX_ACCOUNT

# The platform's contract: the first eight, more later.
FIRST_ACCOUNTS = 8
# One approval registers keys for so many more vaults; the person is asked while keys for two vaults are left.
MORE_ACCOUNTS = 32
FEW_ACCOUNTS = 2
ALL_ACCOUNTS = MAX_ACCOUNT + 1


@dataclass(frozen=True)
class Accounts:
    """``known``: how many accounts from 0 on this machine has; ``following``: the number above the highest one that the
    platform has; ``free``: how many of those no vault uses. The platform may tell neither.
    """

    known: int = 0
    following: int = 0
    free: int | None = None

    @property
    def registered(self) -> int:
        return min(max(self.known, self.following), ALL_ACCOUNTS)

    @property
    def run_out(self) -> bool:
        """Few are free, and there are more paths."""
        return self.free is not None and self.free <= FEW_ACCOUNTS and self.registered < ALL_ACCOUNTS

    @property
    def wanted(self) -> int:
        """How many, from 0 on, a registration offers now."""
        if self.run_out:
            return min(self.registered + MORE_ACCOUNTS, ALL_ACCOUNTS)
        return max(self.registered, FIRST_ACCOUNTS)

    @property
    def advice(self) -> str | None:
        """What the person has to do, and why; the same sentence until it is done."""
        if self.run_out:
            return (
                "The keys of your device for new vaults run out: each vault takes one. Connect it and run "
                f"`signerd register`: one approval registers keys for up to {MORE_ACCOUNTS} more vaults."
            )
        if self.known < self.following:
            return (
                "Another desktop registered more keys of your device than this one knows. Connect it and run "
                "`signerd register`, so that vaults with those keys can be pinned here."
            )
        return None
