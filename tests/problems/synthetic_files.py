"""Small files in the published formats, and a registry that describes them."""

import bz2
import hashlib
import json

import numpy as np

from problems.published_files import registry as published_registry
from sparsemargin.datasets import files as registry

WBC = """\
1000025,5,1,1,1,2,1,3,1,1,2
1002945,5,4,4,5,7,10,3,2,1,4
1057013,8,4,5,1,2,?,7,3,1,4
1017023,4,1,1,3,2,1,3,1,1,2
"""


def sonar_text(names, values):
    """Patterns in the format of the sonar files: a header, then a name and ten lines for each."""
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

# Labels are positions among the topics, and columns count from 1.
RCV1 = """\
0,1 1:0.6 4:0.8
1,3 2:1
0,3 5:1
0 1:0.8 5:0.6
3 3:1
1 2:0.6 3:0.8
"""
LYMPHOMA = """\
@RELATION figure1

@ATTRIBUTE GENE1X REAL
@ATTRIBUTE GENE2X REAL
@ATTRIBUTE GENE3X REAL
@ATTRIBUTE class    {ACL,nonACL}

@DATA
0.5,?,-1.25,ACL
?,1,0,nonACL
0.25,0.5,?,nonACL
-1,2,0.75,nonACL
1.5,-0.5,3,nonACL
"""
LYMPHOMA_LABELS = """\
row,class9,figure1_label,malignant_66,in_62_subset
0,DLBCL,ACL,1,0
1,FL,nonACL,1,0
2,TCL,nonACL,0,0
3,NIL,nonACL,0,0
4,CLL,nonACL,1,1
"""
COLON = "sample,class,X1,X2\n1,t,1.5,20.0\n2,n,3.01,4000.0\n3,t,5.0,6.0\n"
LEUKEMIA = "sample,split,class,A_at,B_at\n1,train,ALL,-3,4\n30,train,AML,8,-9\n50,test,AML,0,7\n"
BREAST = "10,-2,3,1\n40,50,60,0\n-7,8,9,1\n"

# Files that no address serves.
BY_HAND = {
    "rcv1_subsets_topics.svm.bz2": bz2.compress(RCV1.encode()),
    "rcv1_topics.txt": b"C15\nGCAT\nM143\nMCAT\n",
}
# Microarray sources that addresses serve, in their original order.
SERVED = {
    "Lymphoma96x4026.arff": LYMPHOMA.encode(),
    "Lymphoma.arff": b"@relation L\r\n@attribute class {DLBCL,FL,TCL,NIL,CLL}\r\n\r\n@data\r\n"
    b"0.5,DLBCL\r\n1,FL\r\n0.25,TCL\r\n-1,NIL\r\n1.5,CLL\r\n",
    "breast.csv": BREAST.encode(),
    "I2000.html": b"<title>I2000</title>\n<pre> 1.4951  3.005e0 5\n\n20.0049 4e3\t6 \n</pre>",
    "tissues.html": b"<html>62 tissues<font>\n<p>-1</p>\n<p>1</p>\n<p>-14</p>\n</font></html>",
    "data_set_ALL_AML_train.csv": b"Gene Description,Gene Accession Number,30,call,1,call\n"
    b'"A, or so",A_at,8,P,-3,A\nB,B_at,-9,A,4,M\n',
    "data_set_ALL_AML_independent.csv": b"Gene Description,Gene Accession Number,50,call\n"
    b'"A, or so",A_at,0,P\nB,B_at,7,A\n',
}
MADE = {
    "Lymphoma96x4026.arff": LYMPHOMA.encode(),
    "lymphoma_labels.csv": LYMPHOMA_LABELS.encode(),
    "breast_er_west2001.csv": BREAST.encode(),
    "colon_alon1999.csv": COLON.encode(),
    "leukemia_golub1999.csv": LEUKEMIA.encode(),
}


def idx(values):
    """Unsigned bytes in the idx format."""
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    return header + values.astype(np.uint8).tobytes()


def grey_text(digits, greys):
    """Digits with their gray values in the format of the USPS files."""
    rows = np.c_[digits, greys]
    return "".join(" ".join(f"{value:.4f}" for value in row) + " \n" for row in rows)


