"""Checks before the inspection: what kind of proposal it is, the pinned vault, our key in it, and the source
of an imported PSBT. And of a message that the vault is to sign (BIP-322): what it proves, and whether our
device signs it.

An imported PSBT has no record of recipients, amounts, fee or transaction id. The checks that compare them do
not run, and one warning names them: only the person knows what the transaction should do.
"""

from datetime import UTC, datetime
from functools import partial

from custody.common.text import amount, count, foreign, said
from custody.schemas.proposals import TxType
from multisig import MultisigError, Psbt, Vault
from multisig.bip322 import is_proof
from multisig.tokens import Deploy, TokenCall
from signerd.core.checks.case import Case, InspectedCase, Verdict, allow, refuse, warn
from signerd.core.claims import former_key_of, own_key_of, same_quorum
from signerd.core.families import read_figures
from signerd.core.keys import made_with_former
from signerd.core.signing import signing_of
from signerd.core.text import as_argument
from signerd.core.tokens import payload_of, takes_back
from signerd.core.values import Snapshot

CHECKED_KINDS = {
    TxType.SEND: "It is a plain payment from a vault.",
    TxType.FORWARD: "It moves your own money into a vault.",
    TxType.DEPLOY: "It makes a token.",
    TxType.CALL: "It is a call of a token.",
    TxType.PROOF: "It is a message for the vault to sign, and no payment.",
}
# What the transaction of such a proposal carries; a plain payment that carries any is refused by ``data``.
_CARRIES = {TxType.DEPLOY: Deploy, TxType.CALL: TokenCall}


def kind_known(case: Case) -> Verdict:
    """The kind must be one that this version can check in full, and must be that of the transaction."""
    kind = case.snapshot.kind
    if kind not in CHECKED_KINDS:
        return refuse(f"This version cannot check a proposal of the kind '{kind}'.", kind=kind.value)
    if is_mislabelled(case.snapshot, case.psbt):
        called = "a payment, and its PSBT asks for a message"
        if kind is TxType.PROOF:
            called = "a message to be signed, and its transaction is a payment"
        return refuse(f"It is called {called}.", kind="proof")
    if kind in _CARRIES and case.snapshot.replaces is not None and takes_back(case.psbt):
        return _taken_back(case)
    if kind in _CARRIES and not isinstance(payload_of(case.psbt), _CARRIES[kind]):
        return refuse(
            f"It is called a token's {kind.value}, and its transaction carries none that can be read.",
            kind=kind.value,
        )
    return allow(CHECKED_KINDS[kind], kind=kind.value)


def _taken_back(case: Case) -> Verdict:
    """The cancel of a token's transaction carries no data: everything must come back to the pinned vault."""
    kind, pin = case.snapshot.kind.value, case.context.pin
    figures = None if pin is None else read_figures(case.snapshot.psbt, pin.vault)
    if figures is None:
        return refuse(
            f"It is called a token's {kind} that takes another one back, and nothing proves that its coins "
            "are a pinned vault's and come back to it.",
            kind=kind,
        )
    if not figures.takes_all_back:
        return refuse(
            f"It is called a token's {kind} that takes another one back, but not everything comes back: it "
            "pays somebody.",
            kind=kind,
        )
    return allow(
        "It takes a token's transaction back: all of it comes back to the vault, and it carries no data.",
        kind=kind,
    )


def pinned(case: Case) -> Verdict:
    """S16: a quorum that only the platform has shown is not trusted."""
    pin = case.context.pin
    if pin is None:
        return refuse(
            f"The vault is not pinned on this machine. Compare it with the other signers, then pin it: "
            f"`signerd pin {as_argument(case.snapshot.vault_id)}`.",
            vault_id=case.snapshot.vault_id,
        )
    if pin.workspace_id != case.snapshot.workspace_id:
        return refuse(
            f"The vault was pinned in workspace {pin.workspace_id}; the proposal comes from another."
        )
    return allow(f"The vault is the pinned '{foreign(pin.name)}'.", code=pin.vault.verification_code)


def unchanged(case: Case) -> Verdict:
    """S16: M, N, a cosigner or an account changed after the vault was pinned."""
    pin, claim = case.context.pin, case.context.claim
    if pin is None:
        return refuse("There is no pinned vault to compare with.")
    if claim is None:
        return refuse("The platform has not shown the vault's descriptor yet.")
    try:
        same = same_quorum(Vault.from_descriptor(claim.descriptor, pin.vault.network), pin.vault)
    except MultisigError as error:
        return refuse(f"The platform's descriptor of the vault is not valid: {said(error)}")
    if not same:
        return refuse(
            "ALARM: the platform shows other keys or another threshold than the vault that was pinned. "
            "Do not sign; call the other signers."
        )
    return allow("The platform shows the vault as it was pinned.")


def network_agrees(case: Case) -> Verdict:
    """S14: a mainnet transaction under a testnet workspace, or the other way round.

    An imported PSBT has no workspace to compare with; the inspection compares the network of its keys.
    """
    context, snapshot = case.context, case.snapshot
    imported = snapshot.imported is not None
    networks = {"configured": str(context.network)}
    if not imported:
        networks["workspace"] = snapshot.workspace_network
        if context.network.api_name != snapshot.workspace_network:
            return refuse(
                f"The workspace is on {snapshot.workspace_network}, this signerd on {context.network}.",
                **networks,
            )
    if context.pin is not None and context.pin.vault.network is not context.network:
        return refuse(
            f"The vault was pinned on {context.pin.vault.network}, not on {context.network}.", **networks
        )
    if imported:
        return allow(f"It is judged as one of {context.network}; no workspace says so beside.", **networks)
    return allow(f"Everything is on {context.network}.", **networks)


