"""Many threads may predict with one model at once, but only one thread may use it for training."""

import copy
import os
import pickle
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from depth import some
from papers.hypotheses import hypothesis_errors
from problems.models import HYPOTHESES, JOINT, MODELS, VECTORS, fit, hypothesis_of, make_problem
from sparsemargin import (
    ALMAClassifier,
    AutoClassifier,
    CellClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
    TextClassifier,
    fit_csr,
    save_model,
)
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks
from sparsemargin._engine.kernel.outputs import single_blas
from sparsemargin.estimators import auto
from sparsemargin.evaluation import margins
from sparsemargin.kernels import RBF
from sparsemargin.models.learner import Learner
from sparsemargin.tasks import cell_classifier, text_classifier

N_THREADS = 6

ALL_MODELS = {
    **MODELS,
    "Higher-order, rbf": partial(HigherOrderPerceptron, kernel=RBF(0.5)),
    "Second-order, dual": partial(SecondOrderPerceptron, solver="dual"),
    "in two threads": partial(ALMAClassifier, n_jobs=2),
}
# Prediction depends only on the space of a model, so one model of each space is enough.
A_MODEL_OF_EACH_SPACE = [
    "ALMA", "p-norm, p = 6", "ALMA, poly", "Higher-order", "Higher-order, p = 3",
    "Higher-order, n x n", "Higher-order, rbf", "Second-order, dual", "in two threads",
]  # fmt: skip
FITTED = [(ALL_MODELS[name], each) for name in some(A_MODEL_OF_EACH_SPACE, ALL_MODELS)
          for each in HYPOTHESES if each == hypothesis_of(ALL_MODELS[name], each)]  # fmt: skip
FITTED += [(model, each) for model in JOINT.values() for each in VECTORS]


def at_once(calls):
    """Start each call in a separate thread at the same time, and return the results."""
    barrier = threading.Barrier(len(calls))

    def begin(call):
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [run.result() for run in [pool.submit(begin, call) for call in calls]]


def answers(model, X, y):
    """Return the bytes of all results that depend on the state of a model."""
    results = [model.decision_function(X), model.predict(X)]
    results += [np.asarray(model.n_corrections_), np.asarray(model.score(X, y))]
    if model.hypothesis in ("last", "average") and not model.space.has_support:
        results += [model.coef_, model.intercept_]
    if model.hypothesis != "random":
        results.append(margins(model, X, y))
    if model.hypothesis == "vote" and isinstance(model, ALMAClassifier):
        results.append(hypothesis_errors(model, X, y, [1]).errors["average"])
    return [result.tobytes() for result in results]


@pytest.mark.parametrize(("make", "hypothesis"), FITTED)
def test_concurrent_predictions_equal_sequential_ones(make, hypothesis):
    X, y = make_problem(30, n_classes=3)
    model = fit(make(hypothesis=hypothesis, random_state=0), X, y)
    # Each thread predicts other rows.
    parts = [(X[i:], y[i:]) for i in range(N_THREADS)]
    expected = [answers(copy.deepcopy(model), *part) for part in parts]
    # This model has not predicted yet, so all threads compute its cached values at once.
    assert at_once([partial(answers, model, *part) for part in parts]) == expected


@pytest.mark.parametrize(
    ("hypothesis", "in_blocks"), [("random", False), ("last", False), ("average", True)]
)
def test_predict_labels_is_thread_safe(hypothesis, in_blocks, monkeypatch):
    monkeypatch.setattr(vector_blocks, "DENSE_BYTES", 0 if in_blocks else 1 << 40)
    X, y = make_problem(60, n_classes=20)
    Y = sp.csr_matrix(np.eye(20, dtype=int)[y])
    model = fit(PNormPerceptron(hypothesis=hypothesis, p=3, random_state=0), X, Y)
    assert isinstance(model.space, VectorBlocks) is in_blocks

    def told():
        some = model.predict_labels(X, top_k=3)
        return model.decision_function(X).tobytes(), some.indices.tobytes(), some.indptr.tobytes()

    expected = told()
    assert at_once([told] * N_THREADS) == [expected] * N_THREADS


