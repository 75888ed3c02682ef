"""Small files in the published forms, and a registry that describes them."""

import hashlib
import json

import numpy as np

from sparsemargin.datasets import _registry

WBC = """\
1000025,5,1,1,1,2,1,3,1,1,2
1002945,5,4,4,5,7,10,3,2,1,4
1057013,8,4,5,1,2,?,7,3,1,4
1017023,4,1,1,3,2,1,3,1,1,2
"""


def sonar_text(names, values):
    """Patterns in the form of the sonar files: a header, then a name and ten lines for each."""
    lines = ['Marked with a "*": the training set.', ""]
    for name, row in zip(names, values, strict=True):
        sixes = [" ".join(f"{value:.4f}" for value in six) for six in row.reshape(10, 6)]
        lines += [f"{name}:", "{" + "\n ".join(sixes) + "}", " "]
    return "\n".join(lines) + "\n"


MINES = np.arange(120).reshape(2, 60) / 1e4
ROCKS = 1 - np.arange(180).reshape(3, 60) / 1e4

CONTENTS = {
    "sonar.mines": sonar_text(["*CM001", "CM002"], MINES).encode(),
    "sonar.rocks": sonar_text(["CR001", "*CR002", "CR003"], ROCKS).encode(),
    "breast-cancer-wisconsin.data": WBC.encode(),
}
SHAPES = {
    "sonar.mines": [2, 60],
    "sonar.rocks": [3, 60],
    "breast-cancer-wisconsin.data": [4, 9],
}
DATA_SETS = {"sonar": ["sonar.mines", "sonar.rocks"], "wbc": ["breast-cancer-wisconsin.data"]}


def use_registry(monkeypatch, folder, contents, server):
    """Put a registry of `contents` into `folder` and make the library read it."""
    tables = []
    for name, files in DATA_SETS.items():
        fields = {"title": f"The {name} data", "citation": f"The {name} paper", "files": files}
        tables.append((f"[dataset.{name}]", fields))
    for name, content in contents.items():
        fields = {
            "name": name,
            "shape": SHAPES[name],
            "publisher": "A publisher",
            "url": f"{server}/{name}",
            "licence": "A licence",
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        tables.append(("[[file]]", fields))
    lines = []
    for heading, fields in tables:
        # What JSON writes for strings, numbers and lists is TOML as well.
        lines += [heading, *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]
    folder.mkdir()
    (folder / "registry.toml").write_text("\n".join(lines))
    monkeypatch.setattr(_registry, "files", lambda package: folder)
    _registry.data_sets.cache_clear()


def forget_registry():
    """Make the library read its own registry again."""
    _registry.data_sets.cache_clear()


def write_files(folder, names=tuple(CONTENTS), contents=CONTENTS):
    """Write the named files into `folder`, which is made where needed, and return it."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(contents[name])
    return folder
