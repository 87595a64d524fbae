"""The platform: whether it is reached, whether it is who it should be, the clock, the session, the secret of it."""

from email.utils import parsedate_to_datetime

import httpx

from custody.exchange import NoAnswer, Reply, Request
from custody.transports import WaitingTransport, trust
from signerd.doctor.finding import Finding, Outcome, Patient, well
from signerd.errors import KeyringTimedOut, SecretsError

# RFC 6238, section 5.2: an authenticator's step is 30 seconds.
MOST_SECONDS_OFF = 30.0
ANSWER_SECONDS = 6.0
# A locked keyring waits for a person; an open one takes a second, and longer where the machine is busy.
KEYRING_SECONDS = 30.0
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def _ask(patient: Patient) -> Reply | NoAnswer:
    """As the daemon asks: no proxy, no redirect, the same authorities."""
    platform = patient.config.platform
    with httpx.Client(verify=trust(platform.ca_file), trust_env=False) as client:
        return WaitingTransport(client)(Request("GET", platform.url, ANSWER_SECONDS, ANSWER_SECONDS))


def reach(patient: Patient) -> Finding:
    url = patient.config.platform.url
    outcome = _ask(patient)
    if isinstance(outcome, Reply):
        return well(f"{url} answers.")
    error = str(outcome.cause)
    return Finding(Outcome.TROUBLE, f"{url} is not reached: {error}.", _why(error), _advice(patient, error))


def _why(error: str) -> str:
    if "CERTIFICATE" in error.upper():
        return "Something answers that cannot prove to be the platform; nothing is sent to it."
    return "Proposals come from there. What was approved waits, and is not lost."


def _advice(patient: Patient, error: str) -> str:
    if "CERTIFICATE" in error.upper():
        return "Set the clock; for a private authority name [platform] ca_file. Never accept it unseen."
    if any(patient.environment.get(name) for name in PROXIES):
        return (
            "A proxy is set in the environment; signerd goes without one. Let it go straight to the platform."
        )
    return "Check the network and [platform] url."


def clock(patient: Patient) -> Finding:
    """By the platform's ``Date`` (RFC 9110, section 6.6.1), which is to the second."""
    outcome = _ask(patient)
    try:
        told = outcome.headers.get("date", "") if isinstance(outcome, Reply) else ""
        theirs = parsedate_to_datetime(told).timestamp()
    except (ValueError, TypeError, OverflowError):
        return Finding(Outcome.UNKNOWN, "The platform does not tell the time.")
    off = patient.now() - theirs
    if abs(off) <= MOST_SECONDS_OFF:
        return well("The clock agrees with the platform's.")
    return Finding(
        Outcome.TROUBLE,
        f"The clock is {abs(off):.0f} seconds {'ahead of' if off > 0 else 'behind'} the platform's.",
        "One-time codes are refused, and rules about hours judge by it.",
        "Let the system set it: timedatectl set-ntp true",
    )


def session(patient: Patient) -> Finding:
    if patient.status is None:
        return Finding(Outcome.UNKNOWN, "Known while signerd runs.")
    if patient.status.signed_in:
        return well(f"Signed in as {patient.status.email}.")
    return Finding(Outcome.TROUBLE, "Nobody is signed in.", "No proposal is fetched.", "signerd login")


def secrets(patient: Patient) -> Finding:
    from signerd.account.secrets import SECRETS_FILE, KeyringStore

    if patient.status is not None:
        return well(f"The session is kept in: {patient.status.secrets}.")
    if patient.config.secrets.store == "file":
        there = (patient.state / SECRETS_FILE).exists()
        return well(f"{SECRETS_FILE}, which your passphrase opens." if there else "No session is stored yet.")
    try:
        KeyringStore(str(patient.state.resolve()), KEYRING_SECONDS).load()
    except SecretsError as error:
        locked = isinstance(error, KeyringTimedOut)
        return Finding(
            Outcome.TROUBLE,
            "The keyring is locked." if locked else str(error),
            "The session with the platform is kept there; without it you sign in at every start.",
            error.hint,
        )
    return well("The desktop's keyring answers.")
