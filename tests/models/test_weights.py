"""Weights of rows and classes, and predictions for outputs of 0.

Only the ratios of weights matter, and weights improve the results for rare classes.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, make_classification
from sklearn.metrics import average_precision_score, f1_score
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from problems.models import assert_same, make_problem
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    AutoClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
    fit_svmlight,
    fit_text,
    load_model,
    save_model,
)
from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import fit_distributed
from sparsemargin.files.sources import open_sources
from sparsemargin.kernels import RBF
from sparsemargin.streaming.predict import Predictor, svmlight_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WEIGHING = [
    PNormPerceptron(), ALMAClassifier(), ALMAClassifier(p=3), AROWClassifier(),
    AROWClassifier(r=1.0, max_loss=None), MarginPerceptron(max_iter=20), HigherOrderPerceptron(),
    SecondOrderPerceptron(), ALMAClassifier(kernel=RBF(0.1)),
]  # fmt: skip
each_model = pytest.mark.parametrize("model", WEIGHING, ids=repr)
linear_models = pytest.mark.parametrize("model", WEIGHING[:-1], ids=repr)


@each_model
@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_sample_weights_change_no_bit(model, n_classes):
    X, y = make_problem(120, n_classes=n_classes)
    model.set_params(random_state=0)
    plain = clone(model).fit(X, y)
    stream = clone(model).partial_fit(X[:50], y[:50], classes=range(n_classes))
    stream.partial_fit(X[50:], y[50:])
    for weight in 100.0, 0.1, 1e-300:
        weights = np.full(120, weight)
        fitted = clone(model).fit(X, y, sample_weight=weights)
        streamed = clone(model).partial_fit(X[:50], y[:50], range(n_classes), weights[:50])
        streamed.partial_fit(X[50:], y[50:], sample_weight=weights[50:])
        for weighted, other in (fitted, plain), (streamed, stream):
            assert weighted.fitted.typical_weight == weight
            weighted.fitted.typical_weight = 1.0
            assert_same(weighted, other)
        weighted = clone(model).set_params(class_weight=dict.fromkeys(range(n_classes), weight))
        assert_array_equal(weighted.fit(X, y).decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("model", WEIGHING[:-3], ids=repr)
def test_equal_class_weights_of_many_labels_change_no_bit(model):
    X, y = make_problem(120, n_classes=3)
    Y = np.eye(3, dtype=int)[y]
    weighted = clone(model).set_params(random_state=0, class_weight=dict.fromkeys(range(3), 7.0))
    plain = clone(model).set_params(random_state=0).fit(X, Y)
    assert_array_equal(weighted.fit(X, Y).decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("weight", [-1.0, np.inf, np.nan])
@pytest.mark.parametrize("many", [False, True])
def test_class_weights_must_be_finite_and_nonnegative(weight, many):
    X, y = make_problem(60, n_classes=3)
    y = np.eye(3, dtype=int)[y] if many else y
    for named in {0: weight}, dict.fromkeys(range(3), weight):
        with pytest.raises(ValueError, match="class_weight must be finite and not negative"):
            ALMAClassifier(class_weight=named).fit(X, y)


def test_stream_scales_weights_by_those_of_its_first_rows():
    X, y = make_problem(100)
    twice, thrice = np.full(50, 2.0), np.full(50, 3.0)
    given, told = (PNormPerceptron(shuffle=False, max_iter=1) for _ in range(2))
    given.partial_fit(X[:50], y[:50], np.unique(y), twice)
    given.partial_fit(X[50:], y[50:], sample_weight=2 * thrice)
    told.partial_fit(X[:50], y[:50], np.unique(y))
    told.partial_fit(X[50:], y[50:], sample_weight=thrice)
    assert_allclose(given.coef_, told.coef_, rtol=1e-12)
    unweighted = PNormPerceptron(shuffle=False, max_iter=1).partial_fit(
        X[:50], y[:50], np.unique(y)
    )
    assert not np.array_equal(unweighted.partial_fit(X[50:], y[50:]).coef_, told.coef_)


@each_model
def test_only_ratios_of_weights_matter(model):
    X, y = make_problem(300)
    keep = np.flatnonzero((y == 0) | (np.arange(300) % 5 == 0))
    X, y = X[keep], y[keep]
    model = clone(model).set_params(random_state=0)
    weights = compute_sample_weight("balanced", y)
    of_rows = clone(model).fit(X, y, sample_weight=weights)
    for other in (
        clone(model).fit(X, y, sample_weight=1000 * weights),
        clone(model).set_params(class_weight="balanced").fit(X, y),
        clone(model).set_params(class_weight={0: (y == 1).sum(), 1: (y == 0).sum()}).fit(X, y),
    ):
        assert_allclose(other.decision_function(X), of_rows.decision_function(X), atol=1e-9)
    assert (of_rows.decision_function(X) != clone(model).fit(X, y).decision_function(X)).any()


@each_model
def test_balanced_weights_ignore_a_class_whose_rows_have_weight_0(model):
    """A bag of a `BaggingClassifier` may lack a rare class: its rows then have weight 0."""
    X, y = make_problem(200)
    absent = np.arange(200) < 5
    y, weights = np.where(absent, 2, y), np.where(absent, 0.0, 1.0)
    model = clone(model).set_params(random_state=0)
    given = dict(enumerate(compute_class_weight("balanced", classes=np.arange(2), y=y[~absent])))
    balanced, named = (
        clone(model).set_params(class_weight=each).fit(X, y, weights)
        for each in ("balanced", given)
    )
    assert_allclose(balanced.decision_function(X), named.decision_function(X), atol=1e-9)


@each_model
def test_rows_of_a_class_of_weight_0_are_skipped(model):
    """Averages ignore these rows, and so does stopping after an epoch without a correction."""
    X, y = make_problem(200)
    model = clone(model).set_params(hypothesis="average", random_state=0, max_iter=12)
    of_rows = clone(model).fit(X, y, sample_weight=y.astype(float))
    of_class = clone(model).set_params(class_weight={0: 0, 1: 5.0}).fit(X, y)
    assert_array_equal(of_class.decision_function(X), of_rows.decision_function(X))
    assert of_class.t_ == of_rows.t_ == 1 + 12 * y.sum()


def test_names_of_weighted_classes_are_labels_of_files(tmp_path):
    texts, rows = tmp_path / "a.tsv", tmp_path / "a.svm"
    texts.write_text("".join(f"{1 + i % 2}\tword{i % 3} more{i % 2}\n" for i in range(40)))
    with pytest.raises(ValueError, match="01"):
        fit_text(texts, algo="arow", class_weight={"01": 5})
    dump_svmlight_file(*make_problem(60), str(rows), zero_based=False)
    equal = [fit_svmlight(rows, "arow", class_weight={name: 5}, max_iter=1).coef_
             for name in (1, "1", "+1", 1.0)]  # fmt: skip
    assert all(np.array_equal(each, equal[0]) for each in equal)
    with pytest.raises(ValueError, match="several weights for one class"):
        fit_svmlight(rows, "arow", class_weight={"1": 2, "+1": 3})


@pytest.mark.parametrize("max_iter", [2, 12])
def test_rows_of_a_class_of_weight_0_are_skipped_in_files(max_iter, tmp_path):
    X, y = make_problem(200)
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    how = {"algo": "pnorm", "class_weight": {0: 0, 1: 1}, "max_iter": max_iter, "random_state": 0}
    model = fit_svmlight(tmp_path / "a.svm", **how)
    assert model.t_ == 1 + max_iter * y.sum()
    assert fit_distributed([tmp_path / "a.svm"], **how).t_ == model.t_
    halves = [(X[:90], y[:90]), (X[90:], y[90:])]
    assert fit_distributed(halves, min_rows=1, **how).t_ == model.t_


@pytest.fixture(scope="module")
def rare():
    """4,000 training rows and 4,000 test rows, 3 % of which are positive."""
    X, y = make_zipf_text(16_000, 5000, random_state=0)
    positive, negative = np.flatnonzero(y == y.max())[:240], np.flatnonzero(y == y.min())[:7760]
    rows = np.random.RandomState(0).permutation(np.append(positive, negative))
    assert len(rows) == 8000
    return X[rows], (y[rows] == y.max()).astype(int)


@linear_models
def test_balanced_weights_improve_a_rare_class(model, rare):
    (X, y), learned, asked = rare, slice(4000), slice(4000, None)
    scores = []
    for class_weight in None, "balanced":
        fitted = clone(model).set_params(class_weight=class_weight, random_state=0)
        outputs = fitted.fit(X[learned], y[learned]).decision_function(X[asked])
        scores.append((f1_score(y[asked], outputs > 0), average_precision_score(y[asked], outputs)))
    (f1, precision), (f1_balanced, precision_balanced) = scores
    assert f1_balanced > f1
    assert precision_balanced > precision - 0.03


@pytest.fixture(scope="module")
def dense():
    """Dense rows with few features, 3 % of which are positive."""
    return make_classification(
        8000, 30, n_informative=10, weights=[33 / 34], class_sep=2.0, flip_y=0.005, random_state=0
    )


@linear_models
def test_balanced_weights_keep_the_error_of_dense_rows_low(model, dense):
    (X, y), learned, asked = dense, slice(4000), slice(4000, None)
    errors = []
    for class_weight in None, "balanced":
        fitted = clone(model).set_params(class_weight=class_weight, random_state=0)
        errors.append(1 - fitted.fit(X[learned], y[learned]).score(X[asked], y[asked]))
    assert errors[1] < 1.5 * errors[0]


@linear_models
def test_zero_output_predicts_the_more_frequent_class(model, tmp_path):
    for n_classes, most in (2, 0), (2, 1), (4, 2):
        X, y = make_problem(200, n_classes=n_classes)
        y = np.where(np.arange(200) % 2, y, most)
        model = clone(model).set_params(fit_intercept=False, random_state=0)
        fitted = clone(model).fit(X, y)
        # In a stream it is the majority class so far.
        stream = clone(model).partial_fit(X[y != most], y[y != most], classes=range(n_classes))
        other = stream.predict(sp.csr_matrix((1, X.shape[1])))
        assert other != most
        stream.partial_fit(X, y)
        save_model(stream, tmp_path / "a.model")
        for same in fitted, stream, load_model(tmp_path / "a.model"):
            nothing = sp.csr_matrix((3, X.shape[1]))
            assert not same.decision_function(nothing).any()
            assert_array_equal(same.predict(nothing), [most] * 3)
        # Rows of weight 0 do not count.
        weighted = clone(model).fit(X, y, sample_weight=(y != most).astype(float))
        assert_array_equal(weighted.predict(nothing), np.repeat(other, 3))
        # Without counts of rows, the second of two classes or the first of several is predicted.
        stream.fitted.rows_by_class[:] = 0
        assert_array_equal(stream.predict(nothing), [1 if n_classes == 2 else 0] * 3)


def test_zero_output_predicts_labels_of_half_of_the_rows():
    X, Y = make_problem(60)[0], np.zeros((60, 3), dtype=int)
    Y[:, 0], Y[:, 1], Y[:, 2] = np.arange(60) % 2, np.arange(60) % 3 == 0, np.arange(60) % 3 > 0
    model = ALMAClassifier(fit_intercept=False, random_state=0).fit(X, Y)
    nothing = sp.csr_matrix((1, X.shape[1]))
    assert_array_equal(model.predict(nothing), [[1, 0, 1]])
    assert_array_equal(model.predict_labels(nothing, threshold=0.0), [[1, 1, 1]])


def test_empty_rows_of_a_file_get_the_same_prediction(tmp_path):
    (tmp_path / "a.svm").write_text("-1 1:1\n-1 2:1\n1 3:1\n-1\n")
    (tmp_path / "b.svm").write_text("1\n-1 9:1\n")
    model = fit_svmlight(tmp_path / "a.svm", "alma", fit_intercept=False)
    predictor = Predictor(model, svmlight_of(model, open_sources(tmp_path / "b.svm")))
    codes = np.concatenate([block.codes for block in predictor.blocks()])
    assert_array_equal(codes, [0, 0])


@pytest.mark.parametrize("model", [*WEIGHING[:2], *WEIGHING[3:], AutoClassifier()], ids=repr)
def test_weights_that_are_all_zero_are_rejected(model):
    X, y = make_problem(60)
    classes, first = np.unique(y, return_inverse=True)
    nothing = clone(model).set_params(class_weight=dict.fromkeys(classes.tolist(), 0))
    for call in (lambda: nothing.fit(X, y), lambda: nothing.partial_fit(X, y, classes)):
        with pytest.raises(ValueError, match="class_weight is 0 for every class"):
            call()
    half = clone(model).set_params(class_weight={classes.tolist()[0]: 0})
    with pytest.raises(ValueError, match="sample_weight and class_weight leave no row"):
        half.fit(X, y, sample_weight=(first == 0) * 1.0)
    assert not hasattr(half, "classes_")
    half.fit(X, y)  # the remedy: rows of the other class have a weight


def test_class_weights_of_0_for_all_labels_are_rejected():
    X, y = make_problem(60)
    Y = np.column_stack([y == y[0], y != y[0]]).astype(int)
    for model in (
        ALMAClassifier(class_weight={0: 0, 1: 0}),
        AROWClassifier(class_weight={0: 0, 1: 0}),
    ):
        for call in model.fit, model.partial_fit:
            with pytest.raises(ValueError, match="class_weight is 0 for every class"):
                call(X, Y)
