"""The daemon's errors, for a person and for a program.

::

    SignerdError
    ├── DecisionError        IllegalEvent · UnknownProposal · StaleApproval · RefusedByChecks
    │                        NeedsAcknowledgement · AlreadyProposed · TooManyImported · NotExported
    │                        AnswerRefused · NotCaughtUp
    ├── VaultError           UnknownVault · NotOurVault · VaultDiffers · WrongCode · AccountReused · NotPinned
    │                        AddressDiffers
    ├── RegistrationError    NoRegisteredKey · RegistrationStale
    ├── DeviceError          NoSuchDevice · DeviceUnready · DeviceFailed · AddressNotShown
    │                        NoSuchQuestion · NothingUnlocked
    ├── JournalError         AlreadyRunning · JournalCorrupted · JournalTooNew · JournalUnwritable
    │                        UnsafeFolder · RegistrationsUnreadable
    ├── BackupError          BackupUnreadable · BackupLocked · BackupNotMade · FolderNotEmpty
    ├── ConfigError          ConfigMissing · ConfigInvalid · RulesInvalid · SettingsChanged · LooserSettings
    ├── SecretsError         NoSecretStore · SecretsLocked · KeyringTimedOut
    ├── SessionError         SignedOut · SignInFailed
    ├── PlatformError        PlatformUnreachable · PlatformRefused · PlatformAnswersWrongly · PlatformFloods
    ├── PairingError         UnknownPairing · AlreadyAsking · NameTaken · TooManyPairings · WrongPairingCode
    │                        UnknownApp
    ├── LoopbackError        InvalidRequest · RequestTooLarge · RequestTooSlow · NotForBrowsers · NoSuchRoute
    │                        TooManyStreams · TooManyPrompts · TooManyRequests · HostRefused · OriginRefused
    │                        EntryRefused · PageNotServed · SocketUnusable · DaemonNotRunning · DaemonFailed
    └── SetupError           AlreadyConfigured · AnswerMissing · NotOnThisSystem · NeedsRoot
                             SystemToolFailed · FileNotWritten

Each leaf has a stable ``code``, a sentence that says what is wrong, and a ``hint`` that says what to do.
"""

from typing import ClassVar


class SignerdError(Exception):
    """The root. ``str(error)`` is the sentence; ``hint`` may be empty where nothing can be done."""

    code: ClassVar[str] = "signerd-error"
    default_hint: ClassVar[str] = ""

    def __init__(self, sentence: str, *, hint: str | None = None) -> None:
        super().__init__(sentence)
        self.hint = self.default_hint if hint is None else hint


class DecisionError(SignerdError):
    """A decision that is not possible now. Nothing was changed."""


class IllegalEvent(DecisionError):
    code = "illegal-event"
    default_hint = "Look at the proposal's state with `signerd show`."


class UnknownProposal(DecisionError):
    code = "unknown-proposal"
    default_hint = "List what is known here with `signerd proposals`."


class StaleApproval(DecisionError):
    code = "stale-approval"
    default_hint = "Look at the proposal again with `signerd show` and approve what it shows now."


class RefusedByChecks(DecisionError):
    code = "refused-by-checks"
    default_hint = "`signerd show` gives the reasons. Decline it, or ask who made it."


class NeedsAcknowledgement(DecisionError):
    code = "needs-acknowledgement"
    default_hint = "Read the warning, and name it with `--acknowledge` where you still want to sign."


class AlreadyProposed(DecisionError):
    """The imported PSBT is one of the platform's proposals. Nothing was stored."""

    code = "already-proposed"
    default_hint = "Decide about the proposal instead: `signerd show` shows it."


class TooManyImported(DecisionError):
    """A bound against prompting a person until they approve (L6). Nothing was stored."""

    code = "too-many-imported"
    default_hint = "Wait until the person has decided about the others, or take one back."


class NotExported(DecisionError):
    code = "not-exported"
    default_hint = (
        "Export the proposal first: `signerd export ID`. For a PSBT that is not a proposal, use `signerd "
        "sign`."
    )


class AnswerRefused(DecisionError):
    """The imported file is no valid answer of a device. Nothing was stored; another file may be imported."""

    code = "answer-refused"
    default_hint = "Import the file that the device wrote for this transaction, or read its codes again."


