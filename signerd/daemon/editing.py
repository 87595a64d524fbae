"""Changing ``config.toml`` and ``rules.toml`` while the daemon runs: parsed as at the start, compared,
recorded, written and applied.

Only settings of checks and names can be changed without a restart; other changes are refused.
"""

import contextlib
import hashlib
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from custody.common.private_files import write_private
from custody.common.recipients import alike_words
from custody.common.text import plain
from multisig import Network, format_btc
from signerd.account.config import FILE, MAX_CONFIG_BYTES, RULES_FILE, Config, find_rules, read_config
from signerd.core.audit import Note
from signerd.core.checks.table import CHECKS
from signerd.core.events import JudgeAgain
from signerd.core.rules.reading import written_rules
from signerd.core.rules.values import Action, Rule, Rules, rule_words
from signerd.core.values import SigningLimits
from signerd.daemon.service import Daemon
from signerd.errors import ConfigInvalid, LooserSettings, NoSuchRoute, RulesInvalid, SettingsChanged
from signerd.shapes import SettingsFile

# Keys of config.toml that can be changed while the daemon runs.
EDITABLE = ("limits", "checks", "addresses", "label")
# The feed's subject.
SETTINGS = "settings"


@dataclass(frozen=True)
class _Draft:
    """A text that was parsed."""

    path: Path
    text: str
    looser: tuple[str, ...]
    config: Config | None = None
    rules: Rules | None = None


def files(daemon: Daemon) -> tuple[SettingsFile, ...]:
    names = (RULES_FILE,) if daemon.config_file is None else (FILE, RULES_FILE)
    return tuple(_file(daemon, name) for name in names)


def preview(daemon: Daemon, name: str, text: str, digest: str) -> tuple[str, ...]:
    """What the text would let pass that is stopped or asked about now, each in a sentence. Raises as
    ``change``, except LooserSettings.
    """
    return _draft(daemon, name, text, digest).looser


def change(daemon: Daemon, name: str, text: str, digest: str, *, looser: bool) -> SettingsFile:
    """Record, write and apply. ``digest``: of the edited file; ``looser``: the person confirmed what is
    loosened.

    Raises:
        ConfigInvalid, RulesInvalid: with the line; or the file cannot be written.
        SettingsChanged: the file has changed meanwhile. LooserSettings: the person has not confirmed it.
    """
    draft = _draft(daemon, name, text, digest)
    if draft.looser and not looser:
        raise LooserSettings(" ".join(draft.looser))
    with staged(draft.path, draft.text) as put:
        facts = {
            "file": str(draft.path),
            "looser": [plain(words) for words in draft.looser],
            "sha256": _digest(draft.text),
        }
        daemon.journal.note(Note("settings-changed", name, facts))
        put()
    journal = daemon.journal
    if draft.config is not None:
        daemon.config, daemon.imported.labels = draft.config, draft.config.labels
        draft.config.configure(journal)
    if draft.rules is not None:
        journal.rules = draft.rules
    daemon.runner.announce((JudgeAgain(),))
    daemon.feed.add(SETTINGS, "attention", f"{name} was changed on the page, and counts from now on.")
    return _file(daemon, name)


def _draft(daemon: Daemon, name: str, text: str, digest: str) -> _Draft:
    # Browsers send CRLF.
    text = text.replace("\r\n", "\n")
    if _file(daemon, name).digest != digest:
        raise SettingsChanged(f"{name} was changed meanwhile, and nothing was written")
    return _config(daemon, text) if name == FILE else _rules(daemon, text)


def _config(daemon: Daemon, text: str) -> _Draft:
    running, path = daemon.config, _path(daemon, FILE)
    new = read_config(path, text)
    kept = set(type(new).model_fields) - set(EDITABLE)
    if new.model_dump(include=kept) != running.model_dump(include=kept):
        raise ConfigInvalid(
            f"here {', '.join(EDITABLE)} can be changed, and nothing else of {FILE}",
            hint="Change the rest in the file itself, and start signerd again.",
        )
    added = sorted(set(new.checks.lowered) - daemon.journal.lowered)
    lowered = (f"The check '{name}' is lowered. It guards this: {CHECKS[name].sentence}" for name in added)
    alike = daemon.journal.resembled(set(new.book) - set(running.book))
    named = (f"It gets a name: {alike_words(address, known)}" for address, known in alike.items())
    looser = (*looser_limits(daemon.journal.limits, new.signing_limits()), *lowered, *named)
    return _Draft(path, text, looser, config=new)


def _rules(daemon: Daemon, text: str) -> _Draft:
    journal, path = daemon.journal, _path(daemon, RULES_FILE)
    if len(text.encode()) > MAX_CONFIG_BYTES:
        raise RulesInvalid(f"{path} is too long for rules")
    written = written_rules(text, journal.network, file=RULES_FILE)
    rules = written.resolved(journal.pinned_codes())
    return _Draft(path, text, looser_rules(journal.rules, rules, journal.network), rules=rules)


def _file(daemon: Daemon, name: str) -> SettingsFile:
    path = _path(daemon, name)
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}") from error
    return SettingsFile(name=name, path=str(path), text=text, digest=_digest(text))


def _path(daemon: Daemon, name: str) -> Path:
    """The path of the file in use; links are resolved, so that the target is written."""
    if name == FILE and daemon.config_file is not None:
        return daemon.config_file.resolve()
    if name == RULES_FILE:
        path = find_rules(daemon.config, daemon.state)
        return (path or daemon.state / RULES_FILE).resolve()
    raise NoSuchRoute("there is no such file of settings")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def staged(path: Path, text: str) -> Iterator[Callable[[], Path]]:
    """Write the text to a temporary file first, so that the change is recorded only if it can be written.
    Calling what it yields puts that file in the place of the other.

    Raises ConfigInvalid.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        # TOML is UTF-8, whatever the locale.
        write_private(beside, text.encode())
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        yield partial(beside.replace, path)
    except OSError as error:
        raise ConfigInvalid(
            f"{path} cannot be written: {error.strerror}", hint="Change it where it comes from."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def looser_rules(old: Rules, new: Rules, network: Network) -> tuple[str, ...]:
    """A sentence for each old rule that no new rule covers."""
    gone = (rule for rule in old.rules if not any(_covers(other, rule) for other in new.rules))
    return tuple(f"This rule goes or gets weaker: {rule_words(rule, network)}." for rule in gone)


def _covers(new: Rule, old: Rule) -> bool:
    # One vault alone spends at most what all spend together.
    same_reach = new.vault is None or (old.vault is not None and old.codes <= new.codes)
    at_least = new.action is Action.REFUSE or old.action is Action.ASK
    now, before = new.condition, old.condition
    stops_as_much = now.limit <= before.limit and now.scripts == before.scripts
    return same_reach and at_least and now.kind is before.kind and stops_as_much


def looser_limits(old: SigningLimits, new: SigningLimits) -> Iterator[str]:
    if new.max_fee > old.max_fee:
        yield f"The largest fee goes up from {format_btc(old.max_fee)} to {format_btc(new.max_fee)} BTC."
    if new.max_fee_rate > old.max_fee_rate:
        yield f"The highest fee rate goes up from {old.max_fee_rate} to {new.max_fee_rate}."
    if new.max_fee_percent > old.max_fee_percent:
        yield f"The largest share of a fee goes up from {old.max_fee_percent} % to {new.max_fee_percent} %."
    if new.warn_fee_percent > old.warn_fee_percent:
        yield f"You are warned above {new.warn_fee_percent} %, no longer above {old.warn_fee_percent} %."
