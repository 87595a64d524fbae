"""Every link resolves, every page is in the site, and every named page exists. Pictures are small, stand in a
guide, and say in words what they show; those of devices' screens are what the virtual devices show.
"""

import re

import yaml

from tests.support.device_pictures import FOLDER, pictures
from tests.support.pages import DOCS, PAGES, ROOT, anchors, asked_of_git, links, named

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
    return sorted(set(asked_of_git("grep", options, pattern, "--", *where)))


def test_a_page_that_code_or_an_error_names_is_there():
    """By its path in docstrings; by its title in what a person reads, who has the site and no source."""
    paths = written("-ohE", r"docs/[a-z_/0-9-]+\.md", ".", ":!CHANGELOG.md", ":!*.toml")
    assert [path for path in paths if not (ROOT / path).exists()] == []
    titles = written("-ohP", r"page '\K.+(?=' of the documentation)", "signerd", "custody")
    headings = {page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES}
    assert (len(titles) > 3, [title for title in titles if f"# {title}" not in headings]) == (True, [])
    told = written("-nP", r'^(?!.*""".*docs/)[^#]*".*docs/[a-z]+/.*\.md', "signerd", "custody")
    assert told == []


MOST_BYTES = 60_000


def test_each_picture_is_current_and_stands_in_a_guide_with_its_words():
    """Where they differ: ``python -m tests.support.device_pictures``."""
    guides = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "sign").glob("*.md"))
    drawn = list(pictures())
    assert sorted(FOLDER.iterdir()) == sorted(path for path, _, _ in drawn)
    for path, svg, link in drawn:
        assert path.read_text(encoding="utf-8") == svg, path.name
        assert link in guides, link


def test_pictures_of_pages_are_small_and_stand_in_a_guide_with_their_words():
    guides = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (DOCS / "assets").glob("*.png"):
        assert picture.stat().st_size < MOST_BYTES, picture.name
        assert re.search(rf"!\[[^\]]{{20,}}\]\(\.\./assets/{picture.name}\)", guides), picture.name
