"""Has the platform ever shown the pinned vault otherwise, and did the person look? (S16)"""

from signerd.core.checks.case import Case
from signerd.core.text import plain
from signerd.core.verdicts import Verdict, allow, refuse, warn


def change_looked_at(case: Case) -> Verdict:
    """S16: a change stays an alarm though the platform takes it back, until the person has looked and unpinned."""
    name, told = "vault-alarm", case.around.vault_changes
    if not told:
        return allow(name, "The platform has shown no change of the vault since it was pinned.")
    return refuse(
        name,
        "ALARM: the platform has shown the vault changed since it was pinned, and you have not looked at it yet. "
        f"{' '.join(told)} Do not sign; call the other signers. `signerd vaults` shows it.",
        changes=len(told),
    )


def name_kept(case: Case) -> Verdict:
    """A name proves nothing, but a person may know the vault by it."""
    name, pin, claimed = "vault-name", case.around.pin, case.around.claimed_name
    if pin is None or claimed is None or claimed == pin.name:
        return allow(name, "The vault has the name under which it was pinned, which is a label only.")
    return warn(
        name,
        f"The platform calls the vault '{plain(claimed)}' now; you pinned it as '{plain(pin.name)}'. "
        "A name is a label only: the keys are what counts.",
    )
