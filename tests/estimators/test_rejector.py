"""A Rejector is a classifier: outputs and probabilities are those of the classifier in it."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from problems.models import make_problem
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    CellClassifier,
    Rejector,
    TextClassifier,
    evaluation,
    load_model,
    save_model,
    text,
)
from sparsemargin.datasets import make_zipf_text
from sparsemargin.models.pipelines import parts_of, taken

X, Y = make_problem(n_classes=3)
TEXTS = ["free money now", "see you now", "money, money", "you see the plan"] * 20
LABELS = np.array(["spam", "ham"] * 40)


class WholeTask(ClassifierMixin, BaseEstimator):
    """The least that an estimator of a whole task has."""

    def __init__(self, r=1.0):
        self.r = r

    def fit(self, X, y):
        model = AROWClassifier(r=self.r, random_state=0)
        self.pipeline_ = make_pipeline(text.TfidfVectorizer(), model).fit(X, y)
        self.classes_ = self.pipeline_.classes_
        return self

    def predict(self, X):
        return self.pipeline_.predict(X)

    def decision_function(self, X):
        return self.pipeline_.decision_function(X)

    def predict_proba(self, X):
        return self.pipeline_.predict_proba(X)


def test_outputs_and_probabilities_are_those_of_the_classifier():
    model = Rejector(AROWClassifier(random_state=0), max_error=0.3).fit(X, Y)
    alone = AROWClassifier(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    assert is_classifier(model)
    assert model.score(X, Y) == np.mean(model.predict(X) == Y)
    assert get_scorer("neg_log_loss")(model, X, Y) < 0
    assert not hasattr(Rejector(ALMAClassifier(hypothesis="vote")), "predict_proba")
    assert not hasattr(evaluation, "Rejector")


@pytest.mark.parametrize("wrap", [
    lambda model: model,
    lambda model: FrozenEstimator(model.fit(TEXTS, LABELS)),
    lambda model: GridSearchCV(model, {"r": [0.5, 1.0]}, cv=2),
])  # fmt: skip
def test_an_estimator_of_a_whole_task_is_taken_as_its_pipeline(wrap):
    model = Rejector(wrap(WholeTask()), max_error=0.3).fit(TEXTS, LABELS)
    assert set(model.predict(TEXTS)) <= {"spam", "ham", "unknown"}
    assert model.predict_proba(TEXTS).shape == (80, 2)
    pipeline = Rejector(WholeTask().fit(TEXTS, LABELS).pipeline_, max_error=0.3)
    expected = clone(pipeline).fit(TEXTS, LABELS)
    if isinstance(wrap(WholeTask()), WholeTask):
        assert model.threshold_ == expected.threshold_


def test_searches_come_before_pipelines():
    fitted = WholeTask().fit(TEXTS, LABELS)
    search = GridSearchCV(WholeTask(), {"r": [0.5]}, cv=2).fit(TEXTS, LABELS)
    assert taken(fitted) is fitted.pipeline_
    assert taken(search) is search.best_estimator_.pipeline_
    assert parts_of(search)[1] is search.best_estimator_.pipeline_[-1]


def test_a_refused_label_leaves_the_rejector_unfitted():
    model = Rejector(AROWClassifier(), max_error=0.3, unknown="x")
    with pytest.raises(ValueError, match="not of the type of the classes"):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_labels_may_be_a_column_as_for_the_estimator_in_it(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("agg")
    # It imports matplotlib, which is optional.
    from sparsemargin.plotting import CoverageDisplay

    table = pd.DataFrame({"body": TEXTS, "queue": LABELS})
    model = Rejector(TextClassifier(text="body", random_state=0), max_error=0.3)
    by_array = clone(model).fit(table, LABELS)
    model.fit(table, "queue")
    assert model.threshold_ == by_array.threshold_
    assert model.score(table, "queue") == by_array.score(table, LABELS) > 0
    save_model(model, tmp_path / "a.model")
    frozen = Rejector(FrozenEstimator(model.estimator_)).fit(table, "queue")
    search = GridSearchCV(TextClassifier(text="body"), {"r": [0.5, 1.0]}, cv=2).fit(table, LABELS)
    searched = Rejector(FrozenEstimator(search)).fit(table, LABELS)
    for each in load_model(tmp_path / "a.model"), frozen, searched:
        assert each.score(table, "queue") == each.score(table, LABELS)
        drawn = [CoverageDisplay.from_estimator(each, table, y) for y in ("queue", LABELS)]
        np.testing.assert_array_equal(*(display.curves["Rejector"].error for display in drawn))
    with pytest.raises(ValueError, match="y='que' is not a column"):
        model.score(table, "que")


def test_threshold_of_a_frozen_classifier_is_that_of_the_rows_of_fit():
    X, y = make_zipf_text(3000, n_classes=4, random_state=0)
    model = AROWClassifier(random_state=0).fit(X[:1000], y[:1000])
    frozen = Rejector(FrozenEstimator(model), max_error=0.1)
    rejector = clone(frozen).fit(X[1000:2000], y[1000:2000])
    confidence = rejector.confidence(X[1000:2000])
    wrong = model.predict(X[1000:2000]) != y[1000:2000]
    allowed = [c for c in confidence if wrong[confidence >= c].mean() <= 0.1]
    assert rejector.threshold_ == min(allowed)
    assert rejector.share_ == (confidence >= min(allowed)).mean()
    shuffled = np.random.RandomState(0).permutation(y[1000:2000])
    with pytest.warns(UserWarning, match="No answer is sure enough"):
        assert clone(frozen).fit(X[1000:2000], shuffled).share_ == 0
    weights = np.where(wrong, 1e-9, 1.0)
    assert clone(frozen).fit(X[1000:2000], y[1000:2000], sample_weight=weights).share_ == 1
    with pytest.raises(ValueError, match="needs 30 rows on which it was not trained, got 20"):
        clone(frozen).fit(X[1000:1020], y[1000:1020])
    with pytest.raises(ValueError, match="max_error must be a number"):
        Rejector(FrozenEstimator(model), max_error=2).fit(X, y)
    assert clone(frozen).fit(X, y[:, np.newaxis]).share_ == clone(frozen).fit(X, y).share_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("y", "how", "words"), [
    (None, {}, "target y is None"), (np.arange(50) % 4, {}, "X has 60 rows, and y 50 labels"),
    (["a", "b"] * 30, {}, "labels of its type .text. can't be classes of this model"),
    ([0.0, np.nan] * 30, {}, "NaN"),
    (np.arange(60) % 4, {"sample_weight": np.ones(50)}, "sample_weight has shape"),
    (np.arange(60) % 4, {"sample_weight": np.zeros(60)}, "sample_weight is 0 for all rows"),
    (np.arange(60) % 4, {"sample_weight": -np.ones(60)}, "is negative, NaN or infinite"),
    (np.arange(60) % 4, {"step__sample_weight": np.ones(60)}, "Pass sample_weight"),
])  # fmt: skip
def test_bad_rows_for_a_frozen_classifier_are_refused(y, how, words):
    X, own = make_zipf_text(60, n_classes=4, random_state=0)
    rejector = Rejector(FrozenEstimator(AROWClassifier(random_state=0).fit(X, own)))
    with pytest.raises((ValueError, TypeError), match=words):
        rejector.fit(X, y, **how)


def test_cells_of_a_rejector_have_labels_in_a_column():
    pytest.importorskip("anndata")
    from problems.cells import adata_of, counts_of

    cells = adata_of(*counts_of())
    types = cells.obs["cell_type"].to_numpy().astype(str)
    model = Rejector(CellClassifier(max_iter=2, random_state=0), max_error=0.3).fit(cells)
    expected = np.mean(model.predict(cells) == types)
    table = cells.obs["cell_type"].to_dict()
    assert {model.score(cells, y) for y in (None, "cell_type", types, table)} == {expected}
    with pytest.raises(ValueError, match="1 of 300 cells are not in the table"):
        model.score(cells, {name: kind for name, kind in table.items() if name != "cell0"})


def test_metadata_routing_passes_the_weights_to_fit():
    model = Rejector(AROWClassifier(random_state=0), max_error=0.3)
    weights = np.where(Y == 0, 10.0, 1.0)
    expected = cross_val_score(model, X, Y, params={"sample_weight": weights}, error_score="raise")
    with config_context(enable_metadata_routing=True):
        model.set_score_request(sample_weight=False)
        with pytest.raises(UnsetMetadataPassedError, match=r"set_fit_request"):
            cross_val_score(model, X, Y, params={"sample_weight": weights})
        model.set_fit_request(sample_weight=True)
        found = cross_val_score(model, X, Y, params={"sample_weight": weights})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("labels", "unknown"), [
    (Y, np.nan), (Y, -1.5), (Y * 1.0, np.inf), (Y.astype(np.uint64) + 2**63 + 1, None),
    (Y + 2**60 + 1, 0.0),
])  # fmt: skip
def test_label_of_rejected_rows_is_a_whole_number_of_the_type_of_the_classes(labels, unknown):
    model = Rejector(AROWClassifier(random_state=0), max_error=0.3, unknown=unknown)
    with pytest.raises(ValueError, match=r"^unknown=.* not whole numbers that one type can hold"):
        model.fit(X, labels)


def test_wrong_estimators_and_shares_are_reported():
    for other in LogisticRegression(), CalibratedClassifierCV(AROWClassifier(random_state=0)):
        with pytest.raises(TypeError, match=r"\) is no classifier of sparsemargin"):
            Rejector(other).fit(X, Y)
    for share in None, "0.1", np.nan:
        with pytest.raises(ValueError, match=r"max_error must be a number from 0 to 1, got"):
            Rejector(AROWClassifier(), max_error=share).fit(X, Y)
