"""The program: HWI's arguments, one command, one JSON value on standard output, and HWI's exit status."""

import argparse
import json
import os
import shlex
import signal
import sys
from argparse import Namespace
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TextIO

from signerd.errors import HwiCode, SignerdError
from signerd.hwi.codes import HwiError, code_of, in_words

_BY_ITS_OWNER = "Do it on the device itself, or with its maker's software."

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "wipe": f"no program may make a device erase its seed. {_BY_ITS_OWNER}",
        "setup": f"no program may take part in creating a seed. {_BY_ITS_OWNER}",
        "restore": f"the words of a seed are typed only into the device. {_BY_ITS_OWNER}",
        "backup": f"no program may take part in the backup of a seed. {_BY_ITS_OWNER}",
        "togglepassphrase": (
            "it changes which wallet the device opens, and without knowing that, you find an empty one. "
            + _BY_ITS_OWNER
        ),
        "signmessage": (
            "a signed text can be a login or a contract, and signerd has no check for either. "
            "It signs transactions, and the challenges of its own platform."
        ),
        "installudevrules": "it needs root, which signerd never has. `signerd udev install` does it.",
    }
)
NO_PASSWORDS = (
    "a passphrase does not belong on a command line or in another program's pipe: signerd asks for it "
    "on its page or with `signerd devices unlock`"
)


def sentence(command: str) -> str:
    return f"signerd does not do '{command}': {REFUSED[command]}"


PROGRAM: Final = "signerd-hwi"
_REGISTRATION: Final = "The answer of registerdescriptor."
# As HWI names them; Core names them alike.
CHAINS: Final = ("main", "test", "regtest", "signet", "testnet4")
ADDRESS_TYPES: Final = ("legacy", "wit", "sh_wit", "tap")
# HWI waits as long as the person takes. `bitcoin-cli` waits fifteen minutes for an answer: this answers
# before.
WAIT_SECONDS: Final = 14 * 60
# The largest PSBT and the words around it.
MAX_STDIN: Final = 3 * 1024 * 1024
# Far more than any command has.
MAX_WORDS: Final = 100


class Parser(argparse.ArgumentParser):
    """Reports errors and help as JSON too; standard output has nothing else."""

    def print_usage(self, file: Any = None) -> None:
        super().print_usage(file or sys.stderr)

    def print_help(self, file: Any = None) -> None:
        super().print_help(file or sys.stderr)
        _put({"error": "Help text requested", "code": HwiCode.HELP_TEXT})

    def error(self, message: str) -> NoReturn:
        self.print_usage()
        _put({"error": f"{self.prog}: error: {message}", "code": HwiCode.MISSING_ARGUMENTS})
        self.exit(2)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_given: object) -> NoReturn:
        from custody._version import __version__

        _put(f"{PROGRAM} {__version__}")
        parser.exit()


def parse(given: list[str], stdin: TextIO) -> argparse.Namespace:
    """Exits with HWI's status for invalid arguments."""
    parser = _parser()
    try:
        words = [*given, *_typed(stdin)] if "--stdin" in given else given
    except ValueError:
        parser.error("standard input has an unclosed quote, or is not text")
    args, more = parser.parse_known_args(words)
    if more and args.command not in REFUSED:
        # Not repeated: one of them may be a passphrase.
        parser.error("unrecognized arguments")
    return args


