"""Fetching registered files: one gets its name only once what arrived is checked."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ._copies import WrongCopy, read_copy
from ._local import find_copy
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
    path = find_copy(file, [folder])
    if path is None:
        return False
    try:
        read_copy(file, path)
    except WrongCopy:
        return False
    return True


def _retrieve(file: DataFile, folder: Path) -> None:
    try:
        import pooch
    except ImportError as error:
        raise DownloadError("downloads need pooch: pip install 'sparsemargin[download]'") from error
    pooch.get_logger().setLevel("WARNING")
    name = file.copy_names[0]
    folder.mkdir(parents=True, exist_ok=True)
    progress = _Progress(name, file.size)
    # pooch could check the sha256 of what is served, but not that of what is packed in it.
    with TemporaryDirectory(prefix=".", dir=folder) as arrivals:
        try:
            pooch.retrieve(file.url, None, name, arrivals, progressbar=progress)
        finally:
            progress.close()
        path = Path(arrivals, name)
        read_copy(file, path)
        # Temporary files are private to their owner; these data are public.
        path.chmod(0o644)
        path.replace(folder / name)


class _Progress:
    """Percent of the size, on a terminal; what pooch asks of a progress bar."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        # pooch puts the size that the server announces here, 0 where it announces none.
        self.total = size
        self.size = size
        self.done = 0
        self.stream = sys.stderr if sys.stderr.isatty() else None

    def update(self, n_bytes: int) -> None:
        self.done += n_bytes
        percent = min(100 * self.done // (self.total or self.size), 100)
        self._show(f"{self.name} {percent:3d} %")

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        self._show("")

    def _show(self, text: str) -> None:
        if self.stream is not None:
            # \x1b[K clears what an earlier, longer text left on the line.
            print(f"\r{text}\x1b[K", end="", file=self.stream, flush=True)
