"""Every call, described once: where each argument goes. ``DaemonClient`` and ``AsyncDaemonClient`` inherit
them.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from signerd.client.flow import CallArguments, PairingCalls, row
from signerd.shapes import calls

if TYPE_CHECKING:
    from signerd import shapes


class Api(PairingCalls):
    """The calls. Each raises DaemonNotRunning, DaemonFailed, and the leaves of SignerdError that the daemon
    answers with.
    """

    # --- status, and the account at the platform ------------------------------------------------------------

    @row(calls.STATUS)
    @staticmethod
    def status() -> CallArguments:
        return CallArguments()

    @row(calls.SIGN_IN)
    @staticmethod
    def sign_in(email: str, password: str) -> CallArguments:
        return CallArguments(body={"email": email, "password": password})

    @row(calls.CONFIRM_SIGN_IN)
    @staticmethod
    def confirm_sign_in(code: str) -> CallArguments:
        return CallArguments(body={"code": code})

    @row(calls.SIGN_OUT)
    @staticmethod
    def sign_out() -> CallArguments:
        return CallArguments()

    # --- devices, what they do by hand, and registering the keys of one -------------------------------------

    @row(calls.DEVICES)
    @staticmethod
    def devices() -> CallArguments:
        return CallArguments()

    @row(calls.IDENTIFY_DEVICE)
    @staticmethod
    def identify_device(device_id: str) -> CallArguments:
        """Have it show something harmless."""
        return CallArguments({"device_id": device_id})

    @row(calls.CANCEL_DEVICE)
    @staticmethod
    def cancel_device(device_id: str) -> CallArguments:
        """Cancel the operation that runs on it."""
        return CallArguments({"device_id": device_id})

    @row(calls.ANOTHER_ADDRESS)
    @staticmethod
    def another_address(device_id: str) -> CallArguments:
        """Say that it shows another address than this machine."""
        return CallArguments({"device_id": device_id})

    @row(calls.DEVICE_ACCOUNTS)
    @staticmethod
    def device_accounts(device_id: str, account: int = 0) -> CallArguments:
        """Read the keys of a standard account; some devices ask the person first."""
        return CallArguments({"device_id": device_id}, body={"account": account})

    @row(calls.PREVIEW_REGISTRATION)
    @staticmethod
    def preview_registration(device_id: str | None = None) -> CallArguments:
        return CallArguments(query={"device": device_id})

    @row(calls.REGISTER)
    @staticmethod
    def register(device_id: str, digest: str, *, replace: bool = False) -> CallArguments:
        """Answers when the person has confirmed on the device; ``follow`` "registration" meanwhile."""
        return CallArguments(body={"device_id": device_id, "digest": digest, "replace": replace})

    @row(calls.PREVIEW_AIRGAPPED)
    @staticmethod
    def preview_airgapped(exports: Collection[str]) -> CallArguments:
        """The keys in the exported files of a device without a cable, before they are registered."""
        return CallArguments(body={"exports": list(exports)})

    @row(calls.CHALLENGE_AIRGAPPED)
    @staticmethod
    def challenge_airgapped(exports: Collection[str], digest: str) -> CallArguments:
        """The text that the device has to sign within ten minutes."""
        return CallArguments(body={"exports": list(exports), "digest": digest})

    @row(calls.REGISTER_AIRGAPPED)
    @staticmethod
    def register_airgapped(
        exports: Collection[str], digest: str, challenge: str, signature: str, *, replace: bool = False
    ) -> CallArguments:
        """With its signature of the challenge, in base64 or as the file that it wrote."""
        body = {"exports": list(exports), "digest": digest, "challenge": challenge, "signature": signature}
        return CallArguments(body={**body, "replace": replace})

    # --- unlocking a device, and what it asks the person meanwhile ------------------------------------------

    @row(calls.START_UNLOCKING)
    @staticmethod
    def start_unlocking(device_id: str) -> CallArguments:
        """Begin, or join. Answer the step's question, and ask for the next step while the device works."""
        return CallArguments({"device_id": device_id})

    @row(calls.UNLOCKING_STEP)
    @staticmethod
    def unlocking_step(device_id: str) -> CallArguments:
        return CallArguments({"device_id": device_id})

    @row(calls.QUESTIONS)
    @staticmethod
    def questions() -> CallArguments:
        return CallArguments()

    @row(calls.ANSWER_QUESTION)
    @staticmethod
    def answer_question(question_id: str, answer: str | None) -> CallArguments:
        """None: answer on the device where it supports that, or else cancel."""
        return CallArguments({"question_id": question_id}, body={"answer": answer})

    # --- vaults and their pins ------------------------------------------------------------------------------

    @row(calls.VAULTS)
    @staticmethod
    def vaults() -> CallArguments:
        return CallArguments()

    @row(calls.VAULT_TOKENS)
    @staticmethod
    def vault_tokens(vault_id: str) -> CallArguments:
        return CallArguments({"vault_id": vault_id})

    @row(calls.VAULT_FUNDS)
    @staticmethod
    def vault_funds(vault_id: str) -> CallArguments:
        return CallArguments({"vault_id": vault_id})

    @row(calls.VAULT_MOVEMENTS)
    @staticmethod
    def vault_movements(
        vault_id: str,
        *,
        cursor: str | None = None,
        since: str | None = None,
        before: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> CallArguments:
        """A page, the newest first. ``cursor``: the last answer's ``next``. ``since`` and ``before``: days in
        UTC, as 2026-05-01; the second is left out. ``search``: part of a description or a name.
        """
        query = {"cursor": cursor, "since": since, "before": before, "search": search, "limit": limit}
        return CallArguments({"vault_id": vault_id}, query=query)

    @row(calls.PREVIEW_PIN)
    @staticmethod
    def preview_pin(vault_id: str, imported: "shapes.ImportedQuorum | None" = None) -> CallArguments:
        """What to compare before pinning. A vault in ``imported`` must be the one in the record."""
        return CallArguments({"vault_id": vault_id}, body={"imported": _dumped(imported)})

    @row(calls.PIN)
    @staticmethod
    def pin(
        vault_id: str,
        code: str,
        imported: "shapes.ImportedQuorum | None" = None,
        *,
        without_device_address: bool = False,
        airgapped: "shapes.Compared | None" = None,
    ) -> CallArguments:
        """Answers when the device knows the vault and has shown its first address; follow the vault's id
        meanwhile. ``airgapped``: what the person saw on a device without a cable.
        """
        body = {
            "code": code,
            "imported": _dumped(imported),
            "without_device_address": without_device_address,
            **({} if airgapped is None else {"airgapped": airgapped}),
        }
        return CallArguments({"vault_id": vault_id}, body=body)

    @row(calls.ENROLMENT)
    @staticmethod
    def enrolment(vault_id: str, form: str = "coldcard") -> CallArguments:
        """``form``: "coldcard", "descriptor" or "bsms"."""
        return CallArguments({"vault_id": vault_id}, query={"form": form})

    @row(calls.UNPIN)
    @staticmethod
    def unpin(vault_id: str, code: str) -> CallArguments:
        return CallArguments({"vault_id": vault_id}, body={"code": code})

    # --- accounts and addresses of this signer, and their addresses on the device's screen ------------------

    @row(calls.ACCOUNTS)
    @staticmethod
    def accounts() -> CallArguments:
        """The registered keys. No device is needed."""
        return CallArguments()

    @row(calls.VAULT_ADDRESSES)
    @staticmethod
    def vault_addresses(
        vault_id: str, chain: int | None = None, start: int | None = None, count: int | None = None
    ) -> CallArguments:
        """Of a pinned vault. ``chain``: 0 for receiving, 1 for change."""
        return CallArguments({"vault_id": vault_id}, {"chain": chain, "start": start, "count": count})

    @row(calls.PROFILE_ADDRESSES)
    @staticmethod
    def profile_addresses(
        chain: int | None = None, start: int | None = None, count: int | None = None
    ) -> CallArguments:
        return CallArguments(query={"chain": chain, "start": start, "count": count})

    @row(calls.SHOW_VAULT_ADDRESS)
    @staticmethod
    def show_vault_address(vault_id: str, index: int, chain: int = 0) -> CallArguments:
        """Answers when the device has shown it, and the same one as this machine derives; follow the vault's
        id meanwhile.
        """
        return CallArguments({"vault_id": vault_id}, body={"chain": chain, "index": index})

    @row(calls.SHOW_PROFILE_ADDRESS)
    @staticmethod
    def show_profile_address(index: int, chain: int = 0) -> CallArguments:
        """As ``show_vault_address``; what happens meanwhile is told under the device's id."""
        return CallArguments(body={"chain": chain, "index": index})

    # --- proposals: seen, approved, declined ----------------------------------------------------------------

    @row(calls.PROPOSALS)
    @staticmethod
    def proposals(*, ended: bool = False) -> CallArguments:
        return CallArguments(query={"ended": "true" if ended else None})

    @row(calls.PROPOSAL)
    @staticmethod
    def proposal(psbt_id: str) -> CallArguments:
        return CallArguments({"psbt_id": psbt_id})

    @row(calls.APPROVE)
    @staticmethod
    def approve(psbt_id: str, digest: str, acknowledged: Collection[str] = ()) -> CallArguments:
        """Approve what ``proposal`` showed with this digest, naming the acknowledged warnings."""
        return CallArguments(
            {"psbt_id": psbt_id}, body={"digest": digest, "acknowledged": sorted(acknowledged)}
        )

    @row(calls.REJECT)
    @staticmethod
    def reject(psbt_id: str, reason: str = "") -> CallArguments:
        return CallArguments({"psbt_id": psbt_id}, body={"reason": reason})

    @row(calls.EXPORT_PSBT)
    @staticmethod
    def export_psbt(psbt_id: str, version: "shapes.PsbtVersion | None" = None) -> CallArguments:
        """Of an approved proposal, for a device without a cable. It counts as signed from then on.

        ``version``: "2" for a PSBT of BIP-370.
        """
        return CallArguments({"psbt_id": psbt_id}, query={"version": version})

    @row(calls.IMPORT_ANSWER)
    @staticmethod
    def import_answer(psbt: str) -> CallArguments:
        """What such a device signed, in base64; the transaction says which proposal it answers."""
        return CallArguments(body={"psbt": psbt})

    # --- imported PSBTs: inspect, import, fetch the signed one ---------------------------------------------

    @row(calls.INSPECT_PSBT)
    @staticmethod
    def inspect_psbt(psbt: str) -> CallArguments:
        """What signing this PSBT (base64) would do. The person is not asked."""
        return CallArguments(body={"psbt": psbt})

    @row(calls.IMPORT_PSBT)
    @staticmethod
    def import_psbt(psbt: str) -> CallArguments:
        """Import it, to be signed once the person approves. Idempotent for the same transaction."""
        return CallArguments(body={"psbt": psbt})

    @row(calls.IMPORTED_PSBTS)
    @staticmethod
    def imported_psbts() -> CallArguments:
        return CallArguments()

    @row(calls.IMPORTED_PSBT)
    @staticmethod
    def imported_psbt(psbt_id: str, version: "shapes.PsbtVersion | None" = None) -> CallArguments:
        """Its state, and the signed PSBT once it exists. ``version``: "2" for a PSBT of BIP-370."""
        return CallArguments({"psbt_id": psbt_id}, query={"version": version})

    @row(calls.WITHDRAW_PSBT)
    @staticmethod
    def withdraw_psbt(psbt_id: str) -> CallArguments:
        """Withdraw what this program imported, if it was not decided yet."""
        return CallArguments({"psbt_id": psbt_id})

    # --- pairing: for an app and for the person; the apps that are paired, and the sites that may ask -------

    @row(calls.ASK_PAIRING)
    @staticmethod
    def ask_pairing(name: str, rights: Collection[str]) -> CallArguments:
        """Show the answer's ``code``, and collect with its ``id`` and ``secret``."""
        return CallArguments(body={"name": name, "rights": sorted(rights)})

    @row(calls.COLLECT_PAIRING)
    @staticmethod
    def collect_pairing(pairing_id: str, secret: str) -> CallArguments:
        """The person's answer; ask again in a second while it is "waiting". The token comes once."""
        return CallArguments({"pairing_id": pairing_id}, body={"secret": secret})

    @row(calls.PAIRINGS)
    @staticmethod
    def pairings() -> CallArguments:
        """The requests that wait for the person."""
        return CallArguments()

    @row(calls.ACCEPT_PAIRING)
    @staticmethod
    def accept_pairing(
        pairing_id: str, code: str, rights: Collection[str] | None = None, days: int = calls.DAYS
    ) -> CallArguments:
        """``rights``: fewer than were asked for; None grants all of them."""
        given = None if rights is None else sorted(rights)
        return CallArguments({"pairing_id": pairing_id}, body={"code": code, "rights": given, "days": days})

    @row(calls.REFUSE_PAIRING)
    @staticmethod
    def refuse_pairing(pairing_id: str) -> CallArguments:
        return CallArguments({"pairing_id": pairing_id})

    @row(calls.ME)
    @staticmethod
    def me() -> CallArguments:
        """The caller, its rights, and until when they last."""
        return CallArguments()

    @row(calls.APPS)
    @staticmethod
    def apps() -> CallArguments:
        """Every app that was ever paired."""
        return CallArguments()

    @row(calls.REVOKE_APP)
    @staticmethod
    def revoke_app(app_id: str) -> CallArguments:
        return CallArguments({"app_id": app_id})

    @row(calls.ORIGINS)
    @staticmethod
    def origins() -> CallArguments:
        """The sites that may send requests from a browser now."""
        return CallArguments()

    @row(calls.LET_IN)
    @staticmethod
    def let_in(origin: str, minutes: int = calls.LET_IN_MINUTES) -> CallArguments:
        """Its pages may ask to be paired for this many minutes."""
        return CallArguments(body={"origin": origin, "minutes": minutes})

    @row(calls.SHUT_OUT)
    @staticmethod
    def shut_out(origin: str) -> CallArguments:
        """Its pages may not ask any more, and its apps are revoked."""
        return CallArguments(query={"origin": origin})

    # --- settings of this machine -------------------------------------------------------------------------

    @row(calls.SETTINGS)
    @staticmethod
    def settings() -> CallArguments:
        return CallArguments()

    # --- what happened. What happens is a stream, and each shell's own: ``follow`` and ``events`` -----------

    @row(calls.VERIFY_AUDIT)
    @staticmethod
    def verify_audit() -> CallArguments:
        return CallArguments()

    @row(calls.AUDIT_ENTRIES)
    @staticmethod
    def audit_entries(
        after: int | None = None,
        before: int | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> CallArguments:
        """The newest first, below ``before`` if given; with ``after`` in the chain's order from there."""
        return CallArguments(query={"after": after, "before": before, "search": search, "limit": limit})

    # --- opening the page -----------------------------------------------------------------------------------

    @row(calls.ENTER_PAGE)
    @staticmethod
    def enter_page() -> CallArguments:
        """A code to open the page with, valid once and for half a minute. Over the private socket only."""
        return CallArguments()


def _dumped(imported: "shapes.ImportedQuorum | None") -> dict[str, object] | None:
    return None if imported is None else imported.model_dump(mode="json")
