"""Is it the vault that the person pinned, whole, and are we in it?"""

from custody.schemas.proposals import TxType
from multisig import MultisigError, Vault
from multisig.tokens import Call, Deploy
from signerd.core.checks.case import Case
from signerd.core.families import read_figures
from signerd.core.key_status import made_with_former
from signerd.core.text import said
from signerd.core.tokens import payload_of, takes_back
from signerd.core.values import FormerKey, OwnKey
from signerd.core.verdicts import Verdict, allow, refuse

CHECKED_KINDS = {
    TxType.SEND: "It is a plain payment from a vault.",
    TxType.FORWARD: "It moves your own money into a vault.",
    TxType.DEPLOY: "It makes a token.",
    TxType.CALL: "It is a call of a token.",
}
# What the transaction of such a proposal carries; a plain payment that carries any is refused by ``data``.
_CARRIES = {TxType.DEPLOY: Deploy, TxType.CALL: Call}


def kind_known(case: Case) -> Verdict:
    """Only what this version can check in full may be signed, and only as what it is."""
    name, kind = "kind-known", case.snapshot.kind
    if kind not in CHECKED_KINDS:
        return refuse(name, f"This version cannot check a proposal of the kind '{kind}'.", kind=kind.value)
    if kind in _CARRIES and case.snapshot.replaces is not None and takes_back(case.psbt):
        return _taken_back(case)
    if kind in _CARRIES and not isinstance(payload_of(case.psbt), _CARRIES[kind]):
        return refuse(
            name,
            f"It is called a token's {kind.value}, and its transaction carries none that can be read.",
            kind=kind.value,
        )
    return allow(name, CHECKED_KINDS[kind], kind=kind.value)


def _taken_back(case: Case) -> Verdict:
    """Without data it calls nothing: it is what it is called only where all of it comes back to the pinned vault."""
    name, kind, pin = "kind-known", case.snapshot.kind.value, case.around.pin
    figures = None if pin is None else read_figures(case.snapshot.psbt, pin.vault)
    if figures is None:
        return refuse(
            name,
            f"It is called a token's {kind} that takes another one back, and nothing proves that its coins are a pinned "
            "vault's and come back to it.",
            kind=kind,
        )
    if not figures.takes_all_back:
        return refuse(
            name,
            f"It is called a token's {kind} that takes another one back, but not everything comes back: it pays somebody.",
            kind=kind,
        )
    return allow(
        name,
        "It takes a token's transaction back: all of it comes back to the vault, and it carries no data.",
        kind=kind,
    )


def pinned(case: Case) -> Verdict:
    """S16: a quorum known only from the platform is not known."""
    name, pin = "vault-pinned", case.around.pin
    if pin is None:
        return refuse(
            name,
            "The vault is not pinned on this machine. Compare it with the other signers, then pin it.",
            vault_id=case.snapshot.vault_id,
        )
    if pin.workspace_id != case.snapshot.workspace_id:
        return refuse(
            name, f"The vault was pinned in workspace {pin.workspace_id}; the proposal comes from another."
        )
    return allow(name, f"The vault is the pinned '{pin.name}'.", code=pin.vault.verification_code)


def unchanged(case: Case) -> Verdict:
    """S16: M, N, a cosigner or an account changed after the vault was pinned."""
    name, pin, claimed = "vault-unchanged", case.around.pin, case.around.claimed_descriptor
    if pin is None:
        return refuse(name, "There is no pinned vault to compare with.")
    if claimed is None:
        return refuse(name, "The platform has not shown the vault's descriptor yet.")
    try:
        same = same_quorum(Vault.from_descriptor(claimed, pin.vault.network), pin.vault)
    except MultisigError as error:
        return refuse(name, f"The platform's descriptor of the vault is not valid: {said(error)}")
    if not same:
        return refuse(
            name,
            "ALARM: the platform shows other keys or another threshold than the vault that was pinned. "
            "Do not sign; call the other signers.",
        )
    return allow(name, "The platform shows the vault as it was pinned.")


def network_agrees(case: Case) -> Verdict:
    """S14: a mainnet transaction under a testnet workspace, or the other way round."""
    name, around, snapshot = "network", case.around, case.snapshot
    networks = {"configured": str(around.network), "workspace": snapshot.workspace_network}
    if around.network.api_name != snapshot.workspace_network:
        return refuse(
            name,
            f"The workspace is on {snapshot.workspace_network}, this signerd on {around.network}.",
            **networks,
        )
    if around.pin is not None and around.pin.vault.network is not around.network:
        return refuse(
            name, f"The vault was pinned on {around.pin.vault.network}, not on {around.network}.", **networks
        )
    return allow(name, f"Everything is on {around.network}.", **networks)


def own_key_inside(case: Case) -> Verdict:
    """S15: our exact extended key at its exact account, as this machine's device gave it."""
    name, pin = "own-key", case.around.pin
    own = None if pin is None else own_key_of(pin.vault, case.around.own_keys)
    if pin is None or own is None:
        former = None if pin is None else former_key_of(pin.vault, case.around.former_keys)
        if former is not None:
            return refuse(name, made_with_former(former), fingerprint=str(former.own.key.fingerprint))
        return refuse(name, "None of the keys of this vault is a registered key of your device.")
    if own.key != pin.own_key:
        return refuse(name, "Your key in this vault is another than when it was pinned.")
    return allow(
        name,
        f"Your key {own.key.origin.fingerprint} signs with account {own.account}.",
        fingerprint=str(own.key.origin.fingerprint),
        account=own.account,
    )


def key_stands(case: Case) -> Verdict:
    """The platform takes no signature of a revoked key; whoever revoked it may have had a reason."""
    name, told = "key-revoked", case.around.revoked
    if told:
        return refuse(name, told)
    return allow(name, "The platform has said nothing against your registered key.")


def same_quorum(one: Vault, other: Vault) -> bool:
    """The same network, threshold and keys; the order in which they are listed means nothing (BIP-67)."""
    return (one.network, one.threshold, frozenset(one.cosigners)) == (
        other.network,
        other.threshold,
        frozenset(other.cosigners),
    )


def own_key_of(vault: Vault, own_keys: tuple[OwnKey, ...]) -> OwnKey | None:
    """The one registered key that is a cosigner: fingerprint, path and extended key all equal."""
    found = [own for own in own_keys if own.purpose == "vault" and own.key in vault.cosigners]
    return found[0] if len(found) == 1 else None


def former_key_of(vault: Vault, former_keys: tuple[FormerKey, ...]) -> FormerKey | None:
    """The same of the keys whose devices were replaced."""
    own = own_key_of(vault, tuple(former.own for former in former_keys))
    return next((former for former in former_keys if former.own == own), None)
