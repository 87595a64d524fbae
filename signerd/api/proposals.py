"""Proposals: seen, approved, declined, given to a device without a cable; and PSBTs that a program imports."""

from __future__ import annotations

from signerd import shapes
from signerd.api.described import call
from signerd.callers import Right
from signerd.shapes.limits import MAX_PSBT_BODY


class ProposalsApi:
    @call("GET /proposals", Right.READ)
    def proposals(self, *, ended: bool = False) -> tuple[shapes.ProposalLine, ...]:
        """The proposals known here"""

    @call("GET /proposals/{psbt_id}", Right.READ)
    def proposal(self, psbt_id: shapes.Id) -> shapes.ProposalView:
        """Where the money goes, and every check"""

    @call("POST /proposals/{psbt_id}/approve", Right.APPROVE, body="ApproveRequest")
    def approve(
        self, psbt_id: shapes.Id, digest: shapes.Digest, acknowledged: shapes.Acknowledged = frozenset()
    ) -> shapes.ProposalLine:
        """Approve what was shown

        What ``proposal`` showed with this digest, naming the acknowledged warnings.
        """

    @call("POST /proposals/{psbt_id}/decline", Right.APPROVE, body="DeclineRequest")
    def decline(self, psbt_id: shapes.Id, reason: shapes.Reason = "") -> shapes.ProposalLine:
        """Decline"""

    @call("POST /proposals/{psbt_id}/export", Right.PERSON)
    def export_psbt(self, psbt_id: shapes.Id, version: shapes.PsbtVersion = "0") -> shapes.ExportedPsbt:
        """Give an approved proposal out, for a device without a cable

        It counts as signed from then on. ``version``: "2" for a PSBT of BIP-370.
        """

    @call("POST /answers", Right.PERSON, body="AnswerRequest", max_body=MAX_PSBT_BODY)
    def import_answer(self, psbt: shapes.PsbtText) -> shapes.ProposalLine:
        """Bring what a device without a cable signed

        ``psbt``: what the device wrote, in base64. Its transaction says which exported proposal it answers.
        """

    @call("POST /psbts/inspect", Right.PROPOSE, body="PsbtRequest", max_body=MAX_PSBT_BODY)
    def inspect_psbt(self, psbt: shapes.PsbtText) -> shapes.PsbtReview:
        """What signing a PSBT would do; nothing is stored

        ``psbt``: version 0 (BIP-174) or 2 (BIP-370), in base64, with the previous transaction and a key origin of every input.
        """

    @call("POST /psbts", Right.PROPOSE, body="PsbtRequest", max_body=MAX_PSBT_BODY)
    def import_psbt(self, psbt: shapes.PsbtText) -> shapes.ImportedView:
        """Import a PSBT: the person is asked

        It is signed once the person approves. Idempotent for the same transaction.
        """

    @call("GET /psbts", Right.READ)
    def imported_psbts(self) -> tuple[shapes.ImportedLine, ...]:
        """The PSBTs that the caller imported; the person's: all"""

    @call("GET /psbts/{psbt_id}", Right.READ)
    def imported_psbt(self, psbt_id: shapes.Id, version: shapes.PsbtVersion = "0") -> shapes.ImportedView:
        """An imported PSBT, signed once it is

        ``version``: "2" for a PSBT of BIP-370.
        """

    @call("DELETE /psbts/{psbt_id}", Right.PROPOSE)
    def withdraw_psbt(self, psbt_id: shapes.Id) -> shapes.ImportedLine:
        """Take back what was imported

        By this caller, if it was not decided yet.
        """
