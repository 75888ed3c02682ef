"""Training of the Perceptrons with a matrix: streams, copies, vectors, stopping, memory."""

import _thread
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

from depth import pairwise
from problems.first_order import examples, make_problem, to_csr
from problems.higher_order import (
    ESTIMATORS,
    LINEAR,
    MODELS,
    PAPER,
    MatrixExtras,
    MatrixMachine,
    assert_agrees,
    assert_same_model,
    by_blocks,
    linear_models,
    models,
    noisy_problem,
    streamed,
)
from problems.kernels import assert_same_outputs
from problems.models import VECTORS
from problems.stages import COPIES
from references.higher_order import HigherOrder, SecondOrder
from sparsemargin import (
    HigherOrderPerceptron,
    SecondOrderPerceptron,
    fit_csr,
    fit_svmlight,
    load_svmlight,
)
from sparsemargin._engine.matrix import loop
from sparsemargin.distributed import fit_distributed
from sparsemargin.kernels import RBF
from sparsemargin.models.algorithms import matrix


@examples(120)
@given(
    model=st.sampled_from(list(LINEAR.values())),
    params=st.fixed_dictionaries(
        {
            "hypothesis": st.sampled_from(VECTORS),
            "fit_intercept": st.booleans(),
            "intercept_scaling": st.sampled_from([1.0, "auto"]),
            "max_updates": st.sampled_from([None, 5]),
            "alpha": st.sampled_from([None, 0.8]),
        }
    ),
    n_classes=st.integers(2, 3),
    cuts=st.lists(st.integers(1, 199), unique=True, max_size=12).map(sorted),
    value_dtype=st.sampled_from(["f4", "f8"]),
)
def test_batches_of_any_size_give_the_same_model(model, params, n_classes, cuts, value_dtype):
    X, y = noisy_problem(200, n_classes=n_classes, value_dtype=value_dtype)
    params = {**params, "shuffle": False, "random_state": 0}
    if params["intercept_scaling"] == "auto":
        # The first batch must contain the first 100 rows, which determine the scale.
        cuts = [cut for cut in cuts if cut >= 100]
    whole = streamed(model(**params), X, y, (), n_classes)
    assert_same_model(streamed(model(**params), X, y, cuts, n_classes), whole, X)
    assert_same_model(model(**params, max_iter=1).fit(X, y), whole, X)


@models
def test_training_row_by_row_equals_one_batch(model):
    X, y = noisy_problem(150, n_classes=3)
    whole, stream = (streamed(model(), X, y, cuts, 3) for cuts in ((), range(1, 150)))
    assert np.min(whole.n_corrections_) > 40
    assert_same_model(stream, whole, X, by_blocks(whole))


@models
def test_mistakes_are_numbered_continuously_in_a_stream(model):
    X, y = noisy_problem()
    model = partial(model, max_updates=None)
    stream = streamed(model(warm_start=True, shuffle=False), X, y, [40])
    first = streamed(model(), X[:40], y[:40])
    n_first, n_streamed = first.n_corrections_, stream.n_corrections_
    assert_array_equal(stream.mistakes_[:n_first], first.mistakes_)
    assert stream.mistakes_[n_first:].min() >= 40
    assert len(stream.mistakes_) == n_streamed
    assert stream.fit(X, y).mistakes_[n_streamed:].max() < 90
    shuffled = model(random_state=0).fit(X, y)
    n_fitted, mistakes = shuffled.n_corrections_, shuffled.partial_fit(X, y).mistakes_
    assert len(set(mistakes[:n_fitted])) == n_fitted
    assert np.any(np.diff(mistakes[:n_fitted]) < 0)
    assert mistakes[:n_fitted].max() < 90 <= mistakes[n_fitted:].min()


