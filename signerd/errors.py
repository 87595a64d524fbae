"""The daemon's errors, for a person and for a program.

What an error is stands at its class, or at the branch above it where all of the branch are alike: its stable
``code``, what the code means in general, what to do (``default_hint``), and what it becomes outside: an HTTP
status (``problems``), a command's exit status and a code of HWI (``hwi.codes``).
``signerd explain`` and docs/sign/codes.md are read from here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from http import HTTPStatus
from typing import ClassVar

from custody.common.exits import Exit


class HwiCode(IntEnum):
    """The values of ``code`` in HWI's answers (``hwilib/errors.py``): of 3.2.0, and one that came after it.

    DEVICE_CONN_ERROR: a device or daemon that cannot be reached. INVALID_TX: a transaction that is not
    signed. DEVICE_NOT_READY: something that the person has to do first.
    """

    NO_DEVICE_TYPE = -1
    MISSING_ARGUMENTS = -2
    DEVICE_CONN_ERROR = -3
    UNKNOWN_DEVICE_TYPE = -4
    INVALID_TX = -5
    NO_PASSWORD = -6
    BAD_ARGUMENT = -7
    NOT_IMPLEMENTED = -8
    UNAVAILABLE_ACTION = -9
    DEVICE_ALREADY_UNLOCKED = -11
    DEVICE_NOT_READY = -12
    UNKNOWN_ERROR = -13
    ACTION_CANCELED = -14
    DEVICE_BUSY = -15
    HELP_TEXT = -17
    DEVICE_NOT_INITIALIZED = -18
    INVALID_POLICY = -19


_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class SignerdError(Exception):
    """The root. ``str(error)`` is the sentence; ``hint`` may be empty where nothing can be done."""

    code: ClassVar[str] = "signerd-error"
    meaning: ClassVar[str] = ""
    default_hint: ClassVar[str] = ""
    # Something that the person has to do first. The caller's fault: 4xx. Not available now: 503.
    http_status: ClassVar[HTTPStatus] = HTTPStatus.CONFLICT
    exit_status: ClassVar[Exit] = Exit.FAILED
    hwi: ClassVar[HwiCode] = HwiCode.UNKNOWN_ERROR

    def __init_subclass__(cls) -> None:
        """What has a meaning is an error of its own, and its code is its name: "unknown-proposal"."""
        if "meaning" in vars(cls) and "code" not in vars(cls):
            cls.code = _NEXT_WORD.sub("-", cls.__name__).lower()

    def __init__(self, sentence: str, *, hint: str | None = None) -> None:
        super().__init__(sentence)
        self.hint = self.default_hint if hint is None else hint


def leaves(root: type[SignerdError] = SignerdError) -> tuple[type[SignerdError], ...]:
    """Every error of the tree that has a code of its own."""
    classes: list[type[SignerdError]] = []
    for kind in root.__subclasses__():
        classes += [*([kind] if "code" in vars(kind) else []), *leaves(kind)]
    return tuple(classes)


@contextmanager
def system_errors(kind: type[SignerdError], what: str, hint: str | None = None) -> Iterator[None]:
    """The system's errors as ``kind``. ``what``: begins the sentence, as "FILE cannot be read"."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror}", hint=hint) from error


class DecisionError(SignerdError):
    """A decision that is not possible now. Nothing was changed."""

    exit_status = Exit.NOT_DECIDED
    hwi = HwiCode.UNAVAILABLE_ACTION


class IllegalEvent(DecisionError):
    meaning = "The proposal's state does not allow this step."
    default_hint = "See how it stands: `signerd show ID`."


class UnknownProposal(DecisionError):
    meaning = "This machine knows no such proposal."
    default_hint = "List what is known here with `signerd proposals`."
    http_status = HTTPStatus.NOT_FOUND
    exit_status = Exit.NOT_FOUND
    hwi = HwiCode.BAD_ARGUMENT