INK = np.arange(5 * 784).reshape(5, 28, 28) % 11 * (np.arange(784).reshape(28, 28) % 3 == 0) * 25
GREYS = np.arange(-640, 640).reshape(5, 256) / 1000
LETTERS = [f"{letter},{','.join(map(str, range(at, at + 16)))}" for at, letter in enumerate("ZA")]
LETTERS = [line.replace(",16", ",0") for line in LETTERS for _ in range(2501)]

# Files that copies may contain packed. Addresses serve them packed, except for the last one.
PACKABLE = {
    "train-images-idx3-ubyte": idx(INK[:3]),
    "train-labels-idx1-ubyte": idx(np.array([7, 0, 9])),
    "t10k-images-idx3-ubyte": idx(INK[3:]),
    "t10k-labels-idx1-ubyte": idx(np.array([1, 2])),
    "zip.train": grey_text([6, 0, 9], GREYS[:3]).encode(),
    "zip.test": grey_text([3, 4], GREYS[3:]).encode(),
    "letter-recognition.data": "".join(f"{line}\n" for line in LETTERS).encode(),
}
ALL_FILES = CONTENTS | BY_HAND | MADE | PACKABLE
SHAPES = {
    "sonar.mines": [2, 60], "sonar.rocks": [3, 60], "breast-cancer-wisconsin.data": [4, 9],
    "rcv1_subsets_topics.svm.bz2": [6, 5], "rcv1_topics.txt": [4],
    "Lymphoma96x4026.arff": [5, 3], "lymphoma_labels.csv": [5],
    "breast_er_west2001.csv": [3, 3], "colon_alon1999.csv": [3, 2],
    "leukemia_golub1999.csv": [3, 2],
    "train-images-idx3-ubyte": [3, 784], "train-labels-idx1-ubyte": [3],
    "t10k-images-idx3-ubyte": [2, 784], "t10k-labels-idx1-ubyte": [2],
    "zip.train": [3, 256], "zip.test": [2, 256], "letter-recognition.data": [5002, 16],
}  # fmt: skip
# The data sets and columns of the library's own registry are also used for the small files.
PUBLISHED = published_registry()
REGISTERED = PUBLISHED["dataset"]
DATA_SETS = {name: table["files"] for name, table in REGISTERED.items()}


def served_name(name):
    """The name under which an address serves a file."""
    return f"{name}.gz" if name in PACKABLE and "letter" not in name else name


def use_registry(monkeypatch, folder, contents, server):
    """Write a registry of `contents` to `folder`, and make the library read it."""
    tables = []
    for name, table in REGISTERED.items():
        if contents.keys() >= set(table["files"]):
            said = {"title": f"The {name} data", "citation": f"The {name} paper"}
            tables.append((f"[dataset.{name}]", table | said))
    for name, content in contents.items():
        fields = {
            "name": name, "shape": SHAPES[name], "publisher": "A publisher", "source": "A source",
            "licence": "A licence", "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }  # fmt: skip
        (entry,) = [entry for entry in PUBLISHED["file"] if entry["name"] == name]
        if name in BY_HAND:
            fields["obtain"] = "A recipe"
        elif "sources" in entry:
            served = [source.rpartition("/")[2] for source in entry["sources"]]
            fields["sources"] = [f"{server}/{part}" for part in served]
            fields |= {key: entry[key] for key in ["conversion"] if key in entry}
        else:
            fields["url"] = f"{server}/{served_name(name)}"
        tables.append(("[[file]]", fields))
    lines = []
    for heading, fields in tables:
        # JSON strings, numbers and lists are valid TOML.
        lines += [heading, *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]
    folder.mkdir()
    (folder / "registry.toml").write_text("\n".join(lines))
    found = {"sparsemargin.datasets": folder / "registry.toml"}
    monkeypatch.setattr(registry, "REGISTRIES", found)
    registry.data_sets.cache_clear()


def hide_copies(monkeypatch, folder):
    """Hide all copies from the loaders except those made by the test."""
    monkeypatch.delenv("SPARSEMARGIN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(folder / "scikit-learn"))


def write_files(folder, names=tuple(CONTENTS), contents=ALL_FILES):
    """Write the named files into `folder`, which is created if necessary, and return it."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(contents[name])
    return folder
