"""The platform, the clock and the session; the state folder, its journal, its disk and its backup."""

import shutil
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from custody.common.exchange import HttpReply, HttpRequest, NoAnswer
from custody.common.plain_http import perform, tls_for
from custody.common.private_files import take
from custody.common.session_store import SECRETS_FILE
from signerd.account.secrets import keyring_store
from signerd.backup.schedule import last_backup, reminders
from signerd.daemon.views import report_of_file
from signerd.doctor.finding import DoctorFinding, Installation, note, of_error, trouble, unknown, well
from signerd.errors import KeyringTimedOut, SecretsError, SignerdError
from signerd.journal.storage import JOURNAL, LOCK, make_private, read_from

# RFC 6238, section 5.2: an authenticator's step is 30 seconds.
MOST_SECONDS_OFF = 30.0
ANSWER_SECONDS = 6.0
# A locked keyring waits for a person; an open one takes a second, or longer on a busy machine.
KEYRING_SECONDS = 30.0
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def _ask(installation: Installation) -> HttpReply | NoAnswer:
    """As the daemon does: no proxy, no redirect, the same authorities."""
    platform = installation.config.platform
    request = HttpRequest("GET", platform.url, ANSWER_SECONDS, ANSWER_SECONDS)
    return perform(request, tls=tls_for(platform.url, platform.ca_file))


def reach(installation: Installation) -> DoctorFinding:
    url = installation.config.platform.url
    outcome = _ask(installation)
    if isinstance(outcome, HttpReply):
        return well(f"{url} answers.")
    error, why = str(outcome.cause), "Proposals come from there. Approved ones wait and are not lost."
    do = "Check the network and [platform] url."
    if "CERTIFICATE" in error.upper():
        why = "What answers cannot prove that it is the platform; nothing is sent to it."
        do = "Set the clock; for a private authority set [platform] ca_file. Never skip the verification."
    elif any(installation.environment.get(name) for name in PROXIES):
        do = "A proxy is set in the environment; signerd does not use one. Allow it a direct connection."
    return trouble(f"{url} cannot be reached: {error}.", why, do)


def clock(installation: Installation) -> DoctorFinding:
    """By the platform's ``Date``, in whole seconds (RFC 9110, section 6.6.1)."""
    outcome = _ask(installation)
    try:
        date = outcome.headers.get("date", "") if isinstance(outcome, HttpReply) else ""
        theirs = parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return unknown("The platform's answer has no time.")
    off = installation.now() - theirs
    if abs(off) <= MOST_SECONDS_OFF:
        return well("The clock agrees with the platform's.")
    return trouble(
        f"The clock is {abs(off):.0f} seconds {'ahead of' if off > 0 else 'behind'} the platform's.",
        "One-time codes are refused, and rules about hours use this clock.",
        "Let the system set it: timedatectl set-ntp true",
    )


def session(installation: Installation) -> DoctorFinding:
    if installation.status is None:
        return unknown("Known while signerd runs.")
    if installation.status.signed_in:
        return well(f"Signed in as {installation.status.email}.")
    return trouble("You are not signed in.", "No proposal is fetched.", "`signerd login`")


def secrets(installation: Installation) -> DoctorFinding:
    if installation.status is not None:
        return well(f"The session is kept in: {installation.status.secrets}.")
    if installation.config.secrets.store == "file":
        there = (installation.state / SECRETS_FILE).exists()
        return well(f"{SECRETS_FILE}, which your passphrase opens." if there else "No session is stored yet.")
    try:
        keyring_store(str(installation.state.resolve()), KEYRING_SECONDS).load()
    except SecretsError as error:
        locked = isinstance(error, KeyringTimedOut)
        return trouble(
            "The keyring is locked." if locked else str(error),
            "The session with the platform is kept there; without it you sign in at every start.",
            error.hint,
        )
    return well("The desktop's keyring answers.")


# Ten times a journal of years; SQLite needs room for its log.
LEAST_FREE_BYTES = 100 * 1024 * 1024
_MEMORY = "Without the journal nothing is signed."


def configuration(installation: Installation) -> DoctorFinding:
    try:
        config = installation.config
    except SignerdError as error:
        return of_error(error, "Without a configuration signerd does not start.")
    return well(f"{config.platform.url} on {config.network}")


def folder(installation: Installation) -> DoctorFinding:
    if not installation.state.exists():
        return note(f"There is no {installation.state} yet.", "", "The first sign-in creates it.")
    try:
        # Of an existing one it changes nothing.
        make_private(installation.state)
    except SignerdError as error:
        return of_error(error, "Who can enter it could read what you sign, or put another socket there.")
    return well(f"Only you can enter {installation.state}.")


def disk(installation: Installation) -> DoctorFinding:
    place = installation.state
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free >= LEAST_FREE_BYTES:
        return well(f"{free // 2**20} MiB are free.")
    return trouble(f"{free // 2**20} MiB are free at {place}.", _MEMORY, "Free some space.")


def daemon(installation: Installation) -> DoctorFinding:
    if installation.status is not None:
        return well(f"signerd {installation.status.version} answers.")
    if _held(installation):
        return trouble(
            f"Another program works on {installation.state}, and no socket answers there.",
            "One signerd works on a state folder at a time; a second one does not start.",
            "It may be starting. Else find it with: pgrep -af signerd",
        )
    return note("signerd does not run.", "The daemon watches the devices.", "`signerd run`")


def _held(installation: Installation) -> bool:
    """Tries a shared lock, which fails while another process holds the exclusive one."""
    try:
        with (installation.state / LOCK).open("rb") as file:
            take(file.fileno(), shared=True)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def journal(installation: Installation) -> DoctorFinding:
    if not (installation.state / JOURNAL).exists() and installation.status is None:
        return note("There is no journal yet.")
    report = report_of_file(installation.state)
    if report.fault is not None:
        return trouble(f"The journal is not whole: {report.fault}.", _MEMORY, "`signerd audit verify`")
    return well(f"The chain of {report.entries} decisions is whole.")


def backup(installation: Installation) -> DoctorFinding:
    query = "SELECT count(*) FROM pins"
    pinned = read_from(installation.state, lambda one: bool(one.execute(query).fetchone()[0]), nothing=False)
    now = datetime.fromtimestamp(installation.now(), UTC)
    due = tuple(reminders(installation.state, installation.config.backup, now, pinned=pinned))
    if due:
        return note(
            due[0],
            "Without one, a lost disk loses the pins and the record of what was signed: signerd could not "
            "recognise a payment that is asked for twice.",
            "`signerd backup FILE`",
        )
    made = last_backup(installation.state)
    return well(
        "There is nothing to back up yet." if made is None else f"The last backup is of {made.at:%Y-%m-%d}."
    )
