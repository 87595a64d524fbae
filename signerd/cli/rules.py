"""rules show: reads the files directly, without a daemon, and changes nothing."""

from pathlib import Path

import click

from signerd.cli.desk import Desk, answering, path_option


@click.group()
def rules() -> None:
    """Your own rules: what is refused, and what you are asked about."""


@rules.command()
@path_option("--file", metavar="FILE", help="Another file than the one that counts.")
@answering
def show(desk: Desk, file: Path | None) -> None:
    """Show the rules as they are read; the daemon reads them when it starts."""
    from signerd.account.config import find_config, find_rules, load_config, load_rules
    from signerd.core.rules.values import NO_RULES, rule_words
    from signerd.journal.rows import read_pinned_codes
    from signerd.journal.storage import read_from

    config = load_config(find_config(desk.state))
    path = file or find_rules(config, desk.state)
    in_force = NO_RULES
    if path is not None:
        codes = read_from(desk.state, read_pinned_codes, dict[str, frozenset[str]]())
        in_force = load_rules(path, config.network).resolved(codes)
    # "vault_id": as the file names it; null: for all vaults together. "codes": of the vaults that it is for.
    views = [
        {
            "name": rule.name,
            "action": rule.action.value,
            "vault_id": rule.vault,
            "codes": sorted(rule.codes),
            "words": rule_words(rule, config.network),
        }
        for rule in in_force.rules
    ]
    desk.give(
        views,
        f"No rules: there is no rules.toml in {desk.state}." if path is None else f"Rules of {path}",
        *(f"  {view['words']}  [{view['name']}]" for view in views),
        "A daemon that runs goes by the rules that it read when it started.",
    )
