"""The program: HWI's arguments, one command, one JSON value on standard output, and HWI's exit status."""

import argparse
import json
import os
import shlex
import signal
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

from custody._version import __version__
from signerd.client import DaemonClient
from signerd.errors import HwiCode, SignerdError
from signerd.hwi.codes import NO_PASSWORDS, REFUSED, HwiError, code_of, in_words, refuse
from signerd.hwi.listing import NETWORKS, choose

PROGRAM: Final = "signerd-hwi"
_REGISTRATION: Final = "The answer of registerdescriptor."
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

    def print_help(self, file: Any = None) -> None:
        super().print_help(file or sys.stderr)
        _put({"error": "Help text requested", "code": HwiCode.HELP_TEXT})

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        _put({"error": f"{self.prog}: error: {message}", "code": HwiCode.MISSING_ARGUMENTS})
        self.exit(2)


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
    _add_commands(parser.add_subparsers(dest="command", required=True, parser_class=Parser))
    return parser


def _add_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--device-path", "-d", help="The path of the device, as enumerate gives it.")
    add("--device-type", "-t", help="The type or the model of the device.")
    add("--fingerprint", "-f", type=str.lower, help="The fingerprint of the device's master key.")
    add("--chain", choices=list(NETWORKS), default="main", type=str.lower)
    add("--stdin", action="store_true", help="Read more commands and arguments from standard input.")
    add("--expert", action="store_true", help="Give the details of a key.")
    add("--debug", action="store_true", help="Print the traceback of an unforeseen error on standard error.")
    add("--emulators", action="store_true", help="Also emulators of devices.")
    add("--interactive", "-i", action="store_true", help="Ignored: the commands it is for are refused.")
    add("--password", "-p", help="Refused, unless it is empty: signerd asks for it itself.")
    add("--stdinpass", action="store_true", help="Refused, as --password.")
    add("--version", action="version", version=json.dumps(f"{PROGRAM} {__version__}"))
    named = os.environ.get("SIGNERD_STATE") or None
    add("--state", type=Path, default=named, metavar="DIR", help="The daemon's state folder.")
    add("--wait", type=int, default=WAIT_SECONDS, metavar="SECONDS", help="How long signtx waits for you.")
    add("--vault", default=None, help="A pinned vault, whose descriptors getdescriptors gives: for Core.")


def _add_commands(commands: "argparse._SubParsersAction[Parser]") -> None:
    def command(name: str, answer: str, text: str) -> Parser:
        """``answer``: a module of signerd.hwi and its function."""
        added = commands.add_parser(name, help=text)
        added.set_defaults(answer=answer)
        return added

    of_type: dict[str, Any] = {"choices": ADDRESS_TYPES, "type": str.lower, "default": "wit"}
    of_account: dict[str, Any] = {"type": int, "default": 0}
    command("enumerate", "listing.listed", "List the devices, from the daemon's memory.")
    add = command("getxpub", "keys.xpub", "The key of a standard account, or below one.").add_argument
    add("path")
    add = command("getmasterxpub", "keys.master_xpub", "The key of a BIP-84 account.").add_argument
    add("--addr-type", **of_type)
    add("--account", **of_account)
    add = command("getdescriptors", "keys.descriptors", "Of the registered BIP-84 account.").add_argument
    add("--account", **of_account)
    pool = command("getkeypool", "keys.keypool", "The same, for Core's importdescriptors.")
    pool.add_argument("--account", **of_account)
    pool.add_argument("--internal", action="store_true", help="Change addresses only.")
    pool.add_argument("--path", help="Of the addresses of one chain, such as m/84h/0h/0h/0/*.")
    pool.add_argument("start", type=int)
    pool.add_argument("end", type=int)
    add = pool.add_mutually_exclusive_group().add_argument
    add("--keypool", action="store_true", default=True, help="Core gives out these addresses.")
    add("--nokeypool", action="store_false", dest="keypool", help="Core only watches them.")
    add = pool.add_mutually_exclusive_group().add_argument
    add("--addr-type", **of_type)
    add("--all", action="store_true", help="Each address type that signerd has: native segwit.")
    add = command("signtx", "signing.signed", "Have a PSBT approved by the person and signed.").add_argument
    add("psbt")
    add("--registration", dest="registrations", action="append", default=[], help=_REGISTRATION)
    shown = command("displayaddress", "keys.address", "Show an address on the device's screen.")
    shown.add_argument("--addr-type", **of_type)
    shown.add_argument("--index", type=int, help="Of the address, with --registration.")
    add = shown.add_mutually_exclusive_group(required=True).add_argument
    add("--desc")
    add("--path")
    add("--registration", help=_REGISTRATION)
    add = shown.add_mutually_exclusive_group().add_argument
    add("--multipath-index", type=int, help="0 for receiving, 1 for change.")
    add("--change", action="store_const", const=1, dest="multipath_index")
    text = "Register a pinned vault on the device."
    add = command("registerdescriptor", "registrations.register", text).add_argument
    add("name")
    add("descriptor")
    command("promptpin", "signing.prompt", "Have the device show the places of its PIN.")
    command("sendpin", "signing.send", "Send the places of the PIN's digits.").add_argument("pin")
    for name in REFUSED:
        refused = command(name, "", "Not done here: signerd says why.")
        for argument in ("message", "path") if name == "signmessage" else ():
            refused.add_argument(argument)


