"""Previews of a proposal: the same draft and the same limit checks, in a snapshot."""

from sqlalchemy.orm import Session

from custody.schemas.proposals import CreatePsbtRequest, PsbtPreview
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.service.backends import Market
from custody.server.service.limits.limits import Limits
from custody.server.service.proposals.bounds import require_listed, require_signers
from custody.server.service.proposals.payments import Intent, read_rate
from custody.server.service.proposals.proposals import Prepared, Proposals
from custody.server.service.proposals.records import rate_text
from custody.server.service.proposals.replacing import Replacing, Version
from custody.server.service.stored_vaults import vault_in
from multisig import FeeRate


class Previewing:
    def __init__(
        self,
        market: Market,
        limits: Limits,
        proposals: Proposals,
        replacing: Replacing,
    ) -> None:
        self._market = market
        self._limits = limits
        self._proposals = proposals
        self._replacing = replacing

    def preview(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: CreatePsbtRequest,
        prepared: Prepared | Version,
    ) -> PsbtPreview:
        """Only reads. Raises what creating the proposal would: NotFound, RoleLimitExceeded,
        VaultLimitExceeded, PolicyUnavailable, NotInAddressBook, TooFewSigners, ChainUnavailable.
        """
        vault = vault_in(db, access, request.wallet_id)
        what = (db, caller, access, vault)
        intent, draft, family_id = Intent(), prepared.draft, None
        match prepared:
            case Prepared():
                intent = prepared.intent
                draft, movement = self._proposals.within_limits(*what, request, prepared)
                moved = movement.amount
            case Version():
                intent = prepared.intent
                terms = self._replacing.within_limits(*what, request, intent, draft)
                moved, family_id = terms.movement, terms.family_id
        require_listed(db, vault, draft.raw)
        require_signers(db, vault, draft.scripts, caller.user_id, family_id)
        # A version counts together with what it replaces.
        left = None if isinstance(prepared, Version) else self._limits.room(*what, after=moved)
        selection = draft.selection
        return PsbtPreview(
            psbt_base64=draft.base64,
            recipients=[payment.address for payment in intent.payments],
            amounts_sats=[payment.output.amount for payment in intent.payments],
            coins=[str(utxo.outpoint) for utxo in draft.utxos],
            change_sats=selection.change,
            fee_sats=selection.fee,
            fee_rate=rate_text(FeeRate.of(selection.fee, draft.vsize)),
            asked_fee_rate=rate_text(read_rate(request, self._market.quote(vault.chain))),
            vsize=draft.vsize,
            movement_sats=moved,
            role_left_sats=None if left is None else left.role,
            vault_left_sats=None if left is None else left.vault,
        )