def _typed(stdin: TextIO) -> list[str]:
    """Up to an empty line or the end, so that a caller may leave the pipe open. Raises ValueError."""
    words: list[str] = []
    while (line := stdin.readline(MAX_STDIN).rstrip("\r\n")) and len(words) < MAX_WORDS:
        # shlex takes a second for a large PSBT, which has no quotes.
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
    add("--device-path", "-d", help="The path of the device, as enumerate gives it.")
    add("--device-type", "-t", help="The type or the model of the device.")
    add("--fingerprint", "-f", type=str.lower, help="The fingerprint of the device's master key.")
    add("--chain", choices=CHAINS, default="main", type=str.lower)
    add("--stdin", action="store_true", help="Read more commands and arguments from standard input.")
    add("--expert", action="store_true", help="Give the details of a key.")
    add("--debug", action="store_true", help="Print the traceback of an unforeseen error on standard error.")
    add("--emulators", action="store_true", help="Ignored: the daemon's configuration names emulators.")
    add("--interactive", "-i", action="store_true", help="Ignored: the commands it is for are refused.")
    add("--password", "-p", help="Refused, unless it is empty: signerd asks for it itself.")
    add("--stdinpass", action="store_true", help="Refused, as --password.")
    add("--version", action=_Version, nargs=0)
    add("--state", type=Path, default=None, metavar="DIR", help="The daemon's state folder.")
    add("--wait", type=int, default=WAIT_SECONDS, metavar="SECONDS", help="How long signtx waits for you.")
    add("--vault", default=None, help="A pinned vault, whose descriptors getdescriptors gives: for Core.")


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
    add("--registration", dest="registrations", action="append", default=[], help=_REGISTRATION)
    shown = commands.add_parser("displayaddress", help="Show an address on the device's screen.")
    either = shown.add_mutually_exclusive_group(required=True)
    either.add_argument("--desc")
    either.add_argument("--path")
    either.add_argument("--registration", help=_REGISTRATION)
    shown.add_argument("--index", type=int, help="Of the address, with --registration.")
    chain = shown.add_mutually_exclusive_group()
    chain.add_argument("--multipath-index", type=int, help="0 for receiving, 1 for change.")
    chain.add_argument("--change", action="store_const", const=1, dest="multipath_index")
    shown.add_argument("--addr-type", choices=ADDRESS_TYPES, type=str.lower, default="wit")
    add = commands.add_parser(
        "registerdescriptor", help="Register a pinned vault on the device."
    ).add_argument
    add("name")
    add("descriptor")
    commands.add_parser("promptpin", help="Have the device show the places of its PIN.")
    add = commands.add_parser("sendpin", help="Send the places of the PIN's digits.").add_argument
    add("pin")


def state_folder(args: argparse.Namespace) -> Path:
    """Found as signerd's own command line does."""
    given: Path | None = args.state
    if given is None and (named := os.environ.get("SIGNERD_STATE")):
        given = Path(named)
    if given is not None:
        return given.absolute()
    from platformdirs import user_state_path

    return user_state_path("signerd")


def _put(value: object) -> None:
    """In ASCII, on one line: Core reads only the first."""
    sys.stdout.write(json.dumps(value) + "\n")


# The module that answers a command, and its function. Imported for that command alone: keys and descriptors
# need all of ``multisig``.
ANSWERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "getxpub": ("keys", "xpub"),
        "getmasterxpub": ("keys", "master_xpub"),
        "getdescriptors": ("keys", "descriptors"),
        "displayaddress": ("keys", "address"),
        "signtx": ("signing", "signed"),
        "promptpin": ("signing", "prompt"),
        "sendpin": ("signing", "send"),
        "registerdescriptor": ("registrations", "register"),
    }
)
NO_PLACE = (None, None, None)
# The shell's status of an interrupted program.
INTERRUPTED = 130


def program() -> NoReturn:
    """Run with the process's arguments and exit. As with HWI, the status is 0 for an error too: the answer
    tells.
    """
    # SIGTERM cancels the request too: the imported PSBT is withdrawn.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        args = parse(sys.argv[1:], sys.stdin)
        answer, status = _guarded(args), 0
    except KeyboardInterrupt:
        answer, status = _no("interrupted, and taken back", HwiCode.ACTION_CANCELED), INTERRUPTED
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.exit(status)


def _guarded(args: Namespace) -> Any:
    try:
        return _answer(args)
    except HwiError as error:
        return _no(str(error), error.code)
    except SignerdError as error:
        return _no(in_words(error), code_of(error))
    except Exception as error:
        # As HWI: a caller that reads JSON gets JSON. Only the error's type: its text may hold a secret.
        if args.debug:
            raise
        return _no(f"signerd-hwi failed in an unforeseen way: {type(error).__name__}", HwiCode.UNKNOWN_ERROR)


def _no(words: str, code: HwiCode) -> dict[str, Any]:
    return {"error": words, "code": code}


def _answer(args: Namespace) -> Any:
    if args.command in REFUSED:
        raise HwiError(sentence(args.command), HwiCode.UNAVAILABLE_ACTION)
    from signerd.client import DaemonClient
    from signerd.hwi import listing

    if args.password or args.stdinpass:
        if args.command == "enumerate":
            return [listing.row_of_no_device(NO_PASSWORDS, HwiCode.BAD_ARGUMENT)]
        raise HwiError(NO_PASSWORDS)
    if args.command == "enumerate":
        return listing.listed(state_folder(args), args)
    daemon = DaemonClient.plain(state_folder(args))
    chosen = listing.choose(daemon, args)
    module, answer = ANSWERS[args.command]
    # As HWI: any of these options requires a registration.
    if args.command == "displayaddress" and (args.registration, args.index, args.multipath_index) != NO_PLACE:
        module = "registrations"
    return getattr(import_module(f"signerd.hwi.{module}"), answer)(daemon, chosen, args)
