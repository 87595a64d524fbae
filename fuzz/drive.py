"""The process that fuzzes one target: `python -m fuzz.drive NAME [LIBFUZZER'S ARGUMENTS]`.
It alone knows atheris.

Only what is imported below is instrumented: the parsers, and embit, in which an input may go another way. A
target's own requirements are instrumented too, so that the fuzzer sees how near it came.
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
        # An empty value has nothing to change, and room for something.
        return bytes(atheris.Mutate(value or b"\x00", len(value) + 16))

    changed = mutator(bytes(data), Random(seed), change)
    # One that has grown too large is not tried, and what it grew from is changed in the plain way.
    return changed if len(changed) <= largest else bytes(atheris.Mutate(data, largest))


def main() -> None:
    target = TARGETS[sys.argv[1]]
    mutator = target.mutator
    # To merge a corpus, libFuzzer starts itself again, by what it takes for its own path, through a shell.
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