@pytest.mark.parametrize(
    ("algo", "dtype", "n_rows"), pairwise(["ho", "so"], ["f4", "f8"], [40, 300])
)
def test_intercept_scale_depends_on_the_first_rows_only(algo, dtype, n_rows, tmp_path):
    X, y = noisy_problem(n_rows)
    # Rows after the first hundred are much longer.
    X = sp.diags(np.arange(1.0, n_rows + 1) ** 2).dot(X).tocsr()
    path = tmp_path / "rows.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    lines = path.read_text().splitlines(keepends=True)
    parts = [tmp_path / f"part-{start:03}.svm" for start in range(0, n_rows, 20)]
    for start, part in zip(range(0, n_rows, 20), parts, strict=True):
        part.write_text("".join(lines[start : start + 20]))
    X, y = load_svmlight(path, dtype=dtype)
    fitted = fit_csr(X, y, algo, random_state=0)
    # A third of the root mean square of the norms of the first 100 rows.
    expected = np.sqrt(X[:100].astype(float).power(2).sum() / min(n_rows, 100)) / 3
    assert fitted.intercept_scaling_ == pytest.approx(expected, rel=1e-6)
    assert fitted.intercept_.all()
    others = [
        streamed(type(fitted)(), X, y, [100] if n_rows > 100 else []),
        fit_svmlight(path, algo, dtype=dtype),
        fit_svmlight(parts, algo, dtype=dtype, max_iter=2),
        fit_distributed([(X, y)], algo=algo, max_iter=1),
        fit_distributed([parts], algo=algo, dtype=dtype, cache_dir=tmp_path, max_iter=1),
    ]
    assert {other.intercept_scaling_ for other in others} == {fitted.intercept_scaling_}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_intercept_scale_for_zero_rows_and_kernels(estimator, learn):
    X, y = noisy_problem()
    more, rbf = {} if learn == "fit" else {"classes": [0, 1]}, {"kernel": RBF(1.0)}
    for params, rows, scale in [
        ({}, 0 * X, 1 / 3), (rbf, X, 0), ({**rbf, "intercept_scaling": 0.5}, X, 0.5),
        ({"fit_intercept": False}, X, 0),
    ]:  # fmt: skip
        model = getattr(estimator(**params), learn)(rows, y, **more)
        assert model.intercept_scaling_ == scale
        assert scale or not model.intercept_.any()


SHAPES = {
    "few features, many rows": (20_000, 60, 1.0, "primal"),
    "many features, sparse rows": (1_000, 1_000_000, 6e-5, "implicit"),
    "microarrays": (60, 4026, 1.0, "implicit"),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("shape", list(SHAPES))
def test_solver_depends_on_the_shape_of_X(estimator, shape):
    m, n, density, solver = SHAPES[shape]
    rng = np.random.RandomState(0)
    per_row = round(n * density)
    columns = rng.randint(n, size=(m, per_row)) if density < 1 else np.tile(np.arange(n), (m, 1))
    indptr = np.arange(m + 1) * per_row
    X = sp.csr_matrix((rng.uniform(-1, 1, columns.size), columns.ravel(), indptr), shape=(m, n))
    y = rng.randint(2, size=m)
    model = estimator(random_state=0, **PAPER).fit(X, y)
    assert model.n_corrections_ > m / 5
    assert model.solver_ == solver


@models
def test_warm_start_continues_training(model):
    X, y = noisy_problem(n_classes=3)
    warm = model(warm_start=True, shuffle=False).fit(X, y).fit(X, y)
    once, twice, thrice = (model(max_iter=n, shuffle=False).fit(X, y) for n in (1, 2, 3))
    assert np.all(twice.n_corrections_ > once.n_corrections_)
    tolerance = by_blocks(warm)
    assert_same_outputs(warm, twice, X, tolerance)
    assert_array_equal(warm.n_updates_, twice.n_updates_)
    assert_same_outputs(warm.partial_fit(X, y), thrice, X, tolerance)


STRUCTURE = {
    "p": 3.0, "c": 0.5, "sparse_updates": True, "max_updates": 9, "solver": "primal",
    "hypothesis": "last", "fit_intercept": False, "intercept_scaling": 1.0, "alpha": 0.5,
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), STRUCTURE.items())
def test_warm_start_rejects_parameters_that_determine_the_state(name, value):
    X, y = noisy_problem()
    model = HigherOrderPerceptron(warm_start=True, solver="implicit").fit(X, y)
    with pytest.raises(ValueError, match=f"warm_start can't go on with another {name}"):
        model.set_params(**{name: value}).fit(X, y)


@pytest.mark.parametrize(
    ("name", "hypothesis", "travel"), pairwise(list(MODELS), VECTORS, list(COPIES))
)
def test_copy_continues_training_bitwise_equally(name, hypothesis, travel, tmp_path):
    model, (X, y) = MODELS[name], noisy_problem(n_classes=3)
    params = {"hypothesis": hypothesis, "random_state": 0, "fit_intercept": True}
    original = streamed(model(**params), X[:50], y[:50], n_classes=3)
    at_50 = original.decision_function(X)
    travelled = COPIES[travel](original, tmp_path)
    assert_same_model(travelled, original, X)
    travelled.partial_fit(X[50:], y[50:])
    assert_same_model(travelled, streamed(model(**params), X, y, [50], n_classes=3), X)
    assert_array_equal(original.decision_function(X), at_50)


