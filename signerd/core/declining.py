"""What a decline does, which depends on how many others can sign: one sentence before it and after."""

from custody.common.text import count
from custody.schemas.proposals import TxType
from signerd.core.values import Pin, Record


def on_decline(record: Record, pin: Pin | None) -> str:
    """``pin``: of its vault. The platform ends a proposal once too few are left who can sign it, which this
    machine knows no more of than how many there are; the chain takes it with enough signatures.
    """
    snapshot = record.snapshot
    needed, others = (0, 0) if pin is None else (pin.vault.threshold, len(pin.vault.cosigners) - 1)
    # The platform counts this signer's own, too, once it has it.
    said_no = len(snapshot.declines) - (record.decline is not None and record.decline.delivered)
    if record.signature is not None or record.exported is not None:
        does = ", and revokes no signature: what has left this machine may be paid all the same."
    elif snapshot.imported is not None:
        does = ". To be signed here after all, it must be made again."
    elif snapshot.kind is TxType.FORWARD:
        does = ", and stops it: nobody else signs it."
    elif pin is None:
        does = ", and stops it only where too few others are left to sign."
    elif others < needed:
        does = ", and stops it: every signer has to sign. To be paid after all, it must be proposed again."
    elif (left := others - max(0, said_no)) < needed:
        does = ", and ends it: by the platform's word others declined, and too few are left to sign."
    else:
        who = f"{count(left, 'other signer is', 'other signers are')} enough, if they can sign"
        does = f", and may not stop it: {who}. To stop it, have it cancelled, or freeze the vault."
    return f"A decline cannot be taken back{does}"
