"""One model and many threads: asked by all of them it answers as one would be; it learns alone."""

import copy
import gc
import os
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from problems.models import HYPOTHESES, JOINT, MODELS, fit, make_problem
from sparsemargin import (
    ALMAClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
    save_model,
)
from sparsemargin._engine.first_order import label_blocks
from sparsemargin._engine.first_order.label_blocks import LabelBlocks
from sparsemargin.evaluation import hypothesis_errors, margins
from sparsemargin.models import in_use

N_THREADS = 6

ALL_MODELS = {
    **MODELS,
    "Higher-order, rbf": partial(HigherOrderPerceptron, kernel="rbf", gamma=0.5),
    "Second-order, dual": partial(SecondOrderPerceptron, solver="dual"),
    "in two threads": partial(ALMAClassifier, n_jobs=2),
}
FITTED = {
    (name, hypothesis): partial(model, hypothesis=hypothesis)
    for name, model in ALL_MODELS.items()
    for hypothesis in HYPOTHESES
} | {
    (name, hypothesis): partial(model, hypothesis=hypothesis)
    for name, model in JOINT.items()
    for hypothesis in ("last", "average")
}


def at_once(calls):
    """Results of calls that begin together, each in a thread of its own."""
    barrier = threading.Barrier(len(calls))

    def begin(call):
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [run.result() for run in [pool.submit(begin, call) for call in calls]]


def answers(model, X, y):
    """All that reads what a model has learned, to the bit."""
    results = [model.decision_function(X), model.predict(X)]
    results += [np.asarray(model.n_corrections_), np.asarray(model.score(X, y))]
    if model.hypothesis in ("last", "average") and not model._has_pool:
        results += [model.coef_, model.intercept_]
    if model.hypothesis != "random":
        results.append(margins(model, X, y))
    return [result.tobytes() for result in results]


# -- asked by many --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FITTED, ids=", ".join)
def test_many_threads_are_answered_as_one(kind):
    X, y = make_problem(30, n_classes=3)
    model = fit(FITTED[kind](random_state=0), X, y)
    expected = answers(copy.deepcopy(model), X, y)
    # Nothing has been asked of this one: what it makes at the first question is made by all.
    for told in at_once([partial(answers, model, X, y)] * N_THREADS):
        assert told == expected


@pytest.mark.parametrize(
    ("hypothesis", "in_blocks"),
    [*((hypothesis, False) for hypothesis in HYPOTHESES), ("last", True), ("average", True)],
)
def test_labels_of_rows_that_have_several(hypothesis, in_blocks, monkeypatch):
    monkeypatch.setattr(label_blocks, "DENSE_BYTES", 0 if in_blocks else 1 << 40)
    X, y = make_problem(60, n_classes=20)
    Y = sp.csr_matrix(np.eye(20, dtype=int)[y])
    model = fit(PNormPerceptron(hypothesis=hypothesis, p=3, random_state=0), X, Y)
    assert isinstance(model._space, LabelBlocks) is in_blocks

    def told():
        some = model.predict_labels(X, top_k=3)
        return model.decision_function(X).tobytes(), some.indices.tobytes(), some.indptr.tobytes()

    expected = told()
    assert at_once([told] * N_THREADS) == [expected] * N_THREADS


@pytest.mark.parametrize("name", ["ALMA", "ALMA, poly"])
def test_errors_of_all_hypotheses(name):
    X, y = make_problem(60)
    model = fit(MODELS[name](hypothesis="vote", random_state=0), X, y)
    expected = hypothesis_errors(model, X, y).errors["average"]
    for curve in at_once([partial(hypothesis_errors, model, X, y)] * N_THREADS):
        np.testing.assert_array_equal(curve.errors["average"], expected)


def test_rows_of_many_threads_are_told_apart():
    """Each thread asks about rows of its own."""
    X, y = make_problem(400)
    model = ALMAClassifier(random_state=0).fit(X, y)
    parts = [X[i::N_THREADS] for i in range(N_THREADS)]
    expected = [model.decision_function(part) for part in parts]
    told = at_once([partial(model.decision_function, part) for part in parts])
    np.testing.assert_array_equal(np.concatenate(told), np.concatenate(expected))


