"""The process that fuzzes one target: `python -m fuzz.drive NAME [LIBFUZZER'S ARGUMENTS]`.
Only this module imports atheris.

Only the imports below are instrumented: the parsers, embit, and the targets with their requirements, so that
the fuzzer sees how near an input comes to breaking one.
"""

import shlex
import sys
from random import Random

import atheris

with atheris.instrument_imports(
    include=[
        "multisig",
        "firmware_bridge",
        "embit",
        "custody.client",
        "custody.schemas",
        "signerd",
        "fuzz.targets",
    ]
):
    from fuzz.targets import TARGETS

from fuzz.target import Mutator


def custom(mutator: Mutator, data: bytes, largest: int, seed: int) -> bytes:
    def change(value: bytes) -> bytes:
        # libFuzzer's mutator needs at least one byte to change.
        return bytes(atheris.Mutate(value or b"\x00", len(value) + 16))

    changed = mutator(bytes(data), Random(seed), change)
    # Where the result is too large, the plain mutator changes the original instead.
    return changed if len(changed) <= largest else bytes(atheris.Mutate(data, largest))


def main() -> None:
    target = TARGETS[sys.argv[1]]
    mutator = target.mutator
    # To merge a corpus, libFuzzer restarts the path in argv[0] through a shell.
    itself = shlex.join((sys.executable, "-m", "fuzz.drive", target.name))
    arguments = [itself, *sys.argv[2:], f"-max_len={target.largest}"]
    if mutator is None:
        atheris.Setup(arguments, target.check)
    else:
        atheris.Setup(
            arguments,
            target.check,
            custom_mutator=lambda data, largest, seed: custom(mutator, data, largest, seed),
        )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
