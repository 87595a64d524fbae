"""Reports of the daemon: the audit chain by pages, settings, and what needs attention.

An expensive report is made once for all concurrent callers (L11).
"""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from custody.common.text import foreign, plain
from firmware_bridge.missing import missing_hwi
from signerd.account.config import Config
from signerd.account.follower import Follower
from signerd.account.session import Account
from signerd.account.vaults import SeenVault
from signerd.core.audit import GENESIS, Entry, first_fault
from signerd.core.checks.table import CHECKS, HOLD
from signerd.core.rules.values import rule_words
from signerd.core.text import as_argument
from signerd.daemon.views import audit_report
from signerd.journal import Journal
from signerd.shapes import AuditEntryView, AuditPage, AuditReport, LoweredView, SettingsView
from signerd.shapes.limits import USUAL_ENTRIES

# Entries that take a few milliseconds to read, between which other tasks run.
AT_ONCE = 50


async def verified(journal: Journal) -> AuditReport:
    """Verify the chain from its beginning. Other tasks run meanwhile."""
    place, head = 0, GENESIS
    while some := tuple(islice(journal.audit(place), AT_ONCE)):
        if first_fault(some, place, head) is not None:
            # The full report of a broken chain may take long.
            return audit_report(tuple(journal.audit()))
        place, head = some[-1].sequence, some[-1].digest
        await asyncio.sleep(0)
    return AuditReport(entries=place, head=head.hex(), at=None, fault=None)


async def audit_entries(
    journal: Journal,
    after: int | None = None,
    before: int | None = None,
    search: str = "",
    limit: int = USUAL_ENTRIES,
) -> AuditPage:
    """``after``: in the chain's order from there; else the newest first, below ``before`` if given."""
    # One more, to know whether there are more.
    entries = journal.audit_page(search, limit + 1, after=after, before=before)
    return AuditPage(
        entries=tuple(_view(entry) for entry in entries[:limit]),
        more=len(entries) > limit,
        total=journal.head()[0],
    )


def _view(entry: Entry) -> AuditEntryView:
    return AuditEntryView(
        sequence=entry.sequence,
        at=entry.at,
        kind=entry.note.kind,
        subject=entry.note.subject,
        facts=tuple((name, _words(value)) for name, value in sorted(entry.note.facts.items())),
        digest=entry.digest.hex(),
    )


def _words(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(_words(one) for one in value)
        case dict():
            return ", ".join(f"{name}: {_words(one)}" for name, one in sorted(value.items()))
        case _:
            return str(value)


def settings_view(state: Path, config: Config, account: Account, journal: Journal) -> SettingsView:
    """The settings in use: the configuration, and the journal's limits, checks and rules."""
    limits = journal.limits
    return SettingsView(
        network=str(journal.network),
        label=config.label,
        state_folder=str(state),
        platform_url=config.platform.url,
        own_authority=config.platform.ca_file is not None,
        workspaces=config.platform.workspaces,
        secrets=account.mode,
        usb=config.devices.usb,
        endpoints=config.devices.endpoints,
        max_fee_sats=int(limits.max_fee),
        max_fee_rate=str(limits.max_fee_rate.sat_per_vb),
        max_fee_percent=limits.max_fee_percent,
        warn_fee_percent=limits.warn_fee_percent,
        lowered=tuple(
            LoweredView(name=name, guards=it.sentence, becomes="asks" if it.lowered == HOLD else "warns")
            for name, it in sorted((name, CHECKS[name]) for name in journal.lowered)
        ),
        rules=tuple(rule_words(rule, journal.network) for rule in journal.rules.rules),
    )


def notes_of(
    config: Config, account: Account, follower: Follower, vaults: Iterable[SeenVault]
) -> Iterator[str]:
    journal = follower.journal
    if (missing := missing_hwi()) is not None:
        yield missing
    yield from _session(account, follower)
    yield from follower.troubles.sentences()
    yield from _restored(journal)
    yield from _keys(journal)
    for vault in vaults:
        if vault.fault and not vault.of_others and not vault.left:
            yield f"Vault {foreign(vault.name)}: {vault.fault}{_ends(vault)}"
    yield from _configuration(journal)
    if not config.devices.sandbox:
        yield "The processes of devices are not confined: [devices] sandbox is off."
    for psbt_id, alarm in journal.alarms():
        yield f"Proposal {psbt_id}: {alarm}"


def _ends(vault: SeenVault) -> str:
    """What ends the notice about a vault that our key has left."""
    if not vault.pinned or vault.own is not None or vault.changes:
        return ""
    return f" Once nothing is left in it, `signerd unpin {as_argument(vault.vault_id)}` ends this notice."


def _session(account: Account, follower: Follower) -> Iterator[str]:
    if not account.signed_in.is_set():
        yield "You are not signed in: run `signerd login`."
    elif follower.trouble is not None:
        yield f"The platform: {plain(follower.trouble)}"
    if account.trouble is not None:
        yield f"The renewed session cannot be stored: {account.trouble}"


def _restored(journal: Journal) -> Iterator[str]:
    behind = journal.behind()
    if journal.restored is not None and behind:
        names = ", ".join(str(workspace) for workspace in sorted(behind))
        yield (
            f"Restored from the backup of {journal.restored.made_at:%Y-%m-%d %H:%M} UTC: nothing is approved "
            f"until the platform's whole list of the workspace {names} was read. Where a proposal of it is "
            "left out as unreadable, update signerd, or ask the platform's operator to put it right."
        )


def _keys(journal: Journal) -> Iterator[str]:
    if not journal.own_keys():
        yield "No key is registered: connect your device and run `signerd register`."
    revoked = journal.revocation()
    if revoked is not None:
        yield f"{revoked.sentence} {revoked.advice}"


def _configuration(journal: Journal) -> Iterator[str]:
    if journal.lowered:
        yield f"Lowered in the configuration: {', '.join(sorted(journal.lowered))}."
    pinned = {pin.vault.verification_code for pin in journal.pins()}
    for vault, codes in sorted(journal.rules.sections().items()):
        if codes.isdisjoint(pinned):
            yield f"rules.toml has rules for a vault that is not pinned here now: {plain(vault)}"
