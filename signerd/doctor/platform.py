"""The platform: whether it is reached, whether it is who it should be, the clock, the session, the secret of it."""

import ssl
from email.utils import parsedate_to_datetime

import httpx

from signerd.doctor.finding import Finding, Outcome, Patient, well
from signerd.errors import KeyringTimedOut, SecretsError

# RFC 6238, section 5.2: an authenticator's step is 30 seconds.
MOST_SECONDS_OFF = 30.0
ANSWER_SECONDS = 6.0
# A locked keyring waits for a person; an open one takes a second, and longer where the machine is busy.
KEYRING_SECONDS = 30.0
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def _ask(patient: Patient) -> httpx.Response:
    """As the daemon asks: no proxy, no redirect, the same authorities. Its body is not read. Raises httpx.HTTPError."""
    platform = patient.config.platform
    trust = True if platform.ca_file is None else ssl.create_default_context(cafile=platform.ca_file)
    with (
        httpx.Client(verify=trust, timeout=ANSWER_SECONDS, trust_env=False) as client,
        client.stream("GET", platform.url) as response,
    ):
        return response


def reach(patient: Patient) -> Finding:
    url = patient.config.platform.url
    try:
        _ask(patient)
    except httpx.HTTPError as error:
        return Finding(
            Outcome.TROUBLE, f"{url} is not reached: {error}.", _why(error), _advice(patient, error)
        )
    return well(f"{url} answers.")


def _why(error: httpx.HTTPError) -> str:
    if "CERTIFICATE" in str(error).upper():
        return "Something answers that cannot prove to be the platform; nothing is sent to it."
    return "Proposals come from there. What was approved waits, and is not lost."


def _advice(patient: Patient, error: httpx.HTTPError) -> str:
    if "CERTIFICATE" in str(error).upper():
        return "Set the clock; for a private authority name [platform] ca_file. Never accept it unseen."
    if any(patient.environment.get(name) for name in PROXIES):
        return (
            "A proxy is set in the environment; signerd goes without one. Let it go straight to the platform."
        )
    return "Check the network and [platform] url."


def clock(patient: Patient) -> Finding:
    """By the platform's ``Date`` (RFC 9110, section 6.6.1), which is to the second."""
    try:
        told = _ask(patient).headers.get("date", "")
        theirs = parsedate_to_datetime(told).timestamp()
    except (httpx.HTTPError, ValueError, TypeError, OverflowError):
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
