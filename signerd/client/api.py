"""Every call, described once: which of its arguments goes where. ``DaemonClient`` and ``AsyncDaemonClient`` inherit these."""

from collections.abc import Collection

from signerd import shapes
from signerd.client.flow import Asked, row
from signerd.client.pairing import PairingCalls
from signerd.shapes import calls


class Api(PairingCalls):
    """The calls. Each raises DaemonNotRunning, DaemonFailed, and the leaves of SignerdError that the daemon answers with."""

    # --- status, and the account at the platform ---------------------------------------------------------------------

    @row(calls.STATUS)
    @staticmethod
    def status() -> Asked:
        return Asked()

    @row(calls.SIGN_IN)
    @staticmethod
    def sign_in(email: str, password: str) -> Asked:
        return Asked(body={"email": email, "password": password})

    @row(calls.CONFIRM_SIGN_IN)
    @staticmethod
    def confirm_sign_in(code: str) -> Asked:
        return Asked(body={"code": code})

    @row(calls.SIGN_OUT)
    @staticmethod
    def sign_out() -> Asked:
        return Asked()

    # --- devices, what they do by hand, and registering the keys of one ----------------------------------------------

    @row(calls.DEVICES)
    @staticmethod
    def devices() -> Asked:
        return Asked()

    @row(calls.IDENTIFY_DEVICE)
    @staticmethod
    def identify_device(device_id: str) -> Asked:
        """Have it show itself."""
        return Asked({"device_id": device_id})

    @row(calls.CANCEL_DEVICE)
    @staticmethod
    def cancel_device(device_id: str) -> Asked:
        """Give up what runs on it."""
        return Asked({"device_id": device_id})

    @row(calls.ANOTHER_ADDRESS)
    @staticmethod
    def another_address(device_id: str) -> Asked:
        """Say that it shows another address than this machine."""
        return Asked({"device_id": device_id})

    @row(calls.DEVICE_ACCOUNTS)
    @staticmethod
    def device_accounts(device_id: str, account: int = 0) -> Asked:
        """Read the keys of a standard account; some devices ask the person first."""
        return Asked({"device_id": device_id}, body={"account": account})

    @row(calls.PREVIEW_REGISTRATION)
    @staticmethod
    def preview_registration(device_id: str | None = None) -> Asked:
        return Asked(query={"device": device_id})

    @row(calls.REGISTER)
    @staticmethod
    def register(device_id: str, digest: str, *, replace: bool = False) -> Asked:
        """Answers when the person has confirmed on the device; ``follow`` "registration" meanwhile."""
        return Asked(body={"device_id": device_id, "digest": digest, "replace": replace})

    # --- unlocking a device, and what it asks the person meanwhile ---------------------------------------------------

    @row(calls.START_UNLOCKING)
    @staticmethod
    def start_unlocking(device_id: str) -> Asked:
        """Begin, or join what has begun. Answer what the step asks, and ask for the next one while the device works."""
        return Asked({"device_id": device_id})

    @row(calls.UNLOCKING_STEP)
    @staticmethod
    def unlocking_step(device_id: str) -> Asked:
        return Asked({"device_id": device_id})

    @row(calls.QUESTIONS)
    @staticmethod
    def questions() -> Asked:
        return Asked()

    @row(calls.ANSWER_QUESTION)
    @staticmethod
    def answer_question(question_id: str, answer: str | None) -> Asked:
        """None leaves it to the device where that can be, and else gives up."""
        return Asked({"question_id": question_id}, body={"answer": answer})

    # --- vaults and their pins ---------------------------------------------------------------------------------------

    @row(calls.VAULTS)
    @staticmethod
    def vaults() -> Asked:
        return Asked()

    @row(calls.VAULT_TOKENS)
    @staticmethod
    def vault_tokens(vault_id: str) -> Asked:
        return Asked({"vault_id": vault_id})

    @row(calls.PREVIEW_PIN)
    @staticmethod
    def preview_pin(vault_id: str, brought: shapes.BroughtQuorum | None = None) -> Asked:
        """What to compare before pinning; a vault brought from elsewhere must be the one in the platform's record."""
        return Asked({"vault_id": vault_id}, body={"brought": _dumped(brought)})

    @row(calls.PIN)
    @staticmethod
    def pin(
        vault_id: str,
        code: str,
        brought: shapes.BroughtQuorum | None = None,
        *,
        without_device_address: bool = False,
    ) -> Asked:
        """Answers when the device knows the vault and has shown its first address; follow the vault's id meanwhile."""
        body = {
            "code": code,
            "brought": _dumped(brought),
            "without_device_address": without_device_address,
        }
        return Asked({"vault_id": vault_id}, body=body)

    @row(calls.UNPIN)
    @staticmethod
    def unpin(vault_id: str, code: str) -> Asked:
        return Asked({"vault_id": vault_id}, body={"code": code})

    # --- accounts and addresses of this signer, and their addresses on the device's screen ---------------------------

    @row(calls.ACCOUNTS)
    @staticmethod
    def accounts() -> Asked:
        """The registered keys. No device is needed."""
        return Asked()

    @row(calls.VAULT_ADDRESSES)
    @staticmethod
    def vault_addresses(
        vault_id: str, chain: int | None = None, start: int | None = None, count: int | None = None
    ) -> Asked:
        """Of a pinned vault. ``chain``: 0 for receiving, 1 for change."""
        return Asked({"vault_id": vault_id}, {"chain": chain, "start": start, "count": count})

    @row(calls.PROFILE_ADDRESSES)
    @staticmethod
    def profile_addresses(
        chain: int | None = None, start: int | None = None, count: int | None = None
    ) -> Asked:
        return Asked(query={"chain": chain, "start": start, "count": count})

    @row(calls.SHOW_VAULT_ADDRESS)
    @staticmethod
    def show_vault_address(vault_id: str, index: int, chain: int = 0) -> Asked:
        """Answers when the device has shown it, and the same one as this machine derives; follow the vault's id meanwhile."""
        return Asked({"vault_id": vault_id}, body={"chain": chain, "index": index})

    @row(calls.SHOW_PROFILE_ADDRESS)
    @staticmethod
    def show_profile_address(index: int, chain: int = 0) -> Asked:
        """As ``show_vault_address``; what happens meanwhile is told under the device's id."""
        return Asked(body={"chain": chain, "index": index})

    # --- proposals: seen, approved, declined -------------------------------------------------------------------------

    @row(calls.PROPOSALS)
    @staticmethod
    def proposals(*, ended: bool = False) -> Asked:
        return Asked(query={"ended": "true" if ended else None})

    @row(calls.PROPOSAL)
    @staticmethod
    def proposal(psbt_id: str) -> Asked:
        return Asked({"psbt_id": psbt_id})

    @row(calls.APPROVE)
    @staticmethod
    def approve(psbt_id: str, digest: str, acknowledged: Collection[str] = ()) -> Asked:
        """Say yes to what ``proposal`` showed under this digest, naming the warnings that were read."""
        return Asked({"psbt_id": psbt_id}, body={"digest": digest, "acknowledged": sorted(acknowledged)})

    @row(calls.REJECT)
    @staticmethod
    def reject(psbt_id: str, reason: str = "") -> Asked:
        return Asked({"psbt_id": psbt_id}, body={"reason": reason})

    # --- pSBTs that a program brings: looked at, asked about, fetched signed -----------------------------------------

    @row(calls.INSPECT_PSBT)
    @staticmethod
    def inspect_psbt(psbt: str) -> Asked:
        """What signing this PSBT (base64) would do. Nobody is asked."""
        return Asked(body={"psbt": psbt})

    @row(calls.BRING_PSBT)
    @staticmethod
    def bring_psbt(psbt: str) -> Asked:
        """Ask the person to sign it; the same transaction again is the same one again."""
        return Asked(body={"psbt": psbt})

    @row(calls.BROUGHT_PSBTS)
    @staticmethod
    def brought_psbts() -> Asked:
        return Asked()

    @row(calls.BROUGHT_PSBT)
    @staticmethod
    def brought_psbt(psbt_id: str) -> Asked:
        """How it stands, and the signed PSBT once it is there."""
        return Asked({"psbt_id": psbt_id})

    @row(calls.WITHDRAW_PSBT)
    @staticmethod
    def withdraw_psbt(psbt_id: str) -> Asked:
        """Take back what this program brought, where nobody has decided about it."""
        return Asked({"psbt_id": psbt_id})

    # --- pairing: asking and collecting, for an app; answering, for the person; who is paired, and which sites may ask ---

    @row(calls.ASK_PAIRING)
    @staticmethod
    def ask_pairing(name: str, rights: Collection[str]) -> Asked:
        """Show the answer's ``code``, and collect with its ``id`` and ``secret``."""
        return Asked(body={"name": name, "rights": sorted(rights)})

    @row(calls.COLLECT_PAIRING)
    @staticmethod
    def collect_pairing(pairing_id: str, secret: str) -> Asked:
        """The person's answer; ask again in a second while it is "waiting". The token comes once."""
        return Asked({"pairing_id": pairing_id}, body={"secret": secret})

    @row(calls.PAIRINGS)
    @staticmethod
    def pairings() -> Asked:
        """The requests that wait for the person."""
        return Asked()

    @row(calls.ACCEPT_PAIRING)
    @staticmethod
    def accept_pairing(
        pairing_id: str, code: str, rights: Collection[str] | None = None, days: int = shapes.DAYS
    ) -> Asked:
        """``rights``: fewer than were asked for; None grants all of them."""
        given = None if rights is None else sorted(rights)
        return Asked({"pairing_id": pairing_id}, body={"code": code, "rights": given, "days": days})

    @row(calls.REFUSE_PAIRING)
    @staticmethod
    def refuse_pairing(pairing_id: str) -> Asked:
        return Asked({"pairing_id": pairing_id})

    @row(calls.ME)
    @staticmethod
    def me() -> Asked:
        """Who asks, with which rights, and until when."""
        return Asked()

    @row(calls.APPS)
    @staticmethod
    def apps() -> Asked:
        """Every app that was ever paired."""
        return Asked()

    @row(calls.REVOKE_APP)
    @staticmethod
    def revoke_app(app_id: str) -> Asked:
        return Asked({"app_id": app_id})

    @row(calls.ORIGINS)
    @staticmethod
    def origins() -> Asked:
        """The sites that may send requests from a browser now."""
        return Asked()

    @row(calls.LET_IN)
    @staticmethod
    def let_in(origin: str, minutes: int = shapes.LET_IN_MINUTES) -> Asked:
        """Its pages may ask to be paired for so long."""
        return Asked(body={"origin": origin, "minutes": minutes})

    @row(calls.SHUT_OUT)
    @staticmethod
    def shut_out(origin: str) -> Asked:
        """Its pages may not ask any more, and its apps are revoked."""
        return Asked(query={"origin": origin})

    # --- what this machine was told to do ----------------------------------------------------------------------------

    @row(calls.SETTINGS)
    @staticmethod
    def settings() -> Asked:
        return Asked()

    # --- what happened. What happens is a stream, and each shell's own: ``follow`` and ``events`` --------------------

    @row(calls.VERIFY_AUDIT)
    @staticmethod
    def verify_audit() -> Asked:
        return Asked()

    @row(calls.AUDIT_ENTRIES)
    @staticmethod
    def audit_entries(
        after: int | None = None,
        before: int | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> Asked:
        """The newest first, from below ``before`` where given; with ``after`` in the chain's order from there."""
        return Asked(query={"after": after, "before": before, "search": search, "limit": limit})

    # --- the way to the page -----------------------------------------------------------------------------------------

    @row(calls.ENTER_PAGE)
    @staticmethod
    def enter_page() -> Asked:
        """A code to enter the page with, good once and for half a minute. Over the private socket alone."""
        return Asked()

    # --- figures -----------------------------------------------------------------------------------------------------

    @row(calls.METRICS)
    @staticmethod
    def metrics() -> Asked:
        """As Prometheus reads them (its text format, 0.0.4)."""
        return Asked()


def _dumped(brought: shapes.BroughtQuorum | None) -> dict[str, object] | None:
    return None if brought is None else brought.model_dump(mode="json")
