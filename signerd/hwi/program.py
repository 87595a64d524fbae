"""The program: one command, one JSON value on standard output, and HWI's exit status."""

import json
import signal
import sys
from argparse import Namespace
from typing import Any, NoReturn

from signerd.errors import SignerdError
from signerd.hwi.arguments import NO_PASSWORDS, REFUSED, parse, sentence, state_folder
from signerd.hwi.codes import Code, HwiError, code_of, in_words
from signerd.hwi.connection import DaemonConnection

# As the shell tells of a program that was interrupted.
INTERRUPTED = 130


def program() -> NoReturn:
    """Run with the process's arguments and end the process. HWI ends with 0 for a no as well: the answer says it."""
    # Core's end, and a service manager's, are the caller's no: what was brought is taken back.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        args = parse(sys.argv[1:], sys.stdin)
        answer, status = _guarded(args), 0
    except KeyboardInterrupt:
        answer, status = _no("interrupted, and taken back", Code.ACTION_CANCELED), INTERRUPTED
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.exit(status)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _guarded(args: Namespace) -> Any:
    try:
        return _answer(args)
    except HwiError as error:
        return _no(str(error), error.code)
    except SignerdError as error:
        return _no(in_words(error), code_of(error))
    except Exception as error:
        # As HWI has it: a caller that reads JSON gets JSON. What is unforeseen may carry anything: its kind alone is told.
        if args.debug:
            raise
        return _no(f"signerd-hwi failed in an unforeseen way: {type(error).__name__}", Code.UNKNOWN_ERROR)


def _no(words: str, code: Code) -> dict[str, Any]:
    return {"error": words, "code": code}


def _answer(args: Namespace) -> Any:
    if args.password is not None or args.stdinpass:
        raise HwiError(NO_PASSWORDS, Code.BAD_ARGUMENT)
    if args.command in REFUSED:
        raise HwiError(sentence(args.command), Code.UNAVAILABLE_ACTION)
    from signerd.hwi import listing

    daemon = DaemonConnection(state_folder(args))
    if args.command == "enumerate":
        return listing.listed(daemon, args)
    return _of_a_device(args, daemon, listing.choose(daemon, args))


def _of_a_device(args: Namespace, daemon: DaemonConnection, chosen: Any) -> Any:
    """Each command's module is imported with it: keys and descriptors need the whole of ``multisig``."""
    match args.command:
        case "signtx":
            from signerd.hwi.signing import signed

            return signed(daemon, chosen, args.psbt, args.wait)
        case "promptpin" | "sendpin":
            from signerd.hwi import pin

            prompted = args.command == "promptpin"
            return pin.prompt(daemon, chosen) if prompted else pin.send(daemon, chosen, args.pin)
        case "displayaddress":
            from signerd.hwi.showing import address

            return address(daemon, chosen, args)
        case _:
            return _of_keys(args, daemon, chosen)


def _of_keys(args: Namespace, daemon: DaemonConnection, chosen: Any) -> Any:
    from signerd.hwi import keys

    match args.command:
        case "getxpub":
            return keys.xpub(daemon, chosen, args)
        case "getmasterxpub":
            return keys.master_xpub(daemon, chosen, args)
        case "getdescriptors":
            return keys.descriptors(chosen, args)
        case command:
            raise AssertionError(f"no answer for {command}")