# -- learning is done alone -----------------------------------------------------------------------


class Held:
    """A kernel that waits in the midst of a call until it is let go."""

    def __init__(self):
        self.reached, self.let_go = threading.Event(), threading.Event()
        self.let_go.set()

    def __call__(self, a, b):
        self.reached.set()
        assert self.let_go.wait(60)
        return a @ b.T

    def __deepcopy__(self, memo):
        return self

    def during(self, call, then):
        """Run `then` while another thread is in the midst of `call`."""
        self.reached.clear()
        self.let_go.clear()
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(call)
            try:
                assert self.reached.wait(60)
                then()
            finally:
                self.let_go.set()
            return run.result()


@pytest.fixture(params=[ALMAClassifier, HigherOrderPerceptron])
def held(request):
    """A kernel that can be held, a model that has learned by it, and its rows."""
    X, y = make_problem(30)
    X, kernel = X.toarray(), Held()
    return kernel, request.param(kernel=kernel, max_iter=1, random_state=0).fit(X, y), X, y


def refused(does, *calls, who="Another"):
    for call in calls:
        with pytest.raises(RuntimeError, match=f"^{who} thread {does} this"):
            call()


def test_during_a_fit_nothing_else_is_done(held, tmp_path):
    kernel, model, X, y = held
    expected = copy.deepcopy(model).partial_fit(X, y).decision_function(X)

    def look():
        refused(
            "fits",
            lambda: model.fit(X, y),
            lambda: model.partial_fit(X, y),
            lambda: model.predict(X),
            lambda: model.decision_function(X),
            lambda: model.score(X, y),
            lambda: model.n_corrections_,
            lambda: model.support_,
            lambda: margins(model, X, y),
            lambda: copy.deepcopy(model),
            lambda: pickle.dumps(model),
            lambda: save_model(model, tmp_path / "a.model"),
        )

    kernel.during(lambda: model.partial_fit(X, y), look)
    assert not list(tmp_path.iterdir())
    # Refusals have left no trace.
    np.testing.assert_array_equal(model.decision_function(X), expected)


def test_nothing_is_learned_while_the_model_is_asked(held):
    kernel, model, X, y = held
    expected = model.decision_function(X)

    def look():
        refused("asks", lambda: model.fit(X, y), lambda: model.partial_fit(X, y))
        assert model.n_corrections_ > 0  # to look at it is no learning

    told = kernel.during(lambda: model.decision_function(X), look)
    np.testing.assert_array_equal(told, expected)
    model.partial_fit(X, y)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_it_does_not_have(held):
    kernel, model, X, y = held

    def fork():
        child = os.fork()
        if child == 0:
            status = 1
            try:
                kernel.let_go.set()
                model.partial_fit(X, y)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    kernel.during(lambda: model.decision_function(X), fork)


def test_nothing_is_learned_while_the_model_is_copied():
    X, y = make_problem(30)
    X = X.toarray()

    class Kernel:
        def __call__(self, a, b):
            return a @ b.T

        def __deepcopy__(self, memo):
            refused("asks", lambda: model.fit(X, y), lambda: model.partial_fit(X, y), who="This")
            return self

    model = ALMAClassifier(kernel=Kernel(), random_state=0).fit(X, y)
    copied = copy.deepcopy(model)
    assert vars(copied).keys() == vars(model).keys()
    np.testing.assert_array_equal(copied.decision_function(X), model.decision_function(X))
    copied.partial_fit(X, y)
    assert copied.n_corrections_ > model.n_corrections_


