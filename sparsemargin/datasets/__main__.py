"""``python -m sparsemargin.datasets download NAME ...`` fetches the files that loaders read."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.error import URLError

import sklearn.datasets

from ._conversions import convert
from .files import (
    DATA_VARIABLE,
    REGISTRIES,
    DataFile,
    DataSet,
    WrongCopy,
    cache_folder,
    data_sets,
    find_file,
    read_copy,
    read_unpacked,
)


class DownloadError(Exception):
    """A file could not be fetched; the message gives the file, the source and the reason."""


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
        prog=f"python -m {list(REGISTRIES)[-1]}",
        description="Fetch public data files, or make them of what is fetched, and check size and "
        "sha256 of what they hold. What a file is made of may also lie in the folder already, "
        "under its own name. Where a set is marked 'or all of it', no address serves its files: "
        "copies in the folder are checked; without them scikit-learn fetches all of it there.",
        epilog="\n".join(["data sets:", *map(_summary, data_sets().values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["download"], help="what to do")
    parser.add_argument("names", nargs="+", choices=list(data_sets()), help="data sets")
    parser.add_argument(
        "--to",
        type=lambda folder: Path(os.path.expanduser(folder)),
        default=cache_folder(),
        required=cache_folder() is None,
        metavar="DIR",
        help="folder for the files (default: %(default)s, where the loaders look); they look in "
        f"another one when {DATA_VARIABLE} or data_home names it",
    )
    return parser


def _summary(dataset: DataSet) -> str:
    size = sum(file.bytes for file in dataset.files)
    all_of_it = f", or all of it by {dataset.scikit_learn}" if dataset.scikit_learn else ""
    return f"  {dataset.name}  {size:,} bytes{all_of_it}, {dataset.licence}\n    {dataset.title}"


def _download(dataset: DataSet, folder: Path) -> None:
    print(f"{dataset.name}: {dataset.title}\nLicence: {dataset.licence}\nFolder: {folder}")
    sample = find_file(dataset.files[0].copy_names, [folder])
    if dataset.scikit_learn is not None and sample is None:
        _fetch_whole(dataset.scikit_learn, folder)
        return
    for file in dataset.files:
        try:
            result = "fetched" if _fetch(file, folder) else "already there"
        except (OSError, ValueError) as error:
            origin, reason = f"fetched from {file.url}", " ".join(str(error).split())
            if file.sources:
                parts = [str(_own_part(source, folder) or source) for source in file.sources]
                origin = f"made of {' and '.join(parts)}"
                # Copies do not help if the folder is a file, or can't be written.
                if isinstance(error, ValueError | URLError) or error.filename is None:
                    reason += f". Right copies of these, put into {folder}, would do"
            raise DownloadError(f"{file.name} not {origin}: {reason}") from error
        print(f"  {file.name}  {file.bytes:,} bytes  {result}")


def _fetch_whole(function: str, folder: Path) -> None:
    """Let scikit-learn fetch the data into the folder; it checks the sha256 of each part."""
    print(f"  No sample there: sklearn.datasets.{function} fetches all of it", flush=True)
    try:
        getattr(sklearn.datasets, function)(data_home=folder)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DownloadError(f"sklearn.datasets.{function} did not fetch it: {reason}") from error
    print("  all of it  there")


def _fetch(file: DataFile, folder: Path) -> bool:
    """Fetch a file unless the folder has it; return whether it had to be fetched.

    A new file replaces an older copy only after its content has been checked.
    """
    path = find_file(file.copy_names, [folder])
    if path is not None:
        try:
            read_copy(file, path)
            return False
        except WrongCopy:
            pass
    if file.by_hand is not None:
        raise DownloadError(f"no address serves {file.name}, get it by hand: {file.by_hand}")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=folder) as arrivals:
        if file.url is not None:
            arrived = _retrieve(file.url, arrivals)
        else:
            parts = [
                _own_part(source, folder) or _retrieve(source, arrivals) for source in file.sources
            ]
            arrived = Path(arrivals, "made")
            arrived.write_bytes(convert(file.conversion, list(map(read_unpacked, parts))))
        read_copy(file, arrived)
        # Temporary files are private to their owner; these data are public.
        arrived.chmod(0o644)
        arrived.replace(folder / file.copy_names[0])
    return True


def _own_part(source: str, folder: Path) -> Path | None:
    """The copy of a source in the folder, with the file name of its address, or None."""
    name = PurePosixPath(source).name
    return find_file([name, f"{name}.gz"], [folder])


def _retrieve(url: str, arrivals: str) -> Path:
    # `fetch_file` checks no sha256, because the registered one is that of the unpacked content.
    return sklearn.datasets.fetch_file(url, folder=arrivals, n_retries=0)


if __name__ == "__main__":
    sys.exit(main())
