"""``python -m sparsemargin.datasets download NAME ...`` fetches the files that the loaders read."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ._download import DownloadError, fetch
from ._local import DATA_VARIABLE, cache_folder
from ._registry import DataSet, data_sets


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


def _download(dataset: DataSet, folder: Path) -> None:
    print(f"{dataset.name}: {dataset.title}\nLicence: {dataset.licence}\nFolder: {folder}")
    for file in dataset.files:
        outcome = "fetched" if fetch(file, folder) else "already there"
        print(f"  {file.name}  {file.size:,} bytes  {outcome}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sparsemargin.datasets")
    commands = parser.add_subparsers(required=True, metavar="download")
    download = commands.add_parser(
        "download",
        help="fetch public data files, check size and sha256",
        description="Fetch public data files and check size and sha256 of what they hold. Of sets "
        "marked 'by hand' no address serves the files: copies in the folder are checked, and how "
        "to get the others is told.",
        epilog="\n".join(["data sets:", *map(_summary, data_sets().values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    download.add_argument("names", nargs="+", choices=list(data_sets()), help="data sets")
    download.add_argument(
        "--to",
        type=lambda folder: Path(folder).expanduser(),
        default=cache_folder(),
        metavar="DIR",
        help="folder for the files (default: %(default)s, where the loaders look); they look in "
        f"another one when {DATA_VARIABLE} or data_home names it",
    )
    return parser


def _summary(dataset: DataSet) -> str:
    by_hand = ", by hand" if any(file.url is None for file in dataset.files) else ""
    size = f"{dataset.size:,} bytes{by_hand}"
    return f"  {dataset.name}  {size}, {dataset.licence}\n    {dataset.title}"


if __name__ == "__main__":
    sys.exit(main())
