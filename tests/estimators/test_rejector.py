"""A Rejector is a classifier: outputs and probabilities are those of the classifier in it."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from problems.models import make_problem
from sparsemargin import ALMAClassifier, AROWClassifier, Rejector, evaluation, text
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
