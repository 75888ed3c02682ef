"""Published figures and real text; skipped where SPARSEMARGIN_DATA does not lead to the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from papers.data import load_sonar
from problems.published_files import data_folder
from sparsemargin import ALMAClassifier, fit_csr


@pytest.fixture(scope="module")
def sonar():
    """The training patterns of the aspect-angle experiments."""
    return load_sonar(return_X_y=True, data_home=data_folder("sonar.mines", "sonar.rocks"))


@pytest.mark.parametrize(
    ("alpha", "updates", "margin"), [(0.75, 415_119, 5.65), (0.55, 1_584_785, 7.08)]
)
def test_alma_separates_sonar_in_the_published_number_of_updates(sonar, alpha, updates, margin):
    """Tsampouka & Shawe-Taylor (2006), Table 1; the starting vector counts as an update there."""
    X, y = sonar
    model = ALMAClassifier(
        alpha=alpha, normalize="max", intercept_scaling=1.0, hypothesis="last", shuffle=False,
        max_iter=None,
    )  # fmt: skip
    model.fit(sp.csr_matrix(X), y)
    assert model.n_corrections_ + 1 == updates
    w = np.append(model.coef_, model.intercept_)
    reached = (y * (np.c_[X, np.ones(len(X))] @ w)).min() / np.linalg.norm(w)
    assert round(1e3 * reached, 2) == margin


def test_news_stories_as_the_svmlight_loader_returns_them():
    """64-bit indices are taken as they are, and GCAT is learned to the error of linear SVMs."""
    vectors, topics = "rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt"
    folder = data_folder(vectors, topics)
    names = (folder / topics).read_text().split()
    X, labels = load_svmlight_file(str(folder / vectors), n_features=47236, multilabel=True)
    assert X.indices.dtype == np.int64
    y = np.array([names.index("GCAT") in row for row in labels])
    order = np.random.RandomState(0).permutation(len(y))
    train, test = order[:10_000], order[10_000:20_000]
    model = fit_csr(X[train], y[train], "alma", alpha=0.8, random_state=0)
    error = 1 - model.score(X[test], y[test])
    assert error < 0.05
    narrow = X[train]
    narrow.indices = narrow.indices.astype(np.int32)
    narrow.indptr = narrow.indptr.astype(np.int32)
    again = fit_csr(narrow, y[train], "alma", alpha=0.8, random_state=0)
    np.testing.assert_array_equal(again.coef_, model.coef_)
