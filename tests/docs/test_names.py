"""The files, folders, tests and tables that the pages for contributors name exist."""

import re
from itertools import filterfalse
from posixpath import normpath

import pytest

from tests.support.pages import DOCS, ROOT, asked_of_git, named, prose

ARCHITECTURE = DOCS / "understand" / "architecture.md"
PAGES = [ROOT / "CONTRIBUTING.md", ARCHITECTURE, *sorted((DOCS / "build" / "adding").glob("*.md"))]
# Of what only a machine or a build has, or the person names.
ELSEWHERE = re.compile(r"^\.cache|^\.venv|^site/|^fuzz/found|^/|\.\./shared|[A-Z]{4}")
# Of the example that a page adds: the folder is there.
EXAMPLE = re.compile(r"foo|electrum")
# Where a page says that its names lie.
BELOW = re.compile(r"\bbelow `([^`]+)`")
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"\.{0,2}/?[a-z0-9_.-]+/[a-z0-9_./-]*|[a-z0-9_]+\.(?:py|md|toml|yml|json)", re.ASCII)
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*")


FILES = asked_of_git("ls-files")
PLACES = {*FILES, *(file.rsplit("/", depth)[0] for file in FILES for depth in range(1, file.count("/") + 1))}
NAMES = {place.rsplit("/", 1)[-1] for place in PLACES}


def quoted(page):
    return QUOTED.findall(prose(page))


def below(page):
    inside = ["custody/server", "signerd"] if page == ARCHITECTURE else BELOW.findall(prose(page))
    return ["", *(f"{folder.strip('/')}/" for folder in inside)]


def is_there(path, folders):
    path = path.strip("/")
    while EXAMPLE.search(path):
        path, slash, _name = path.rpartition("/")
        if not slash:
            return True
    return path in NAMES if "/" not in path else any(normpath(folder + path) in PLACES for folder in folders)


def gone(page):
    """The files, folders, tests, tables and constants that it names and that are not there."""
    words, folders = quoted(page), below(page)
    paths = (word for word in words if PATH.fullmatch(word) and not ELSEWHERE.search(word))
    yield from (path for path in paths if not is_there(path, folders))
    for word in filterfalse(EXAMPLE.search, words):
        file, _, test = word.removeprefix("../").partition("::")
        if file.endswith(".py") and test:
            text = "".join((ROOT / place).read_text() for place in FILES if place.endswith(f"/{file}"))
            name, whole = re.split(r"[\[…]", test)[0], "" if "…" in test else r"\("
            yield from [] if re.search(rf"def {name}{whole}", text) else [word]
    names = {word for word in words if CONSTANT.fullmatch(word)}
    found = asked_of_git("grep", "-ohwE", "|".join(names), "--", "*.py", "Makefile") if names else []
    yield from names - set(found)
    for word, path in re.findall(r"`(\w+)` (?:of|in)\s+`([\w/.]+\.py)`", prose(page)):
        if not is_there(path, folders) or ((ROOT / path).exists() and not defines(path, word)):
            yield f"{word} in {path}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_it_names_is_there(page):
    assert list(gone(page)) == []


def defines(path, word):
    return re.search(rf"^ *(?:class |def )?{word}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
