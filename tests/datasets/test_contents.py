"""The content of small files of each format: digits, letters, tumours, and subsets of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from papers.data import load_letter, load_mnist, load_sonar, load_usps, load_wbc
from problems.synthetic_files import GREYS, INK, LETTERS, MINES, ROCKS
from sparsemargin.datasets import load_breast_er, load_colon, load_leukemia, load_lymphoma

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
def test_subset_selects_rows_and_classes(home, load, subset, rows, target):
    subsets = {} if subset is None else {"subset": subset}
    X, y = load(**subsets, return_X_y=True, data_home=home)
    assert_array_equal(X, rows)
    assert_array_equal(y, target)


@pytest.mark.parametrize(("subset", "rows", "digits", "dtype"), [
    ("train", [0, 1, 2], [7, 0, 9], np.float32), ("test", [3, 4], [1, 2], np.float64),
    ("all", range(5), [7, 0, 9, 1, 2], np.float64),
])  # fmt: skip
def test_mnist_files_are_read(home, subset, rows, digits, dtype):
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
