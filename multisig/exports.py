"""A vault as other wallets import it: what `multisig.vault_files` reads back, and Sparrow and a Coldcard read too."""

from multisig.keys import OriginKey
from multisig.vault import RECEIVE, Vault
from multisig.vault_files import BSMS_VERSION, RESTRICTIONS, TEMPLATE


def bsms_record(vault: Vault) -> str:
    """The descriptor record of BIP-129, second round, not encrypted: version, template, paths, first address.

    Lines end in LF, the last one in nothing.
    """
    keys = ",".join(f"{_with_apostrophes(key)}{TEMPLATE}" for key in vault.cosigners)
    template = f"wsh(sortedmulti({vault.threshold},{keys}))"
    return "\n".join((BSMS_VERSION, template, RESTRICTIONS, vault.address(RECEIVE, 0)))


def _with_apostrophes(key: OriginKey) -> str:
    # Both marks are allowed; the vectors of the BIP have this one, and so has what old firmware reads.
    origin = str(key.origin).replace("h", "'")
    return f"[{origin}]{key.xpub}"
