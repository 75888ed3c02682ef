"""What is read from small files of each form: digits, letters, tumours, and subsets of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from papers.data import load_letter, load_mnist, load_sonar, load_usps, load_wbc
from problems.synthetic_files import GREYS, INK, LETTERS, MINES, ROCKS
from sparsemargin.datasets import load_breast_er, load_colon, load_leukemia, load_lymphoma

WEST, GRUVBERGER = "breast_er_west2001.csv", "breast_er_gruvberger2001.csv"
TUMOURS = np.array([[-3, 4], [8, -9], [0, 7]])
LETTER_ROWS = [list(map(float, line.split(",")[1:])) for line in LETTERS]
LETTER_NAMES = [line[0] for line in LETTERS]
nan = np.nan


@pytest.mark.parametrize(("load", "subset", "rows", "target"), [
    (load_sonar, "aspect", [MINES[0], ROCKS[1]], [1, -1]),
    (load_sonar, "aspect_test", [MINES[1], ROCKS[0], ROCKS[2]], [1, -1, -1]),
    (load_sonar, "all", [*MINES, *ROCKS], [1, 1, -1, -1, -1]),
    (load_wbc, "complete", [[5, 1, 1, 1, 2, 1, 3, 1, 1], [5, 4, 4, 5, 7, 10, 3, 2, 1],
                            [4, 1, 1, 3, 2, 1, 3, 1, 1]], [-1, 1, -1]),
    (load_usps, "train", GREYS[:3], [6, 0, 9]),
    (load_usps, "test", GREYS[3:], [3, 4]),
    (load_usps, "all", GREYS, [6, 0, 9, 3, 4]),
    (load_letter, "train", LETTER_ROWS[:1002], LETTER_NAMES[:1002]),
    (load_letter, "test", LETTER_ROWS[1002:], LETTER_NAMES[1002:]),
    (load_letter, "all", LETTER_ROWS, LETTER_NAMES),
    (load_leukemia, "train", TUMOURS[[0, 1]], [-1, 1]),
    (load_leukemia, "test", TUMOURS[[2]], [1]),
    (load_leukemia, "all", TUMOURS, [-1, 1, 1]),
    (load_colon, None, [[1.5, 20], [3.01, 4000], [5, 6]], [1, -1, 1]),
    (load_breast_er, None, [[10, -2, 3], [40, 50, 60], [-7, 8, 9]], [1, -1, 1]),
])  # fmt: skip
def test_subsets(home, load, subset, rows, target):
    subsets = {} if subset is None else {"subset": subset}
    X, y = load(**subsets, return_X_y=True, data_home=home)
    assert_array_equal(X, rows)
    assert_array_equal(y, target)


@pytest.mark.parametrize(("subset", "rows", "digits", "dtype"), [
    ("train", [0, 1, 2], [7, 0, 9], np.float32), ("test", [3, 4], [1, 2], np.float64),
    ("all", range(5), [7, 0, 9, 1, 2], np.float64),
])  # fmt: skip
def test_mnist(home, subset, rows, digits, dtype):
    X, y = load_mnist(subset, dtype=dtype, return_X_y=True, data_home=home)
    assert_array_equal(X.toarray(), INK[rows].reshape(-1, 784))
    assert_array_equal(y, digits)
    assert X.dtype == dtype
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.nnz == np.count_nonzero(INK[rows])
    assert X.has_canonical_format


@pytest.mark.parametrize(("missing", "one", "two", "three"), [
    ("nan", nan, nan, nan), ("zero", 0, 0, 0), ("mean", 0.3125, 0.75, 0.625),
])  # fmt: skip
def test_lymphoma_missing_values(home, missing, one, two, three):
    expected = [[0.5, two, -1.25], [one, 1, 0], [0.25, 0.5, three], [-1, 2, 0.75], [1.5, -0.5, 3]]
    assert_array_equal(load_lymphoma(missing=missing, data_home=home).data, expected)


@pytest.mark.parametrize(("labels", "target", "names"), [
    ("malignant_66", [1, 1, -1, -1, 1], ["normal", "cancerous"]),
    ("malignant_62", [-1, -1, -1, -1, 1], ["normal", "cancerous"]),
    ("malignant_72", [1, 1, 1, -1, 1], ["normal", "cancerous"]),
    ("acl", [1, -1, -1, -1, -1], ["nonACL", "ACL"]),
    ("classes", [1, 2, 4, 3, 0], ["CLL", "DLBCL", "FL", "NIL", "TCL"]),
])  # fmt: skip
def test_lymphoma_labels(home, labels, target, names):
    lymphoma = load_lymphoma(labels, data_home=home)
    assert_array_equal(lymphoma.target, target)
    assert lymphoma.target.dtype == np.int64
    assert lymphoma.target_names.tolist() == names


def gruvberger_lines():
    values = np.random.RandomState(0).randint(-99, 99, size=(58, 3389)) / 8
    labels = np.where(np.arange(58) % 3 == 0, "1", "0")
    return [",".join(map(str, row)) for row in np.c_[values, labels]]


def test_breast_tumours_of_gruvberger_go_first_wherever_they_are(home, monkeypatch, tmp_path):
    assert load_breast_er(data_home=home).source == "west2001"
    lines = gruvberger_lines()
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / GRUVBERGER).write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("SPARSEMARGIN_DATA", str(tmp_path / "named"))
    for source in "auto", "gruvberger2001":
        breast = load_breast_er(source, data_home=home)
        assert breast.source == "gruvberger2001"
        assert_array_equal(np.c_[breast.data, breast.target == 1], np.loadtxt(lines, delimiter=","))
        assert "Gruvberger" in breast.DESCR
    assert load_breast_er("west2001", data_home=home).source == "west2001"


def test_no_other_source_stands_in_for_one_asked_for_by_name(home):
    with pytest.raises(FileNotFoundError, match=f"^{GRUVBERGER} is neither in .*west2001'$"):
        load_breast_er("gruvberger2001", data_home=home)
    (home / WEST).rename(home / GRUVBERGER)
    with pytest.raises(FileNotFoundError, match=f"^{WEST} not found"):
        load_breast_er("west2001", data_home=home)


@pytest.mark.parametrize(("spoil", "complaint"), [
    (lambda lines: [], "holds 0 rows instead of 58"),
    (lambda lines: ["gene," * 3389 + "class", *lines], "holds 59 rows instead of 58"),
    (lambda lines: [*lines, ""], "line 59: expected 3390 columns, found 0"),
])  # fmt: skip
def test_a_table_of_another_layout_is_refused(home, spoil, complaint):
    (home / GRUVBERGER).write_text("".join(f"{line}\n" for line in spoil(gruvberger_lines())))
    with pytest.raises(ValueError, match=complaint) as caught:
        load_breast_er(data_home=home)
    assert str(caught.value).startswith(str(home / GRUVBERGER))
    assert str(caught.value).endswith("the docstring of load_breast_er gives the layout")
