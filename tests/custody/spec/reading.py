"""The specification's own Markdown as data: named endpoints, their fields, answers and permissions, and
the records.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

BESIDE = Path(__file__).parents[4] / "shared" / "spec" / "custody-platform-api.md"
PATH = Path(os.environ.get("CUSTODY_TEST_SPECIFICATION", BESIDE))

_NAME = re.compile(r"`(\w+)`")
_TYPED = re.compile(r"`(\w+)` \(([^()]*(?:\([^()]*\))?[^()]*)\)")
_CALL = re.compile(r"(GET|POST) (/[\w/.-]+[\w])")
_PERMISSION = re.compile(r"`([A-Z]+_[A-Z]+)`")


@dataclass(frozen=True)
class Asked:
    """A field of a body or query."""

    type: str
    required: bool


@dataclass(frozen=True)
class Call:
    """An endpoint as the specification tells of it. ``method`` is None where it does not show one."""

    path: str
    method: str | None
    asked: dict[str, Asked] = field(default_factory=dict)
    # Where a type is not stated: an empty text.
    answered: dict[str, str] = field(default_factory=dict)
    permissions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Specification:
    calls: dict[str, Call]
    records: dict[str, dict[str, str]]
    permissions: frozenset[str]
    text: str


def read(text: str) -> Specification:
    sections = dict(_sections(text))
    calls = {call.path: call for title, body in sections.items() if (call := _call(title, body))}
    for method, path in _CALL.findall(text):
        calls.setdefault(path, Call(path, method))
    records = {
        title.split()[0]: fields for title, body in sections.items() if (fields := _record(title, body))
    }
    return Specification(
        calls, records | _parts(text) | _members(sections), _named_permissions(sections), text
    )


def _sections(text: str) -> list[tuple[str, str]]:
    pieces = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


def rows(body: str) -> list[dict[str, str]]:
    """The rows of every table in it, by the names of their columns."""
    found, head = [], []
    for line in body.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells
        elif not set(line) <= set("|-: "):
            found.append(dict(zip(head, cells, strict=True)))
    return found


def conditions(text: str) -> dict[str, str]:
    """What may go wrong, and what comes of it."""
    return {row["Condition"]: row["Outcome"] for row in rows(dict(_sections(text))["Errors"])}


def _call(title: str, body: str) -> Call | None:
    named = re.fullmatch(r"(?:(GET|POST) |[^`]*: `)(/[\w/-]+)`?", title)
    if named is None:
        return None
    method, path = named.groups()
    return Call(path, method, _asked(body), _answered(body), _permissions(body))


def _asked(body: str) -> dict[str, Asked]:
    """From its tables, or from a line of its own. Without a column that says otherwise a field is
    required.
    """
    asked = {}
    for row in rows(body):
        name = row.get("Field", row.get("Query"))
        if name is not None and "[]." not in name:
            asked[name] = Asked(row["Type"], row.get("Required", "yes") == "yes")
    for line in re.findall(r"(?:Query|Parameter): (`.+?\))\.", body):
        for name, words in _TYPED.findall(line):
            asked[name] = Asked(words.split(",")[0], "required" in words)
    return asked


def _answered(body: str) -> dict[str, str]:
    """What ``Response:`` names in its first sentence, outside of brackets."""
    found: dict[str, str] = {}
    for sentence in re.findall(r"Response(?: fields)?: (.+?)\.(?:\s|$)", body):
        typed = dict(_TYPED.findall(sentence))
        plain = re.sub(r"\([^()]*(?:\([^()]*\))?[^()]*\)", "", sentence)
        found |= {name: typed.get(name, "") for name in _NAME.findall(plain)}
    return found


def _permissions(body: str) -> frozenset[str]:
    said = re.search(r"Permission: (.+?)\.", body)
    return frozenset(_PERMISSION.findall(said.group(1))) if said else frozenset()


def _record(title: str, body: str) -> dict[str, str]:
    """``a, b`` in one row are two fields of its type."""
    if "/" in title or title == "Permission names":
        return {}
    fields = {
        name.strip(): row["Type"] for row in rows(body) if "Field" in row for name in row["Field"].split(",")
    }
    if fields:
        return fields
    line = body.strip().splitlines()[0] if body.strip() else ""
    return _inline(line) if line.startswith("`") else {}


def _parts(text: str) -> dict[str, dict[str, str]]:
    """Records inside records, each told in one line that begins with its name."""
    found = {}
    for name in ("WorkspaceInfo", "Role", "detailed_vault_limits"):
        line = re.search(rf"^(?:- )?`{name}`: (.+)$", text, flags=re.MULTILINE)
        found[name] = _inline(line.group(1)) if line else {}
    entry = re.search(r"^Organisation entry: (.+)$", text, flags=re.MULTILINE)
    found["Organisation"] = _inline(entry.group(1)) if entry else {}
    return found


def _members(sections: dict[str, str]) -> dict[str, dict[str, str]]:
    """What an array holds, where its row says ``each `{ … }```: as ``Vault.signers``."""
    found = {}
    for title, body in sections.items():
        for row in rows(body):
            told = re.search(r"each `{ (.+?) }`", row.get("Notes", ""))
            if told:
                found[f"{title.split()[0]}.{row['Field']}"] = _braced(told.group(1))
        perm = re.search(r"`(\w+)` \(array of `{ (.+?) }`", body)
        if perm:
            found[f"Role.{perm.group(1)}"] = _braced(perm.group(2))
    return found


def _braced(text: str) -> dict[str, str]:
    return dict(part.strip().split(": ", 1) for part in text.split(","))


def _named_permissions(sections: dict[str, str]) -> frozenset[str]:
    return frozenset(_PERMISSION.findall(sections["Permission names"]))


def _inline(line: str) -> dict[str, str]:
    """``a`` (type), ``b``, ``c`` (type): a name without a type has that of the next one that states it."""
    fields: dict[str, str] = {}
    waiting: list[str] = []
    for name, words in re.findall(r"`(\w+)`(?: \(((?:[^()]|\([^()]*\))*)\))?", line):
        waiting.append(name)
        if words:
            fields |= dict.fromkeys(waiting, words)
            waiting = []
    return fields
