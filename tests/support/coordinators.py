"""A vault as other programs write it to a file, each after the program's own source or documents."""

import json
from collections.abc import Callable

from multisig import OriginKey, Vault, bsms_record, checksum, wallet_policy
from multisig.vault_files import caravan_file
from tests.support.airgap import slip132

NAME = "Café of the 3"


def _body(vault: Vault, ending: str = "<0;1>/*", xpub: Callable[[object], str] = str) -> str:
    keys = ",".join(f"[{key.origin}]{xpub(key.xpub)}/{ending}" for key in vault.cosigners)
    return f"wsh(sortedmulti({vault.threshold},{keys}))"


def _checked(body: str) -> str:
    return f"{body}#{checksum(body)}"


def _apostrophes(key: OriginKey) -> str:
    return str(key.origin.path).replace("h", "'")


def sparrow(vault: Vault) -> str:
    """Export, Output Descriptor."""
    return (
        f"# Receive and change descriptor (BIP389):\n{vault.descriptor}\n\n\n"
        f"# Receive descriptor (Bitcoin Core):\n{vault.chain_descriptor(0)}\n\n"
        f"# Change descriptor (Bitcoin Core):\n{vault.chain_descriptor(1)}\n"
    )


def _bsms(vault: Vault, descriptor: str, paths: str) -> str:
    return "\n".join(("BSMS 1.0", descriptor, paths, vault.address(0, 0)))


def nunchuk_bsms(vault: Vault) -> str:
    return _bsms(vault, _checked(_body(vault, "*")), "No path restrictions")


def caravan(vault: Vault, script: str = "P2WSH") -> str:
    keys = [
        {
            "name": f"key {number}",
            "bip32Path": _apostrophes(key),
            "xpub": str(key.xpub),
            "xfp": str(key.fingerprint),
            "method": "text",
        }
        for number, key in enumerate(vault.cosigners)
    ]
    written = {
        "name": NAME,
        "addressType": script,
        "network": "testnet",
        "client": {"type": "public"},
        "quorum": {"requiredSigners": vault.threshold, "totalSigners": len(keys)},
        "extendedPublicKeys": keys,
        "startingAddressIndex": 0,
        "ledgerPolicyHmacs": [],
    }
    return json.dumps(written, indent=2, ensure_ascii=False)


def setup_file(vault: Vault, label: str = "Derivation", script: str = "P2WSH", xpub=str) -> str:
    """A Coldcard's; with `# derivation` Sparrow's, and with Zpub BlueWallet's."""
    lines = [
        "# Multisig setup file",
        "#",
        f"Name: {NAME}",
        f"Policy: {vault.threshold} of {len(vault.cosigners)}",
    ]
    lines.append(f"Format: {script}")
    for key in vault.cosigners:
        lines += [f"{label}: {_apostrophes(key)}", f"{str(key.fingerprint).upper()}: {xpub(key.xpub)}", ""]
    return "\n".join(lines)


def _core(vault: Vault) -> list[dict[str, object]]:
    # A wallet that signs for itself has such ones beside the vault's.
    own = _checked(f"wpkh({vault.cosigners[0]}/0/*)")
    descriptors = (own, vault.chain_descriptor(1), vault.chain_descriptor(0))
    return [
        {"desc": each, "timestamp": 0, "active": True, "internal": False, "range": [0, 999], "next": 0}
        for each in descriptors
    ]


def listdescriptors(vault: Vault) -> str:
    return json.dumps({"wallet_name": "cold", "descriptors": _core(vault)}, indent=2)


WRITTEN: dict[str, Callable[[Vault], str]] = {
    "descriptor": lambda vault: f"\n {vault.descriptor}\r\n",
    "older spelling": lambda vault: _checked(_body(vault, "{0,1}/*")),
    "Sparrow's output descriptor": sparrow,
    "Coldcard's printed descriptor": lambda vault: (
        "# Coldcard descriptor export\n"
        + vault.descriptor.replace(",[", ",\n\t# key\n\t[").replace("))#", "\n))#")
    ),
    "BSMS": bsms_record,
    "BSMS with checksum": lambda vault: _bsms(vault, _checked(_body(vault, "**")), "/0/*,/1/*"),
    "Sparrow's BSMS": lambda vault: _bsms(vault, _body(vault), "/0/*,/1/*").replace("\n", "\r\n"),
    "BSMS, full": lambda vault: _bsms(vault, vault.descriptor, "No path restrictions"),
    "Nunchuk's BSMS": nunchuk_bsms,
    "BSMS of one chain": lambda vault: _bsms(vault, vault.chain_descriptor(0), "No path restrictions"),
    "Caravan": caravan,
    "ours for Caravan": lambda vault: caravan_file(vault, NAME, {}),
    "ours as a policy": lambda vault: str(wallet_policy(vault)),
    "ours as signerd shows it": lambda vault: f"{wallet_policy(vault)}\n\nNo registration is kept here.\n",
    "Coldcard's setup file": setup_file,
    "Sparrow's setup file": lambda vault: setup_file(vault, "# derivation"),
    "BlueWallet's setup file": lambda vault: setup_file(vault, xpub=slip132),
    "Coldcard's JSON": lambda vault: json.dumps({"name": NAME, "desc": vault.descriptor}),
    "Coldcard's for Core": lambda vault: f"importdescriptors '{json.dumps(_core(vault)[1:])}'\n",
    "listdescriptors": listdescriptors,
    "Specter's file": lambda vault: json.dumps(
        {
            "label": NAME,
            "blockheight": 9,
            "descriptor": vault.chain_descriptor(0),
            "devices": [{"type": "jade"}],
        }
    ).replace("/", "\\/"),
    "Specter's backup": lambda vault: json.dumps(
        {"recv_descriptor": vault.chain_descriptor(0), "change_descriptor": vault.chain_descriptor(1)}
    ),
    "descriptor with Zpub": lambda vault: _checked(_body(vault, xpub=slip132)),
}
