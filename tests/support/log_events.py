"""The log events in the platform's source, and those documented in docs/operate/logs.md."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "custody" / "server"
DOCUMENT = ROOT / "docs" / "operate" / "logs.md"
LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
ROW = re.compile(
    r"^\| `(?P<event>[^`]+)` \| (?P<levels>[^|]+) \|(?P<fields>[^|]*)\| (?P<meaning>[^|]+) \|$",
    re.MULTILINE,
)


@dataclass
class Event:
    """All levels and fields that an event is written with."""

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def written() -> dict[str, Event]:
    found: dict[str, Event] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for level, call in _calls(ast.parse(path.read_text())):
            name = call.args[0]
            assert isinstance(name, ast.Constant), f"{path.name}:{call.lineno} computes its event"
            event = found.setdefault(str(name.value), Event())
            event.levels.add(level)
            names = {keyword.arg for keyword in call.keywords}
            assert None not in names, f"{path.name}:{call.lineno} computes its fields"
            event.fields |= {str(name) for name in names}
            event.fields |= {"exception"} if level == "error" and "exc_info" in names else set()
            event.fields.discard("exc_info")
    return found


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "log"
            and node.func.attr in LEVELS
        ):
            call = ast.Call(node.func, node.args, node.keywords, lineno=node.lineno)
            if node.func.attr == "exception":
                call.keywords = [*call.keywords, ast.keyword("exception", ast.Constant(None))]
            yield LEVELS[node.func.attr], call


def documented() -> dict[str, Event]:
    found = {}
    for row in ROW.finditer(DOCUMENT.read_text()):
        assert row["event"] not in found, f"{row['event']} stands there twice"
        levels = {level.strip() for level in row["levels"].split(",")}
        found[row["event"]] = Event(levels, set(re.findall(r"`(\w+)`", row["fields"])))
    return found
