"""A vault imported from a coordinator's file or from the account keys of a PSBT, and exported as a BSMS
record.

Neither source is trusted. A file's first address and a PSBT's scripts are derived again from the keys beside
them; where the two disagree, an error is raised.
"""

from multisig.descriptor import strip_checksum
from multisig.errors import InvalidDescriptor, InvalidPsbt, InvalidTransaction, MultisigError
from multisig.keys import OriginKey
from multisig.network import Network
from multisig.proofs import Prover, Unproven, proven_output
from multisig.psbt import Psbt, PsbtInput
from multisig.script import parse_multisig_script
from multisig.vault import RECEIVE, Vault

BSMS_VERSION = "BSMS 1.0"
# Room for a descriptor of 15 keys; larger files are refused.
MAX_FILE_CHARACTERS = 8192
_BSMS = "BSMS"
_RECORD_LINES = 4
# BIP-129: `/**` in the template stands for what the third line allows. Receiving and change, as everywhere
# here.
TEMPLATE, RESTRICTIONS = "/**", "/0/*,/1/*"
_MULTIPATH = "/<0;1>/*"
_EXPORT = "Export the descriptor with its checksum, or the vault in the BSMS form."
_NO_RESTRICTIONS = "No path restrictions"


def vault_of_file(text: str, network: Network) -> Vault:
    """From a descriptor with its checksum, or from a descriptor record of BIP-129 (BSMS 1.0, not encrypted).

    The first address of a record must be the one that its keys give here.

    Raises InvalidDescriptor, InvalidKey, WrongNetwork.
    """
    if len(text) > MAX_FILE_CHARACTERS:
        raise InvalidDescriptor("The file is too long for a vault's descriptor.")
    lines = text.removeprefix("\ufeff").strip().splitlines()
    if not lines:
        raise InvalidDescriptor("The file is empty.", hint=_EXPORT)
    if lines[0].startswith(_BSMS):
        return _vault_of_record(lines, network)
    if len(lines) != 1:
        raise InvalidDescriptor(
            "The file is neither a record of BSMS 1.0 nor one descriptor on one line.", hint=_EXPORT
        )
    if lines[0].startswith("{"):
        raise InvalidDescriptor("This is JSON, which is not read here.", hint=_EXPORT)
    return Vault.from_descriptor(lines[0], network)


def _vault_of_record(lines: list[str], network: Network) -> Vault:
    if lines[0] != BSMS_VERSION:
        raise InvalidDescriptor(f"Only {BSMS_VERSION} is read, and this record begins otherwise.")
    if len(lines) != _RECORD_LINES:
        raise InvalidDescriptor(
            f"A descriptor record of {BSMS_VERSION} has {_RECORD_LINES} lines; this one has {len(lines)}."
        )
    _version, template, restrictions, first_address = lines
    # The record's own checksum covers the template as it is written; BIP-129 has records with it and without.
    vault = Vault.from_descriptor(_descriptor_of(template, restrictions), network, strict=False)
    ours = vault.address(RECEIVE, 0)
    if first_address != ours:
        raise InvalidDescriptor(
            f"The record says that the first address is {first_address}; its own keys give {ours}.",
            hint="One of the two was changed, or the record is for another network. Ask its coordinator "
            "again.",
        )
    return vault


def _descriptor_of(template: str, restrictions: str) -> str:
    body = strip_checksum(template, strict=False)
    if TEMPLATE not in body:
        # A full descriptor has its paths in itself.
        if restrictions != _NO_RESTRICTIONS:
            raise InvalidDescriptor(f"A record without {TEMPLATE} must say: {_NO_RESTRICTIONS}.")
        return body
    if restrictions != RESTRICTIONS:
        raise InvalidDescriptor(
            f"The record allows other paths than {RESTRICTIONS}: receiving and change addresses."
        )
    if _MULTIPATH in body:
        raise InvalidDescriptor(f"The record mixes {TEMPLATE} with {_MULTIPATH}.")
    return body.replace(TEMPLATE, _MULTIPATH)


def vault_of_psbt(psbt: Psbt, network: Network) -> Vault:
    """From the account keys in its global map (BIP-174, PSBT_GLOBAL_XPUB) and the scripts of the coins that
    it spends.

    Every cosigner's account key must be there and no other; every input must carry a multisig script of one
    threshold, and be a coin of exactly these keys: its output, proven by its previous transaction, is derived
    again.

    Raises InvalidPsbt, InvalidDescriptor, InvalidKey, WrongNetwork.
    """
    threshold, signers = _quorum_of(psbt)
    if len(psbt.xpubs) != signers:
        raise InvalidPsbt(
            f"The PSBT carries {len(psbt.xpubs)} account keys, and its scripts have {signers} cosigners.",
            hint="Export it with every cosigner's xpub, or take the vault from its descriptor.",
        )
    vault = Vault(network, threshold, tuple(OriginKey(origin, xpub) for xpub, origin in psbt.xpubs))
    prover = Prover(vault)
    for index, item in enumerate(psbt.inputs):
        _require_coin(prover, index, item)
    return vault


def _quorum_of(psbt: Psbt) -> tuple[int, int]:
    quorums = {_quorum_of_input(index, item) for index, item in enumerate(psbt.inputs)}
    if len(quorums) != 1:
        raise InvalidPsbt("The PSBT spends coins of different quorums.")
    return quorums.pop()


def _quorum_of_input(index: int, item: PsbtInput) -> tuple[int, int]:
    if item.witness_script is None:
        raise InvalidPsbt(f"Input {index} does not show its script, so its threshold is not known.")
    try:
        threshold, keys = parse_multisig_script(item.witness_script)
    except InvalidTransaction as error:
        raise InvalidPsbt(f"The script of input {index} is not a multisig script.") from error
    return threshold, len(keys)


def _require_coin(prover: Prover, index: int, item: PsbtInput) -> None:
    spent = proven_output(item)
    if isinstance(spent, Unproven):
        raise InvalidPsbt(f"Input {index} does not prove which coin it spends: its transaction is missing.")
    try:
        ours = prover.prove(spent.script_pubkey, item.derivations)
    except MultisigError as error:
        raise InvalidPsbt(f"The place of input {index} cannot be derived.") from error
    if ours is None or ours.witness_script != item.witness_script:
        raise InvalidPsbt(f"Input {index} is not a coin of the account keys in the PSBT.")


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
