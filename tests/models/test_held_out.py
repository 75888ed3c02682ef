"""Outputs for rows that are held out of models like the fitted one, and their state."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from sparsemargin import AROWClassifier, PNormPerceptron, SecondOrderPerceptron
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.parts import part_of
from sparsemargin.datasets import make_zipf_text
from sparsemargin.models import Learner
from sparsemargin.models import learner as base
from sparsemargin.models.fitted import held_out
from sparsemargin.models.fitted.probabilities import Window
from sparsemargin.models.inputs.rows import check_rows, open_rows


@pytest.fixture(scope="module")
def text():
    return make_zipf_text(900, 1000, n_classes=3, random_state=0)


def progress_of(model):
    return model.fitted.progress


@pytest.mark.parametrize("change", [
    {"n_held_out": 601}, {"n_held_out": -1}, {"spoiled": 1}, {"fingerprints": None},
    {"hashes": np.zeros(3, np.uint64)}, {"hashes": np.arange(513, dtype=np.uint64)},
    {"counts": np.zeros(1, np.int64)}, {"largest": -1}, {"largest": 1 << 64},
    {"excess": np.nan}, {"compared": -1.0},
], ids=str)  # fmt: skip
def test_damaged_state_is_rejected(change, text):
    model = AROWClassifier(max_iter=2, random_state=0).fit(text[0][:600], text[1][:600])
    state = progress_of(model).__getstate__()
    place = state["fingerprints"] if next(iter(change)) in state["fingerprints"] else state
    fresh = ProgressiveOutputs.__new__(ProgressiveOutputs)
    fresh.__setstate__(state)
    place.update(change)
    with pytest.raises(ValueError, match="damaged"):
        fresh.__setstate__(state)


def test_held_out_outputs_are_replaced_by_later_trials():
    kept = ProgressiveOutputs(1, 16, 1)
    rows = np.arange(6.0)
    kept = kept.held_out(rows[:, np.newaxis], np.zeros((6, 1), np.uint8), np.ones(6))
    assert Window.of(kept).outputs[:, 0].tolist() == rows.tolist()
    kept.n_trials = 10
    assert len(kept.recent()) == 8
    kept.n_trials = 18
    assert len(kept.recent()) == 12


def test_held_out_models_do_not_change_the_fit(text, monkeypatch):
    X, y = text[0][:900], text[1][:900]
    makes = [lambda: AROWClassifier(max_iter=3, random_state=np.random.RandomState(0)),
             lambda: SecondOrderPerceptron(random_state=0)]  # fmt: skip
    models = [make().fit(X, y) for make in makes]
    monkeypatch.setattr(base, "held_out_outputs", lambda *_: None)
    for model, make in zip(models, makes, strict=True):
        plain = make().fit(X, y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert not hasattr(plain, "predict_proba")


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_held_out_rows_are_normalized_without_their_own_terms(norm):
    texts = ["a b b c", "a c d", "b a", "c d e f a", "e b g g", "h"]
    settings = {"norm": norm, "use_idf": False, "token_pattern": r"\w"}
    rows = check_rows(open_rows(TfidfVectorizer(**settings).fit_transform(texts)))
    found = held_out._without_new_terms(part_of(rows, 3, 6), part_of(rows, 0, 3), norm)
    expected = TfidfVectorizer(**settings).fit(texts[:3]).transform(texts[3:])  # columns a to d
    X = sp.csr_matrix((found.data, found.indices, found.indptr), (3, 8)).toarray()
    np.testing.assert_allclose(X[:, :4], expected.toarray(), rtol=1e-15)
    assert not X[:, 4:].any()


@pytest.fixture
def likes(monkeypatch):
    """Record the calls that fit a model to a part of the rows, with the models they return."""
    fitted, original = [], Learner._train

    def recorded(like, task, *args):
        if like.fitted.progress is None:
            fitted.append((task, like))
        return original(like, task, *args)

    monkeypatch.setattr(Learner, "_train", recorded)
    return fitted


def test_held_out_outputs_are_of_unseen_rows(text, monkeypatch):
    folds, original = [], held_out._folds
    monkeypatch.setattr(
        held_out, "_folds", lambda *args: folds.extend(original(*args)) or iter(folds)
    )
    AROWClassifier(max_iter=2, random_state=0).fit(text[0][:600], text[1][:600])
    assert len(folds) == 3
    for left, rest in folds:
        assert sorted([*left, *rest]) == list(range(600))


def test_held_out_models_have_used_columns_only(text, likes):
    X = text[0][:60]
    n_used, wide = len(np.unique(X.indices)), sp.csr_matrix(X)
    wide.resize(60, 10**6)
    AROWClassifier(max_iter=2, random_state=0).fit(wide, text[1][:60])
    assert len(likes) == 3
    assert all(like.space.n_features <= n_used + 2 for _, like in likes)


def test_held_out_models_keep_the_value_of_p_log(text, likes):
    X = sp.csr_matrix(text[0][:60])
    X.resize(60, 10**6)
    PNormPerceptron(p="log", max_iter=2, random_state=0).fit(X, text[1][:60])
    assert {like.p for _, like in likes} == {2 * np.log(10**6)}


def test_held_out_models_have_at_most_the_epochs_of_the_model(text, likes):
    how = {"max_iter": None, "random_state": 0}
    model = PNormPerceptron(**how).fit(text[0], text[1])
    assert likes
    assert all(like.max_iter <= model.n_iter_ for _, like in likes)


def test_held_out_matrix_models_use_a_bounded_number_of_rows(likes):
    X, y = make_zipf_text(3000, 300, n_classes=2, random_state=0)
    for max_updates, n_rows in (None, 2000), (10, 3000):
        likes.clear()
        SecondOrderPerceptron(max_updates=max_updates, max_iter=2, random_state=0).fit(X, y)
        assert 0 < max(len(task.codes) for task, _ in likes) <= n_rows * 2 // 3 + 1


def test_held_out_models_print_and_warn_nothing(text, monkeypatch):
    begin = AROWClassifier._begin
    n_begun = []

    def warns(learner, task):
        n_begun.append(task)
        warn_user("a fit begins")
        return begin(learner, task)

    monkeypatch.setattr(AROWClassifier, "_begin", warns)
    with pytest.warns(UserWarning, match="a fit begins") as told:
        AROWClassifier(max_iter=2, random_state=0).fit(text[0][:600], text[1][:600])
    assert (len(n_begun), len(told)) == (4, 1)


def test_held_out_outputs_use_few_places():
    kept = ProgressiveOutputs(1, 16, 1)
    for n, n_places in (6, 16), (16, 16), (17, 32):
        whole = kept.held_out(np.zeros((n, 1)), np.zeros((n, 1), np.uint8), np.ones(n))
        assert (len(whole.steps), whole.n_trials) == (n_places, n)
