"""The exit statuses, which scripts may rely on."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from signerd import errors as e


class Exit(IntEnum):
    """What a command's status says."""

    OK = 0
    """Done. ``approve``: the platform has the signature."""
    FAILED = 1
    """Something went wrong that has no status of its own, or a question was left with Ctrl-C or Ctrl-D."""
    USAGE = 2
    """The command was not given as it must be, or an answer that it needs is missing."""
    NOT_RUNNING = 3
    """No daemon answers."""
    SIGNED_OUT = 4
    """Nobody is signed in to the platform, signing in failed, or the secret of the session cannot be had."""
    DEVICE = 5
    """A device is missing, not ready, or failed."""
    PLATFORM = 6
    """The platform is out of reach, or said no."""
    NOT_DECIDED = 7
    """What was asked cannot be decided as things stand: refused by a check, changed since it was shown, unknown."""
    DECLINED = 8
    """The person answered no. Nothing was changed."""
    NOT_SIGNED = 9
    """It was approved, and then not signed or not taken; the reason is shown."""
    STATE = 10
    """The state folder, the journal or the configuration cannot be used."""
    AUDIT = 11
    """The chain of decisions is not whole."""
    INTERRUPTED = 130
    """Ctrl-C while something was under way."""


# By family, or by leaf where one differs from its family; the most derived one counts.
STATUSES: Mapping[type[e.SignerdError], Exit] = MappingProxyType(
    {
        e.DecisionError: Exit.NOT_DECIDED,
        e.VaultError: Exit.NOT_DECIDED,
        e.RegistrationError: Exit.NOT_DECIDED,
        e.DeviceError: Exit.DEVICE,
        e.JournalError: Exit.STATE,
        e.ConfigError: Exit.STATE,
        e.SecretsError: Exit.SIGNED_OUT,
        e.SessionError: Exit.SIGNED_OUT,
        e.PlatformError: Exit.PLATFORM,
        e.PairingError: Exit.NOT_DECIDED,
        e.LoopbackError: Exit.FAILED,
        e.InvalidRequest: Exit.USAGE,
        e.SocketUnusable: Exit.STATE,
        e.DaemonNotRunning: Exit.NOT_RUNNING,
        e.SetupError: Exit.USAGE,
        e.AlreadyConfigured: Exit.STATE,
    }
)


def status_of(error: e.SignerdError) -> Exit:
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), Exit.FAILED)
