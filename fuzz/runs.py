"""Runs of libFuzzer, each in a process of its own, and what they report, as one table."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.corpus import FOUND, KEPT, kept, write_seeds
from fuzz.targets import TARGETS

# Inputs are a few kilobytes: one that takes this much memory is a finding.
MEGABYTES = 512
_STATUS = re.compile(r"^#\d+\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)
_EXECUTIONS = re.compile(r"^stat::number_of_executed_units:\s+(\d+)", re.MULTILINE)
_MEMORY = re.compile(r"^stat::peak_rss_mb:\s+(\d+)", re.MULTILINE)
# Coverage after the corpus was read, and at the end.
_INITED = re.compile(r"^#\d+\s+INITED cov: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Report:
    """The figures of one run; a missing one is 0."""

    executions: int
    coverage_before: int
    coverage: int
    features: int
    new_inputs: int
    memory_mb: int


def run(names: Sequence[str], seconds: int) -> int:
    """Fuzzes every target for so many seconds. Names the inputs that broke one; returns the exit status."""
    if importlib.util.find_spec("atheris") is None:
        print("The fuzzer is not installed: `make fuzz` installs it (Linux on x86-64).", file=sys.stderr)
        return 2
    broken: list[tuple[str, Path]] = []
    print(
        f"{'target':>10} {'inputs tried':>13} {'a second':>9} {'edges':>13} "
        f"{'features':>9} {'new':>5} {'MB':>5}"
    )
    for name in names:
        before = _crashes(name)
        report, trouble = _run(name, seconds)
        _show(name, report, seconds)
        fresh = sorted(_crashes(name) - before)
        broken += [(name, path) for path in fresh]
        if trouble and not fresh:
            print(trouble, file=sys.stderr)
            return 1
    for name, path in broken:
        print(f"BROKEN: {name}, by an input that was kept. To see it again:")
        print(f"    python -m fuzz replay {name} {path}")
    return 1 if broken else 0


def _run(name: str, seconds: int) -> tuple[Report, str]:
    """The report, and the end of the output where the run failed."""
    found, crashes = _folders(name)
    with tempfile.TemporaryDirectory(prefix="fuzz") as seeds:
        write_seeds(TARGETS[name], Path(seeds))
        known = len(list(found.iterdir()))
        done = _drive(
            name,
            f"-max_total_time={seconds}",
            f"-timeout={TARGETS[name].seconds}",
            # A slow input is no failure: the machine may be busy.
            f"-report_slow_units={TARGETS[name].seconds}",
            f"-rss_limit_mb={MEGABYTES}",
            "-print_final_stats=1",
            f"-artifact_prefix={crashes}/",
            str(found),
            *([str(KEPT / name)] if kept(name) else []),
            seeds,
        )
        report = read_report(done.stderr, len(list(found.iterdir())) - known)
    return report, "" if done.returncode == 0 else done.stderr[-4000:]


def _drive(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fuzz.drive", name, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=KEPT.parents[1],
    )


def read_report(text: str, new_inputs: int) -> Report:
    lines = _STATUS.findall(text)
    coverage, features, _ = (int(figure) for figure in (lines[-1] if lines else (0, 0, 0)))
    before = _INITED.search(text)
    executions, memory = (pattern.search(text) for pattern in (_EXECUTIONS, _MEMORY))
    return Report(
        executions=int(executions[1]) if executions else 0,
        coverage_before=int(before[1]) if before else 0,
        coverage=coverage,
        features=features,
        new_inputs=new_inputs,
        memory_mb=int(memory[1]) if memory else 0,
    )


def _show(name: str, report: Report, seconds: int) -> None:
    edges = f"{report.coverage_before} → {report.coverage}"
    print(
        f"{name:>10} {report.executions:13,} {report.executions // max(seconds, 1):9,} {edges:>13} "
        f"{report.features:9,} {report.new_inputs:5} {report.memory_mb:5}",
        flush=True,
    )


def _folders(name: str) -> tuple[Path, Path]:
    folders = FOUND / name / "inputs", FOUND / name / "broken"
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def _crashes(name: str) -> set[Path]:
    return set((FOUND / name / "broken").glob("*"))


def keep(names: Sequence[str]) -> int:
    """Rebuilds the corpus from the seeds, itself and new inputs; libFuzzer keeps the smallest of each."""
    for name in names:
        found, _ = _folders(name)
        with tempfile.TemporaryDirectory(prefix="fuzz") as scratch:
            seeds, merged = Path(scratch) / "seeds", Path(scratch) / "merged"
            write_seeds(TARGETS[name], seeds)
            merged.mkdir()
            sources = [folder for folder in (KEPT / name, found, seeds) if folder.is_dir()]
            done = _drive(name, "-merge=1", str(merged), *map(str, sources))
            if done.returncode:
                print(done.stderr[-4000:], file=sys.stderr)
                return 1
            shutil.rmtree(KEPT / name, ignore_errors=True)
            shutil.copytree(merged, KEPT / name)
        sizes = [path.stat().st_size for path in kept(name)]
        print(f"{name}: {len(sizes)} inputs, {sum(sizes):,} bytes")
    return 0