def own_key_inside(case: Case) -> Verdict:
    """S15: our exact extended key at its exact account, as our device exported it."""
    pin = case.context.pin
    if pin is None:
        return refuse("Whether a key of your device is in it is told once it is pinned.")
    own = own_key_of(pin.vault, case.context.own_keys)
    if own is None:
        former = former_key_of(pin.vault, case.context.former_keys)
        if former is not None:
            return refuse(made_with_former(former), fingerprint=str(former.own.key.fingerprint))
        return refuse("None of the keys of this vault is a registered key of your device.")
    if own.key != pin.own_key:
        return refuse("Your key in this vault is another than when it was pinned.")
    return allow(
        f"Your key {own.key.origin.fingerprint} signs with account {own.account}.",
        fingerprint=str(own.key.origin.fingerprint),
        account=own.account,
    )


def key_stands(case: Case) -> Verdict:
    """The platform refuses signatures of a revoked key, and the revocation may have had a reason."""
    revoked = case.context.revoked
    if revoked:
        return refuse(revoked)
    return allow("The platform has said nothing against your registered key.")


def change_looked_at(case: Case) -> Verdict:
    """S16: a change stays an alarm, even if the platform reverts it, until the person unpins the vault."""
    changes = case.context.vault_changes
    if not changes:
        return allow("The platform has shown no change of the vault since it was pinned.")
    return refuse(
        "ALARM: the platform has shown the vault changed since it was pinned, and you have not looked at it "
        "yet. "
        f"{' '.join(changes)} Do not sign; call the other signers. `signerd vaults` shows it.",
        changes=len(changes),
    )


def name_kept(case: Case) -> Verdict:
    """A name proves nothing, but the person may recognise the vault by it."""
    pin, claim = case.context.pin, case.context.claim
    if pin is None or claim is None or claim.name == pin.name:
        return allow("The vault has the name under which it was pinned, which is a label only.")
    return warn(
        f"The platform calls the vault '{foreign(claim.name)}' now; you pinned it as '{foreign(pin.name)}'. "
        "A name is a label only: the keys are what counts."
    )


def without_record(case: Case) -> Verdict:
    """S12, S13: there is no record to compare the bytes with."""
    by = foreign(case.snapshot.created_by)
    return warn(
        f"It is not the platform's: {by} imported it. There is no record of whom it should pay, how much and "
        "at what fee, to compare it with: look at where the money goes.",
        imported_by=by,
        not_compared=", ".join(case.not_compared),
    )


def in_time(case: Case) -> Verdict:
    """The app that imported it no longer waits, and prices and fees have changed."""
    imported = case.snapshot.imported
    assert imported is not None, "this check is for imported PSBTs"
    until = f"{datetime.fromtimestamp(imported.expires_at, UTC):%Y-%m-%d %H:%M} UTC"
    if case.context.lapsed:
        return refuse(f"It could be approved until {until}, which is over.")
    return allow(f"It may be approved until {until}.")


def _from_profile(case: Case, otherwise: str) -> Verdict:
    """The coins must claim the registered profile, which the inspection proves."""
    signing = signing_of(case.snapshot, case.context)
    if signing is None:
        return refuse(otherwise)
    origin = signing.key.origin
    return allow(f"It is from your own profile, {origin}.", fingerprint=str(origin.fingerprint))


from_profile = partial(
    _from_profile, otherwise="It is a forward, but not from a profile that is registered with your device."
)
own_coins = partial(
    _from_profile,
    otherwise="Its coins are of no vault that is pinned here, and not of your registered profile.",
)


def is_mislabelled(snapshot: Snapshot, psbt: Psbt) -> bool:
    """Whether a proposal's kind and its transaction disagree about being a message. Imported PSBTs have no
    kind.
    """
    return snapshot.imported is None and is_proof(psbt) is not (snapshot.kind is TxType.PROOF)


def proves(case: InspectedCase) -> Verdict:
    """Shows the whole message, its address and coins, from the PSBT alone."""
    proof = case.inspection.proof
    assert proof is not None, "this check is for messages"
    if not proof.message or not proof.address:
        return refuse("What it says, or for which address of the vault, is not proven.")
    coins = ""
    if proof.coins:
        coins = f", and of {count(len(proof.coins), 'coin', 'coins')} with {amount(proof.total)} in all"
    return allow(
        f"It signs the message “{foreign(proof.message)}” as proof that the vault controls "
        f"{proof.address}{coins}. "
        "It pays nobody, and no node can ever take it.",
        message=proof.message,
        address=proof.address,
        coins=len(proof.coins),
        total_sats=int(proof.total),
    )


def signable(case: InspectedCase) -> Verdict:
    """Whether our device can sign it. A device that was not seen yet is checked when it is connected."""
    proof, screen = case.inspection.proof, case.context.screen
    if screen is None or proof is None:
        return allow("Which device has your key is not known yet: it is asked only if it can sign a message.")
    why = screen.why_no_message(len(proof.coins))
    if why:
        return refuse(f"Your device ({screen.name}) signs no such message: {why}.", device=screen.name)
    return allow(f"Your device ({screen.name}) signs such messages.", device=screen.name)
