"""The published files against general readers, the registry, and known figures.

The tests are skipped if SPARSEMARGIN_DATA does not name their folder.
"""

import gzip
from io import StringIO

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_svmlight_file

import depth
from papers.data import load_letter, load_mnist, load_sonar, load_usps, load_wbc
from problems.published_files import data_folder
from sparsemargin.datasets import (
    load_breast_er,
    load_colon,
    load_leukemia,
    load_lymphoma,
    load_rcv1,
)
from sparsemargin.datasets._conversions import convert

COLON, LEUKEMIA = "colon_alon1999.csv.gz", "leukemia_golub1999.csv.gz"
WEST, WBC_FILE = "breast_er_west2001.csv.gz", "breast-cancer-wisconsin.data"
LYMPHOMA = "Lymphoma96x4026.arff.gz", "lymphoma_labels.csv"
SONAR = "sonar.mines", "sonar.rocks"
NEWS = "rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt"


def content_of(name):
    """The bytes of a registered file, or the content of a packed copy."""
    if (data_folder() / name).exists():
        return (data_folder() / name).read_bytes()
    return gzip.decompress((data_folder(f"{name}.gz") / f"{name}.gz").read_bytes())


def general_table(name):
    """The cells of a table, including its header, read with NumPy."""
    content = content_of(name)
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    return np.genfromtxt(StringIO(text.rpartition("@DATA")[2]), delimiter=",", dtype=str)


@pytest.mark.parametrize(("load", "options", "file", "columns", "labels", "n_positive"), [
    (load_wbc, {}, WBC_FILE, slice(1, -1), (-1, "4"), 239),
    (load_letter, {"subset": "all"}, "letter-recognition.data", slice(1, None), (0, "A"), 789),
    (load_colon, {}, COLON, slice(2, None), (1, "t"), 40),
    (load_leukemia, {"subset": "all"}, LEUKEMIA, slice(3, None), (2, "AML"), 25),
    (load_breast_er, {}, WEST, slice(None, -1), (-1, "1"), 25),
    (load_lymphoma, {"labels": "acl", "missing": "nan"}, LYMPHOMA[0], slice(None, -1),
     (-1, "ACL"), 23),
])  # fmt: skip
def test_tables_agree_with_a_general_reader(load, options, file, columns, labels, n_positive):
    table = general_table(file)
    header = table[0] if load in (load_colon, load_leukemia) else None
    rows = table[header is not None :]
    if load is load_wbc:
        rows = rows[(rows != "?").all(axis=1)]
    found = load(**options, data_home=data_folder())
    expected = np.where(rows[:, columns] == "?", "nan", rows[:, columns]).astype(float)
    assert_array_equal(found.data, expected)
    positive = "A" if load is load_letter else 1
    assert_array_equal(found.target == positive, rows[:, labels[0]] == labels[1])
    assert (found.target == positive).sum() == n_positive
    if header is not None:
        assert found.feature_names == header[columns].tolist()


def test_conversions_reproduce_the_published_files():
    gene = np.char.strip(general_table(COLON))[1:]
    signs = [f"<br>{'-' * (sample[1] == 't')}{sample[0]}\n" for sample in gene]
    lines = ["  ".join(line) for line in gene[:, 2:].T]
    pages = ["\n".join(["<pre>", *lines, "</pre>"]), "".join(signs)]
    assert convert("colon", [page.encode() for page in pages]) == content_of(
        COLON.removesuffix(".gz")
    )
    probes, *rows = general_table(LEUKEMIA)
    parts = []
    for split in "train", "test":
        chosen = [row for row in rows[::-1] if row[1] == split]
        header = "Gene Description,Gene Accession Number,"
        lines = [header + ",".join(f"{row[0]},call" for row in chosen)]
        for number, probe in enumerate(probes[3:], 3):
            lines.append(f'"A, B",{probe},' + ",".join(f"{row[number]},P" for row in chosen))
        parts.append("\n".join(lines).encode())
    assert convert("leukemia", parts) == content_of(LEUKEMIA.removesuffix(".gz"))
    folder = data_folder(*LYMPHOMA)
    classes = [f"0,{row[1]}\n" for row in general_table(LYMPHOMA[1])[1:]]
    sources = ["@data\n" + "".join(classes), gzip.decompress((folder / LYMPHOMA[0]).read_bytes())]
    made = convert("lymphoma_labels", [sources[0].encode(), sources[1]])
    assert made == content_of(LYMPHOMA[1])


