"""HWI's grammar: what is written on the command line and, with ``--stdin``, on standard input; and its commands that are not done here (L5)."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TextIO

from signerd.hwi.codes import Code

_BY_ITS_OWNER = "Do it on the device itself, or with its maker's program."

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "wipe": f"a program that asks a device to forget its seed is not obeyed. {_BY_ITS_OWNER}",
        "setup": f"a seed is made where no program watches. {_BY_ITS_OWNER}",
        "restore": f"the words of a seed are typed nowhere but into the device. {_BY_ITS_OWNER}",
        "backup": f"a backup of a seed is made where no program watches. {_BY_ITS_OWNER}",
        "togglepassphrase": (
            "it changes which wallet the device opens, and whoever does not expect that finds an empty one. "
            + _BY_ITS_OWNER
        ),
        "signmessage": (
            "a signed text can be a login or a contract, and signerd has no check for either. "
            "It signs transactions, and the texts of its own platform."
        ),
        "installudevrules": "it needs root, which signerd never has. docs/devices.md says where the rules are.",
    }
)
NO_PASSWORDS = (
    "a passphrase does not belong on a command line or in another program's pipe: signerd asks for it "
    "on its page or with `signerd devices unlock`"
)


def sentence(command: str) -> str:
    return f"signerd does not do '{command}': {REFUSED[command]}"


PROGRAM: Final = "signerd-hwi"
# As HWI names them; Core names them alike.
CHAINS: Final = ("main", "test", "regtest", "signet", "testnet4")
ADDRESS_TYPES: Final = ("legacy", "wit", "sh_wit", "tap")
# HWI takes the person's whole time at the device. `bitcoin-cli` waits fifteen minutes for an answer: this is told before.
WAIT_SECONDS: Final = 14 * 60
# The largest PSBT, and what is written around it.
MAX_STDIN: Final = 3 * 1024 * 1024
# No command has nearly as many.
MAX_WORDS: Final = 100


class Parser(argparse.ArgumentParser):
    """What is wrong, and what is helpful, is told as JSON as well; standard output has nothing else."""

    def print_usage(self, file: Any = None) -> None:
        super().print_usage(file or sys.stderr)

    def print_help(self, file: Any = None) -> None:
        super().print_help(file or sys.stderr)
        _put({"error": "Help text requested", "code": Code.HELP_TEXT})

    def error(self, message: str) -> NoReturn:
        self.print_usage()
        _put({"error": f"{self.prog}: error: {message}", "code": Code.MISSING_ARGUMENTS})
        self.exit(2)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_given: object) -> NoReturn:
        from multisig._version import __version__

        _put(f"{PROGRAM} {__version__}")
        parser.exit()


def parse(given: list[str], stdin: TextIO) -> argparse.Namespace:
    """Ends the process, with HWI's status, for what is written wrongly."""
    parser = _parser()
    try:
        words = [*given, *_typed(stdin)] if "--stdin" in given else given
    except ValueError:
        parser.error("standard input has a quote that does not end, or is no text")
    args, more = parser.parse_known_args(words)
    if more and args.command not in REFUSED:
        # They may be anything, a passphrase too: they are not repeated.
        parser.error("unrecognized arguments")
    return args


def _typed(stdin: TextIO) -> list[str]:
    """Until an empty line, or the end: whoever leaves the pipe open is answered as well. Raises ValueError."""
    words: list[str] = []
    while (line := stdin.readline(MAX_STDIN).rstrip("\r\n")) and len(words) < MAX_WORDS:
        # A PSBT has no quotes, and shlex takes a second for a large one.
        words += shlex.split(line) if set(line) & set("\"'\\") else line.split()
    return words


def _parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="What HWI answers, answered by the running signerd. For programs that call hwi, "
        "and for Bitcoin Core's -signer=.",
    )
    _add_options(parser)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    _add_reading(commands)
    _add_acting(commands)
    for name in REFUSED:
        commands.add_parser(name, help="Not done here: signerd says why.")
    return parser


def _add_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--device-path", "-d", help="The path of the device, as enumerate tells it.")
    add("--device-type", "-t", help="The type or the model of the device.")
    add("--fingerprint", "-f", type=str.lower, help="Of the master key of the device.")
    add("--chain", choices=CHAINS, default="main", type=str.lower)
    add("--stdin", action="store_true", help="Take more commands and arguments from standard input.")
    add("--expert", action="store_true", help="Tell more of a key.")
    add("--debug", action="store_true", help="Tell more of what goes wrong, on standard error.")
    add("--emulators", action="store_true", help="Nothing: the daemon lists what it was told of.")
    add("--interactive", "-i", action="store_true", help="Nothing: what it is for is not done here.")
    add("--password", "-p", help="Refused: signerd asks for it itself.")
    add("--stdinpass", action="store_true", help="Refused, as --password.")
    add("--version", action=_Version, nargs=0)
    add("--state", type=Path, default=None, metavar="DIR", help="The daemon's state folder.")
    add("--wait", type=int, default=WAIT_SECONDS, metavar="SECONDS", help="For the person, when signing.")


def _add_reading(commands: "argparse._SubParsersAction[Parser]") -> None:
    commands.add_parser("enumerate", help="List the devices, from the daemon's memory.")
    add = commands.add_parser("getxpub", help="The key of a standard account, or below one.").add_argument
    add("path")
    add = commands.add_parser("getmasterxpub", help="The key of a BIP-84 account.").add_argument
    add("--addr-type", choices=ADDRESS_TYPES, type=str.lower, default="wit")
    add("--account", type=int, default=0)
    add = commands.add_parser("getdescriptors", help="Of the registered BIP-84 account.").add_argument
    add("--account", type=int, default=0)


def _add_acting(commands: "argparse._SubParsersAction[Parser]") -> None:
    add = commands.add_parser("signtx", help="Have a PSBT approved by the person and signed.").add_argument
    add("psbt")
    shown = commands.add_parser("displayaddress", help="Show an address on the device's screen.")
    either = shown.add_mutually_exclusive_group(required=True)
    either.add_argument("--desc")
    either.add_argument("--path")
    shown.add_argument("--addr-type", choices=ADDRESS_TYPES, type=str.lower, default="wit")
    commands.add_parser("promptpin", help="Have the device show the places of its PIN.")
    add = commands.add_parser("sendpin", help="Send the places of the PIN's digits.").add_argument
    add("pin")


def state_folder(args: argparse.Namespace) -> Path:
    """As the command line of signerd finds it."""
    given: Path | None = args.state
    if given is None and (named := os.environ.get("SIGNERD_STATE")):
        given = Path(named)
    if given is not None:
        return given.absolute()
    from platformdirs import user_state_path

    return user_state_path("signerd")


def _put(value: object) -> None:
    """In ASCII and on one line: Core reads the first line only."""
    sys.stdout.write(json.dumps(value) + "\n")