class StaleApproval(DecisionError):
    meaning = "The proposal shows something else than what you approved."
    default_hint = "Look at it again, and approve what it shows now: `signerd show ID`."


class RefusedByChecks(DecisionError):
    meaning = "A check refuses the proposal. No option of approve changes that."
    default_hint = "`signerd show ID` gives the reasons. Decline it, or ask who made it."
    hwi = HwiCode.INVALID_TX


class NeedsAcknowledgement(DecisionError):
    meaning = "A check holds the proposal until you name its warning."
    default_hint = "Read the warning, and name it with `--acknowledge` where you still want to sign."


class AlreadyProposed(DecisionError):
    meaning = "The PSBT is the transaction of a proposal on the platform. Nothing was stored."
    default_hint = "Decide about the proposal instead: `signerd show ID`."


class TooManyImported(DecisionError):
    """A bound against prompting a person until they approve (L6). Nothing was stored."""

    meaning = "The app imported more transactions than a person can look at."
    default_hint = "Wait until the person has decided about the others, or take one back."
    http_status = HTTPStatus.TOO_MANY_REQUESTS
    hwi = HwiCode.DEVICE_BUSY


class NotExported(DecisionError):
    meaning = "The answer is for a transaction that was not exported here."
    default_hint = (
        "Export the proposal first: `signerd export ID`. For a PSBT that is not a proposal, use `signerd "
        "sign`."
    )


class AnswerRefused(DecisionError):
    """The imported file is no valid answer of a device. Nothing was stored; another file may be imported."""

    meaning = "The file is not a valid answer of your device to this transaction."
    default_hint = "Import the file that the device wrote for this transaction, or read its codes again."
    hwi = HwiCode.INVALID_TX


class NotCaughtUp(DecisionError):
    meaning = "After a restore, signerd does not know yet what you signed since the backup."
    default_hint = (
        "Once signed in, signerd reads the platform's list; approve again after that. "
        "`signerd status` says how far it is."
    )


class VaultError(SignerdError):
    """A vault that cannot be pinned or used. Nothing was changed."""

    exit_status = Exit.NOT_DECIDED
    hwi = HwiCode.BAD_ARGUMENT


class UnknownVault(VaultError):
    meaning = "This machine knows no such vault."
    default_hint = "List the vaults with `signerd vaults`."
    http_status = HTTPStatus.NOT_FOUND
    exit_status = Exit.NOT_FOUND


class NotOurVault(VaultError):
    meaning = "None of your registered keys is in the vault."
    default_hint = "Do not sign for it."


class VaultDiffers(VaultError):
    meaning = "The platform's record differs from the vault that you named or pinned."
    default_hint = "A vault's keys and threshold never change. Call the other signers before you go on."


class WrongCode(VaultError):
    code = "wrong-verification-code"
    meaning = "The code that you typed is not the vault's."
    default_hint = "Compare the code with the other signers by another channel, then type it as shown."


class AccountReused(VaultError):
    meaning = "Another pinned vault uses the same account of your device."
    default_hint = "Each vault has an account of its own. Ask the operator of the platform."


class NotPinned(VaultError):
    meaning = "The vault is not pinned on this machine."
    default_hint = "List the vaults with `signerd vaults`."
    hwi = HwiCode.UNAVAILABLE_ACTION


class AddressDiffers(VaultError):
    meaning = "The device and this machine show different first addresses."
    default_hint = (
        "Send nothing to either address and do not pin. Compare the code and the address with the other "
        "signers; "
        "try another device of yours or another machine."
    )
    # An alarm, which must not be mistaken for the person's refusal.
    hwi = HwiCode.UNKNOWN_ERROR


class RegistrationError(SignerdError):
    """The device's key and the platform."""

    exit_status = Exit.NOT_DECIDED
    hwi = HwiCode.DEVICE_NOT_READY


class NoRegisteredKey(RegistrationError):
    meaning = "No key of your device is registered from this machine."
    default_hint = "Connect your device and run `signerd register`."