class Kernel:
    """A linear kernel that calls given functions: `calls` once, and `when_copied` in each copy."""

    def __init__(self):
        self.calls, self.when_copied = [], []

    def __call__(self, a, b):
        calls, self.calls = self.calls, []
        for call in calls:
            call()
        return a @ b.T

    def __deepcopy__(self, memo):
        for call in self.when_copied:
            call()
        return Kernel()


def during(model, call, then):
    """Run `then` while another thread is inside `call`, which computes the kernel."""
    reached, let_go = threading.Event(), threading.Event()
    model.kernel.calls = [reached.set, partial(let_go.wait, 600)]
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(call)
        try:
            assert reached.wait(600)
            then()
        finally:
            let_go.set()
        return run.result()


@pytest.fixture
def rows():
    X, y = make_problem(30)
    return X.toarray(), y


@pytest.fixture(params=[ALMAClassifier, HigherOrderPerceptron])
def model(request, rows):
    """Return a fitted model whose kernel can be paused."""
    return request.param(kernel=Kernel(), max_iter=2, random_state=0).fit(*rows)


def refused(does, *calls, who="Another"):
    for call in calls:
        with pytest.raises(RuntimeError, match=f"^{who} thread {does} this"):
            call()


@pytest.mark.parametrize("who", ["Another", "This"])
@pytest.mark.parametrize("doing", ["fit", "partial_fit", "decision_function"])
def test_training_excludes_other_uses_of_the_model(model, rows, who, doing, tmp_path):
    """The model is used by another thread, or by this one in a call from its kernel. Such a call
    would change the state that the outer call is using."""
    X, y = rows
    plain, other = copy.deepcopy(model), copy.deepcopy(model)
    given = [X] if doing == "decision_function" else rows
    getattr(plain, doing)(*given)
    looked = []

    def look():
        learning = [partial(learn, X[:5], y[:5]) for learn in (model.partial_fit, model.fit)]
        asking = [
            partial(model.predict, X), partial(model.decision_function, X),
            partial(model.score, X, y), partial(margins, model, X, y),
            partial(copy.deepcopy, model), partial(save_model, model, tmp_path / "a.model"),
        ]  # fmt: skip
        if doing == "decision_function":
            refused("asks", *learning, who=who)
            assert model.n_corrections_ > 0  # attributes can be read during prediction
        else:
            # Training is still refused after other calls have been refused.
            refused("fits", *learning, *asking, *learning, who=who)
            if who == "Another":
                names = "n_corrections_", "support_"
                looking = [partial(getattr, model, name) for name in names]
                refused("fits", *looking, partial(pickle.dumps, model))
        other.fit(X, y).predict(X)
        looked.append(True)

    call = partial(getattr(model, doing), *given)
    if who == "Another":
        during(model, call, look)
    else:
        model.kernel.calls = [look]
        call()
    assert looked
    # The refused calls have changed nothing.
    assert not list(tmp_path.iterdir())
    assert model.n_corrections_ == plain.n_corrections_
    assert_array_equal(model.decision_function(X), plain.decision_function(X))
    model.partial_fit(X, y)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_process_does_not_wait_for_missing_threads(model, rows):
    def fork():
        child = os.fork()
        if child == 0:
            status = 1
            try:
                model.partial_fit(*rows)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    during(model, lambda: model.decision_function(rows[0]), fork)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_process_does_not_wait_for_the_lock_of_a_kernel(rows):
    model = ALMAClassifier(kernel=RBF(0.5), random_state=0).fit(*rows)
    with single_blas().lock:  # as another thread may hold it
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            status = 1
            try:
                model.predict(rows[0])
                status = 0
            finally:
                os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_training_during_a_copy_is_rejected(model, rows):
    X, y = rows
    fits = lambda: model.fit(X, y), lambda: model.partial_fit(X, y)
    model.kernel.when_copied = [partial(refused, "asks", *fits, who="This")]
    copied = copy.deepcopy(model)
    assert vars(copied).keys() == vars(model).keys()
    assert_array_equal(copied.decision_function(X), model.decision_function(X))
    copied.partial_fit(X, y)
    assert copied.n_corrections_ > model.n_corrections_