def test_sonar_agrees_with_its_csv_copy():
    """That copy has the rocks before the mines."""
    folder = data_folder(*SONAR, "sonar.all-data")
    table = general_table("sonar.all-data")
    mines = table[:, -1] == "M"
    X, y = load_sonar("all", return_X_y=True, data_home=folder)
    values = table[:, :-1].astype(float)
    assert_array_equal(X, np.vstack([values[mines], values[~mines]]))
    assert_array_equal(y, np.repeat([1, -1], [111, 97]))
    parts = [load_sonar(subset, data_home=folder) for subset in ("aspect", "aspect_test")]
    assert [np.bincount(part.target == 1).tolist() for part in parts] == [[55, 49], [42, 62]]
    assert_array_equal(np.unique(np.vstack([part.data for part in parts]), axis=0),
                       np.unique(X, axis=0))  # fmt: skip


def test_mnist_has_the_bytes_of_its_files():
    for subset, prefix in ("train", "train"), ("test", "t10k"):
        X, y = load_mnist(subset, return_X_y=True, data_home=data_folder())
        pixels, labels = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
        assert X.toarray().astype(np.uint8).tobytes() == content_of(pixels)[16:]
        assert y.astype(np.uint8).tobytes() == content_of(labels)[8:]


def test_usps_agrees_with_a_general_reader():
    parts = [np.loadtxt(content_of(name).splitlines()) for name in ("zip.train", "zip.test")]
    X, y = load_usps("all", return_X_y=True, data_home=data_folder())
    assert_array_equal(np.c_[y, X], np.vstack(parts))


def test_lymphoma_labels_are_consistent_with_the_file():
    folder = data_folder(*LYMPHOMA)
    table = general_table(LYMPHOMA[1])[1:]
    nine = load_lymphoma("classes", data_home=folder)
    assert_array_equal(nine.target_names[nine.target], table[:, 1])
    assert_array_equal(np.bincount(nine.target), [10, 11, 46, 9, 2, 2, 6, 4, 6])
    of = {}
    for labels, n in ("malignant_66", 66), ("malignant_62", 62), ("malignant_72", 72), ("acl", 23):
        of[n] = load_lymphoma(labels, return_X_y=True, data_home=folder)[1] == 1
        assert (len(of[n]), of[n].sum()) == (96, n)
    assert_array_equal(of[66], table[:, 3] == "1")
    assert_array_equal(np.flatnonzero(of[66] != of[62]), [0, 1, 11, 63])
    assert set(nine.target_names[nine.target[of[66] != of[72]]]) == {"TCL"}


@depth.long
def test_news_agree_with_the_svmlight_loader():
    folder = data_folder(*NEWS)
    news = load_rcv1(None, source="sample", order="given", data_home=folder)
    X, labels = load_svmlight_file(str(folder / NEWS[0]), n_features=47236, multilabel=True)
    assert (abs(news.data - X)).nnz == 0
    assert news.data.nnz == 2_150_688
    assert (news.data.shape, news.target.shape) == ((27_695, 47_236), (27_695, 102))
    names = (folder / NEWS[1]).read_text().split()
    told = [{names[int(label)] for label in row} for row in labels]
    found = news.target.tolil().rows
    assert told == [set(news.target_names[row]) for row in found]
    counts = {topic: sum(topic in row for row in told) for topic in ("GCAT", "MCAT", "C15", "ECAT")}
    assert counts == {"GCAT": 8_006, "MCAT": 8_034, "C15": 4_769, "ECAT": 4_100}