class NotCaughtUp(DecisionError):
    """The journal was restored from a backup, and what was signed since is not known yet."""

    code = "not-caught-up"
    default_hint = (
        "Once signed in, signerd reads the platform's list; approve again after that. "
        "`signerd status` says how far it is."
    )


class VaultError(SignerdError):
    """A vault that cannot be pinned or used. Nothing was changed."""


class UnknownVault(VaultError):
    code = "unknown-vault"
    default_hint = "List the vaults with `signerd vaults`."


class NotOurVault(VaultError):
    code = "not-our-vault"
    default_hint = "Do not sign for it."


class VaultDiffers(VaultError):
    code = "vault-differs"
    default_hint = "A vault's keys and threshold never change. Call the other signers before you go on."


class WrongCode(VaultError):
    code = "wrong-verification-code"
    default_hint = "Compare the code with the other signers by another channel, then type it as shown."


class AccountReused(VaultError):
    code = "account-reused"
    default_hint = "Each vault has an account of its own. Ask the operator of the platform."


class NotPinned(VaultError):
    code = "not-pinned"
    default_hint = "List the vaults with `signerd vaults`."


class AddressDiffers(VaultError):
    """The device shows another first address than this machine derives: one of the two is not to be
    trusted.
    """

    code = "address-differs"
    default_hint = (
        "Send nothing to either address and do not pin. Compare the code and the address with the other "
        "signers; "
        "try another device of yours or another machine."
    )


class RegistrationError(SignerdError):
    """The device's key and the platform."""


class NoRegisteredKey(RegistrationError):
    code = "no-registered-key"
    default_hint = "Connect your device and run `signerd register`."


class RegistrationStale(RegistrationError):
    code = "registration-stale"
    default_hint = "Run `signerd register` again and compare the fingerprint with your device."


class DeviceError(SignerdError):
    """No device can do now what was asked."""


class NoSuchDevice(DeviceError):
    code = "no-such-device"
    default_hint = "Connect the device, unlock it, and look at `signerd devices`."


class DeviceUnready(DeviceError):
    code = "device-not-ready"
    default_hint = "See `signerd devices` for what the device needs."


class DeviceFailed(DeviceError):
    code = "device-failed"


class AddressNotShown(DeviceError):
    code = "address-not-shown"
    default_hint = (
        "Compare the first address with the other signers instead, and pin with --without-device-address "
        "if you accept that your device never showed it."
    )


class NoSuchQuestion(DeviceError):
    code = "no-such-question"
    default_hint = "It was answered or has expired. Start unlocking the device again."


class NothingUnlocked(DeviceError):
    code = "nothing-unlocked"
    default_hint = "Begin with `signerd devices unlock`, or with the device's button on the page."


class JournalError(SignerdError):
    """The journal. Without it the daemon signs nothing."""


class AlreadyRunning(JournalError):
    code = "already-running"
    default_hint = "Stop the other one, or use its socket."


class JournalCorrupted(JournalError):
    code = "journal-corrupted"
    default_hint = (
        "The damaged journal is kept. Restore it from a backup, or run `signerd audit start-over`; "
        "what was signed before is then unknown here."
    )


class JournalTooNew(JournalError):
    code = "journal-too-new"
    default_hint = "Install the newer version again."


class JournalUnwritable(JournalError):
    code = "journal-unwritable"
    default_hint = "Free some disk space and check the state folder's permissions, then start signerd again."


class UnsafeFolder(JournalError):
    code = "unsafe-folder"
    default_hint = (
        "The state folder must be a real folder of your own that no other user can enter (mode 0700)."
    )


class RegistrationsUnreadable(JournalError):
    code = "registrations-unreadable"
    default_hint = (
        "Restore the file from a backup, or move it away and start signerd again: "
        "a Ledger then shows each vault once more when it is pinned again."
    )


class BackupError(SignerdError):
    """Backups of the state folder. Nothing was changed."""


class BackupUnreadable(BackupError):
    code = "backup-unreadable"
    default_hint = "Take another copy of the file, or an older backup."


class BackupLocked(BackupError):
    code = "backup-locked"
    default_hint = "Type the passphrase that it was made with, or name the right key file with --identity."


