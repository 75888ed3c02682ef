"""What a fit says, and leaves behind, where it comes to its aim, misses it or is interrupted."""

import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
)
from sparsemargin._engine.first_order import linear_loop
from sparsemargin._engine.fitting import certificate, task
from sparsemargin._engine.fitting import epochs as learning
from sparsemargin._engine.kernel import gram_loop as gram


def make_problem(m=60, n=8, noise=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    y = (X @ rng.standard_normal(n) > 0).astype(int)
    y[:noise] = 1 - y[:noise]
    return X, y


# -- warnings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        PNormPerceptron(hypothesis="last", max_iter=None, tol=0.01),
        ALMAClassifier(hypothesis="last", max_iter=None, tol=0.01),
        MarginPerceptron(max_iter=None, tol=0.01),
        CRAMMAClassifier(beta=0.1, max_iter=None, tol=0.01),
        ROMMAClassifier(max_iter=None, tol=0.01),
    ],
)
def test_no_row_left_to_correct_is_no_proof(model):
    with pytest.warns(ConvergenceWarning, match=r"no row is left to correct, at a margin proven"):
        model.fit(*make_problem())
    assert model.margin_ < 0.99 * model.margin_upper_bound_


@pytest.mark.parametrize("tol", [None, 0.6])
def test_a_label_at_its_limit_has_not_converged(tol):
    X, y = make_problem(noise=20)
    y[X[:, 0] > 1.5] = 2
    model = MarginPerceptron(max_iter=None, max_corrections=3000, tol=tol)
    with pytest.warns(ConvergenceWarning, match="Stopped after"):
        model.fit(X, y)


@pytest.mark.parametrize("tol", [None, 0.9])
def test_an_aim_that_is_reached_is_no_cause_for_warnings(tol):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MarginPerceptron(max_iter=None, tol=tol).fit(*make_problem())


