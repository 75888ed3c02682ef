"""Probabilities, and the outputs of rows before training that they are fitted to."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import dump_svmlight_file
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import classification_report, f1_score, log_loss

import sparsemargin
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    AutoClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    Rejector,
    SecondOrderPerceptron,
    fit_csr,
    fit_svmlight,
)
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin.datasets import make_zipf_text
from sparsemargin.models.fitted.probabilities import Calibration, Sigmoids, Window
from sparsemargin.streaming import passes
from sparsemargin.streaming.predict import Predictor

MODELS = {
    "AROW": AROWClassifier,
    "AROW, average": lambda **how: AROWClassifier(hypothesis="average", **how),
    "ALMA, p = 3": lambda **how: ALMAClassifier(p=3, **how),
    "p-norm, p = 6": lambda **how: PNormPerceptron(p=6, **how),
    "joint": lambda **how: PNormPerceptron(multi_class="joint", hypothesis="last", **how),
    "joint, average": lambda **how: ALMAClassifier(multi_class="joint", **how),
    "SO": lambda **how: SecondOrderPerceptron(max_updates=5, **how),
    "SO, last": lambda **how: SecondOrderPerceptron(hypothesis="last", **how),
    "HO, p = 3": lambda **how: HigherOrderPerceptron(p=3, **how),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
HOW = {"shuffle": False, "intercept_scaling": 0.3}


@pytest.fixture(scope="module")
def text():
    X, y = make_zipf_text(6000, 3000, n_classes=3, random_state=0)
    return X, y


def progress_of(model):
    return model.fitted.progress


def assert_same_progress(one, other):
    assert one.n_trials == other.n_trials
    for name in ("outputs", "positive", "steps"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@models
@pytest.mark.parametrize("n_classes", [2, 3])
def test_kept_outputs_are_decision_values_before_each_row(model, n_classes, text):
    X, y = text[0][:120], text[1][:120] % n_classes
    kept = progress_of(model(**HOW).partial_fit(X, y, classes=np.unique(y)))
    assert kept.n_trials == 120
    stepwise = model(**HOW)
    stepwise.partial_fit(X[0], y[:1], classes=np.unique(y))
    for i in range(1, 120):
        expected = np.ravel(stepwise.decision_function(X[i]))
        np.testing.assert_allclose(kept.outputs[i], expected, rtol=1e-10, atol=1e-14)
        stepwise.partial_fit(X[i], y[i : i + 1])
    assert_same_progress(progress_of(stepwise), kept)
    labels = np.unique(y)[1:] if n_classes == 2 else np.unique(y)
    np.testing.assert_array_equal(kept.positive[:120], y[:, np.newaxis] == labels)


@given(st.integers(0, 7), st.integers(0, 3000))
@settings(max_examples=60, deadline=None)
def test_places_hold_the_later_half_of_the_trials(exponent, n_trials):
    kept = ProgressiveOutputs(1, 1 << exponent, 3)
    kept.n_trials = n_trials
    trials = kept.trials()
    assert len(trials) == min(n_trials, 1 << exponent) == len(set(trials.tolist()))
    places = {}
    for trial in range(n_trials):
        thinning = max(0, trial.bit_length() - exponent - 1)
        if trial % (1 << thinning) == 0:
            places[(trial >> thinning) % (1 << exponent)] = trial
    assert trials.tolist() == [places[place] for place in range(len(places))]
    later = np.sort(trials[trials >= n_trials // 2])
    gaps = np.diff(later, prepend=n_trials // 2 - 1, append=n_trials)
    assert gaps.max(initial=0) <= 2 * max(1, n_trials >> exponent)


def test_trials_have_the_reported_places(text):
    X, y = text
    model = ALMAClassifier(max_iter=1, **HOW).fit(X, y)
    kept = progress_of(model)
    trials = kept.trials()
    assert len(trials) < len(y)  # thinned
    np.testing.assert_array_equal(kept.positive, y[trials][:, np.newaxis] == np.arange(3))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_batches_files_threads_and_saving_keep_equal_outputs(n_jobs, text, tmp_path):
    X, y = text
    whole = AROWClassifier(n_jobs=n_jobs, **HOW).fit(X, y)
    parts = AROWClassifier(**HOW)
    for start in range(0, 3000, 700):
        parts.partial_fit(X[start : min(start + 700, 3000)], y[start : min(start + 700, 3000)],
                          classes=[0, 1, 2])  # fmt: skip
    sparsemargin.save_model(parts, tmp_path / "half.model")
    parts = sparsemargin.load_model(tmp_path / "half.model")
    parts.partial_fit(X[3000:], y[3000:])
    assert_same_progress(progress_of(parts), progress_of(whole))
    again = pickle.loads(pickle.dumps(parts))
    np.testing.assert_array_equal(again.predict_proba(X[:9]), whole.predict_proba(X[:9]))


def test_label_blocks_keep_the_outputs_of_dense_labels(text, monkeypatch):
    X = text[0][:200]
    Y = np.random.default_rng(0).random((200, 40)) < 0.2
    dense = AROWClassifier(**HOW).fit(X, Y.astype(int))
    monkeypatch.setattr(vector_blocks, "DENSE_BYTES", 1 << 12)
    blocks = AROWClassifier(**HOW).fit(X, Y.astype(int))
    assert blocks.space.in_blocks
    assert_same_progress(progress_of(blocks), progress_of(dense))


def reference_sigmoid(outputs, having, weights):
    """Fit Platt's sigmoid with two slopes by a general minimiser. The slopes of outputs on a scale
    of 1 are drawn to 0, by 4 over the sum of the weights."""
    n_having, n_not = weights[having].sum(), weights[~having].sum()
    targets = np.where(having, (n_having + 1) / (n_having + 2), 1 / (n_not + 2))
    features = np.c_[np.minimum(outputs, 0), np.maximum(outputs, 0), np.ones(len(outputs))]

    def loss(at):
        logits = features @ at
        drawn = 2 / weights.sum() * ((np.abs(outputs).max() * at[:2]) ** 2).sum()
        return (weights * (np.logaddexp(0, logits) - targets * logits)).sum() + drawn

    bounds = [(0, None), (0, None), (None, None)]
    found = minimize(loss, [1.0, 1.0, 0.0], bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
    return lambda new: 1 / (1 + np.exp(
        -np.c_[np.minimum(new, 0), np.maximum(new, 0), np.ones(len(new))] @ found.x))  # fmt: skip


@given(st.integers(0, 2**32 - 1), st.floats(-3, 3))
@settings(max_examples=20, deadline=None)
def test_sigmoids_agree_with_platt_scaling_with_two_slopes(seed, shift):
    random = np.random.default_rng(seed)
    outputs = random.normal(size=400)
    having = random.random(400) < 1 / (1 + np.exp(-2 * outputs - shift))
    weights = random.integers(1, 4, 400).astype(float)
    expected = reference_sigmoid(outputs, having, weights)(outputs)
    found = Sigmoids(Window(outputs[:, np.newaxis], having[:, np.newaxis], weights))
    # The fit distinguishes only 256 steps of outputs.
    np.testing.assert_allclose(found(outputs[:, np.newaxis])[:, 0], expected, atol=5e-3)


def test_calibration_weights_equal_repeated_rows():
    random = np.random.default_rng(0)
    outputs = random.normal(size=(200, 3))
    codes = (outputs + random.normal(size=(200, 3))).argmax(axis=1)
    positive, times = codes[:, np.newaxis] == np.arange(3), random.integers(0, 4, 200)
    weighted = Calibration(Window(outputs, positive, times.astype(float)), True)
    copies = np.repeat(np.arange(200), times)
    copied = Calibration(Window(outputs[copies], positive[copies], np.ones(len(copies))), True)
    new = random.normal(size=(20, 3))
    np.testing.assert_allclose(weighted(new), copied(new), atol=5e-3)


@pytest.mark.parametrize("n_labels", [1, 4])
@pytest.mark.parametrize("kind", ["zeros", "told rightly", "told wrongly", "huge", "one label"])
def test_probabilities_of_odd_outputs_are_finite_and_sum_to_1(n_labels, kind):
    random = np.random.default_rng(0)
    codes = random.integers(0, max(2, n_labels), 40)
    positive = codes[:, np.newaxis] == (np.arange(n_labels) if n_labels > 1 else 1)
    signs = np.where(positive, 1.0, -1.0)
    outputs = {
        "zeros": 0 * signs, "told rightly": signs, "told wrongly": -signs, "huge": 1e300 * signs,
        "one label": signs,
    }[kind]  # fmt: skip
    if kind == "one label":
        positive = positive & False
        positive[:, 0] = True
    told = Calibration(Window(outputs, positive, np.ones(40)), True)(outputs)
    assert told.shape == (40, max(2, n_labels))
    assert (told >= 0).all()
    np.testing.assert_allclose(told.sum(axis=1), 1)


@models
def test_probabilities_are_better_than_class_frequencies(model, text):
    X, y = text
    fitted = model(random_state=0).fit(X[:4000], y[:4000])
    told = fitted.predict_proba(X[4000:])
    np.testing.assert_allclose(told.sum(axis=1), 1)
    np.testing.assert_array_equal(np.log(told), fitted.predict_log_proba(X[4000:]))
    assert log_loss(y[4000:], told) < 0.6
    # In ten bins of the largest probability, the accuracy agrees with the probability.
    largest, right = told.max(axis=1), told.argmax(axis=1) == y[4000:]
    bins = (largest * 10).astype(int)
    off = np.abs(np.bincount(bins, right - largest)).sum() / len(right)
    assert off < 0.08


def test_multilabel_predict_proba_gives_one_value_per_label(text):
    X, y = text
    Y = np.c_[y == 0, y > 0, y == 2].astype(int)
    model = fit_csr(X[:4000], Y[:4000], random_state=0)
    told = model.predict_proba(X[4000:])
    assert told.shape == (2000, 3)
    assert np.abs(told.sum(axis=1) - 1).max() > 0.1
    assert all(log_loss(Y[4000:, i], told[:, i]) < 0.4 for i in range(3))


@pytest.mark.parametrize("how", [
    {}, {"max_iter": 2}, {"sample_weight": np.array([1.0, 0, 1, 1, 1, 1, 2, 2])},
])  # fmt: skip
def test_predict_proba_agrees_with_predict_for_few_rows(how):
    weights = how.pop("sample_weight", None)
    X, y = np.eye(8), [0, 0, 0, 0, 0, 0, 1, 1]
    model = AROWClassifier(random_state=0, **how).fit(X, y, weights)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))
    with pytest.raises(ValueError, match=r"threshold='f1' needs 30 rows"):
        model.predict_labels(X, threshold="f1")
    with pytest.raises(ValueError, match=r"max_error=0.05 needs 30 rows"):
        Rejector(AROWClassifier()).fit(X, y)


def test_ensembles_on_few_rows_predict_both_classes():
    y = np.arange(20) % 3 == 0
    X = np.c_[y, ~y, np.eye(20)].astype(float)
    for model in AROWClassifier(random_state=0), AutoClassifier(random_state=0):
        pair = [("a", model), ("b", model)]
        for made in (
            VotingClassifier(pair, voting="soft"), StackingClassifier(pair, cv=2),
            BaggingClassifier(model, n_estimators=5, random_state=0),
        ):  # fmt: skip
            assert made.fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("ways", ["warm_start", "partial_fit", "batches", "a part", "saved"])
def test_repeated_rows_in_partial_fit_disable_predict_proba(ways, text, tmp_path):
    X, y = text[0][:600], text[1][:600]
    model = AROWClassifier(warm_start=ways == "warm_start", random_state=0)
    if ways == "warm_start":
        model.fit(X, y).fit(X[::-1], y[::-1])
    elif ways == "a part":
        model.fit(X, y).partial_fit(X[:200], y[:200])
    else:
        if ways == "saved":
            sparsemargin.save_model(model.fit(X, y), tmp_path / "a.model")
            model = sparsemargin.load_model(tmp_path / "a.model")
        size = 600 if ways == "partial_fit" else 50
        for start in [*range(0, 600, size)] * (1 if ways == "saved" else 2):
            part = slice(start, start + size)
            model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as refusal:
        _ = model.predict_proba
    assert "trained on some rows more than once" in str(refusal.value.__cause__)
    # The remedy that the error message recommends works, as does a threshold on new rows.
    rejector = Rejector(FrozenEstimator(model), max_error=1.0)
    assert rejector.fit(text[0][600:900], text[1][600:900]).share_ == 1
    told = CalibratedClassifierCV(FrozenEstimator(model)).fit(text[0][600:900], text[1][600:900])
    assert told.predict_proba(X[:2]).shape == (2, 3)
    assert hasattr(model.set_params(warm_start=False).fit(X, y), "predict_proba")


def test_repeated_file_disables_predict_proba(text, tmp_path):
    dump_svmlight_file(text[0][:600], text[1][:600], str(tmp_path / "rows.svm"))
    dump_svmlight_file(text[0][600:900], text[1][600:900], str(tmp_path / "new.svm"))
    model = fit_svmlight(tmp_path / "rows.svm", algo="arow")
    assert hasattr(fit_svmlight(tmp_path / "new.svm", init_model=model), "predict_proba")
    for max_iter in 1, 2:
        again = fit_svmlight(tmp_path / "rows.svm", init_model=model, max_iter=max_iter)
        assert not hasattr(again, "predict_proba")


@pytest.mark.parametrize("algo", ["arow", "alma", "so"])
@pytest.mark.parametrize("most_rows", [30_000, 500])
def test_several_epochs_over_a_file_hold_rows_out(algo, most_rows, text, tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "_MOST_ROWS", most_rows)
    (X, y), path = text, str(tmp_path / "rows.svm")
    dump_svmlight_file(X[:1500], y[:1500], path)
    how = {"algo": algo, "random_state": 0}

    def of_file(max_iter):
        return fit_svmlight(path, max_iter=max_iter, n_features=X.shape[1], **how)

    models = of_file(3), fit_csr(X[:1500], y[:1500], max_iter=3, **how), of_file(1)
    loss = [log_loss(y[1500:], model.predict_proba(X[1500:])) for model in models]
    assert abs(loss[0] - loss[1]) < 0.06
    assert loss[0] < loss[2] + 0.06
    np.testing.assert_array_equal(models[0].predict_proba(X).argmax(axis=1), models[0].predict(X))
    np.testing.assert_array_equal(of_file(3).predict_proba(X), models[0].predict_proba(X))


def test_several_epochs_over_labels_in_a_file_hold_rows_out(tmp_path):
    random = np.random.RandomState(0)
    X = random.rand(700, 20)
    with open(tmp_path / "rows.svm", "w") as file:
        for row in X:
            labels = ",".join(str(i) for i in range(3) if row[i] > 0.6)
            file.write(labels + "".join(f" {j + 1}:{row[j]:.4f}" for j in range(20)) + "\n")
    model = fit_svmlight(tmp_path / "rows.svm", algo="arow", multilabel=True, max_iter=4)
    P = model.predict_proba(X)
    assert P.shape == (700, 3)
    for i in range(3):
        assert abs(P[:, i].mean() - (X[:, i] > 0.6).mean()) < 0.05
    thresholds = model.predict_labels(X, threshold="f1")
    assert len(thresholds) == 700


def test_new_batches_with_equal_rows_keep_predict_proba():
    random = np.random.default_rng(0)
    X = random.integers(0, 2, (3000, 6)).astype(float)  # 64 different rows
    y = random.random(3000) < 0.2 + 0.6 * X[:, 0]
    model = AROWClassifier()
    for start in range(0, 3000, 40):
        part = slice(start, start + 40)
        model.partial_fit(X[part], y[part], classes=[False, True])
    told = model.predict_proba(X[-100:])[:, 1]
    assert np.abs(told - (0.2 + 0.6 * X[-100:, 0])).mean() < 0.1


@pytest.mark.parametrize("how", [{"hypothesis": "vote"}, {"kernel": "rbf"}])
def test_predict_proba_is_missing_without_kept_outputs(how, text):
    model = PNormPerceptron(**how)
    assert not hasattr(model, "predict_proba")
    model.fit(text[0][:60], text[1][:60])
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError) as refusal:
        _ = model.predict_proba
    assert "CalibratedClassifierCV" in str(refusal.value.__cause__)


def test_f1_threshold_increases_recall_of_rare_labels(text):
    X, y = text[0], np.random.default_rng(0).random((6000, 3)) < 0.002
    rare = (text[1] == 0) & (np.arange(6000) % 8 == 0)
    Y = np.c_[rare, text[1] == 1, y[:, 0]].astype(int)
    model = fit_csr(X[:4000], Y[:4000], random_state=0)
    plain, chosen = model.predict(X[4000:]), model.predict_labels(X[4000:], threshold="f1")
    scores = [f1_score(Y[4000:, :2], each[:, :2], average=None) for each in (plain, chosen)]
    assert scores[1][0] > scores[0][0] + 0.05
    assert scores[1][1] > scores[0][1] - 0.02
    lone = fit_csr(X[:4000], rare[:4000], random_state=0)
    told = lone.predict_labels(X[4000:], threshold="f1")
    assert f1_score(rare[4000:], told) > f1_score(rare[4000:], lone.predict(X[4000:])) + 0.05
    with pytest.raises(ValueError, match="two classes"):
        fit_csr(X[:400], text[1][:400]).predict_labels(X, threshold="f1")


def test_f1_thresholds_maximize_expected_f1(text):
    X, y = text
    model = AROWClassifier(random_state=0).fit(X, y == 0)
    window, sigmoids = model.fitted.window(), model.fitted.calibrated().sigmoids
    told = np.sort(sigmoids(window.outputs)[:, 0])[::-1]
    expected = max(2 * told[:k].sum() / (k + told.sum()) for k in range(1, len(told) + 1))
    found = sigmoids.f1_thresholds(window)
    np.testing.assert_allclose(sigmoids(found[np.newaxis])[0, 0], expected / 2, rtol=1e-10)


def test_rejector_keeps_the_error_below_max_error(text):
    X, y = text
    names = np.array(["a", "b", "c"])[y]
    for allowed in (0.01, 0.05):
        model = Rejector(AutoClassifier(random_state=0), max_error=allowed).fit(
            X[:4000], names[:4000]
        )
        told = model.predict(X[4000:])
        answered = told != "unknown"
        assert 0.5 < answered.mean() <= 1
        assert (told != names[4000:])[answered].mean() < 2 * allowed
        np.testing.assert_array_equal(answered, model.confidence(X[4000:]) >= model.threshold_)
        assert abs(answered.mean() - model.share_) < 0.1


def test_rejector_rejects_rows_of_unknown_classes(text):
    X, y = text
    known = np.flatnonzero(y[:4000] < 2)
    model = AROWClassifier(random_state=0).fit(X[known], y[known])
    rejector = Rejector(FrozenEstimator(model), max_error=0.01).fit(X[known], y[known])
    rejected = rejector.predict(X[4000:]) == -1
    assert rejected[y[4000:] == 2].mean() > 2 * rejected[y[4000:] < 2].mean()


@pytest.mark.parametrize(("how", "told"), [
    ({"max_error": 1.5}, "max_error"), ({"unknown": "x"}, "unknown='x'"),
    ({"unknown": 1}, "one of the classes"),
])  # fmt: skip
def test_rejector_rejects_unsuitable_input(how, told, text):
    with pytest.raises(ValueError, match=told):
        Rejector(AROWClassifier(), **how).fit(text[0][:100], text[1][:100])


def test_rejector_warns_if_it_rejects_everything():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(1000, 500)), random.integers(0, 2, 1000)
    with pytest.warns(UserWarning, match="all rows are left"):
        model = Rejector(AROWClassifier(random_state=0), max_error=0.05, unknown=-5).fit(X, y)
    assert model.share_ == 0
    assert (model.predict(X) == -5).all()
    with pytest.warns(UserWarning, match="all rows are left"):
        Predictor(model.estimator_, lambda _: None, max_error=0.05)


def test_rejector_accepts_pandas_labels(text):
    names = np.array(["a", "b", "c"], dtype=object)[text[1]]
    for unknown in None, "unknown", "?":
        model = Rejector(AROWClassifier(random_state=0), unknown=unknown).fit(text[0], names)
        assert model.unknown_ == (unknown or "unknown")
        told = model.predict(text[0])
        assert set(told) <= {"a", "b", "c", model.unknown_}
        classification_report(names, told, zero_division=0)
    with pytest.raises(ValueError, match="type of the classes"):
        Rejector(AROWClassifier(), unknown=-1).fit(text[0], names)


def test_calibration_display_accepts_the_probabilities(text):
    pytest.importorskip("matplotlib").use("agg")
    X, y = text
    model = AutoClassifier(random_state=0).fit(X[:4000], y[:4000] == 0)
    display = CalibrationDisplay.from_estimator(model, X[4000:], y[4000:] == 0, n_bins=5)
    assert np.abs(display.prob_true - display.prob_pred).max() < 0.2


def test_outputs_of_later_batches_are_placed_by_their_trials():
    X, y = make_zipf_text(80, 200, random_state=0)
    model = AROWClassifier(max_iter=2, **HOW).fit(X[:50], y[:50])  # these epochs do not count
    told = []
    for row in range(50, 80):
        told.append(model.decision_function(X[row])[0])
        model.partial_fit(X[row], y[row : row + 1])
    progress = progress_of(model)
    places = np.flatnonzero(progress.trials() >= 50)
    np.testing.assert_allclose(progress.outputs[places, 0], told, rtol=1e-12, atol=1e-15)


def test_only_the_later_half_of_trials_counts():
    parts = []
    for s in range(2):
        part = ProgressiveOutputs(1, 8, 1)
        part.outputs[:, 0], part.steps[:], part.n_trials = np.arange(8) + 0.1 * s, 1.0, 8
        parts.append(part)
    np.testing.assert_array_equal(Window.of(parts[0]).outputs[:, 0], [4, 5, 6, 7])
    whole = ProgressiveOutputs.merged(parts, 8)
    assert whole.n_trials == 16
    assert whole.outputs.min() >= 4


def test_probabilities_use_sample_weights():
    X, y = make_zipf_text(60, 200, random_state=0)
    weights = np.where(np.arange(60) % 2, 8.0, 1.0)
    y = np.where(y > 0, 1, -1)
    models = AROWClassifier, ALMAClassifier, SecondOrderPerceptron, HigherOrderPerceptron
    for model in (make(**HOW) for make in models):
        model.partial_fit(X, y, classes=[-1, 1], sample_weight=weights)
        window = Window.of(progress_of(model))
        ratio = window.weights / window.weights.min()
        np.testing.assert_allclose(ratio, weights[30:], rtol=1e-12)


def test_binary_predict_proba_follows_classes_(text):
    X, y = text
    some = y != y[0]
    model = AROWClassifier(**HOW).fit(X[some], y[some])
    told = model.predict_proba(X[some])
    assert (model.classes_[told.argmax(axis=1)] == model.predict(X[some])).mean() > 0.99
    assert log_loss(y[some], told) < 0.3
