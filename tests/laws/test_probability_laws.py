"""Probabilities are no worse than the shares of the classes where labels are random, and as good as
those of CalibratedClassifierCV where the truth is known; or there are none, with a reason."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import dump_svmlight_file
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss

from depth import pairwise, some
from sparsemargin import AutoClassifier, fit_svmlight
from sparsemargin.distributed import fit_distributed
from sparsemargin.estimators.classifiers import CLASSIFIERS

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

KINDS = {**CLASSIFIERS, "AutoClassifier": AutoClassifier}
EPOCHS = some([None, 1, 20], [None, 1, 2, 100])  # None: the default
N_ROWS, N_NEW = 1000, 2000


def fitted(name, epochs, way, X, y, weights=None, cv=False):
    """A classifier that has learned the rows in one of several ways."""
    how = {} if epochs is None else {"max_iter": epochs}
    model = KINDS[name](random_state=0, **how)
    of_rows = {} if weights is None else {"sample_weight": weights}
    if cv:
        return CalibratedClassifierCV(model, cv=3).fit(X, y, **of_rows)
    if way == "partial_fit":
        for start in range(0, len(y), 100):
            part = slice(start, start + 100)
            mine = {} if weights is None else {"sample_weight": weights[part]}
            model.partial_fit(X[part], y[part], np.unique(y), **mine)
        return model
    if way == "partial_fit twice":
        return model.partial_fit(X, y, np.unique(y)).partial_fit(X[::-1], y[::-1])
    if way == "warm_start":
        return model.set_params(warm_start=True).fit(X, y).fit(X, y)
    return model.fit(X, y, **of_rows)


def told_by(model, X):
    """Its probabilities, which agree with its predictions; None: there are none."""
    if not hasattr(model, "predict_proba"):
        with pytest.raises(AttributeError) as refusal:
            _ = model.predict_proba
        assert "CalibratedClassifierCV" in str(refusal.value.__cause__)
        return None
    told = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[told.argmax(axis=1)], model.predict(X))
    return told


WAYS = ["fit", "partial_fit", "partial_fit twice", "warm_start"]


@pytest.mark.parametrize(("name", "epochs", "way"), pairwise(list(KINDS), EPOCHS, WAYS))
def test_random_labels_get_class_frequencies_as_probabilities(name, epochs, way):
    if name == "AutoClassifier" and way == "warm_start":
        pytest.skip("has no warm_start")
    random = np.random.default_rng(0)
    X, y = random.normal(size=(N_ROWS, 500)), random.random(N_ROWS) < 0.5
    new, actual = random.normal(size=(N_NEW, 500)), random.random(N_NEW) < 0.5
    told = told_by(fitted(name, epochs, way, X, y), new)
    assert way != "fit" or told is not None
    if told is not None:
        shares = log_loss(actual, np.full(N_NEW, y.mean()))
        assert log_loss(actual, told) < shares + 0.02


@pytest.mark.parametrize(("name", "epochs", "way", "n_classes"), pairwise(
    list(KINDS), EPOCHS, ["fit", "partial_fit", "weights"], [2, 4]
))  # fmt: skip
def test_known_probabilities_are_recovered(name, epochs, way, n_classes):
    if way == "weights" and not getattr(KINDS[name], "weighs_steps", lambda: True)():
        pytest.skip("takes no weights")
    random = np.random.default_rng(1)
    X = random.normal(size=(N_ROWS + N_NEW, 20))
    logits = X @ random.normal(size=(20, n_classes)) / 2
    known = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, np.newaxis])
    y = (known.cumsum(axis=1) < random.random((len(X), 1))).sum(axis=1)
    rows, weights = slice(0, N_ROWS), None
    if way == "weights":
        # Rows of the first class come half as often, and weigh twice as much.
        rows = np.flatnonzero((y[:N_ROWS] > 0) | (random.random(N_ROWS) < 0.5))
        weights = np.where(y[rows] == 0, 2.0, 1.0)
    new, known = X[N_ROWS:], known[N_ROWS:]

    def off(told):
        return np.abs(told - known).mean()

    model = fitted(name, epochs, way, X[rows], y[rows], weights)
    if way == "partial_fit":
        # The vectors are the same, and new rows calibrate the probabilities.
        beside = CalibratedClassifierCV(FrozenEstimator(model)).fit(new, y[N_ROWS:])
    else:
        beside = fitted(name, epochs, way, X[rows], y[rows], weights, cv=True)
    # On average the outputs kept are those of a model that has learned three quarters of the rows.
    allowed = 0.03 if way == "partial_fit" else 0.01
    assert off(told_by(model, new)) < off(beside.predict_proba(new)) + allowed


@pytest.mark.parametrize("n_rows", some([10, 100], [6, 10, 15, 25, 40, 60, 100, 200, 400]))
@pytest.mark.parametrize("name", KINDS)
def test_probabilities_of_few_rows_are_informative(name, n_rows):
    random = np.random.default_rng(0)
    y = np.arange(n_rows + 500) % 3 == 0
    X = random.normal(size=(len(y), 5)) + 2 * y[:, np.newaxis]
    told = told_by(KINDS[name](random_state=0).fit(X[:n_rows], y[:n_rows]), X[n_rows:])
    actual = y[n_rows:]
    assert log_loss(actual, told) < log_loss(actual, np.full(500, 1 / 3))


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("way", ["file", "shards"])
def test_random_labels_in_files_and_shards(way, epochs, tmp_path):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(N_ROWS, 200)), random.integers(0, 2, N_ROWS)
    new, actual = random.normal(size=(N_NEW, 200)), random.integers(0, 2, N_NEW)
    paths = []
    for i, part in enumerate(np.array_split(np.arange(N_ROWS), 1 if way == "file" else 2)):
        paths.append(tmp_path / f"{i}.svm")
        dump_svmlight_file(X[part], y[part], str(paths[-1]))
    if way == "file":
        model = fit_svmlight(paths[0], algo="arow", max_iter=epochs)
    else:
        model = fit_distributed(paths, algo="arow", max_iter=epochs, min_rows=1)
    told = told_by(model, new)
    assert (told is None) == (epochs > 1 and way == "shards")
    if told is not None:
        assert log_loss(actual, told) < np.log(2) + 0.02


def test_sigmoid_of_one_feature_is_found():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 1))
    known = expit(2 * X[:, 0] - 1)
    y = random.random(3000) < known
    told = AutoClassifier(random_state=0).fit(X[:1000], y[:1000]).predict_proba(X[1000:])
    assert np.abs(told[:, 1] - known[1000:]).mean() < 0.04
