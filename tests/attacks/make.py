"""Writes `tests/attacks/corpus`: one file for each attack, from fixed seeds, so that each run gives the same
bytes.

    python -m tests.attacks.make

The files are what the tests read; `test_corpus.py` compares them with what this makes.
"""

import base64
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from multisig import Psbt
from tests.attacks.people import ALICE, VAULT
from tests.attacks.recipes import ATTACKS, PROPOSALS
from tests.attacks.recipes.absurd import DAMAGES
from tests.attacks.recipes.devices import ANSWERS, COPIES, FIRMWARE, LINKS, MISBEHAVIOURS, Copy
from tests.attacks.recipes.platform import BODIES, NUMBERS
from tests.attacks.recipes.quorum import VAULTS
from tests.attacks.recipes.scene import Recipe, Scene, story
from tests.conformance.rigs import NETWORK

CORPUS = Path(__file__).parent / "corpus"


def files() -> dict[str, str]:
    """Name and text of every file."""
    return {f"{number}.json": _text(_attack(number)) for number in ATTACKS}


def _text(attack: dict[str, Any]) -> str:
    return json.dumps(attack, indent=1, ensure_ascii=True) + "\n"


def _attack(number: str) -> dict[str, Any]:
    sentence, source = ATTACKS[number]
    return {
        "number": number,
        "sentence": sentence,
        "source": source,
        "network": str(NETWORK),
        "pinned": VAULT.descriptor,
        **_parts(number),
    }


def _parts(number: str) -> dict[str, Any]:
    """The doors that this attack tries; what it does not try is left out."""
    parts: dict[str, list[Any]] = {
        "proposals": [_proposal(number, recipe) for recipe in PROPOSALS.get(number, ())],
        "vaults": [asdict(vault) for vault in VAULTS.get(number, ())],
        "misbehaviours": [asdict(device) for device in MISBEHAVIOURS.get(number, ())],
        "firmware": [asdict(firmware) for firmware in FIRMWARE.get(number, ())],
        "answers": _answers() if number == "S19" else [],
        "copies": [_copy(copy) for copy in COPIES] if number == "S33" else [],
        "damages": [asdict(damage) for damage in DAMAGES] if number == "S23" else [],
        "links": [{"name": n, "lie": lie, "outcome": o} for n, (lie, o) in LINKS.items() if number == "S21"],
        "numbers": [asdict(told) for told in NUMBERS] if number == "F-number" else [],
        "bodies": [asdict(body) for body in BODIES] if number == "F-bomb" else [],
    }  # fmt: skip
    return {name: cases for name, cases in parts.items() if cases}


def _proposal(number: str, recipe: Recipe) -> dict[str, Any]:
    scene = Scene(f"{number} {recipe.name}")
    psbt = recipe.psbt(scene)
    neighbours = [
        {
            "psbt": _base64(other.psbt),
            "signed": other.signed,
            "state": other.state,
            **({"platform": dict(other.tells)} if other.tells else {}),
        }
        for other in recipe.neighbours(scene)
    ]
    return {
        "name": recipe.name,
        "honest": recipe.honest,
        "psbt": _base64(psbt),
        "platform": {**story(psbt, recipe.named), **recipe.says, **recipe.tells(scene)},
        "around": {**recipe.around, **({"neighbours": neighbours} if neighbours else {})},
        "profile": None if recipe.forward is None else str(recipe.forward.profile().key),
        "later": None if recipe.later is None else _later(recipe.later(scene)),
        "findings": [list(finding) for finding in recipe.findings],
        "checks": list(recipe.checks),
        "held": list(recipe.held),
        "warned": list(recipe.warned),
        "handover": recipe.handover,
        "off": recipe.off,
        "then": list(recipe.then),
    }


def _later(psbt: Psbt) -> dict[str, Any]:
    return {"psbt": _base64(psbt), "platform": story(psbt)}


def _answers() -> list[dict[str, Any]]:
    """Each is an answer to the same honest PSBT of its own scene."""
    made = []
    for answer in ANSWERS:
        scene = Scene(f"S19 {answer.name}")
        given = answer.answer(scene)
        made.append(
            {
                "name": answer.name,
                "psbt": _base64(scene.honest),
                "platform": story(scene.honest),
                "answer": _base64(given),
                "outcome": answer.outcome,
            }
        )
    return made


def _copy(copy: Copy) -> dict[str, Any]:
    scene = Scene(f"S33 {copy.name}")
    psbts = {"psbt": scene.honest, "signed": ALICE.sign(scene.honest), "copy": copy.copy(scene)}
    return {
        "name": copy.name,
        **{name: _base64(psbt) for name, psbt in psbts.items()},
        "outcome": copy.outcome,
        "off": copy.off,
    }


def _base64(psbt: Psbt) -> str:
    return base64.b64encode(psbt.to_bytes()).decode()


def write() -> None:
    CORPUS.mkdir(exist_ok=True)
    for name, text in files().items():
        (CORPUS / name).write_text(text, encoding="ascii")


if __name__ == "__main__":
    write()