def test_a_proof_found_only_at_the_end_counts(monkeypatch):
    monkeypatch.setattr(learning, "PASSES_BETWEEN_CERTIFICATES", 1e9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MaxMarginClassifier(tol=0.01, max_iter=5000, random_state=0).fit(*make_problem())
    assert model.margin_ >= 0.99 * model.margin_upper_bound_


# -- history --------------------------------------------------------------------------------------


def test_history_alone_takes_the_margin():
    model = PNormPerceptron(hypothesis="last", keep_history=True, max_iter=5)
    assert model.fit(*make_problem()).history_["margin"].shape == (5,)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("watched", [{"keep_history": True}, {"verbose": 1}])
def test_watching_leaves_no_trace(shuffle, watched, monkeypatch, capsys):
    monkeypatch.setattr(gram, "MEMORY", 0)
    X, y = make_problem(m=300, n=10)
    fit = dict(tol=1e-3, max_iter=None, shuffle=shuffle, random_state=0)
    alone = MaxMarginClassifier(**fit).fit(X, y)
    seen = MaxMarginClassifier(**fit, **watched).fit(X, y)
    assert seen.n_corrections_ == alone.n_corrections_
    np.testing.assert_array_equal(seen.theta_, alone.theta_)


# -- proofs and rounding --------------------------------------------------------------------------


def test_float32_rows_are_proven_in_float64():
    X = sp.csr_matrix(np.array([[1.0], [-1.0]], dtype=np.float32))
    model = MarginPerceptron(margin=3e7, max_iter=None, fit_intercept=False).fit(X, [1, 0])
    assert model.margin_ == model.margin_upper_bound_ == 1
    bare = PNormPerceptron(hypothesis="last").fit(X, [1, 0])
    with pytest.raises(AttributeError, match="needs hypothesis='last', and float64"):
        _ = bare.margin_upper_bound_


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_proof_rests_on_hypotheses_being_of_norm_1(multi_class):
    X, y = make_problem(m=60, n=10)
    y = np.where(X[:, 0] > 1, 2, y) if multi_class == "joint" else y
    model = ALMAClassifier(
        alpha=0.1, hypothesis="last", multi_class=multi_class, tol=0.3, keep_history=True,
        max_iter=50, shuffle=False,
    )  # fmt: skip
    plain, unit = (
        clone(model).set_params(normalize_hypotheses=normalized).fit(X, y)
        for normalized in (False, True)
    )
    assert unit.n_iter_ == plain.n_iter_
    assert unit.margin_ == pytest.approx(plain.margin_, rel=1e-12)
    for name, column in unit.history_.items():
        np.testing.assert_allclose(column, plain.history_[name], rtol=1e-12)


def test_a_certificate_above_its_own_bound_is_a_fault_of_the_library(monkeypatch):
    true = certificate.LinearCertificate._signed
    monkeypatch.setattr(certificate.LinearCertificate, "_signed", lambda *args: 1.001 * true(*args))
    with pytest.raises(RuntimeError, match=r"none can exceed.*by a fault of sparsemargin, not"):
        MarginPerceptron(margin=100.0, max_iter=None).fit([[1.0, 2.0], [-1.0, -2.0]], [1, 0])


def test_margins_above_the_bound_tell_of_a_kernel_that_is_none():
    K = [[1.0, 0.75, -0.5], [0.75, 1.0, 0.5], [-0.5, 0.5, 1.0]]
    assert np.linalg.eigvalsh(K).min() < -0.1
    model = MarginPerceptron(kernel="precomputed", max_iter=None, shuffle=False)
    with pytest.raises(ValueError, match="kernel is not positive semidefinite: the margin came"):
        model.fit(K, [0, 1, 1])
    model.set_params(hypothesis="average").fit(K, [0, 1, 1])


@pytest.mark.parametrize("p", [2.0, 6.0])
@pytest.mark.parametrize("estimator", [MaxMarginClassifier, ROMMAClassifier])
def test_steps_that_no_float_can_hold_are_refused(estimator, p):
    params = {"p": p, "shuffle": False} if estimator is MaxMarginClassifier else {}
    with pytest.raises(ValueError, match="Row 0 of X"):
        estimator(**params).fit([[1e200, 1.0], [1.0, -1e200]], [1, 0])


@pytest.mark.parametrize(("beta", "delta"), [(10.0, 400.0), (0.1, 1e5)])
def test_rates_that_no_float_can_hold_are_refused(beta, delta):
    with pytest.raises(ValueError, match="is no rate to learn at"):
        CRAMMAClassifier(beta=beta, delta=delta).fit(*make_problem())


def test_another_normalization_can_not_go_on():
    X, y = make_problem()
    model = MarginPerceptron(warm_start=True, max_iter=None).fit(X, y)
    with pytest.raises(ValueError, match="can't go on with another normalize"):
        model.set_params(normalize=True).fit(X, y)


# -- Ctrl-C ---------------------------------------------------------------------------------------


ENDLESS = """
    import numpy as np, time, warnings
    from sparsemargin import MarginPerceptron
    from sparsemargin._engine.kernel import gram_loop as gram
    gram.MEMORY = {memory}
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 20)), rng.integers(4, size=300)
    model = MarginPerceptron(max_iter=None, margin=1e9, soft_margin={delta}, n_jobs=2)
    with warnings.catch_warnings(record=True) as caught:
        # A first fit imports much, which takes long under the sanitizers.
        MarginPerceptron(max_iter=1).fit(X, y)
        print("ready", flush=True)
        warnings.simplefilter("always")
        model.fit(X, y)
    before = model.n_corrections_, model.theta_
    time.sleep(0.2)
    assert (model.n_corrections_ == before[0]).all() and (model.theta_ == before[1]).all()
    assert np.isfinite(model.margin_).all()
    print([str(w.message) for w in caught])
"""


@pytest.mark.parametrize("memory", [0, gram.MEMORY])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_ctrl_c_waits_for_the_threads(memory, delta):
    script = textwrap.dedent(ENDLESS.format(memory=memory, delta=delta))
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Interrupted after" in out


def test_ctrl_c_in_the_first_epoch_looks_at_no_unchecked_row(monkeypatch):
    X, y = make_problem(m=50)
    X = sp.csr_matrix(X)
    X.indices[-1] = 10**8
    calls = linear_loop.LinearLoop.run_span

    def interrupted(loop, order, start, *rest):
        if start > 0:
            raise KeyboardInterrupt
        return calls(loop, order, start, *rest)

    monkeypatch.setattr(task, "PRODUCTS_PER_CALL", 100)
    monkeypatch.setattr(linear_loop.LinearLoop, "run_span", interrupted)
    with pytest.warns(UserWarning, match="Interrupted after"):
        model = MarginPerceptron().fit(X, y)
    assert 0 < model.n_iter_ < 1
    assert not hasattr(model, "margin_")
