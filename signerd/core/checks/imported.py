"""What was brought and is no proposal: what of the usual checks has nothing to compare with, and says so.

Nobody recorded recipients, amounts, a fee or a transaction id, so that the checks of ``intent`` would compare nothing with
nothing. They are left out, and one warning names them: the person alone knows what it should do.
"""

from datetime import UTC, datetime

from signerd.core.checks.case import Case, InspectedCase
from signerd.core.signing import signing_of
from signerd.core.text import plain
from signerd.core.verdicts import Verdict, allow, hold, refuse, warn

# By name, as the table of checks lists them.
NOT_COMPARED = ("transaction-id", "recipients", "amounts", "fee-recorded", "replacement")


def brought(case: Case) -> Verdict:
    """S12, S13: nothing stands beside the bytes that they could be compared with."""
    name, by = "brought", plain(case.snapshot.created_by)
    return warn(
        name,
        f"It is not the platform's: {by} brought it. Nobody recorded whom it should pay, how much and at what fee, "
        "and nothing is compared with it: look at where the money goes.",
        brought_by=by,
        not_compared=", ".join(NOT_COMPARED),
    )


def in_time(case: Case) -> Verdict:
    """Whoever brought it has long stopped waiting, and prices and fees have moved on."""
    name, told = "brought-open", case.snapshot.brought
    assert told is not None, "only what was brought is judged by this"
    until = f"{datetime.fromtimestamp(told.expires_at, UTC):%Y-%m-%d %H:%M} UTC"
    if case.around.lapsed:
        return refuse(name, f"It could be approved until {until}, which is over.")
    return allow(name, f"It may be approved until {until}.")


def own_coins(case: Case) -> Verdict:
    """It spends from no pinned vault: then from the registered profile, or it is refused."""
    name, signing = "brought-coins", signing_of(case.snapshot, case.around)
    if signing is None:
        return refuse(
            name, "Its coins are of no vault that is pinned here, and not of your registered profile."
        )
    origin = signing.key.origin
    return allow(name, f"It is from your own profile, {origin}.", fingerprint=str(origin.fingerprint))


def one_network(case: Case) -> Verdict:
    """S14: there is no workspace whose network could be compared; that of the keys is, by the inspection."""
    name, around = "network", case.around
    networks = {"configured": str(around.network)}
    if around.pin is not None and around.pin.vault.network is not around.network:
        return refuse(
            name, f"The vault was pinned on {around.pin.vault.network}, not on {around.network}.", **networks
        )
    return allow(name, f"It is judged as one of {around.network}; no workspace says so beside.", **networks)


def data_named(case: InspectedCase) -> Verdict:
    """S10, S12: data that nobody recorded is named by the person, and a token's is refused.

    A token's call moves more than its coins: as a plain payment it would be judged by the coins alone.
    """
    name, carried = "data", case.inspection.op_returns
    if any(output.token is not None for output in carried):
        return refuse(name, "The data is a token's, and what is brought may be about coins only.")
    if carried:
        size = sum(len(output.data) for output in carried)
        return hold(name, f"It carries {size} bytes of data, which nobody recorded beside it.", bytes=size)
    return allow(name, "It carries no data.")
