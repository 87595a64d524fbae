"""The documentation's pages: prose, anchors, links and commands."""

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unicodedata import normalize

import pytest

from tests.support.processes import ended

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def asked_of_git(*arguments: str) -> list[str]:
    """The lines that git answers. Skips the test or the module where there is no clone, or no git."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no clone, or no git", allow_module_level=True)
    return ended(["git", *arguments], cwd=ROOT).stdout.splitlines()


@cache
def prose(path: Path) -> str:
    """The text without fenced blocks."""
    return _FENCED.sub("", path.read_text(encoding="utf-8"))


@cache
def anchors(path: Path) -> frozenset[str]:
    """The ids of headings, as Python-Markdown makes them for the site."""
    return frozenset(_slug(heading) for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE))


def links(path: Path) -> list[str]:
    """Links to other pages and files, and within the page."""
    return [link for link in _LINK.findall(prose(path)) if not re.match(r"[a-z]+:", link)]


def command_lines(path: Path) -> Iterator[str]:
    """Lines with our commands in blocks: fenced for a shell, or indented by four."""
    fence: str | None = None
    for line in re.sub(r"\\\n\s*", " ", path.read_text(encoding="utf-8")).splitlines():
        if line.lstrip().startswith("```"):
            fence = None if fence is not None else line.strip()
            continue
        bare = re.sub(r"\s+#.*$", "", line.strip())
        in_block = line.startswith("    ") if fence is None else fence in {"```", "```sh"}
        if in_block and re.match(r"(signerd|custody) [a-z-]", bare) and "…" not in bare and "[" not in bare:
            yield bare


def shell_lines(path: Path) -> Iterator[str]:
    """The lines of each shell block in order, of any program; continued lines are joined."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    text = re.sub(r"^```(?:python|html)\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for fenced, indented in re.findall(r"^```\n(.*?)^```$|^ {4}(\S[^\n]*)$", text, re.MULTILINE | re.DOTALL):
        yield from filter(None, (fenced or indented).splitlines())


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).replace("`", "")
    ascii_only = normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