@pytest.mark.parametrize(
    ("name", "hypothesis", "max_corrections"), pairwise(list(MODELS), VECTORS, [None, 6])
)
def test_threads_change_no_bit(name, hypothesis, max_corrections):
    model, (X, y) = MODELS[name], noisy_problem(n_classes=5)
    params = {"hypothesis": hypothesis, "max_corrections": max_corrections, "random_state": 0}
    alone = model(n_jobs=1, **params).fit(X, y)
    for n_jobs in 2, 20:
        assert_same_model(model(n_jobs=n_jobs, **params).fit(X, y), alone, X)


@models
def test_unlimited_fit_ends_without_a_mistake(model):
    X = to_csr(np.random.RandomState(0).uniform(-1, 1, (25, 40)), "f8", "i4")
    y = np.arange(25) % 2
    model = partial(model, hypothesis="last", shuffle=False)
    fitted = model(max_iter=None).fit(X, y)
    assert fitted.score(X, y) == 1
    # The last epoch has no mistakes, and the one before has some.
    corrections = [
        model(max_iter=n).fit(X, y).n_corrections_ for n in range(1, int(fitted.n_iter_) + 1)
    ]
    assert corrections[-1] == fitted.n_corrections_
    assert sorted(set(corrections)) == corrections[:-1]


@linear_models
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_leaves_all_vectors_at_the_same_trial(model, n_jobs, monkeypatch):
    X, y = noisy_problem(400, n_classes=3)
    learn, calls = loop.learn_rows, []

    def interrupted(*call):
        calls.append(call)
        if len(calls) == 5:
            _thread.interrupt_main()
        return learn(*call)

    monkeypatch.setattr(loop, "learn_rows", interrupted)
    cut = model(n_jobs=n_jobs).partial_fit(X[:1], y[:1], classes=np.unique(y))
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        cut.partial_fit(X[1:], y[1:])
    monkeypatch.undo()
    n_trials = cut.t_ - 1
    assert 1 < n_trials < 400
    expected = streamed(model(), X[:n_trials], y[:n_trials], n_classes=3)
    assert_same_model(cut, expected, X)


@pytest.mark.parametrize("solver", ["implicit", "auto"])
@pytest.mark.parametrize(
    "rule", [HigherOrder(), HigherOrder(p=4.0), SecondOrder()], ids=["HO_2", "HO_4", "SO"]
)
def test_matrix_that_cannot_grow_further_warns(rule, solver, monkeypatch):
    monkeypatch.setattr(matrix, "MATRIX_MEMORY", 6000)
    monkeypatch.setattr(matrix, "PRIMAL_MEMORY", 6000)
    problem = make_problem(0, m=300, n=40, density=0.3, noise=0.6)
    estimator = MatrixMachine(rule, solver).estimator()
    with pytest.warns(UserWarning, match="stopped growing after .* Pass max_updates"):
        estimator.fit(problem.X, problem.y)
    assert 10 < estimator.n_updates_ < estimator.n_corrections_
    bounded = replace(rule, max_updates=estimator.n_updates_)
    assert_agrees(estimator, problem, MatrixExtras().runs(MatrixMachine(bounded), problem))
    with warnings.catch_warnings(action="error"):
        estimator.partial_fit(problem.X, problem.y)


def test_full_matrix_warns_and_training_continues(monkeypatch):
    X, y = noisy_problem(500)
    monkeypatch.setattr(matrix, "MATRIX_MEMORY", 4 * 30 * 31)
    with pytest.warns(UserWarning, match="stopped growing after 30 mistakes"):
        model = SecondOrderPerceptron(kernel=RBF(0.1)).fit(X, y)
    assert model.n_updates_ == 30 < model.n_corrections_


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_matrix_of_too_many_features_is_rejected(estimator):
    X, y = sp.eye(3, 20_000, format="csr"), [0, 1, 0]
    for learn, more in ("fit", {}), ("partial_fit", {"classes": [0, 1]}):
        with pytest.raises(ValueError, match=r"solver='primal' .*20000 features.*'implicit'"):
            getattr(estimator(solver="primal"), learn)(X, y, **more)
    assert estimator().fit(X, y).solver_ == "implicit"
