"""Every command in the documents is one of the programs, with the options that it has, and a test runs it.

A line in a block must be whole: its arguments are parsed as the program parses them, and nothing is run here.
A command within a sentence may leave arguments out. Lines that are not ours (systemctl, ssh, age, apt) are
not parsed.
"""

import re
import shlex
from contextlib import suppress

import click

from custody.cli.program import app as custody
from custody.server.settings import Settings
from signerd.account.config import Config
from signerd.cli.program import app as signerd
from tests.support.pages import PAGES, ROOT, command_lines, named

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


def test_every_command_is_one_of_the_programs():
    wrong = []
    for page in READ:
        faults = [fault(line, whole=True) for line in command_lines(page)]
        faults += [fault(line, whole=False) for line in INLINE.findall(page.read_text(encoding="utf-8"))]
        wrong += [f"{named(page)}: {one}" for one in faults if one]
    assert wrong == []


def test_every_setting_is_on_a_page():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    sections = [field.annotation for field in Config.model_fields.values()]
    keys = {key for section in sections for key in getattr(section, "model_fields", ())}
    wanted = {key: rf"`{key}`|^ *{key} = " for key in keys}
    wanted |= {name: f"CUSTODY_{name.upper()}" for name in Settings.model_fields.keys() - UNDOCUMENTED}
    assert [name for name, words in wanted.items() if not re.search(words, pages, re.MULTILINE)] == []
