"""The exit statuses of our programs, which scripts may rely on. An error names its own."""

from enum import IntEnum


class Exit(IntEnum):
    """What a command's status says, in each of our programs."""

    OK = 0
    """Done. ``approve``: the platform has the signature."""
    FAILED = 1
    """Something went wrong that has no status of its own."""
    USAGE = 2
    """The command line is wrong, or an answer that the command needs is missing."""
    NOT_RUNNING = 3
    """No daemon answers; for ``custody``, no server runs."""
    SIGNED_OUT = 4
    """No account is signed in to the platform, signing in failed, or the secret of the session
    cannot be had.
    """
    DEVICE = 5
    """A device is missing, not ready, or failed."""
    PLATFORM = 6
    """The platform is out of reach, or said no."""
    NOT_DECIDED = 7
    """What was asked cannot be decided as things stand: refused by a check, changed since it was shown."""
    DECLINED = 8
    """The person answered no. Nothing was changed."""
    NOT_SIGNED = 9
    """It was approved, and then not signed or not taken; the reason is shown."""
    STATE = 10
    """The state folder, the journal or the configuration cannot be used."""
    AUDIT = 11
    """The chain of decisions is not whole."""
    NOT_FOUND = 12
    """Nothing has the name or the id that was given."""
    INTERRUPTED = 130
    """Ctrl-C at a question or while something was under way, or Ctrl-D at a question."""