class Meddling:
    """A kernel that calls other things on the way."""

    def __init__(self):
        self.calls = []

    def __call__(self, a, b):
        calls, self.calls = self.calls, []
        for call in calls:
            call()
        return a @ b.T

    def __deepcopy__(self, memo):
        return Meddling()


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", [ALMAClassifier, HigherOrderPerceptron])
def test_a_kernel_calls_the_model_that_learns_by_it_no_second_time(kind, method):
    """The outer call would go on with what the inner one has left."""
    X, y = make_problem(60)
    X = X.toarray()
    model = kind(kernel=Meddling(), random_state=0, max_iter=3).fit(X[:40], y[:40])
    plain = copy.deepcopy(model)
    getattr(plain, method)(X, y)

    def look():
        within = partial(model.partial_fit, X[:5], y[:5])
        refused(
            "fits", within, lambda: model.fit(X[:5], y[:5]), lambda: model.predict(X),
            lambda: model.decision_function(X), lambda: copy.deepcopy(model), who="This",
        )  # fmt: skip
        looked.append(True)
        # Refused as before, although others have been meanwhile.
        refused("fits", within, who="This")

    looked = []
    model.kernel.calls = [look]
    getattr(model, method)(X, y)
    assert looked
    assert model.n_corrections_ == plain.n_corrections_
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    # What is refused there is not refused to a copy, nor to the model afterwards.
    model.kernel.calls = [partial(plain.fit, X[:5], y[:5])]
    model.partial_fit(X, y)


def test_a_kernel_may_not_teach_the_model_that_is_asked():
    X, y = make_problem(30)
    X = X.toarray()
    model = ALMAClassifier(kernel=Meddling(), random_state=0).fit(X, y)
    expected = model.decision_function(X)
    fits = [partial(model.fit, X[:5], y[:5]), partial(model.partial_fit, X[:5], y[:5])]
    model.kernel.calls = [partial(refused, "asks", *fits, who="This")]
    np.testing.assert_array_equal(model.decision_function(X), expected)
    model.fit(X, y)


def test_a_copy_answers_while_the_model_learns(held):
    kernel, model, X, y = held
    linear = ALMAClassifier(random_state=0).fit(X, y)
    other = copy.deepcopy(linear)
    expected = linear.decision_function(X)
    kernel.during(
        lambda: model.fit(X, y),
        lambda: np.testing.assert_array_equal(other.decision_function(X), expected),
    )


def test_a_fit_that_fails_lets_others_go_on(held):
    _, model, X, y = held
    for bad in (np.full_like(X, np.nan), X[:, :-1]):
        with pytest.raises(ValueError, match=r"NaN|features"):
            model.partial_fit(bad, y)
        with pytest.raises(ValueError, match=r"NaN|features"):
            model.predict(bad)
    at_once([partial(model.predict, X)] * 2)
    at_once([partial(model.fit, X, y)])


def test_models_that_are_gone_leave_nothing_behind():
    X, y = make_problem()
    gc.collect()
    before = len(in_use._uses)
    model = ALMAClassifier().fit(X, y)
    assert len(in_use._uses) == before + 1
    del model
    gc.collect()
    assert len(in_use._uses) == before


def test_models_that_learn_at_once_do_not_meet():
    X, y = make_problem(200)
    expected = ALMAClassifier(random_state=0).fit(X, y).coef_
    models = [ALMAClassifier(random_state=0) for _ in range(N_THREADS)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in at_once([partial(model.fit, X, y) for model in models]):
            np.testing.assert_array_equal(model.coef_, expected)


def test_threads_that_learn_and_ask_at_random_are_answered_or_refused():
    """Rows with ever more features, so that what is asked would move under the asking."""
    X, y = make_problem(300, n=200)
    model = SecondOrderPerceptron(solver="implicit").partial_fit(X[:1], y[:1], [0, 1])
    outcomes = {"answered": 0, "refused": 0}

    def learn(start):
        for i in range(start, 300, 4):
            try:
                model.partial_fit(X[i : i + 1], y[i : i + 1])
            except RuntimeError:
                outcomes["refused"] += 1

    def ask():
        for _ in range(100):
            try:
                assert np.isfinite(model.decision_function(X)).all()
                outcomes["answered"] += 1
            except RuntimeError:
                outcomes["refused"] += 1

    at_once([partial(learn, start) for start in range(4)] + [ask] * 4)
    assert outcomes["answered"] > 0
    assert np.isfinite(model.decision_function(X)).all()
