"""Fetching registered files: pooch gives a file its name only once its sha256 is right."""

import sys
from pathlib import Path

from ._local import find_flaw
from ._registry import DataFile


class DownloadError(Exception):
    """A file could not be fetched; the message says which, from where and why, in one line."""


def fetch(file: DataFile, folder: Path) -> bool:
    """Fetch `file` into `folder` unless it is there; tell whether it had to be fetched.

    The folder is made where needed, a wrong copy in it replaced.

    Raises
    ------
    DownloadError
        If no address serves the file, pooch is not installed, the network or the disk fails, or
        other bytes arrive than registered. Nothing half-written is left then, and an older copy
        stays.
    """
    try:
        if _is_present(file, folder):
            return False
        if file.url is None:
            raise DownloadError(f"no address serves {file.name}, get it by hand: {file.by_hand}")
        _retrieve(file, folder)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DownloadError(f"{file.name} not fetched from {file.url}: {reason}") from error
    return True


def _is_present(file: DataFile, folder: Path) -> bool:
    path = folder / file.name
    return path.is_file() and find_flaw(file, path.read_bytes()) is None


def _retrieve(file: DataFile, folder: Path) -> None:
    try:
        import pooch
    except ImportError as error:
        raise DownloadError("downloads need pooch: pip install 'sparsemargin[download]'") from error
    pooch.get_logger().setLevel("WARNING")
    progress = _Progress(file)
    try:
        pooch.retrieve(file.url, file.sha256, file.name, folder, progressbar=progress)
    finally:
        progress.close()
    # Temporary files are private to their owner; these data are public.
    (folder / file.name).chmod(0o644)


class _Progress:
    """Percent of the registered size, on a terminal; what pooch asks of a progress bar."""

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.total = file.size
        self.done = 0
        self.stream = sys.stderr if sys.stderr.isatty() else None

    def update(self, n_bytes: int) -> None:
        self.done += n_bytes
        percent = min(100 * self.done // self.file.size, 100)
        self._show(f"{self.file.name} {percent:3d} %")

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        self._show("")

    def _show(self, text: str) -> None:
        if self.stream is not None:
            # \x1b[K clears what an earlier, longer text left on the line.
            print(f"\r{text}\x1b[K", end="", file=self.stream, flush=True)