class KeyLost(RegistrationError):
    meaning = "The platform says that this key was marked lost."
    default_hint = "Register a device with another seed."


class RegistrationStale(RegistrationError):
    meaning = "The registration was begun too long ago, or with another device."
    default_hint = "Run `signerd register` again and compare the fingerprint with your device."


class DeviceError(SignerdError):
    """No device can do now what was asked."""

    exit_status = Exit.DEVICE
    hwi = HwiCode.DEVICE_NOT_READY


class NoSuchDevice(DeviceError):
    meaning = "No device of this name is connected."
    default_hint = "Connect the device, unlock it, and look at `signerd devices`."
    hwi = HwiCode.DEVICE_CONN_ERROR


class DeviceUnready(DeviceError):
    code = "device-not-ready"
    meaning = "The device is locked, busy, or in another app."
    default_hint = "See `signerd devices` for what the device needs."


class DeviceFailed(DeviceError):
    meaning = "The device did not do what it was asked. The error has the device's outcome."
    # Where its sentence is no outcome's: see ``hwi.codes.device_code``.
    hwi = HwiCode.UNKNOWN_ERROR


class AddressNotShown(DeviceError):
    meaning = "The device cannot show the vault's address."
    default_hint = (
        "Compare the first address with the other signers instead, and pin with --without-device-address "
        "if you accept that your device never showed it."
    )
    hwi = HwiCode.UNAVAILABLE_ACTION


class NoSuchQuestion(DeviceError):
    meaning = "The device does not ask this any more."
    default_hint = "It was answered or has expired. Start unlocking the device again."
    http_status = HTTPStatus.NOT_FOUND


class NothingUnlocked(DeviceError):
    meaning = "No device is being unlocked."
    default_hint = "Begin with `signerd devices unlock`, or with the device's button on the page."


class JournalError(SignerdError):
    """The journal. Without it the daemon signs nothing."""

    http_status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_status = Exit.STATE


class AlreadyRunning(JournalError):
    meaning = "Another signerd works on this state folder."
    default_hint = "Stop the other one, or use its socket."


class JournalCorrupted(JournalError):
    meaning = "The journal is damaged, or was changed outside signerd."
    default_hint = (
        "The damaged journal is kept. Restore it from a backup, or run `signerd audit start-over`; "
        "what was signed before is then unknown here."
    )


class JournalTooNew(JournalError):
    meaning = "A newer version of signerd has written this journal."
    default_hint = "Install the newer version again."


class JournalUnwritable(JournalError):
    meaning = "The journal cannot be written. Nothing is signed until it can."
    default_hint = "Free some disk space and check the state folder's permissions, then start signerd again."


class UnsafeFolder(JournalError):
    meaning = "Other users can enter the state folder, or it is not yours."
    default_hint = (
        "The state folder must be a real folder of your own that no other user can enter (mode 0700)."
    )
    hwi = HwiCode.DEVICE_CONN_ERROR


class RegistrationsUnreadable(JournalError):
    meaning = "The file of the vaults that devices know cannot be read."
    default_hint = (
        "Restore the file from a backup, or move it away and start signerd again: "
        "a Ledger then shows each vault once more when it is pinned again."
    )


class BackupError(SignerdError):
    """Backups of the state folder. Nothing was changed."""

    exit_status = Exit.STATE


class BackupUnreadable(BackupError):
    meaning = "The file is not a backup, or it is damaged."
    default_hint = "Take another copy of the file, or an older backup."


class BackupLocked(BackupError):
    meaning = "The passphrase or the key file does not open the backup."
    default_hint = "Type the passphrase that it was made with, or name the right key file with --identity."


class BackupNotMade(BackupError):
    meaning = "The backup could not be written."
    default_hint = "Name another file, in a folder of yours."


class FolderNotEmpty(BackupError):
    meaning = "The state folder is in use, and a backup is restored into an empty one."
    default_hint = "Restore into a state folder of its own: give another --state."


