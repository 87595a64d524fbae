"""The Debian package in a Debian of its own: built twice, installed, run, upgraded, removed, purged.

It takes minutes, root and a mirror, so it runs on demand alone:

    SIGNERD_TRY_DEB=/path/of/a/root .venv/bin/python -m pytest tests/packaging/test_deb.py

The root is made by debootstrap, of the release of Debian that this machine runs, where it is not there yet.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.signerd.cli.test_daemon import CONFIG
from tests.support.processes import ended, said

CHECKOUT = Path(__file__).parents[2]
GIVEN = os.environ.get("SIGNERD_TRY_DEB")
pytestmark = pytest.mark.skipif(not GIVEN, reason="SIGNERD_TRY_DEB names no root to try the package in")
SECONDS = 1800
USER = "ada"
# As the service: what ExecStart says, on a socket that systemd's own program opens, as an ordinary user.
SERVE = """set -eu
state=$HOME/.local/state/signerd
mkdir -p "$HOME/.local/state"; mkdir -m 700 "$state"
cat >"$state/config.toml"
mkdir -m 700 "$HOME/credentials"
echo phrase >"$HOME/credentials/signerd-passphrase"
export CREDENTIALS_DIRECTORY=$HOME/credentials
start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/user/signerd.service)
systemd-socket-activate -l "$state/signerd.sock" -E CREDENTIALS_DIRECTORY $start >"$HOME/log" 2>&1 &
daemon=$!
until grep -q 'Listening on' "$HOME/log"; do kill -0 $daemon; sleep 0.1; done
chmod 600 "$state/signerd.sock"
signerd status --json >"$HOME/status" || { cat "$HOME/log" >&2; exit 1; }
cat "$HOME/status"
/usr/lib/signerd/bin/python -P - "$HOME/status" <<'PAGE'
import json, sys, urllib.error, urllib.request
url = json.load(open(sys.argv[1]))["page_url"]
try:
    urllib.request.urlopen(url)
except urllib.error.HTTPError as answer:
    assert answer.code == 404 and b"signerd open" in answer.read(), answer
else:
    raise SystemExit("a page stands at the lasting address")
PAGE
kill $daemon
wait $daemon
"""


def within(
    root: Path, *command: str, typed: str = "", user: str = "root"
) -> subprocess.CompletedProcess[str]:
    """Runs it in the root, in a mount namespace of its own, without this environment."""
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user != "root" else []
    home = f"/home/{user}" if user != "root" else "/root"
    enter = (
        'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; root=$1; shift; exec chroot "$root" "$@"'
    )
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LANG": "C.UTF-8"}
    variables |= {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["unshare", "--mount", "sh", "-c", enter, "sh", root, *become, *command]
    return ended(command, env=variables, input=typed, seconds=SECONDS)


def done(root: Path, *command: str, typed: str = "", user: str = "root") -> str:
    told = within(root, *command, typed=typed, user=user)
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


@pytest.fixture(scope="module")
def root() -> Path:
    place = Path(str(GIVEN))
    if not (place / "usr/bin/dpkg").exists():
        with Path("/etc/os-release").open() as file:
            (name,) = (line.split("=")[1].strip() for line in file if line.startswith("VERSION_CODENAME="))
        place.parent.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", "--include=systemd,ca-certificates", name, place]
        subprocess.run(command, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
    shutil.copy("/etc/resolv.conf", place / "etc/resolv.conf")
    done(place, "sh", "-c", f"id {USER} 2>/dev/null || useradd --create-home {USER}")
    anew = f"rm -rf /home/{USER}; mkhomedir_helper {USER} || install -d -o {USER} -g {USER} /home/{USER}"
    done(place, "sh", "-c", anew)
    done(place, "dpkg", "--purge", "signerd")
    return place


def build(folder: Path, **variables: str) -> Path:
    environment = {**os.environ, "OUT": str(folder), **variables}
    return Path(said(["sh", "tools/deb"], cwd=CHECKOUT, env=environment, seconds=SECONDS).strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("first"))


def the_version_before(package: Path, folder: Path) -> Path:
    """The same with a lower number, and one module that is gone since."""
    unpacked, older = folder / "older", folder / "signerd_0.0.9.deb"
    subprocess.run(["dpkg-deb", "-R", package, unpacked], check=True)
    control = unpacked / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.0.9", control.read_text()))
    (modules,) = unpacked.glob("usr/lib/signerd/lib/python3.*/site-packages/signerd")
    (modules / "gone.py").write_text("GONE = True\n")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", unpacked, older], check=True)
    return older


def test_two_builds_give_the_same_bytes(package, tmp_path):
    old = os.umask(0o077)
    try:
        again = build(tmp_path, TZ="Asia/Tokyo", LC_ALL="C")
    finally:
        os.umask(old)
    assert again.read_bytes() == package.read_bytes()


def test_no_path_of_the_machine_that_built_it_is_in_it(package, tmp_path):
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 1000
    assert [path for path in files if str(CHECKOUT).encode() in path.read_bytes()] == []
    assert [path for path in tmp_path.rglob("*") if path.name == "__pycache__"] == []


def test_it_is_installed_run_upgraded_removed_and_purged(root, package, tmp_path):
    older = the_version_before(package, tmp_path)
    for one in (older, package):
        shutil.copy(one, root / "tmp")
    install = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "--allow-downgrades")
    done(root, "apt-get", "update", "-q")

    done(root, *install, f"/tmp/{older.name}")
    assert done(root, "dpkg-query", "-W", "-f", "${Version}", "signerd") == "0.0.9"
    assert re.match(r"signerd \d", done(root, "signerd", "--version", user=USER))
    assert re.search(r"signerd-hwi \d", done(root, "signerd-hwi", "--version", user=USER))
    # An ordinary user writes nothing below /usr: the bytecode is there already.
    assert list((root / "usr/lib/signerd").rglob("__pycache__"))

    upgraded = done(root, *install, f"/tmp/{package.name}")
    assert "signerd service stop" in upgraded
    assert not list((root / "usr/lib/signerd").rglob("gone.*"))

    verify = ("systemd-analyze", "--user", "verify", "--man=no")
    units = ("/usr/lib/systemd/user/signerd.service", "/usr/lib/systemd/user/signerd.socket")
    told = within(root, "env", "XDG_RUNTIME_DIR=/tmp", *verify, *units)
    assert (told.returncode, told.stderr) == (0, "")
    assert '"version"' in done(root, "sh", "-c", SERVE, typed=CONFIG, user=USER)
    rules = done(root, "signerd", "udev", "check", user=USER)
    assert re.search(r"20-ledger\.rules +installed +/usr/lib/udev/rules\.d", rules)
    # No manager of services runs in a root like this; the package's own units would be enabled.
    refused = within(root, "signerd", "service", "install", "--json", user=USER)
    error = json.loads(refused.stderr.splitlines()[-1])["error"]
    assert "systemctl --user daemon-reload" in error["sentence"]
    assert not (root / f"home/{USER}/.config/systemd").exists()
    for file in ("man/man1/signerd.1.gz", "man/man1/signerd-hwi.1.gz", "signerd/20-namespaces.conf"):
        assert (root / "usr/share" / file).exists()

    done(root, "apt-get", "remove", "-y", "-q", "signerd")
    assert not (root / "usr/lib/signerd").exists()
    assert not (root / "usr/bin/signerd").is_symlink()
    purged = done(root, "apt-get", "purge", "-y", "-q", "signerd")
    assert ".local/state/signerd" in purged
    assert (root / f"home/{USER}/.local/state/signerd/journal.sqlite3").exists()
