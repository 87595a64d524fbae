"""Every command in the documents is one of the programs, with the options that it has, and a test runs it.

A line in a block must be whole: its arguments are parsed as the program parses them, and nothing is run here.
A command within a sentence may leave arguments out. Lines that are not ours (systemctl, ssh, age, apt) are
not parsed.
"""

import re
import shlex
from contextlib import suppress

import click
import pytest

from custody.cli.program import app as custody
from custody.server.settings import Settings
from signerd.account.config import Config
from signerd.cli.program import app as signerd
from signerd.core.checks.table import CHECKS
from tests.support.pages import DOCS, PAGES, ROOT, command_lines, named

# By page, what runs its lines as they stand there, in their order.
RUN = {
    "tests/custody/cli/test_incidents.py": "operate/incidents operate/limits operate/proofs "
    "operate/purchases operate/scale operate/sign-in",
    "tests/custody/cli/test_treasurer.py": "operate/treasurer",
    "tests/custody/server/test_backup_guide.py": "operate/backup",
    "tests/docs/test_walk.py": "sign/approving sign/backup sign/cli sign/codes sign/emergency "
    "sign/first-steps sign/lost-device sign/pinning sign/rules",
    "tests/end_to_end/test_tutorials.py": "build/tutorial-device build/tutorial-payment operate/trial",
    "tests/signerd/browser/test_web_tutorial.py": "build/tutorial-web",
    "tests/signerd/cli/test_proposals.py": "sign/payments operate/issuing-a-token",
    "tests/signerd/hwi/test_core.py": "sign/core",
}
# By page, what runs its commands otherwise: with another device, file, check or answer than the page has.
RUN_OTHERWISE = {
    "tests/custody/cli/test_two_people.py": "operate/replacing-a-vault",
    "tests/custody/server/cli/test_auditing.py": "operate/audit",
    "tests/end_to_end/test_tutorials.py": "operate/platform",
    "tests/signerd/cli/test_account.py": "sign/accounts",
    "tests/signerd/cli/test_airgap.py": "sign/airgap",
    "tests/signerd/cli/test_apps.py": "sign/page",
    "tests/signerd/cli/test_daemon.py": "sign/accounts",
    "tests/signerd/cli/test_devices.py": "build/devices",
    "tests/signerd/cli/test_psbts.py": "sign/imported",
    "tests/signerd/cli/test_service.py": "sign/install",
    "tests/signerd/cli/test_vaults.py": "sign/airgap",
}
# `--no-workers` is the option; the tests alone change the others.
UNDOCUMENTED = {"with_workers", "require_key_proof", "broadcast_wait_seconds"}
PROGRAMS = {"signerd": signerd, "custody": custody}
INLINE = re.compile(r"`((?:signerd|custody) [^`…]+)`")
READ = [*PAGES, ROOT / "README.md"]


def found(program, arguments, *, whole):
    """Walks down to the command; raises click's error where there is none or it takes something else."""
    command, rest = program, list(arguments)
    parent = None
    while isinstance(command, click.Group):
        context = click.Context(command, parent=parent, info_name="program")
        _given, rest, _order = command.make_parser(context).parse_args(rest) if rest else ({}, [], [])
        if not rest:
            return
        name, parent = rest[0], context
        if name == "COMMAND":
            return
        command = command.get_command(context, name)
        if command is None:
            raise click.UsageError(f"no command {name}")
        rest = rest[1:]
    if whole:
        try:
            command.make_context(command.name, rest, parent=parent)
        except click.MissingParameter as missing:
            # What the environment may give is set once for the whole page.
            if missing.param is None or not missing.param.envvar:
                raise
    else:
        with suppress(click.MissingParameter, click.BadOptionUsage):
            context = click.Context(command, parent=parent, ignore_unknown_options=False)
            command.make_parser(context).parse_args(rest)


def fault(line, *, whole):
    name, *arguments = shlex.split(line.split("|")[0].split(" > ")[0].split(" && ")[0])
    try:
        found(PROGRAMS[name], arguments, whole=whole)
    except click.exceptions.Exit:
        return None  # --help, --version
    except click.ClickException as error:
        return f"{line}: {error.format_message()}"
    return None


@pytest.mark.parametrize("page", READ, ids=named)
def test_its_commands_are_the_programs(page):
    wrong = [fault(line, whole=True) for line in command_lines(page)]
    wrong += [fault(line, whole=False) for line in INLINE.findall(page.read_text(encoding="utf-8"))]
    assert [one for one in wrong if one] == []


def words_of(line):
    """The groups and the command of a line."""
    name, *words = shlex.split(line)
    command = PROGRAMS[name]
    for word in words:
        if not isinstance(command, click.Group):
            return
        if found := command.get_command(click.Context(command), word):
            command = found
            yield word


def test_a_test_runs_the_lines_of_each_page_and_names_it():
    runs = {page: [name] for name, pages in RUN.items() for page in pages.split()}
    for name, pages in RUN_OTHERWISE.items():
        for page in pages.split():
            runs.setdefault(page, []).append(name)
    with_lines = [page for page in PAGES if any(command_lines(page))]
    assert sorted(runs) == sorted(str(page.relative_to(DOCS).with_suffix("")) for page in with_lines)
    for page, names in runs.items():
        folder, short = page.split("/")
        # A test of several pages has a table of their names, without the folder.
        is_named = re.compile(rf'{folder}/{short}\b|\b{short}\.md|"{short}"')
        texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in names}
        assert [name for name, text in texts.items() if not is_named.search(text)] == [], page
        if page in " ".join(RUN_OTHERWISE.values()).split():
            wanted = {word for line in command_lines(DOCS / f"{page}.md") for word in words_of(line)}
            followed = [DOCS / f"{other}.md" for name in names for other in RUN.get(name, "").split()]
            every = "".join([*texts.values(), *(other.read_text(encoding="utf-8") for other in followed)])
            assert [word for word in wanted if not re.search(rf"[\"' ]{word}\b", every)] == [], page


def test_a_warning_that_a_page_acknowledges_is_a_checks():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"--acknowledge ([a-z]+(?:-[a-z]+)*)", pages))
    assert named
    assert named <= CHECKS.keys()


def test_every_setting_is_on_a_page():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    sections = [field.annotation for field in Config.model_fields.values()]
    keys = {key for section in sections for key in getattr(section, "model_fields", ())}
    wanted = {key: rf"`{key}`|^ *{key} = " for key in keys}
    wanted |= {name: f"CUSTODY_{name.upper()}" for name in Settings.model_fields.keys() - UNDOCUMENTED}
    assert [name for name, words in wanted.items() if not re.search(words, pages, re.MULTILINE)] == []