class ConfigError(SignerdError):
    """The configuration file."""

    http_status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_status = Exit.STATE


class ConfigMissing(ConfigError):
    meaning = "The configuration names no platform yet."
    default_hint = "Name the platform once: `signerd setup --platform URL --network NAME`."


class ConfigInvalid(ConfigError):
    meaning = "The configuration has a mistake. The error names the line."
    default_hint = "Correct the line and start again."


class SettingsChanged(ConfigError):
    meaning = "The settings were changed after you opened them."
    default_hint = "Load the page again, and make the change to the current text."
    http_status = HTTPStatus.CONFLICT


class LooserSettings(ConfigError):
    meaning = "The change would let pass what signerd stops today. You have not confirmed that."
    default_hint = "Confirm the change, and send it again."
    http_status = HTTPStatus.CONFLICT


class RulesInvalid(ConfigError):
    meaning = "The rules have a mistake. The error names the line."
    default_hint = (
        "Correct the line; `signerd rules show --file FILE` reads it again. "
        "The page 'Your own rules' of the documentation has an example."
    )


class SecretsError(SignerdError):
    """Where the session's secret is kept."""

    http_status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_status = Exit.SIGNED_OUT


class NoSecretStore(SecretsError):
    meaning = "There is no keyring and no secrets file for the session."
    default_hint = (
        "Unlock the desktop's keyring; or keep the session in a file under a passphrase: `--secrets file` at "
        'the first sign-in, [secrets] store = "file" in config.toml later.'
    )


class SecretsLocked(SecretsError):
    meaning = "The secrets file needs its passphrase."
    default_hint = "Give the passphrase that protects the secrets file."


class KeyringTimedOut(SecretsError):
    meaning = "The desktop's keyring did not answer."
    default_hint = "Unlock the desktop's keyring, then try again."


class SessionError(SignerdError):
    """Signing in to the platform."""

    exit_status = Exit.SIGNED_OUT
    hwi = HwiCode.DEVICE_NOT_READY


class SignedOut(SessionError):
    meaning = "There is no session with the platform."
    default_hint = "Run `signerd login`."


class SignInFailed(SessionError):
    meaning = "The platform did not accept the sign-in."
    default_hint = "Check the e-mail address, the password and the one-time code."


class PlatformError(SignerdError):
    """The platform's answer, or its absence."""

    http_status = HTTPStatus.BAD_GATEWAY
    exit_status = Exit.PLATFORM


class PlatformUnreachable(PlatformError):
    """Whether the call had an effect is unknown: it may be repeated with the same key and bytes.

    ``platform_code`` and ``why``: the platform's own, where it refused for a reason that may change.
    """

    meaning = "The platform did not answer. The call may have had an effect or none."
    default_hint = "signerd tries again by itself; nothing is lost meanwhile."
    http_status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(
        self, sentence: str, *, hint: str | None = None, platform_code: str = "", why: str = ""
    ) -> None:
        super().__init__(sentence, hint=hint)
        self.platform_code, self.why = platform_code, why


class PlatformRefused(PlatformError):
    """A final refusal. ``platform_code`` is the platform's own stable code."""

    meaning = "The platform said no. Its own code stands beside the error."

    def __init__(self, sentence: str, *, platform_code: str, status: int, hint: str | None = None) -> None:
        super().__init__(sentence, hint=hint)
        self.platform_code = platform_code
        self.status = status


class PlatformAnswersWrongly(PlatformError):
    meaning = "The platform's answer does not have the form that it must have."
    default_hint = "What answered is not a custody platform of this version. Check the configured address."


class PlatformFloods(PlatformError):
    meaning = "The platform sends more than this machine keeps. The rest is left out."
    default_hint = (
        "Ask those who run the platform what it sends. What you decided and signed is kept and followed."
    )


class LoopbackError(SignerdError):
    """The API between the daemon and the programs of the same user."""

    http_status = HTTPStatus.FORBIDDEN


