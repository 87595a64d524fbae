"""Writes manual pages and completions of the commands from their help into FOLDER, the later /usr/share.

The commands are those installed beside this interpreter. The date is SOURCE_DATE_EPOCH's.
"""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from custody._version import __version__
from custody.common.terminal import Exit
from signerd.cli.program import app

# By shell (bash-completion's README; zsh's Debian package; fish's "Where to put completions").
COMPLETIONS = {
    "bash": "bash-completion/completions/signerd",
    "zsh": "zsh/vendor-completions/_signerd",
    "fish": "fish/vendor_completions.d/signerd.fish",
}
FILES = (
    (
        "~/.local/state/signerd",
        "The state folder: configuration, journal, the private socket. Of its owner alone.",
    ),
    ("~/.config/signerd/config.toml", "The configuration, where the state folder has none."),
)


def main() -> None:
    folder = Path(sys.argv[1])
    pages = folder / "man" / "man1"
    pages.mkdir(parents=True)
    (pages / "signerd.1").write_text(signerd_page(), encoding="utf-8")
    (pages / "signerd-hwi.1").write_text(hwi_page(), encoding="utf-8")
    for shell, place in COMPLETIONS.items():
        kind = get_completion_class(shell)
        assert kind is not None, "one of the shells that click knows"
        file = folder / place
        file.parent.mkdir(parents=True)
        file.write_text(kind(app, {}, "signerd", "_SIGNERD_COMPLETE").source())


def signerd_page() -> str:
    context = click.Context(app, info_name="signerd")
    summary = first_sentence(app.help or "")
    return "".join(
        (
            head("SIGNERD", "signerd", summary),
            section("SYNOPSIS"),
            f".B signerd\n{roff(usage(app, context))}\n",
            section("DESCRIPTION"),
            f"{roff(flat(app.help or ''))}\n",
            section("OPTIONS"),
            *options(app, context),
            section("COMMANDS"),
            *commands(app, context),
            section("EXIT STATUS"),
            *(entry(str(one.value), one.name.lower().replace("_", " ")) for one in Exit),
            section("FILES"),
            *(entry(path, text) for path, text in FILES),
            section("SEE ALSO"),
            ".BR signerd-hwi (1)\n",
        )
    )


def commands(group: click.Group, above: click.Context) -> list[str]:
    """Each command that does something, in the order of the groups."""
    pages = []
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=above)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            title = f"{context.command_path} {usage(command, context)}".rstrip()
            pages += [
                f".SS {quoted(title)}\n",
                f"{roff(flat(command.help or ''))}\n",
                *options(command, context),
            ]
        if isinstance(command, click.Group):
            pages += commands(command, context)
    return pages


def usage(command: click.Command, context: click.Context) -> str:
    return " ".join(command.collect_usage_pieces(context))


def options(command: click.Command, context: click.Context) -> list[str]:
    records = (one.get_help_record(context) for one in command.get_params(context))
    return [entry(*record) for record in records if record is not None]


def hwi_page() -> str:
    """In HWI's grammar, as the program prints it."""
    text = helped()
    commands = re.search(r"\{([a-z,-]+)\}", text)
    assert commands is not None, "its usage lists the commands"
    told = [text, *(helped(name) for name in commands[1].split(",") if name != "help")]
    return "".join(
        (
            head("SIGNERD-HWI", "signerd-hwi", "what HWI answers, answered by the running signerd"),
            section("DESCRIPTION"),
            "For programs that call hwi, and for Bitcoin Core's -signer=. It speaks to the running\n",
            ".BR signerd (1).\n",
            section("COMMANDS"),
            *(f".nf\n{roff(one)}\n.fi\n.sp\n" for one in told),
            section("SEE ALSO"),
            ".BR signerd (1)\n",
        )
    )


def helped(*command: str) -> str:
    """The help of signerd-hwi, which is on standard error: standard output is a value for programs."""
    environment = {**os.environ, "COLUMNS": "78"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "signerd.hwi", *command, "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr, f"signerd-hwi {' '.join(command)} has help"
    return done.stderr.strip()


def head(title: str, program: str, summary: str) -> str:
    day = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).date()
    return f'.TH {title} 1 {day} "signerd {__version__}"\n.SH NAME\n{roff(program)} \\- {roff(summary)}\n'


def section(name: str) -> str:
    return f".SH {name}\n"


def entry(term: str, text: str) -> str:
    return f".TP\n.B {roff(term)}\n{roff(text)}\n"


def first_sentence(text: str) -> str:
    return flat(text).partition(".")[0]


def flat(text: str) -> str:
    return " ".join(text.split())


def quoted(text: str) -> str:
    return '"' + roff(text).replace('"', "\\(dq") + '"'


def roff(text: str) -> str:
    """Escapes every special character, also at the start of a line (groff_char(7))."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in text.split("\n"))


main()
