"""rules show, rules test: read the files directly, without a daemon, and change nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signerd.cli.desk import Desk, json_option, pass_desk
from signerd.cli.terminal import answer, say, table
from signerd.core.text import amount

if TYPE_CHECKING:
    from signerd.account.config import Config
    from signerd.core.rule_changes import Replayed


@dataclass(frozen=True)
class RuleView:
    """``vault_id``: as the file names it; None: for all vaults together. ``codes``: the verification codes of
    the vaults that it applies to. ``name``: as a proposal's verdicts show it.
    """

    name: str
    action: str
    vault_id: str | None
    codes: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class PastView:
    """``decided``: signed, approved, declined, refused-by-a-check, not-decided. ``answer``: pass, ask,
    refuse, not-judged.

    ``at`` is RFC 3339 UTC. ``paid_sats`` is None where the proposal cannot be judged: unreadable, or of a
    vault that is not pinned here. ``because``: the sentence of each rule that refuses or asks.
    """

    psbt_id: str
    vault_id: str
    at: str
    paid_sats: int | None
    decided: str
    answer: str
    because: tuple[str, ...]


@click.group()
def rules() -> None:
    """Your own rules: what is refused, and what you are asked about."""


@rules.command()
@pass_desk
@click.option(
    "--file", type=click.Path(path_type=Path), metavar="FILE", help="Another file than the one that counts."
)
@json_option
def show(desk: Desk, file: Path | None, as_json: bool) -> None:
    """Show the rules as they are read; the daemon reads them when it starts."""
    from signerd.account.config import find_rules, load_rules
    from signerd.core.rules.values import NO_RULES, rule_words
    from signerd.journal.history import read_pinned_codes

    config = _config(desk)
    path = file or find_rules(config, desk.state)
    found = (
        NO_RULES if path is None else load_rules(path, config.network).resolved(read_pinned_codes(desk.state))
    )
    views = [
        RuleView(
            name=rule.name,
            action=rule.action.value,
            vault_id=rule.vault,
            codes=tuple(sorted(rule.codes)),
            words=rule_words(rule, config.network),
        )
        for rule in found.rules
    ]
    if as_json:
        answer(views)
        return
    say(f"No rules: there is no rules.toml in {desk.state}." if path is None else f"Rules of {path}")
    for view in views:
        say(f"  {view.words}  [{view.name}]")
    say("A daemon that runs goes by the rules that it read when it started.")


@rules.command("test")
@pass_desk
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE", help="The rules to try.")
@json_option
def try_out(desk: Desk, file: Path, as_json: bool) -> None:
    """Show what would have happened to past proposals under the rules of FILE.

    Each is judged at the moment when it was decided. One that the rules refuse is taken as not signed from
    there on.
    """
    from signerd.account.config import load_rules
    from signerd.core.rule_changes import replay
    from signerd.journal.history import read_history

    config = _config(desk)
    written = load_rules(file, config.network)
    past = read_history(desk.state, config.network)
    tried = written.resolved(past.pinned)
    views = [_view(line) for line in replay(past.entries, past.cases, past.vaults, past.quorums, tried)]
    if as_json:
        answer(views)
    elif not views:
        say("No proposal was ever here.")
    else:
        header = ("PROPOSAL", "DECIDED AT (UTC)", "PAYS", "WHAT WAS DECIDED", "THE RULES SAY")
        table(header, [_row(view) for view in views])


def _config(desk: Desk) -> "Config":
    from signerd.account.config import find_config, load_config

    return load_config(find_config(desk.state))


def _view(line: "Replayed") -> PastView:
    from signerd.core.checks.case import Outcome

    decided = line.decided
    return PastView(
        psbt_id=decided.psbt_id,
        vault_id=line.vault_id,
        at=f"{decided.at:%Y-%m-%dT%H:%M:%SZ}",
        paid_sats=line.paid,
        decided=decided.decision.value,
        answer=line.answer.value,
        because=tuple(v.sentence for v in line.verdicts if v.outcome is not Outcome.ALLOW),
    )


def _row(view: PastView) -> tuple[str, ...]:
    because = f": {' '.join(view.because)}" if view.because else ""
    return (
        view.psbt_id,
        view.at.replace("T", " ").removesuffix("Z"),
        amount(view.paid_sats),
        view.decided.replace("-", " "),
        f"{view.answer.replace('-', ' ')}{because}",
    )