class BackupNotMade(BackupError):
    code = "backup-not-made"
    default_hint = "Name another file, in a folder that you may write to."


class FolderNotEmpty(BackupError):
    code = "folder-not-empty"
    default_hint = "Restore into a state folder of its own: `signerd --state DIR restore FILE`."


class ConfigError(SignerdError):
    """The configuration file."""


class ConfigMissing(ConfigError):
    code = "config-missing"
    default_hint = "Name the platform once: `signerd setup --platform URL --network NAME`."


class ConfigInvalid(ConfigError):
    code = "config-invalid"
    default_hint = "Correct the line and start again."


class SettingsChanged(ConfigError):
    code = "settings-changed"
    default_hint = "Load the page again, and make the change to the current text."


class LooserSettings(ConfigError):
    """The change loosens a limit or check, and the person has not confirmed that."""

    code = "looser-settings"
    default_hint = "Confirm the change, and send it again."


class RulesInvalid(ConfigError):
    code = "rules-invalid"
    default_hint = (
        "Correct the line; `signerd rules show --file FILE` reads it again. "
        "The page 'Your own rules' of the documentation has an example."
    )


class SecretsError(SignerdError):
    """Where the session's secret is kept."""


class NoSecretStore(SecretsError):
    code = "no-secret-store"
    default_hint = (
        "Unlock the desktop's keyring; or keep the session in a file under a passphrase: `--secrets file` at "
        'the first sign-in, [secrets] store = "file" in config.toml later.'
    )


class SecretsLocked(SecretsError):
    code = "secrets-locked"
    default_hint = "Give the passphrase that protects the secrets file."


class KeyringTimedOut(SecretsError):
    code = "keyring-timed-out"
    default_hint = "Unlock the desktop's keyring, then try again."


class SessionError(SignerdError):
    """Signing in to the platform."""


class SignedOut(SessionError):
    code = "signed-out"
    default_hint = "Run `signerd login`."


class SignInFailed(SessionError):
    code = "sign-in-failed"
    default_hint = "Check the e-mail address, the password and the one-time code."


class PlatformError(SignerdError):
    """The platform's answer, or its absence."""


class PlatformUnreachable(PlatformError):
    """Whether the call had an effect is unknown: it may be repeated with the same key and bytes.

    ``platform_code`` and ``why``: the platform's own, where it refused for a reason that may change.
    """

    code = "platform-unreachable"
    default_hint = "signerd tries again by itself; nothing is lost meanwhile."

    def __init__(
        self, sentence: str, *, hint: str | None = None, platform_code: str = "", why: str = ""
    ) -> None:
        super().__init__(sentence, hint=hint)
        self.platform_code, self.why = platform_code, why


class PlatformRefused(PlatformError):
    """A final refusal. ``platform_code`` is the platform's own stable code."""

    code = "platform-refused"

    def __init__(self, sentence: str, *, platform_code: str, status: int, hint: str | None = None) -> None:
        super().__init__(sentence, hint=hint)
        self.platform_code = platform_code
        self.status = status


class PlatformAnswersWrongly(PlatformError):
    code = "platform-answers-wrongly"
    default_hint = "What answered is not a custody platform of this version. Check the configured address."


class PlatformFloods(PlatformError):
    """It sends more than a platform may make this machine store: the rest is left out."""

    code = "platform-floods"
    default_hint = (
        "Ask those who run the platform what it sends. What you decided and signed is kept and followed."
    )


class LoopbackError(SignerdError):
    """The API between the daemon and the programs of the same user."""


class InvalidRequest(LoopbackError):
    code = "invalid-request"
    default_hint = "Correct what the sentence names; `signerd COMMAND --help` says what a command takes."


class RequestTooLarge(LoopbackError):
    code = "request-too-large"


class RequestTooSlow(LoopbackError):
    code = "request-too-slow"


class NotForBrowsers(LoopbackError):
    code = "not-for-browsers"
    default_hint = "The interface is for programs on this machine, through the daemon's socket."


class NotPaired(LoopbackError):
    code = "not-paired"
    default_hint = (
        "Pair the app: it asks at /v1/pairings, and the person accepts on the page or with `signerd pair`."
    )