class InvalidRequest(LoopbackError):
    meaning = "A value in the command or in the request is wrong. The error names it."
    default_hint = "Correct what is named; `signerd COMMAND --help` says what a command takes."
    http_status = HTTPStatus.UNPROCESSABLE_ENTITY
    exit_status = Exit.USAGE
    hwi = HwiCode.BAD_ARGUMENT


class RequestTooLarge(LoopbackError):
    meaning = "The request is larger than the daemon reads."
    default_hint = "Send less in one request."
    http_status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    hwi = HwiCode.BAD_ARGUMENT


class RequestTooSlow(LoopbackError):
    meaning = "The request did not arrive in time."
    default_hint = "Send it again, all of it at once."
    http_status = HTTPStatus.REQUEST_TIMEOUT


class NotForBrowsers(LoopbackError):
    meaning = "A browser called an interface that is for programs alone."
    default_hint = "The interface is for programs on this machine, through the daemon's socket."


class NotPaired(LoopbackError):
    meaning = "The app is not paired, or its pairing was ended."
    default_hint = (
        "Pair the app: it asks at /v1/pairings, and the person accepts on the page or with `signerd pair`."
    )
    http_status = HTTPStatus.UNAUTHORIZED


class NotAllowed(LoopbackError):
    meaning = "The person has not granted the app this right."
    default_hint = "Pair the app again with what it needs; the person decides what it gets."
    hwi = HwiCode.UNAVAILABLE_ACTION


class NoSuchRoute(LoopbackError):
    meaning = "The daemon has no such call."
    default_hint = (
        "Check path and method: /v1/openapi.json has them all. Another version of signerd may be running."
    )
    http_status = HTTPStatus.NOT_FOUND
    # The daemon is older than the program that asks.
    hwi = HwiCode.NOT_IMPLEMENTED


class TooManyStreams(LoopbackError):
    meaning = "Too many programs follow the daemon's events."
    default_hint = "Close one of them."
    http_status = HTTPStatus.TOO_MANY_REQUESTS
    hwi = HwiCode.DEVICE_BUSY


class TooManyPrompts(LoopbackError):
    """An app occupies the person's device (L6). The device was not asked."""

    meaning = "The app asked for the device too often. The device was not asked."
    default_hint = "Wait for the last answer, then a minute."
    http_status = HTTPStatus.TOO_MANY_REQUESTS
    hwi = HwiCode.DEVICE_BUSY


class TooManyRequests(LoopbackError):
    """``seconds``: until the next request is answered."""

    meaning = "The app asked too often."
    default_hint = "Wait as long as Retry-After says; follow /v1/events instead of polling."
    http_status = HTTPStatus.TOO_MANY_REQUESTS
    hwi = HwiCode.DEVICE_BUSY

    def __init__(self, sentence: str, *, seconds: int = 1, hint: str | None = None) -> None:
        super().__init__(sentence, hint=hint)
        self.seconds = seconds


class HostRefused(LoopbackError):
    meaning = "A browser called the daemon by a name that is not this machine's."
    default_hint = "Call it as 127.0.0.1, [::1] or localhost, with its port."


class OriginRefused(LoopbackError):
    """A request that a browser sent for a site without access (L2-L4, L14)."""

    meaning = "A web site called the daemon, and the person has not let it in."
    default_hint = "The person lets a site in on the page, or with `signerd pair --origin`."


class EntryRefused(LoopbackError):
    meaning = "The code for the page is wrong, used, or too old."
    default_hint = "A code is valid once, for half a minute. Run `signerd open` again."


class PageNotServed(LoopbackError):
    meaning = "The daemon runs without its page."
    default_hint = "`signerd status` says why."
    http_status = HTTPStatus.CONFLICT


class SocketUnusable(LoopbackError):
    meaning = "The daemon's private socket cannot be created or reached."
    default_hint = "Use a state folder of your own, with a short path, on a local disk: `--state DIR`."
    http_status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_status = Exit.STATE
    hwi = HwiCode.DEVICE_CONN_ERROR


