"""Progress of downloads on a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qnn.cli.console import err

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from qnn.sources.protocol import Progress


class _Bars:
    """One bar a download."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def advance(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
        with self._lock:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=None)
        self._bars.update(self._tasks[name], completed=done_bytes, total=total_bytes)


@contextmanager
def download_bars(title: str) -> Iterator[Progress]:
    """Bars on stderr if that is a terminal, else nothing; `title` stands before each name."""
    console = err()
    if not console.is_terminal:
        from qnn.sources.protocol import Silent  # noqa: PLC0415

        yield Silent()
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn  # noqa: PLC0415

    columns = (TextColumn(f"{title} {{task.description}}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=console, transient=True) as bars:
        yield _Bars(bars)