class NotAllowed(LoopbackError):
    code = "not-allowed"
    default_hint = "Pair the app again with what it needs; the person decides what it gets."


class NoSuchRoute(LoopbackError):
    code = "no-such-route"
    default_hint = "Another version of signerd may be running: end it and start this one."


class TooManyStreams(LoopbackError):
    code = "too-many-streams"
    default_hint = "Close one of them."


class TooManyPrompts(LoopbackError):
    """An app occupies the person's device (L6). The device was not asked."""

    code = "too-many-prompts"
    default_hint = "Wait for the last answer, then a minute."


class TooManyRequests(LoopbackError):
    """``seconds``: until the next request is answered."""

    code = "too-many-requests"
    default_hint = "Wait as long as Retry-After says; follow /v1/events instead of polling."

    def __init__(self, sentence: str, *, seconds: int = 1, hint: str | None = None) -> None:
        super().__init__(sentence, hint=hint)
        self.seconds = seconds


class HostRefused(LoopbackError):
    code = "host-refused"
    default_hint = "Call it as 127.0.0.1, [::1] or localhost, with its port."


class OriginRefused(LoopbackError):
    """A request that a browser sent for a site without access (L2-L4, L14)."""

    code = "origin-refused"
    default_hint = "The person lets a site in on the page, or with `signerd pair --origin`."


class EntryRefused(LoopbackError):
    code = "entry-refused"
    default_hint = "A code is valid once, for half a minute. Run `signerd open` again."


class PageNotServed(LoopbackError):
    code = "page-not-served"
    default_hint = "`signerd status` says why."


class SocketUnusable(LoopbackError):
    code = "socket-unusable"
    default_hint = "Use a state folder of your own, with a short path, on a local disk: `--state DIR`."


class DaemonNotRunning(LoopbackError):
    code = "daemon-not-running"
    default_hint = "Start it with `signerd run`, and give the same --state to both."


class DaemonFailed(LoopbackError):
    """An unforeseen error, or an answer that makes no sense."""

    code = "daemon-failed"
    default_hint = "The output of `signerd run` says more. Earlier decisions are in the journal."


class PairingError(SignerdError):
    """Pairing an app. Nothing was granted."""


class UnknownPairing(PairingError):
    """Unknown, expired, collected, or asked for with another secret: the same words for all (L7)."""

    code = "unknown-pairing"
    default_hint = "A request lasts two minutes. Let the app ask again."


class AlreadyAsking(PairingError):
    code = "already-asking"
    default_hint = (
        "The person answers the request that is open, on the page or with `signerd pair`. "
        "Once it is refused, the app may ask again at once."
    )


class NameTaken(PairingError):
    """The person tells apps apart by their names (L8)."""

    code = "name-taken"
    default_hint = (
        "Choose another name. If it is an earlier pairing of this app, the person can end that "
        "with `signerd apps revoke`."
    )


class TooManyPairings(PairingError):
    code = "too-many-pairings"
    default_hint = "Wait a minute before you ask again."


class WrongPairingCode(PairingError):
    code = "wrong-pairing-code"
    default_hint = (
        "Type the six digits that the app shows. If it shows none, another program asks: refuse it."
    )


class UnknownApp(PairingError):
    code = "unknown-app"
    default_hint = "List the paired apps with `signerd apps`."


class SetupError(SignerdError):
    """What a command needs from the person before it can start."""


class AlreadyConfigured(SetupError):
    code = "already-configured"
    default_hint = "Change the file by hand, or use another state folder: `--state DIR`."


class AnswerMissing(SetupError):
    code = "answer-missing"
    default_hint = "Run it in a terminal, or give one line for each question on standard input."


class NotOnThisSystem(SetupError):
    code = "not-on-this-system"
    default_hint = "The page 'Installing signerd' of the documentation lists what each system has."


class NeedsRoot(SetupError):
    code = "needs-root"
    default_hint = "Run the same command with sudo."


class SystemToolFailed(SetupError):
    """A program of the system, such as systemctl, is missing or failed."""

    code = "system-tool-failed"
    default_hint = "Run the command by hand to see what it says."


class FileNotWritten(SetupError):
    """A command's output file could not be written. An existing file is unchanged."""

    code = "file-not-written"
    default_hint = "Name another file, in a folder that you may write to."
