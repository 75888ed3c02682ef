"""The registry of data files, and the generated sample."""

import re
import shlex
from pathlib import Path

from problems.published_files import registry

FOLDER = Path(__file__).resolve().parents[2] / "datasets"
SAMPLE = FOLDER / "alma_target_sample.svm"
REGISTRY = registry()
FILES = REGISTRY["file"]


def test_registry_fields_are_checked():
    texts = {"name", "publisher", "source", "licence", "sha256"}
    optional = {"url", "sources", "conversion", "obtain"}
    assert len({entry["name"] for entry in FILES}) == len(FILES)
    for entry in FILES:
        assert set(entry) - optional == texts | {"shape", "bytes"}
        assert all(isinstance(entry[field], str) and entry[field] for field in texts)
        assert re.fullmatch("[0-9a-f]{64}", entry["sha256"])
        assert all(type(size) is int and size > 0 for size in [entry["bytes"], *entry["shape"]])


def test_registry_lists_all_data_sets():
    """The download command can fetch every file under its registered name, or gives
    instructions."""
    entries, listed = {entry["name"]: entry for entry in FILES}, []
    for table in REGISTRY["dataset"].values():
        optional = {"columns", "header", "classes", "target_names", "scikit_learn"}
        assert set(table) - optional == {"title", "citation", "files"}
        assert all(table[field] for field in ("title", "citation"))
        listed += table["files"]
    for file in listed:
        if "url" in entries[file]:
            assert re.fullmatch(rf"https://.*/{re.escape(file)}(\.gz)?", entries[file]["url"])
        elif "sources" in entries[file]:
            assert all(
                re.fullmatch(r"https?://.*/\w+\.\w+", url) for url in entries[file]["sources"]
            )
        else:
            assert entries[file]["obtain"]
    # Each obtainable file belongs to one data set, and is obtained in one way.
    known = ("url", "sources", "obtain")
    ways = [entry["name"] for entry in FILES for way in known if way in entry]
    assert sorted(listed) == sorted(ways)


def test_sample_is_reproduced_by_the_documented_command(tmp_path, monkeypatch):
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    (command,) = [line for line in lines if line.startswith("python -c ")]
    monkeypatch.chdir(tmp_path)
    exec(shlex.split(command)[2], {})
    assert (tmp_path / SAMPLE.name).read_bytes() == SAMPLE.read_bytes()
    assert SAMPLE.stat().st_size <= 60_000
