"""``python -m sparsemargin.datasets download NAME ...`` fetches the files that loaders read."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .files import (
    DATA_VARIABLE,
    DataFile,
    DataSet,
    WrongCopy,
    cache_folder,
    data_sets,
    find_file,
    read_copy,
)


class DownloadError(Exception):
    """A file could not be fetched; the message says which, from where and why, in one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        for name in options.names:
            _download(data_sets()[name], options.to)
    except DownloadError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sparsemargin.datasets",
        description="Fetch public data files and check size and sha256 of what they hold. Of sets "
        "marked 'by hand' no address serves the files: copies in the folder are checked, and how "
        "to get the others is told.",
        epilog="\n".join(["data sets:", *map(_summary, data_sets().values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["download"], help="what to do")
    parser.add_argument("names", nargs="+", choices=list(data_sets()), help="data sets")
    parser.add_argument(
        "--to",
        type=lambda folder: Path(folder).expanduser(),
        default=cache_folder(),
        metavar="DIR",
        help="folder for the files (default: %(default)s, where the loaders look); they look in "
        f"another one when {DATA_VARIABLE} or data_home names it",
    )
    return parser


def _summary(dataset: DataSet) -> str:
    size = sum(file.bytes for file in dataset.files)
    by_hand = ", by hand" if any(file.url is None for file in dataset.files) else ""
    return f"  {dataset.name}  {size:,} bytes{by_hand}, {dataset.licence}\n    {dataset.title}"


def _download(dataset: DataSet, folder: Path) -> None:
    print(f"{dataset.name}: {dataset.title}\nLicence: {dataset.licence}\nFolder: {folder}")
    for file in dataset.files:
        try:
            outcome = "fetched" if _fetch(file, folder) else "already there"
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise DownloadError(f"{file.name} not fetched from {file.url}: {reason}") from error
        print(f"  {file.name}  {file.bytes:,} bytes  {outcome}")


def _fetch(file: DataFile, folder: Path) -> bool:
    """Fetch a file unless the folder has it; tell whether it had to be fetched.

    A file gets its name once what arrived is checked; until then an older copy stays.
    """
    path = find_file(file.copy_names, [folder])
    if path is not None:
        try:
            read_copy(file, path)
            return False
        except WrongCopy:
            pass
    if file.url is None:
        raise DownloadError(f"no address serves {file.name}, get it by hand: {file.by_hand}")
    try:
        import pooch
    except ImportError as error:
        raise DownloadError("downloads need pooch: pip install 'sparsemargin[download]'") from error
    pooch.get_logger().setLevel("WARNING")
    name = file.copy_names[0]
    folder.mkdir(parents=True, exist_ok=True)
    # pooch could check the sha256 of what is served, but not that of what is packed in it.
    with TemporaryDirectory(prefix=".", dir=folder) as arrivals, _progress(file) as bar:
        arrived = Path(pooch.retrieve(file.url, None, name, arrivals, progressbar=bar))
        read_copy(file, arrived)
        # Temporary files are private to their owner; these data are public.
        arrived.chmod(0o644)
        arrived.replace(folder / name)
    return True


def _progress(file: DataFile) -> AbstractContextManager[Any]:
    """A bar on a terminal, gone when all is done; none where there is no tqdm to draw it."""
    try:
        from tqdm import tqdm
    except ImportError:
        return nullcontext(False)
    return tqdm(
        total=file.bytes, desc=file.name, unit="B", unit_scale=True, leave=False, disable=None
    )


if __name__ == "__main__":
    sys.exit(main())
