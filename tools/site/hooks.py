"""MkDocs hooks: the version, and the pages that are generated when the site is built.

The reference is generated from docstrings, and from the OpenAPI documents.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from openapi import rendered  # noqa: E402 - it stands beside this file, which MkDocs runs by its path

PAGES = ROOT / "custody/common/pages/static"
PACKAGES = {
    "firmware_bridge": "Devices for programs.",
    "signerd.client": "The daemon, for programs of the same person.",
    "custody.client": "The platform, for programs.",
}
DOCUMENTS = {"loopback": "The daemon's API", "platform": "The platform's API"}


def version() -> str:
    found = re.search(r'__version__ = "(.+)"', (ROOT / "custody/_version.py").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def on_config(config: Any) -> Any:
    config.site_name = f"signerd {version()}"
    config.copyright = f"Version {version()}. The tests of this version run what these pages show."
    return config


def on_files(files: Any, config: Any) -> Any:
    made = {f"build/reference/{name}.md": _of_package(name, words) for name, words in PACKAGES.items()}
    made |= {f"build/reference/{name}.md": _of_document(name, title) for name, title in DOCUMENTS.items()}
    made["changelog.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    made["assets/colours.css"] = _colours()
    made["assets/icon.svg"] = (PAGES / "icon.svg").read_text(encoding="utf-8")
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def _colours() -> str:
    """The product's own, from the sheet of its pages: light and dark, as the reader chose here."""
    sheet = (PAGES / "style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.+?)\}", sheet, re.DOTALL)[:2]
    default, slate = (f"[data-md-color-scheme={name}]" for name in ("default", "slate"))
    return f"{default}, {slate} {{{light}}}\n{slate} {{{dark}}}\n".replace("color-scheme: light dark;", "")


def on_page_markdown(markdown: str, **_given: Any) -> str:
    """Replaces links to files outside of `docs` by their paths: the site does not have them."""
    markdown = re.sub(r"\]\((?:\.\./)+CHANGELOG\.md\)", "](../changelog.md)", markdown)
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?:tests|signerd|custody|deploy)/[^)]*\)", r"\1", markdown)


def on_post_page(output: str, page: Any, **_given: Any) -> str:
    return _own_worker(output, "../" * page.url.count("/"))


def on_post_template(output_content: str, template_name: str, **_given: Any) -> str:
    """Page 404, which has no Markdown."""
    return _own_worker(output_content, "/") if template_name.endswith(".html") else output_content


def _own_worker(output: str, root: str) -> str:
    """Replaces the offline plugin's shim, which comes from a CDN, by ours in `docs/assets`."""
    return re.sub(r'src="?https://unpkg\.com/iframe-worker/shim"?', f'src="{root}assets/worker.js"', output)


def _of_package(name: str, words: str) -> str:
    return f"# {name}\n\n{words} Made from the docstrings of version {version()}.\n\n::: {name}\n"


def _of_document(name: str, title: str) -> str:
    """``PYTHON``: of the environment that has the programs; the site is built in another."""
    command = [os.environ["PYTHON"], "-m", "tools.openapi", name]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return rendered(title, json.loads(printed))
