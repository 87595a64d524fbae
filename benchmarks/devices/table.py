"""Rows of figures, with a dash for a missing one."""

from collections.abc import Mapping

Cell = float | str | None


def print_title(text: str) -> None:
    print(f"devices: {text}")


def print_row(subject: str, what: str, *cells: Cell) -> None:
    print(f"{subject:>10} {what:>15} {' '.join(f'{_text(cell):>14}' for cell in cells)}", flush=True)


def ratio(figures: Mapping[str, float], over: str, under: str) -> str | None:
    if over not in figures or under not in figures:
        return None
    value = figures[over] / figures[under]
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return f"{cell:.4f}" if 0 < cell < 0.1 else f"{cell:.1f}"