class DaemonNotRunning(LoopbackError):
    meaning = "No daemon answers for this state folder."
    default_hint = "Start it with `signerd run`, or give the --state with which it runs."
    http_status = HTTPStatus.SERVICE_UNAVAILABLE
    exit_status = Exit.NOT_RUNNING
    hwi = HwiCode.DEVICE_CONN_ERROR


class DaemonFailed(LoopbackError):
    """An unforeseen error, or an answer that makes no sense."""

    meaning = "The daemon failed in a way that has no name of its own."
    default_hint = "The output of `signerd run` says more. Earlier decisions are in the journal."
    http_status = HTTPStatus.INTERNAL_SERVER_ERROR


class PairingError(SignerdError):
    """Pairing an app. Nothing was granted."""

    exit_status = Exit.NOT_DECIDED
    hwi = HwiCode.BAD_ARGUMENT


class UnknownPairing(PairingError):
    """Unknown, expired, collected, or asked for with another secret: the same words for all (L7)."""

    meaning = "The pairing request is over, was collected, or never existed."
    default_hint = "A request lasts two minutes. Let the app ask again."
    http_status = HTTPStatus.NOT_FOUND
    hwi = HwiCode.UNKNOWN_ERROR


class AlreadyAsking(PairingError):
    meaning = "The app asks to be paired, and its earlier request is still open."
    default_hint = (
        "The person answers the request that is open, on the page or with `signerd pair`. "
        "Once it is refused, the app may ask again at once."
    )
    hwi = HwiCode.DEVICE_BUSY


class NameTaken(PairingError):
    """The person tells apps apart by their names (L8)."""

    meaning = "Another paired app has this name."
    default_hint = (
        "Choose another name. If it is an earlier pairing of this app, the person can end that "
        "with `signerd apps revoke`."
    )


class TooManyPairings(PairingError):
    meaning = "Too many apps ask to be paired."
    default_hint = "Wait a minute before you ask again."
    http_status = HTTPStatus.TOO_MANY_REQUESTS
    hwi = HwiCode.DEVICE_BUSY


class WrongPairingCode(PairingError):
    meaning = "The code is not the one that the app shows."
    default_hint = (
        "Type the six digits that the app shows. If it shows none, another program asks: refuse it."
    )


class UnknownApp(PairingError):
    meaning = "No paired app has this name or id."
    default_hint = "List the paired apps with `signerd apps`."
    http_status = HTTPStatus.NOT_FOUND
    exit_status = Exit.NOT_FOUND


class SetupError(SignerdError):
    """What a command needs from the person before it can start."""

    exit_status = Exit.USAGE


class AlreadyConfigured(SetupError):
    meaning = "The configuration says something else than the command does."
    default_hint = "Change the file by hand, or use another state folder: `--state DIR`."
    exit_status = Exit.STATE


class AnswerMissing(SetupError):
    meaning = "The command needs an answer, and no terminal can ask for it."
    default_hint = "Run it in a terminal, or give one line for each question on standard input."
    hwi = HwiCode.MISSING_ARGUMENTS


class NotOnThisSystem(SetupError):
    meaning = "Your operating system does not have what this command needs."
    default_hint = "The page 'Installing signerd' of the documentation lists what each system has."


class NeedsRoot(SetupError):
    meaning = "Only root may do this on your system."
    default_hint = "Run the same command with sudo."


class SystemToolFailed(SetupError):
    meaning = "A program of the operating system is missing or failed."
    default_hint = "Run the command by hand to see what it says."
    http_status = HTTPStatus.INTERNAL_SERVER_ERROR
    exit_status = Exit.FAILED


class FileNotWritten(SetupError):
    """A command's output file could not be written. An existing file is unchanged."""

    meaning = "The file that the command makes could not be written."
    default_hint = "Name another file, in a folder of yours."
    exit_status = Exit.STATE
