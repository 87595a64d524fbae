"""From the daemon's errors to HWI's, exhaustively: one code for every leaf of the tree.

The codes are those of HWI (``hwilib/errors.py``): of 3.2.0, and the one that came after it.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from signerd import errors as e


class Code(IntEnum):
    """The values of ``code`` in HWI's answers."""

    NO_DEVICE_TYPE = -1
    MISSING_ARGUMENTS = -2
    DEVICE_CONN_ERROR = -3
    UNKNOWN_DEVICE_TYPE = -4
    INVALID_TX = -5
    NO_PASSWORD = -6
    BAD_ARGUMENT = -7
    NOT_IMPLEMENTED = -8
    UNAVAILABLE_ACTION = -9
    DEVICE_ALREADY_INIT = -10
    DEVICE_ALREADY_UNLOCKED = -11
    DEVICE_NOT_READY = -12
    UNKNOWN_ERROR = -13
    ACTION_CANCELED = -14
    DEVICE_BUSY = -15
    NEED_TO_BE_ROOT = -16
    HELP_TEXT = -17
    DEVICE_NOT_INITIALIZED = -18
    INVALID_POLICY = -19


class HwiError(Exception):
    """An error in HWI's form. ``str(error)`` is the sentence."""

    def __init__(self, sentence: str, code: Code) -> None:
        super().__init__(sentence)
        self.code = code


# DEVICE_CONN_ERROR: a device or daemon that cannot be reached. INVALID_TX: a transaction that is not signed.
# DEVICE_NOT_READY: something that the person has to do first.
CODES: Mapping[type[e.SignerdError], Code] = MappingProxyType(
    {
        e.IllegalEvent: Code.UNAVAILABLE_ACTION,
        e.UnknownProposal: Code.BAD_ARGUMENT,
        e.StaleApproval: Code.UNAVAILABLE_ACTION,
        e.RefusedByChecks: Code.INVALID_TX,
        e.NeedsAcknowledgement: Code.UNAVAILABLE_ACTION,
        e.AlreadyProposed: Code.UNAVAILABLE_ACTION,
        e.TooManyImported: Code.DEVICE_BUSY,
        e.NotExported: Code.UNAVAILABLE_ACTION,
        e.AnswerRefused: Code.INVALID_TX,
        e.UnknownVault: Code.BAD_ARGUMENT,
        e.NotOurVault: Code.BAD_ARGUMENT,
        e.VaultDiffers: Code.BAD_ARGUMENT,
        e.WrongCode: Code.BAD_ARGUMENT,
        e.AccountReused: Code.BAD_ARGUMENT,
        e.NotPinned: Code.UNAVAILABLE_ACTION,
        # An alarm, which must not be mistaken for the person's refusal.
        e.AddressDiffers: Code.UNKNOWN_ERROR,
        e.NoRegisteredKey: Code.DEVICE_NOT_READY,
        e.RegistrationStale: Code.DEVICE_NOT_READY,
        e.NoSuchDevice: Code.DEVICE_CONN_ERROR,
        e.DeviceUnready: Code.DEVICE_NOT_READY,
        # By its sentence: see ``device_code``.
        e.DeviceFailed: Code.UNKNOWN_ERROR,
        e.AddressNotShown: Code.UNAVAILABLE_ACTION,
        e.NoSuchQuestion: Code.DEVICE_NOT_READY,
        e.NothingUnlocked: Code.DEVICE_NOT_READY,
        e.AlreadyRunning: Code.UNKNOWN_ERROR,
        e.JournalCorrupted: Code.UNKNOWN_ERROR,
        e.JournalTooNew: Code.UNKNOWN_ERROR,
        e.JournalUnwritable: Code.UNKNOWN_ERROR,
        e.UnsafeFolder: Code.DEVICE_CONN_ERROR,
        e.RegistrationsUnreadable: Code.UNKNOWN_ERROR,
        e.ConfigMissing: Code.UNKNOWN_ERROR,
        e.ConfigInvalid: Code.UNKNOWN_ERROR,
        e.RulesInvalid: Code.UNKNOWN_ERROR,
        e.NoSecretStore: Code.UNKNOWN_ERROR,
        e.SecretsLocked: Code.UNKNOWN_ERROR,
        e.KeyringTimedOut: Code.UNKNOWN_ERROR,
        e.SignedOut: Code.DEVICE_NOT_READY,
        e.SignInFailed: Code.DEVICE_NOT_READY,
        e.PlatformUnreachable: Code.UNKNOWN_ERROR,
        e.PlatformRefused: Code.UNKNOWN_ERROR,
        e.PlatformAnswersWrongly: Code.UNKNOWN_ERROR,
        e.PlatformFloods: Code.UNKNOWN_ERROR,
        e.InvalidRequest: Code.BAD_ARGUMENT,
        e.RequestTooLarge: Code.BAD_ARGUMENT,
        e.RequestTooSlow: Code.UNKNOWN_ERROR,
        e.NotForBrowsers: Code.UNKNOWN_ERROR,
        e.NotPaired: Code.UNKNOWN_ERROR,
        e.NotAllowed: Code.UNAVAILABLE_ACTION,
        e.UnknownPairing: Code.UNKNOWN_ERROR,
        e.AlreadyAsking: Code.DEVICE_BUSY,
        e.NameTaken: Code.BAD_ARGUMENT,
        e.TooManyPairings: Code.DEVICE_BUSY,
        e.WrongPairingCode: Code.BAD_ARGUMENT,
        e.UnknownApp: Code.BAD_ARGUMENT,
        # The daemon is older than this program.
        e.NoSuchRoute: Code.NOT_IMPLEMENTED,
        e.TooManyStreams: Code.DEVICE_BUSY,
        e.TooManyPrompts: Code.DEVICE_BUSY,
        e.TooManyRequests: Code.DEVICE_BUSY,
        e.HostRefused: Code.UNKNOWN_ERROR,
        e.OriginRefused: Code.UNKNOWN_ERROR,
        e.EntryRefused: Code.UNKNOWN_ERROR,
        e.PageNotServed: Code.UNKNOWN_ERROR,
        e.SocketUnusable: Code.DEVICE_CONN_ERROR,
        e.DaemonNotRunning: Code.DEVICE_CONN_ERROR,
        e.DaemonFailed: Code.UNKNOWN_ERROR,
        e.AlreadyConfigured: Code.UNKNOWN_ERROR,
        e.LooserSettings: Code.UNKNOWN_ERROR,
        e.SettingsChanged: Code.UNKNOWN_ERROR,
        e.AnswerMissing: Code.MISSING_ARGUMENTS,
        # Raised by other commands only.
        e.NotCaughtUp: Code.UNAVAILABLE_ACTION,
        e.NotOnThisSystem: Code.UNKNOWN_ERROR,
        e.NeedsRoot: Code.UNKNOWN_ERROR,
        e.SystemToolFailed: Code.UNKNOWN_ERROR,
        e.FileNotWritten: Code.UNKNOWN_ERROR,
        e.FolderNotEmpty: Code.UNKNOWN_ERROR,
        e.BackupNotMade: Code.UNKNOWN_ERROR,
        e.BackupLocked: Code.UNKNOWN_ERROR,
        e.BackupUnreadable: Code.UNKNOWN_ERROR,
    }
)