def state_folder(args: argparse.Namespace) -> Path:
    """Found as signerd's own command line does."""
    from platformdirs import user_state_path

    given: Path | None = args.state
    return user_state_path("signerd") if given is None else given.absolute()


def _put(value: object) -> None:
    """In ASCII, on one line: Core reads only the first."""
    sys.stdout.write(json.dumps(value) + "\n")


NO_PLACE = (None, None, None)
# What enumerate answers where it cannot list any.
ROW_OF_NO_DEVICE: Final = {
    "type": "signerd",
    "path": "",
    "label": None,
    "model": "signerd",
    "needs_pin_sent": False,
    "needs_passphrase_sent": False,
}
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
    _put(answer)
    sys.exit(status)


def _guarded(args: Namespace) -> Any:
    try:
        return _answer(args)
    except HwiError as error:
        no = _no(str(error), error.code)
    except SignerdError as error:
        no = _no(in_words(error), code_of(error))
    except Exception as error:
        from multisig import MultisigError

        if isinstance(error, MultisigError):
            no = _no(in_words(error), HwiCode.BAD_ARGUMENT)
        elif args.debug:
            raise
        else:
            # As HWI: a caller that reads JSON gets JSON. Only the error's type: its text may hold a secret.
            words = f"signerd-hwi failed in an unforeseen way: {type(error).__name__}"
            no = _no(words, HwiCode.UNKNOWN_ERROR)
    # Always an array: Core then shows the error, and programs continue.
    return [ROW_OF_NO_DEVICE | no] if args.command == "enumerate" else no


def _no(words: str, code: HwiCode) -> dict[str, Any]:
    return {"error": words, "code": code}


def _answer(args: Namespace) -> Any:
    if args.password or args.stdinpass:
        raise HwiError(NO_PASSWORDS)
    module, _dot, answer = args.answer.partition(".")
    # As HWI: any of these options requires a registration.
    if args.command == "displayaddress" and (args.registration, args.index, args.multipath_index) != NO_PLACE:
        module = "registrations"
    if args.command == "installudevrules":
        refuse(args, None)
    daemon = DaemonClient.plain(state_folder(args))
    chosen = None if args.command == "enumerate" else choose(daemon, args)
    if chosen is not None and args.command in REFUSED:
        refuse(args, chosen.device)
    # Imported for that command alone: keys and descriptors need all of ``multisig``.
    return getattr(import_module(f"signerd.hwi.{module}"), answer)(daemon, chosen, args)