@pytest.mark.parametrize(("make", "owner", "name", "rows"), [
    (AutoClassifier, auto.DefaultAlgorithm, "candidate", np.eye(4)),
    (TextClassifier, text_classifier, "find_algorithm", ["a b", "c d", "a e", "c f"]),
])  # fmt: skip
def test_first_batches_of_two_threads_exclude_each_other(make, owner, name, rows, monkeypatch):
    model, select, batch = make(random_state=0), getattr(owner, name), (rows, [0, 1, 0, 1], [0, 1])

    def select_while_another_thread_begins(*args, **kwargs):
        monkeypatch.undo()
        with (
            ThreadPoolExecutor(1) as other,
            pytest.raises(RuntimeError, match="Another thread fits this"),
        ):
            other.submit(model.partial_fit, *batch).result()
        return select(*args, **kwargs)

    monkeypatch.setattr(owner, name, select_while_another_thread_begins)
    assert model.partial_fit(*batch).predict(rows).tolist() == [0, 1, 0, 1]


def test_fits_leave_the_warning_filters_of_other_threads_alone(monkeypatch):
    """The filters belong to the process. Two fits that changed them at once could leave all
    warnings off."""
    seen, train = [], Learner._train
    monkeypatch.setattr(
        Learner, "_train", lambda *given: seen.append(list(warnings.filters)) or train(*given)
    )
    X, y = make_problem(60, n_classes=3)
    fit_csr(X, y, random_state=0).predict_proba(X)
    fit_csr(X, y, "arow", max_iter=2, random_state=0).predict_proba(X)
    assert len(seen) > 5
    assert all(each == warnings.filters for each in seen)


def refitting(function, again):
    """Return `function`, which also fits the model again during the first call, as another thread
    might."""
    waiting = [again]

    def called(*args, **kwargs):
        found = function(*args, **kwargs)
        found = list(found) if hasattr(found, "send") else found
        if waiting:
            waiting.pop()()
        return found

    return called


ASKED = "predict", "predict_proba", "decision_function"


@pytest.mark.parametrize("asked", ASKED)
def test_cells_are_predicted_by_one_model_during_a_fit(asked, monkeypatch):
    X = np.random.RandomState(0).poisson(1 + 9 * np.eye(4)[np.arange(120) % 4])
    model = CellClassifier(random_state=0).fit(X, np.arange(120) % 4)
    expected = getattr(model, asked)(X)
    again = partial(model.fit, X[::-1], np.arange(120) % 4 + 5)
    hooked = refitting(cell_classifier.predicted_cells, again)
    monkeypatch.setattr(cell_classifier, "predicted_cells", hooked)
    assert_array_equal(getattr(model, asked)(X), expected)
    assert model.classes_.tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("asked", [*ASKED, "explain", "most_confident_errors", "unknown_share"])
def test_texts_are_predicted_by_one_model_during_a_fit(asked, monkeypatch):
    texts, y = ["red apple", "green pear", "blue car", "grey bus"] * 10, [0, 0, 1, 1] * 10
    model = TextClassifier(features="words", random_state=0).fit(texts, y)
    given = {"explain": [texts[:1]], "most_confident_errors": [texts, y[::-1]]}.get(asked, [texts])
    expected = getattr(model, asked)(*given)
    again = partial(model.fit, ["one", "two", "three"] * 10, [5, 6, 7] * 10)
    hooked = refitting(text_classifier.texts_in, again)
    monkeypatch.setattr(text_classifier, "texts_in", hooked)
    found = getattr(model, asked)(*given)
    assert str(found) == str(expected)
    assert model.classes_.tolist() == [5, 6, 7]