# By the stable codes of ``firmware_bridge``'s outcomes, exhaustively.
OUTCOMES: Mapping[str, Code] = MappingProxyType(
    {
        "refused-by-person": Code.ACTION_CANCELED,
        "cancelled": Code.ACTION_CANCELED,
        "disconnected": Code.DEVICE_CONN_ERROR,
        "locked": Code.DEVICE_NOT_READY,
        "uninitialised": Code.DEVICE_NOT_INITIALIZED,
        "wrong-app": Code.DEVICE_NOT_READY,
        "needs-passphrase": Code.DEVICE_NOT_READY,
        "timed-out": Code.DEVICE_CONN_ERROR,
        "busy": Code.DEVICE_BUSY,
        "no-permission": Code.DEVICE_CONN_ERROR,
        "unsupported": Code.UNAVAILABLE_ACTION,
        "not-enrolled": Code.DEVICE_NOT_READY,
        "wrong-device": Code.BAD_ARGUMENT,
        "address-mismatch": Code.UNKNOWN_ERROR,
        "bad-device-signature": Code.UNKNOWN_ERROR,
        "device-fault": Code.UNKNOWN_ERROR,
        "worker-crashed": Code.UNKNOWN_ERROR,
    }
)


def device_code(sentence: str) -> Code:
    """The code of a device's failure, which the daemon reports by the library's sentence, without a code."""
    # Imported after a failure only: the library is large.
    from firmware_bridge import BridgeError

    for outcome in BridgeError.__subclasses__():
        if outcome.sentence is not BridgeError.sentence and sentence.startswith(outcome.sentence):
            return OUTCOMES[outcome.code]
    return Code.UNKNOWN_ERROR


def code_of(error: e.SignerdError) -> Code:
    return device_code(str(error)) if isinstance(error, e.DeviceFailed) else CODES[type(error)]


def in_words(error: e.SignerdError) -> str:
    """The error and its hint: HWI's form has one sentence for both."""
    from signerd.core.text import said

    return f"{said(error)} {error.hint}".strip()
