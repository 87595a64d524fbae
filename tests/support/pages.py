"""The documents as a reader meets them: pages, headings, links."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unicodedata import normalize

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def prose(path: Path) -> str:
    """Without what stands in fences."""
    return _FENCED.sub("", path.read_text(encoding="utf-8"))


@cache
def anchors(path: Path) -> frozenset[str]:
    """As Python-Markdown names them: those of the site."""
    return frozenset(_slug(heading) for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE))


def links(path: Path) -> list[str]:
    """To other pages and files, and within the page."""
    return [link for link in _LINK.findall(prose(path)) if not re.match(r"[a-z]+:", link)]


def command_lines(path: Path) -> Iterator[str]:
    """The lines of ours in a block: between fences for a shell, or indented by four."""
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
    """Of each block for a shell, in order, whoever's the program is; a line that goes on is one."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    text = re.sub(r"^```(?:python|html)\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for fenced, indented in re.findall(r"^```\n(.*?)^```$|^ {4}(\S[^\n]*)$", text, re.MULTILINE | re.DOTALL):
        yield from filter(None, (fenced or indented).splitlines())


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).replace("`", "")
    ascii_only = normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
