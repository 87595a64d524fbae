"""Checks tests/vectors/bip322.json with other implementations, in a separate environment:

    python3 -m venv elsewhere
    elsewhere/bin/pip install bip322-core==0.12.0 btclib==2026.9.24 bip322==0.3.0
    elsewhere/bin/python tests/support/bip322_elsewhere.py

It prints each verdict that differs from the file's, and ends with status 1 where one does. They
are no dependency of the tests (ADR 33); this needs nothing else but the standard library.
"""

import json
import sys
from pathlib import Path

import bip322
import bip322core

VECTORS = Path(__file__).parents[1] / "vectors" / "bip322.json"
# The Rust crate verifies single signatures in the simple form only.
SINGLE = ("profile-control", "profile-high-s", "profile-extra-item", "profile-sighash")


def by_the_crate(vector: dict[str, str]) -> str:
    try:
        bip322.verify_simple_encoded(vector["address"], vector["message"], vector["signature"][3:])
    except bip322.VerificationError:
        return "invalid"
    return "valid"


def asked() -> int:
    others = 0
    for vector in json.loads(VECTORS.read_text())["vectors"]:
        said = bip322core.verify_message(
            vector["address"], vector["signature"], vector["message"].encode(), allow_legacy=False
        )
        told = {"bip322-core": said.state.value}
        if vector["id"].startswith(SINGLE):
            told["the crate bip322"] = by_the_crate(vector)
        for who, state in told.items():
            if state != vector["state"]:
                others += 1
                sys.stdout.write(f"{vector['id']}: {vector['state']} in the file, {state} by {who}\n")
    return others


if __name__ == "__main__":
    raise SystemExit(asked() > 0)
