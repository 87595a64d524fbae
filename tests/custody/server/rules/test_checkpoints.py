"""Lines of a checkpoint file: one form, chained, signed; any change is located (P42)."""

import json
from collections.abc import Callable
from hashlib import sha256

import pytest

from custody.server.rules.checkpoints import (
    NO_LINE,
    Checkpoint,
    CheckpointHistory,
    Head,
    public_key_of,
    read_into,
)
from multisig import secp256k1

SECRET, OTHER = bytes([1]) * 32, bytes([2]) * 32
KEY = public_key_of(SECRET)
TRUSTED = frozenset({KEY})


def line(number: int, previous: str, heads: dict[str, int] | None = None, secret: bytes = SECRET) -> bytes:
    sizes = {"platform": number * 10} if heads is None else heads
    unsigned = Checkpoint(
        number=number,
        previous=previous,
        made_at=f"2026-03-0{number}T12:00:00.000Z",
        heads={name: Head(size=size, hash=f"{size:064x}") for name, size in sizes.items()},
        public_key=public_key_of(secret),
    )
    return unsigned.signed(secret, bytes(32)).line + b"\n"


def lines(count: int) -> list[bytes]:
    made, previous = [], NO_LINE
    for number in range(1, count + 1):
        made.append(line(number, previous))
        previous = sha256_hex(made[-1][:-1])
    return made


def sha256_hex(text: bytes) -> str:
    return sha256(text).hexdigest()


def read(given: list[bytes], trusted: frozenset[str] | None = TRUSTED) -> CheckpointHistory:
    return read_into(CheckpointHistory(), given, trusted)


def test_the_signature_is_bip_340_over_what_the_document_says() -> None:
    """As an auditor without this program checks it: the line without its signature,
    sorted, in a tagged hash.
    """
    values = json.loads(lines(1)[0])
    signature = bytes.fromhex(values.pop("signature"))
    message = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    tag = sha256(b"custody/audit-checkpoint").digest()
    key = bytes.fromhex(values["public_key"])
    assert secp256k1.verify_schnorr(key, sha256(tag + tag + message).digest(), signature)


def change(number: int, old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    def act(given: list[bytes]) -> list[bytes]:
        assert old in given[number - 1]
        return [*given[: number - 1], given[number - 1].replace(old, new, 1), *given[number:]]

    return act


@pytest.mark.parametrize(
    ("act", "at", "sentence"),
    [
        (change(2, b'"size":20', b'"size":21'), 2, "its signature is not valid"),
        (change(2, b"2026-03-02", b"2026-03-09"), 2, "its signature is not valid"),
        (change(2, KEY.encode(), public_key_of(OTHER).encode()), 2, "not a trusted key"),
        (change(2, KEY.encode(), b"f" * 64), 2, "not a trusted key"),
        (change(2, b'"size":20', b'"size": 20'), 2, "is not a checkpoint"),
        (change(2, b'"version":1', b'"version":2'), 2, "is not a checkpoint"),
        (change(2, b'"size":20', b'"size":2e1'), 2, "is not a checkpoint"),
        (change(2, b"{", b'{"extra":1,'), 2, "is not a checkpoint"),
        (change(2, b"{", b""), 2, "is not a checkpoint"),
        (lambda given: given[1:], 1, "does not follow"),
        (lambda given: [given[0], given[2]], 2, "does not follow"),
        (lambda given: [given[0], given[2], given[1]], 2, "does not follow"),
        (lambda given: [given[0], given[0]], 2, "does not follow"),
        (lambda given: [given[0], line(2, NO_LINE)], 2, "does not follow"),
        (
            lambda given: [given[0], line(2, sha256_hex(given[0][:-1]), {"platform": 9})],
            2,
            "names 9 rows of platform after 10",
        ),
        (lambda given: [given[0], line(2, sha256_hex(given[0][:-1]), secret=OTHER)], 2, "not a trusted key"),
    ],
)
def test_the_first_line_that_is_wrong_is_named(
    act: Callable[[list[bytes]], list[bytes]], at: int, sentence: str
) -> None:
    history = read(act(lines(3)))
    assert history.fault is not None
    assert (history.fault[0], history.number) == (at, at - 1)
    assert sentence in history.fault[1]


def test_a_key_that_is_no_point_signs_nothing() -> None:
    forged = change(1, KEY.encode(), b"f" * 64)(lines(1))
    assert read(forged, frozenset({"f" * 64})).fault == (1, "was changed: its signature is not valid")


def test_what_a_power_cut_left_of_a_line_counts_for_nothing() -> None:
    given = lines(2)
    assert read([given[0], given[1][:-1]]).number == 1
    assert read([given[0], given[1][:40]]).fault is None


def test_former_keys_may_be_trusted_too() -> None:
    first = line(1, NO_LINE)
    second = line(2, sha256_hex(first[:-1]), secret=OTHER)
    assert read([first, second], frozenset({KEY, public_key_of(OTHER)})).number == 2
