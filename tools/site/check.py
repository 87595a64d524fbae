"""``check.py SITE``: each page names its version, loads nothing from elsewhere, and its links resolve."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

VERSION = re.compile(r"Version [0-9]\S*\. The tests of this version")
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        text = path.read_text(encoding="utf-8")
        self.says_version = VERSION.search(text) is not None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and "canonical" not in given.get("rel", ""):
            self.loaded.append(given.get("href", ""))
        elif tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])


def faults(site: Path) -> list[str]:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        if not page.says_version:
            found.append(f"{here} does not say the version that it was tested with")
        found += [f"{here} loads {url} from elsewhere" for url in page.loaded if _elsewhere(url)]
        for link in page.links + [url for url in page.loaded if not _elsewhere(url)]:
            url = urlsplit(link)
            if _elsewhere(link) or path.name == "404.html":
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{here}: {link} is not there")
            elif url.fragment and target in pages and unquote(url.fragment) not in pages[target].ids:
                found.append(f"{here}: {link} has no such anchor")
    return sorted(set(found))


def _elsewhere(url: str) -> bool:
    return bool(urlsplit(url).scheme or urlsplit(url).netloc) and not url.startswith("data:")


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    print("\n".join(wrong), end="\n" if wrong else "")
    raise SystemExit(bool(wrong))
