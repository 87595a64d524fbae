"""Which rules a machine has, and how they are installed, below a root of the test's own."""

import pytest

from signerd.udev.rules import RULE_FOLDERS, RuleStatus, install, ours, rule_files, some_rule

NAME = "20-ledger.rules"


def put(root, folder, content, name=NAME):
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / name).write_bytes(content)


def status(root):
    (found,) = (one for one in rule_files(root) if one.name == NAME)
    return found.status, found.place


def test_all_are_missing_and_then_installed_and_then_left_alone(tmp_path):
    assert {one.status for one in rule_files(tmp_path)} == {RuleStatus.MISSING}
    assert not some_rule(tmp_path)
    written = install(tmp_path)
    assert {path.name: path.read_bytes() for path in written} == ours()
    assert {path.stat().st_mode & 0o777 for path in written} == {0o644}
    assert {one.status for one in rule_files(tmp_path)} == {RuleStatus.INSTALLED}
    assert sorted(path.name for path in (tmp_path / RULE_FOLDERS[0]).iterdir()) == sorted(ours())
    assert some_rule(tmp_path)
    assert install(tmp_path) == ()


@pytest.mark.parametrize("folder", RULE_FOLDERS)
def test_a_package_may_have_installed_them(tmp_path, folder):
    put(tmp_path, folder, ours()[NAME])
    assert status(tmp_path) == (RuleStatus.INSTALLED, f"/{folder}")


def test_the_file_that_udev_reads_is_looked_at(tmp_path):
    """Of two files with one name the first folder's counts."""
    put(tmp_path, "etc/udev/rules.d", b"# nothing\n")
    put(tmp_path, "usr/lib/udev/rules.d", ours()[NAME])
    assert status(tmp_path) == (RuleStatus.DIFFERS, "/etc/udev/rules.d")
    assert tmp_path / "etc/udev/rules.d" / NAME in install(tmp_path)
    assert status(tmp_path) == (RuleStatus.INSTALLED, "/etc/udev/rules.d")


def test_another_programs_rule_counts_as_one(tmp_path):
    rule = b'# f\xfcr das Ger\xe4t\nATTRS{idVendor}=="2c97", MODE="0666"\n'
    put(tmp_path, "etc/udev/rules.d", rule, "70-other.rules")
    assert some_rule(tmp_path)
