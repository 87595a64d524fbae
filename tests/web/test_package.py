"""web/: what is generated, built and packed is what stands in the repository."""

import json
import os
import sys

import pytest

from custody._version import __version__
from tests.support.pages import DOCS, ROOT
from tests.support.processes import said
from tests.support.web import WEB, require_client

MODULES = ("api", "call", "index", "pairing", "signing")


@pytest.fixture(scope="module")
def built():
    return require_client()


def run(*command):
    return said(command, cwd=WEB, env={**os.environ, "PYTHON": sys.executable})


def test_the_types_are_those_of_the_openapi_document(built, tmp_path):
    run("node", "generate.mjs", str(tmp_path / "api.ts"))
    assert (tmp_path / "api.ts").read_text() == (WEB / "src" / "api.ts").read_text()


def test_what_was_built_is_what_the_compiler_makes_of_the_source(built, tmp_path):
    run("node_modules/.bin/tsc", "--noCheck", "--outDir", str(tmp_path))
    for file in tmp_path.iterdir():
        assert file.read_text() == (built / file.name).read_text(), f"{file.name}: run `make web`"


def test_it_does_what_its_own_tests_say(built):
    run("node", "--test", "test/")


def test_the_package_has_the_modules_their_types_and_nothing_else(built):
    (packed,) = json.loads(run("npm", "pack", "--dry-run", "--json", "--offline", "--ignore-scripts"))
    files = {f"dist/{name}{kind}" for name in MODULES for kind in (".js", ".d.ts")}
    assert {file["path"] for file in packed["files"]} == files | {"LICENSE", "README.md", "package.json"}
    assert (WEB / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_p99_it_depends_on_no_package_and_what_builds_it_is_locked_by_hash():
    package = json.loads((WEB / "package.json").read_text())
    assert package["version"] == __version__
    assert set(package) & {"dependencies", "peerDependencies", "optionalDependencies"} == set()
    assert set(package["scripts"]) == {"generate", "build", "test"}, "nothing runs where it is installed"
    lock = json.loads((WEB / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all("integrity" in entry and "resolved" not in entry for entry in packages.values())


def test_the_shell_is_small_and_the_way_to_a_signature_short():
    lines = [line for name in MODULES[1:] for line in (WEB / "src" / f"{name}.ts").read_text().splitlines()]
    code = [line for line in lines if line.strip() and not line.lstrip().startswith(("//", "/*", "*"))]
    assert len(code) <= 300
    _, _, begins = (WEB / "README.md").read_text().partition("```js\n")
    code, _, _ = begins.partition("```")
    assert len(code.splitlines()) <= 30
    # Where a test runs it.
    assert code in (DOCS / "build" / "tutorial-web.md").read_text()
