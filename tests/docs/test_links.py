"""Every link resolves, every page is in the site, and every named page exists."""

import re

import yaml

from tests.support.pages import DOCS, PAGES, ROOT, anchors, links, named
from tests.support.processes import ended

READ = [*PAGES, *sorted(ROOT.glob("*.md"))]
# tools/site makes these when it builds the site.
MADE = re.compile(r"build/reference/|changelog\.md$")


class _Settings(yaml.SafeLoader):
    """mkdocs.yml, whose tags are MkDocs' own."""


_Settings.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_given: None)
SITE = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Settings)


def places(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from places(below if isinstance(below, list) else [below])


def dead(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith("reference/"):
            continue  # tools/site/check.py looks for these in the built site
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield f"{named(page)}: {link}"


def test_every_link_holds():
    assert [link for page in READ for link in dead(page)] == []


def test_every_page_stands_in_the_menu_once_or_is_linked_from_understand():
    listed = [place for place in places(SITE["nav"]) if not MADE.search(place)]
    beside = [str(page.relative_to(DOCS)) for each in SITE["not_in_nav"].split() for page in DOCS.glob(each)]
    assert sorted(listed + beside) == sorted(str(page.relative_to(DOCS)) for page in PAGES), "see mkdocs.yml"
    index = DOCS / "understand" / "index.md"
    linked = {(index.parent / link).resolve() for link in links(index)}
    assert [page for page in beside if DOCS / page not in linked] == []


def written(options, pattern, *where):
    asked = ["git", "grep", options, pattern, "--", *where]
    return sorted(set(ended(asked, cwd=ROOT).stdout.splitlines()))


def test_a_page_that_code_or_an_error_names_is_there():
    """By its path in docstrings; by its title in what a person reads, who has the site and no source."""
    paths = written("-ohE", r"docs/[a-z_/0-9-]+\.md", ".", ":!CHANGELOG.md", ":!*.toml")
    assert [path for path in paths if not (ROOT / path).exists()] == []
    titles = written("-ohP", r"page '\K.+(?=' of the documentation)", "signerd", "custody")
    headings = {page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES}
    assert (len(titles) > 3, [title for title in titles if f"# {title}" not in headings]) == (True, [])
    told = written("-nP", r'^(?!.*""".*docs/)[^#]*".*docs/[a-z]+/.*\.md', "signerd", "custody")
    assert told == []
