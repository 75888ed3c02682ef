"""Training over shards: against the printed algorithm and one machine, and its errors."""

import itertools
import os
import pickle
from dataclasses import replace
from errno import EACCES
from itertools import pairwise as pairwise_of

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sparsemargin
from depth import pairwise, some
from problems.first_order import examples
from problems.published_files import data_folder
from problems.shards import MIXED, assert_same, cut, make_data, parameters, write, write_each
from references.arow import Run, mixed, run_arow
from references.first_order import ALMA, MarginPerceptron, Perceptron
from references.higher_order import HigherOrder, SecondOrder
from references.mixing import mix_mistakes, mix_vectors
from sparsemargin import load_model
from sparsemargin._engine.first_order import packed
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.packed import PackedSpace
from sparsemargin.datasets import load_rcv1, make_zipf_text
from sparsemargin.distributed import backends, dual_vectors, fit_distributed
from sparsemargin.distributed.dual_vectors import cuts_of
from sparsemargin.distributed.fit import _NOT_MIXED
from sparsemargin.distributed.mistakes import Mistakes
from sparsemargin.distributed.schema import Part, Schema
from sparsemargin.distributed.shards import MatrixShard
from sparsemargin.distributed.slices import Piece, Shape, Slice, Sums
from sparsemargin.models import ALGORITHMS
from sparsemargin.streaming.label_order import LabelOrder
from sparsemargin.streaming.passes import Passes

# If a decision is closer to its threshold, rounding may change it.
CLOSEST = 1e-11


@st.composite
def small_problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_shards, n = draw(st.integers(2, 4)), draw(st.integers(3, 8))
    shards = []
    for _ in range(n_shards):
        m = draw(st.integers(1, 9))
        there = rng.random((m, n)) < 0.6
        # After normalization, rows with one entry can sum to 0, where rounding would decide.
        there[there.sum(axis=1) == 1] = True
        X = rng.standard_normal((m, n)) * there
        shards.append((X, rng.choice([-1, 1], m)))
    if len({label for _, y in shards for label in y}) < 2:
        shards[0][1][:] = -shards[1][1][0]
    assume(all(np.any(X) for X, _ in shards))
    return shards


def in_parts(shards, first_epoch=True):
    """The rows of all shards for each part of an epoch."""
    most = max(len(y) for _, y in shards)
    parts = [Part(*pair, most) for pair in pairwise_of(cuts_of(most, first_epoch=first_epoch))]
    return [
        [(X[slice(*part.bounds(len(y)))], y[slice(*part.bounds(len(y)))]) for X, y in shards]
        for part in parts
    ]


def in_epochs(shards):
    """The parts of three epochs."""
    return [*in_parts(shards), *2 * in_parts(shards, first_epoch=False)]


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8, 9, 100, 1000, 23_999, 24_000, 123_457])
def test_shards_are_mixed_after_doubling_numbers_of_rows(n_rows):
    first, later = cuts_of(n_rows, first_epoch=True), cuts_of(n_rows, first_epoch=False)
    most = -(-n_rows // 16) if n_rows < 24_000 else n_rows
    for cuts in first, later:
        steps = np.diff(cuts)
        assert (cuts[0], cuts[-1]) == (0, n_rows)
        assert steps.min() > 0
        assert steps[:-1].max(initial=0) <= most
        assert steps[-1] <= 1.5 * most
    assert first[1] == {100: 7, 1000: 15, 24_000: 375, 123_457: 1000}.get(n_rows, first[1])
    assert all(b == min(2 * a, a + most) for a, b in pairwise_of(first[1:-1]))
    assert len(later) == {24_000: 2, 123_457: 2, 1000: 17}.get(n_rows, len(later))


def learned(shards, **how):
    pairs = [(csr_matrix(X), y) for X, y in shards]
    return fit_distributed(pairs, shuffle=False, max_iter=3, fit_intercept=False, **how)


@pytest.mark.parametrize(
    ("algo", "p", "least"), pairwise(["pnorm", "alma", "margin"], [2.0, 3.5, 6.0], [1, 2, 16])
)
@given(shards=small_problems())
@examples(15)
def test_dual_vectors_are_mixed_as_printed(shards, algo, p, least):
    average = {"margin": 0.3, "normalize": True, "hypothesis": "average"}
    rule, own = {
        "pnorm": (Perceptron(), {}), "alma": (ALMA(alpha=0.8), {"alpha": 0.8}),
        "margin": (MarginPerceptron(0.3, normalize=True), average),
    }[algo]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dual_vectors, "_LEAST", least)
        expected = mix_vectors(in_epochs(shards), rule, p, 1)
        assume(expected.smallest_gap > CLOSEST)
        model = learned(shards, algo=algo, p=p, mixing="uniform", **own)
    np.testing.assert_allclose(model.theta_[0], expected.theta.astype(float), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        model.coef_[0], expected.average.astype(float), rtol=1e-9, atol=1e-11
    )
    assert (model.n_corrections_, model.space.trials) == (expected.k, expected.trials)


@pytest.mark.filterwarnings("error:invalid value")
@pytest.mark.parametrize("least", [1, 16])
@given(
    small_problems(), st.sampled_from([0.01, 0.5, 10.0]), st.sampled_from([None, 1.0]),
    st.sampled_from(["last", "average"]),
)  # fmt: skip
@examples(60)
def test_weights_with_variances_are_mixed_by_evidence(least, shards, r, max_loss, hypothesis):
    expected = mixture_of(shards, least, r, max_loss)
    assume(expected.smallest_gap > CLOSEST)
    check_mixture(expected, shards, least, r, max_loss, hypothesis)


@pytest.mark.parametrize("n_shards", [17, 40])
def test_evidence_of_many_shards_counts_like_that_of_two(n_shards):
    rng = np.random.default_rng(n_shards)
    shards = [(rng.standard_normal((6, 4)), rng.choice([-1, 1], 6)) for _ in range(n_shards)]
    expected = mixture_of(shards, 1, 0.5, None)
    assert expected.smallest_gap > CLOSEST
    check_mixture(expected, shards, 1, 0.5, None, "last")


def mixture_of(shards, least, r, max_loss):
    """The mixture after three epochs, by the reference."""
    zero = np.zeros(shards[0][0].shape[1], np.longdouble)
    expected = Run(zero, zero + 1, zero)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dual_vectors, "_LEAST", least)
        for part in in_epochs(shards):
            runs = [
                run_arow(X, y, r, max_loss=max_loss or np.inf, run=replace(expected))
                for X, y in part
            ]
            expected = mixed(runs, expected)
    return expected


def check_mixture(expected, shards, least, r, max_loss, hypothesis):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dual_vectors, "_LEAST", least)
        model = learned(
            shards, algo="arow", mixing="uniform", r=r, max_loss=max_loss, hypothesis=hypothesis,
            min_rows=1,
        )  # fmt: skip
    weights = expected.average if hypothesis == "average" else expected.mean
    space = model.space
    for found, of in (
        (model.coef_[0], weights), (space.of_vectors(space.gain)[:, 0], expected.precision - 1),
    ):  # fmt: skip
        of = of.astype(float)
        np.testing.assert_allclose(found, of, rtol=0, atol=1e-10 * np.abs(of).max())
    assert space.trials == expected.n_trials


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("algo", "own"), [
    ("perceptron", {"hypothesis": "last"}), ("pnorm", {"p": 6}), ("alma", {"p": 2}), ("arow", {}),
    ("arow", {"hypothesis": "average"}),
])  # fmt: skip
def test_packed_mixture_equals_the_dense_one(algo, own, fit_intercept, tmp_path):
    X, y = make_data(300, n_classes=3)
    wide = csr_matrix((X.data, 40 * X.indices + 7, X.indptr), shape=(len(y), 40 * X.shape[1]))
    shards = cut(wide, y, 3)
    how = {"algo": algo, "max_iter": 2, "random_state": 0, "mixing": "uniform", **own}
    how["fit_intercept"] = fit_intercept
    dense = fit_distributed(shards, **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "_LEAST_BYTES", 0)
        model = fit_distributed(shards, **how)
        again = fit_distributed(shards, checkpoint=tmp_path / "a.model", **how)
        loaded = load_model(tmp_path / "a.model")
    assert type(dense.space) is LinearSpace
    for each in model, again, loaded:
        assert type(each.space) is PackedSpace
        np.testing.assert_array_equal(each.coef_, dense.coef_)
        np.testing.assert_array_equal(each.intercept_, dense.intercept_)
        np.testing.assert_array_equal(each.decision_function(wide), dense.decision_function(wide))
    # Training continues from the same variances and sums.
    for each in model, again, loaded:
        each.partial_fit(wide[:50], y[:50])
    expected = dense.partial_fit(wide[:50], y[:50]).coef_
    for each in model, again, loaded:
        np.testing.assert_array_equal(each.coef_, expected)


def test_averages_of_many_mixtures_need_no_recursion():
    X, y = make_data(80)
    y = np.random.default_rng(0).permutation(y)  # no epoch is without corrections
    how = {"algo": "perceptron", "random_state": 0, "mixing": "uniform"}
    model = fit_distributed(cut(X, y, 2), max_iter=50, **how)
    assert model.n_iter_ == 50  # with 16 mixtures each
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(("algo", "rule", "own"), [
    ("so", SecondOrder(a=0.7, alpha=0.9), {"a": 0.7}),
    ("ho", HigherOrder(p=2), {"p": 2, "alpha": None}),
    ("ho", HigherOrder(p=4, alpha=0.9), {"p": 4}),
])  # fmt: skip
@given(shards=small_problems())
@examples(15)
def test_matrix_perceptrons_use_the_mistakes_of_all_shards(shards, algo, rule, own):
    expected = mix_mistakes(shards, rule, 3)
    assume(expected.smallest_gap > 1e-9)
    for hypothesis, weights in ("last", expected.theta), ("average", expected.average):
        model = learned(shards, algo=algo, hypothesis=hypothesis, **own)
        np.testing.assert_allclose(model.coef_[0], weights.astype(float), rtol=1e-7, atol=1e-9)
        assert (model.n_corrections_, model.space.trials) == (expected.k, expected.trials)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MIXED)
def test_one_shard_is_bitwise_equal_to_a_fit(name, dtype):
    narrow = dtype == np.float32
    X, y = make_data(n_classes=3 if name == "joint" or narrow else 2, dtype=dtype)
    if narrow:
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    serial = sparsemargin.fit_csr(X, y, **parameters(name))
    assert_same(fit_distributed([(X, y)], **parameters(name)), serial)


@pytest.mark.parametrize("name", ["pnorm 6", "alma 2", "so", "ho"])
def test_one_file_is_bitwise_equal_to_fit_svmlight(name, tmp_path):
    path = write(tmp_path / "all.svm", *make_data(n_classes=3))
    how = parameters(name)
    serial = sparsemargin.fit_svmlight(path, **how)
    assert_same(fit_distributed([path], **how), serial)
    # The row cache, which that fit has created, may be passed itself.
    assert_same(fit_distributed([path + ".smcache"], **how), serial)


@pytest.mark.parametrize("algo", ["arow", None])
def test_indices_from_one_to_n_features_are_used(algo, tmp_path):
    X, y = make_data(n_classes=3)
    path = write(tmp_path / "all.svm", X, y)
    free = fit_distributed([path], algo=algo, random_state=0)
    fixed = fit_distributed([path], algo=algo, random_state=0, n_features=X.shape[1])
    assert fixed.coef_[:, -1].any()
    np.testing.assert_allclose(fixed.coef_, free.coef_, rtol=1e-9)


def test_files_equal_pairs_of_arrays(tmp_path):
    """Some shards lack classes, so that each file numbers its labels differently."""
    X, y = make_data(n_classes=3)
    shards = [(X[part], y[part]) for part in np.array_split(np.argsort(y, kind="stable"), 4)]
    paths = []
    for s, shard in enumerate(shards):
        (tmp_path / str(s)).mkdir()
        paths.append(write(tmp_path / str(s) / "part.svm", *shard))
    how = {"algo": "alma", "p": 4, "max_iter": 3, "shuffle": False}
    pairs = fit_distributed(shards, **how)
    files = fit_distributed(paths, cache_dir=tmp_path / "caches", **how)
    np.testing.assert_array_equal(files.coef_, pairs.coef_)
    assert files.classes_.tolist() == [0, 1, 2]
    # Files with equal names have separate row caches, and none next to the files.
    assert len(list((tmp_path / "caches").glob("part.svm.*.smcache"))) == 4
    assert [path.name for path in (tmp_path / "0").iterdir()] == ["part.svm"]


def test_folders_that_are_not_writable_are_reported_with_a_remedy(tmp_path, monkeypatch):
    def refuse(_):
        raise PermissionError(EACCES, "Permission denied", str(tmp_path / "a.svm.smcache"))

    write(tmp_path / "a.svm", *make_data())
    monkeypatch.setattr(Passes, "keep", refuse)
    with pytest.raises(PermissionError, match=r"can't be written there .*Pass another cache_dir"):
        fit_distributed([tmp_path / "a.svm"], algo="arow")


def test_form_of_labels_is_fixed_by_the_row_cache(tmp_path):
    (tmp_path / "a.svm").write_text("1,2 1:1 2:1\n" + " 1:3\n" * 50 + "3 2:1\n")
    how = {"algo": "alma", "shuffle": False, "max_iter": 2}
    expected = fit_distributed([tmp_path / "a.svm"], multilabel=True, **how)
    cache = tmp_path / "a.svm.smcache"
    assert_same(fit_distributed([cache], classes=[1, 2, 3], **how), expected)
    path = write(tmp_path / "b.svm", *make_data(n_classes=3))
    expected = fit_distributed([path], **how)
    again = fit_distributed([path + ".smcache"], multilabel=True, classes=[0, 1, 2], **how)
    assert_same(again, expected)


@pytest.mark.parametrize("name", ["pnorm 6", "alma 2", "so"])
def test_epochs_without_corrections_count_in_averages(name):
    X, y = make_data(60)
    how = {**parameters(name), "max_iter": 200}
    if name == "alma 2":
        how["alpha"] = 1.0
    rounds = []
    model = fit_distributed(cut(X, y, 3), on_round=rounds.append, **how)
    assert sum(rounds[-1].corrections) == 0
    assert len(rounds) < 200
    assert model.space.trials == 200 * 60
    again = fit_distributed(cut(X, y, 3), **{**how, "max_iter": None})
    np.testing.assert_array_equal(again.space.weights() != 0, model.space.weights() != 0)
    # A mixture can be trained further.
    assert model.partial_fit(X, y).space.trials == 201 * 60


def test_early_stopping_ends_the_rounds():
    X, y = make_data()
    how = {"algo": "pnorm", "max_iter": 100, "early_stopping": True, "random_state": 0}
    serial = sparsemargin.fit_csr(X, y, **how)
    assert serial.n_iter_ < 100
    assert_same(fit_distributed([(X, y)], **how), serial)
    rounds = []
    fit_distributed(cut(X, y, 3), on_round=rounds.append, **how)
    made = [sum(each.corrections) for each in rounds]
    assert len(made) - 1 - np.argmin(made) == 5


@pytest.mark.parametrize("algo", ["pnorm", "arow"])
def test_many_labels_are_mixed_per_label(algo, tmp_path):
    X, _ = make_data()
    Y = (np.random.default_rng(1).random((X.shape[0], 5)) < 0.3).astype(int)
    how = {"algo": algo, "max_iter": 2, "shuffle": False, "mixing": "uniform"}
    how |= {"p": 3} if algo == "pnorm" else {}
    together = fit_distributed(cut(X, Y, 3), **how)
    for label in range(5):
        alone = fit_distributed(cut(X, Y[:, label], 3), **how)
        np.testing.assert_allclose(together.coef_[label], alone.coef_[0], rtol=1e-12)
    sets = [(part, [np.flatnonzero(row).tolist() for row in own]) for part, own in cut(X, Y, 3)]
    paths = write_each(tmp_path, sets)
    files = fit_distributed(paths, multilabel=True, **how)
    np.testing.assert_allclose(files.coef_, together.coef_, rtol=1e-12)
    one = fit_distributed(paths, positive="2", **how)
    np.testing.assert_allclose(one.coef_[0], together.coef_[2], rtol=1e-12)


@pytest.mark.parametrize("name", ["pnorm 6", "arow average", "joint", "margin", "alma 6"])
def test_model_does_not_depend_on_the_slices(name, monkeypatch):
    shards = cut(*make_data(n_classes=3, n_features=90), 4)
    expected = fit_distributed(shards, **parameters(name))
    monkeypatch.setattr(dual_vectors, "_ROWS_A_SLICE", 60)
    for n_workers in 2, 3, 64:
        monkeypatch.setattr(backends.Backend, "n_workers", n_workers)
        assert_same(fit_distributed(shards, **parameters(name)), expected)
    changing = property(lambda self: next(numbers))
    numbers = itertools.cycle([1, 4, 2, 3])
    monkeypatch.setattr(backends.Backend, "n_workers", changing)
    assert_same(fit_distributed(shards, **parameters(name)), expected)


@pytest.mark.parametrize("algo", ["arow", "pnorm"])
def test_empty_features_have_no_effect_and_need_no_memory(algo):
    X, y = make_data(n_features=30)
    places = np.sort(np.random.default_rng(0).choice(2_000_000, 30, replace=False))
    wide = csr_matrix((X.data, places[X.indices], X.indptr), shape=(X.shape[0], 2_000_000))
    how, told = {"algo": algo, "random_state": 0, "max_iter": 2}, []
    narrow = fit_distributed(cut(X, y, 3), on_round=told.append, **how)
    model = fit_distributed(cut(wide, y, 3), on_round=told.append, **how)
    # Norms are summed by cells, which are those of all features.
    np.testing.assert_allclose(model.coef_[:, places], narrow.coef_, rtol=1e-12)
    assert np.count_nonzero(model.coef_) == np.count_nonzero(narrow.coef_)
    assert told[-1].bytes_sent < 1.2 * told[1].bytes_sent
    assert told[-1].bytes_received < 1.2 * told[1].bytes_received


@pytest.mark.parametrize(("n_shards", "mixing"), [(1, "auto"), (2, "ring"), (2, "uniform")])
def test_a_round_counts_the_bytes_of_the_weights(n_shards, mixing):
    shards, told = cut(*make_data(n_classes=4), n_shards), []
    how = {"algo": "pnorm", "p": 2, "random_state": 0, "max_iter": 1, "mixing": mixing}
    model = fit_distributed(shards, on_round=told.append, **how)
    assert told[0].bytes_sent >= model.coef_.nbytes
    assert told[0].bytes_received >= n_shards * model.coef_.nbytes


MIXABLE = [
    algo for algo, (learner, _) in ALGORITHMS.items() if learner.classifier not in _NOT_MIXED
]


@pytest.mark.parametrize("n_shards", some([4], [2, 4, 16]))
@pytest.mark.parametrize("algo", MIXABLE)
def test_more_epochs_do_not_increase_the_error(algo, n_shards):
    """5 % of the labels are wrong, and one class is rare."""
    X, y = make_zipf_text(4000, 2000, n_classes=3, random_state=0)
    rng = np.random.default_rng(0)
    kept = (y != 2) | (rng.random(4000) < 0.1)
    X, y = X[kept], y[kept]
    wrong = np.flatnonzero(rng.random(1200) < 0.05)
    told = y.copy()
    told[wrong] = rng.choice(3, len(wrong))

    def errors(shards):
        found = []
        fit_distributed(
            shards, algo=algo, max_iter=5, random_state=0,
            on_round=lambda done: found.append(1 - done.model().score(X[1200:], y[1200:])),
        )  # fmt: skip
        return found

    alone, mixed = errors([(X[:1200], told[:1200])]), errors(cut(X[:1200], told[:1200], n_shards))
    assert max(mixed[1:]) < max(mixed[0], *alone) + 0.02


@pytest.mark.parametrize("algo", some(["alma"], ["pnorm", "alma", "so"]))
def test_two_shards_of_news_have_the_error_of_one_machine(algo):
    """The fit learns GCAT with the error of linear SVMs."""
    folder = data_folder("rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt")
    news = {"source": "sample", "data_home": folder}
    X, y = load_rcv1("GCAT", return_X_y=True, **news)
    how = {"algo": algo, "max_iter": 2 if algo == "so" else 5, "random_state": 0}
    serial = sparsemargin.fit_csr(X[:10_000], y[:10_000], **how)
    mixed = fit_distributed(cut(X[:10_000], y[:10_000], 2), **how)
    rest = X[10_000:20_000], y[10_000:20_000]
    assert mixed.score(*rest) > serial.score(*rest) - 0.003 > 0.94


@pytest.mark.parametrize("p", [2, 5])
def test_differences_are_sent_if_smaller(p):
    rng = np.random.default_rng(0)
    rows = [rng.choice(20_000, 8, replace=False) for _ in range(60)]
    indptr = np.arange(61) * 8
    X = csr_matrix((rng.random(480), np.concatenate(rows), indptr), shape=(60, 20_000))
    y = rng.choice([0, 1], 60)
    rounds = []
    how = {"algo": "pnorm", "p": p, "random_state": 0}
    fit_distributed(cut(X, y, 3), on_round=rounds.append, **how)
    whole = 20_000 * 8
    for each in rounds:
        assert max(each.bytes_sent, each.bytes_received) < each.mixtures * whole / 10


@pytest.mark.parametrize(("exponent", "p"), [(-400, 2.5), (400, 60)])
def test_scale_of_the_rows_does_not_change_the_mixture(exponent, p):
    X, y = make_data(90, 400)
    how = {"algo": "pnorm", "p": p, "normalize": False, "random_state": 0, "max_iter": 3}
    expected = fit_distributed(cut(X, y, 3), **how)
    scaled = fit_distributed(cut(X * 2.0**exponent, y, 3), **how)
    np.testing.assert_allclose(scaled.coef_ * 2.0**-exponent, expected.coef_, rtol=1e-11)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e35, 1e37])
def test_mixtures_that_overflow_float32_raise_an_error(size):
    X, y = make_data(600)
    shards = cut((X * size).astype(np.float32), y, 2)
    with pytest.raises(ValueError, match=r"exceeds float32\. Rescale rows"):
        fit_distributed(shards, algo="perceptron", random_state=0)


def test_steps_that_overflow_are_reported_with_their_row(tmp_path):
    X, y = make_data(90, 400)
    how = {"algo": "pnorm", "p": 60, "normalize": False, "shuffle": False}
    shards = [(X, y), (X * 1e-300, y)]
    for given_ in shards, write_each(tmp_path, shards):
        with pytest.raises(ValueError, match=r"Shard 1 of 2.*Row \d+ of X.* smaller p"):
            fit_distributed(given_, **how)


def received_anywhere(value):
    """Simulate Dask, which puts received arrays at any address."""
    buffers = []
    told = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    moved = [memoryview(bytearray(1) + bytearray(each.raw()))[1:] for each in buffers]
    return pickle.loads(told, buffers=moved)


@pytest.mark.parametrize("algo", ["pnorm", "so", "ho"])
def test_received_models_may_have_any_alignment(algo):
    """The sanitizers would report a misaligned access."""
    model = sparsemargin.fit_csr(*make_data(), algo, random_state=0)
    assert_same(received_anywhere(model), model)


@pytest.mark.parametrize("sent", [
    Slice(Shape(1, 1, 1), 0, 1, *np.ones((3, 5))), Sums(*np.ones((2, 5))),
    Piece(*np.ones((8, 5))), Mistakes(*np.ones((3, 5))),
], ids=lambda sent: type(sent).__name__)  # fmt: skip
def test_received_parts_of_mixtures_are_aligned(sent):
    received = vars(received_anywhere(sent))
    for name, value in vars(sent).items():
        if isinstance(value, np.ndarray):
            assert received[name].flags.aligned
            np.testing.assert_array_equal(received[name], value)


def test_received_shards_are_aligned():
    X, y = make_data()
    one, many = (MatrixShard.of(X, labels) for labels in (y, np.eye(2, dtype=int)[y]))
    schema = Schema(40, 40, np.dtype(float), np.arange(2), None)
    used = next(one.epoch(schema, 0, 1))
    one, many = received_anywhere(one), received_anywhere(many)
    again = next(one.epoch(schema, 0, 1))
    arrays = *again[0].arrays, again[1], again[3], *many.rows.arrays, *many.y.given
    assert all(array.flags.aligned for array in arrays)
    np.testing.assert_array_equal(again[3], used[3])


@pytest.mark.parametrize(("how", "words"), [
    ({"algo": "romma"}, "ROMMAClassifier can't be mixed"),
    ({"algo": "cramma", "radius": 1.0}, "CRAMMA"), ({"algo": "maxmargin"}, "MaxMargin"),
    ({"kernel": "rbf"}, "kernel='rbf'"), ({"soft_margin": 1.0}, "soft_margin=1.0"),
    ({"algo": "margin", "tol": 0.1}, "tol=0.1"), ({"max_corrections": 10}, "max_corrections"),
    ({"hypothesis": "vote"}, "replayed from a log"),
    ({"algo": "so", "solver": "dual"}, "solver='dual'"), ({"warm_start": True}, "resume=True"),
    ({"max_iter": 1.5}, "whole number of epochs"),
    ({"normalize": "max"}, "normalize='max'"), ({"mixing": "mean"}, "mixing must be one of"),
    ({"memory_limit": 100}, "memory_limit=100"), ({"memory_limit": "1G"}, "memory_limit must be"),
    ({"client": 3}, "client must be"),
    ({"algorithm": "alma"}, "Unknown parameter"),
    ({"positive": 1}, "is of files"), ({"classes": [0, 1]}, "is of files"),
])  # fmt: skip
def test_unsupported_options_raise_an_error(how, words):
    with pytest.raises(ValueError, match=words):
        fit_distributed(cut(*make_data(), 2), **{"algo": "alma", **how})


@pytest.mark.parametrize(("make", "words"), [
    (lambda X, y: [], "There are no shards"), (lambda X, y: 3, "There are no shards"),
    (lambda X, y: [(X, y), 3], "can't be of type int"),
    (lambda X, y: [(X, y), (X, y[:-1])], "Shard 1 of 2.* 240 rows, and y 239 labels"),
    (lambda X, y: [(X, y), (X * np.nan, y)], "Shard 1 of 2.*NaN at row"),
    (lambda X, y: [(X[:0], y[:0])] * 4, r"No shard has rows: shard 0, shard 1, shard 2, \.\.\."),
    (lambda X, y: [(X[:0], y[:0]), (X, y), (X[:, :30], y)], "Shard 1 has 40 features, shard 2"),
    (lambda X, y: [(X, y), (X[:0], y)], "Shard 1 of 2.*0 rows, and y 240 labels"),
    (lambda X, y: [(X, y), (["a text"], y[:1])], "Shard 1 of 2.*X is a list of texts"),
    (lambda X, y: [(X, y), (X[:, :30], y)], "40 features, shard 1 has 30"),
    (lambda X, y: [(X, y), (X, y.astype(str))], "numbers and text"),
    (lambda X, y: [(X, y), (X, y > 0)], "numbers and truth values"),
    (lambda X, y: [(X, y), (X, np.eye(2)[y])], "numbers and numbers, in a dense indicator"),
    (lambda X, y: [(X, np.zeros(240)), (X, np.zeros(240))], "one class only"),
])  # fmt: skip
def test_invalid_shards_are_named(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit_distributed(make(*make_data()), algo="alma")


@pytest.mark.parametrize(("text", "how", "kind", "words"), [
    ("1 1:2\n-1 nonsense\n", {}, ValueError, r"Shard 1 of 2.*bad\.svm.*line 2"),
    (None, {}, OSError, r"Shard 1 of 2.*bad\.svm"),
    ("1 1:2\n", {"positive": "7"}, ValueError, "No row has the label positive='7'"),
    ("1 1:2\n9 1:2\n", {"classes": [0, 1]}, ValueError,
     r"bad\.svm, row \d+: the label 9 is none of the classes"),
])  # fmt: skip
def test_invalid_files_are_named(text, how, kind, words, tmp_path):
    good, bad = write(tmp_path / "good.svm", *make_data()), tmp_path / "bad.svm"
    if text is not None:
        bad.write_text(text)
    with pytest.raises(kind, match=words):
        fit_distributed([good, bad], **{"algo": "alma", **how})
    os.mkfifo(tmp_path / "pipe")
    for path in tmp_path / "pipe", "-":
        with pytest.raises(ValueError, match="can be read only once"):
            fit_distributed([path], algo="alma")


@pytest.mark.parametrize("how", [
    {}, {"shuffle": False}, {"algo": "so"}, {"mixing": "ring", "algo": "pnorm"},
])  # fmt: skip
def test_shards_of_one_class_cause_one_warning(how, tmp_path):
    X, y = make_data()
    halves = [np.flatnonzero(y == label) for label in (1, 0)]
    shards = [(X[rows], y[rows]) for rows in (slice(60), *halves)]
    shards.insert(1, (X[:0], y[:0]))
    told = r"2 of 3 shards have rows of one class only \(first: shard 2\), and the data h.* 2"
    for form, function in (shards, "fit_csr"), (write_each(tmp_path, shards), "fit_svmlight"):
        with pytest.warns(UserWarning, match=rf"{told} classes.*one machine by {function}") as met:
            fit_distributed(form, **{"algo": "alma", **how})
        assert len(met) == 1


def test_shards_of_few_classes_warn():
    X, y = make_data(800, n_classes=4)
    shards = [(X[np.isin(y, some)], y[np.isin(y, some)]) for some in ([0, 3], [1, 2])]
    with pytest.warns(UserWarning, match=r"2 of 2 shards have rows of at most 2 classes.*4 c"):
        fit_distributed(shards, algo="alma")


def test_labels_that_are_sorted_over_shards_warn(tmp_path):
    """No shard alone is sorted. One machine warns of the same order in consecutive files."""
    X, y = make_data()
    order = np.argsort(y, kind="stable")
    pieces = np.array_split(order, 24)
    paths = write_each(tmp_path, [(X[rows], y[rows]) for rows in pieces])
    told = r"change 1 times in 240 rows, instead of about 116 times as in random order"
    with pytest.warns(UserWarning, match=f"24 shards, one after the other: the rows.*{told}"):
        fit_distributed(paths, algo="alma")
    with pytest.warns(UserWarning, match=told):
        sparsemargin.fit_svmlight(paths, "alma")


@given(codes=st.lists(st.integers(0, 3), max_size=30), cuts=st.sets(st.integers(0, 30)))
def test_joined_orders_of_labels_are_that_of_consecutive_rows(codes, cuts):
    whole, joined = LabelOrder(), LabelOrder()
    whole.add(np.array(codes, dtype=np.int64))
    for rows in np.split(np.array(codes, dtype=np.int64), sorted(cuts)):
        order = LabelOrder()
        order.add(rows)
        joined.join(order)
    assert joined.counts.tolist() == whole.counts.tolist()
    assert replace(joined, counts=None) == replace(whole, counts=None)


@pytest.mark.filterwarnings("error")
def test_shards_that_lack_a_rare_class_by_chance_do_not_warn():
    X, y = make_data()
    y = (np.arange(240) == 100).astype(int)
    fit_distributed([(X[s : s + 60], y[s : s + 60]) for s in range(0, 240, 60)], algo="alma")
    many = np.random.default_rng(0).integers(60, size=240)  # a shard lacks 25 or more of 60
    shards = [(X[s : s + 40], many[s : s + 40]) for s in range(0, 240, 40)]
    fit_distributed(shards, algo="alma", mixing="uniform")


@pytest.mark.parametrize("name", ["alma 2", "so"])
def test_shards_without_rows_are_left_out(name, tmp_path):
    X, y = make_data(n_classes=3)
    shards, nothing, how = cut(X, y, 4), (X[:0], y[:0]), parameters(name)
    expected = fit_distributed(shards, **how)
    some = [nothing, shards[0], nothing, *shards[1:], nothing]
    paths = write_each(tmp_path, some)
    for form in some, [([], []), *shards]:
        assert_same(fit_distributed(form, **how), expected)
    full = [path for path in paths if os.path.getsize(path)]
    of_files = fit_distributed(full, **how)
    assert_same(fit_distributed(paths, **how), of_files)
    kept = {"checkpoint": tmp_path / "a.model"}
    fit_distributed(full, **{**how, **kept, "max_iter": 1})
    assert_same(fit_distributed(paths, resume=True, **kept, **how), of_files)
    with pytest.raises(ValueError, match=r"No shard has rows: .*0\.svm, .*2\.svm, .*6\.svm\. Pass"):
        fit_distributed([path for path in paths if path not in full], **how)


def test_file_that_changes_between_epochs_raises_an_error(tmp_path):
    X, y = make_data()
    paths = write_each(tmp_path, cut(X, y, 2))

    def change(done):
        if done.epoch == 1:
            write(tmp_path / "1.svm", X[:10], y[:10])

    with pytest.raises(ValueError, match=r"1\.svm: these 10 rows are not those that training"):
        fit_distributed(paths, algo="alma", on_round=change)


def test_progressive_outputs_are_merged_over_shards(monkeypatch):
    X, y = make_zipf_text(12_000, 2000, random_state=0)
    how = {"algo": "arow", "max_iter": 2, "shuffle": False, "intercept_scaling": 0.3}
    shards = cut(X[:900], y[:900], 3)
    with monkeypatch.context() as patch:
        patch.setattr(dual_vectors, "cuts_of", lambda n_rows, **_: [0, n_rows])
        few = fit_distributed(shards, **how).fitted.progress
    alone = [
        sparsemargin.AROWClassifier(intercept_scaling=0.3).partial_fit(*shard, np.unique(y))
        for shard in shards
    ]
    expected = np.sort(np.concatenate([each.fitted.progress.outputs[:300] for each in alone]), 0)
    assert few.n_trials == 900
    np.testing.assert_allclose(np.sort(few.outputs[:900], axis=0), expected, rtol=1e-12)
    assert not hasattr(fit_distributed(shards, **how), "predict_proba")  # two epochs
    many = fit_distributed(cut(X, y, 3), **{**how, "max_iter": 1})
    kept = many.fitted.progress
    assert kept.n_trials == 12_000
    assert kept.n_stored == len(kept.steps)
    assert kept.positive.mean() == pytest.approx(np.mean(y == 1), abs=0.02)
    told = many.predict_proba(X)[:, 1]
    assert np.mean((told > 0.5) == (y == 1)) > 0.9
    assert told.mean() == pytest.approx(np.mean(y == 1), abs=0.02)


def test_kept_outputs_of_parts_are_in_order():
    X, y = make_zipf_text(900, 500, random_state=0)
    shards, how = cut(X, y, 3), {"shuffle": False, "intercept_scaling": 0.3}
    model = fit_distributed(shards, algo="arow", max_iter=2, **how)
    kept, parts = model.fitted.progress, in_parts(shards)
    assert kept.n_trials == 900
    start = 0
    for part in parts:
        expected = np.concatenate([of for _, of in part]) == 1
        places = slice(start, start + len(expected))
        np.testing.assert_array_equal(np.sort(kept.positive[places, 0]), np.sort(expected))
        start = places.stop
    first = [
        sparsemargin.AROWClassifier(**how).partial_fit(*part, np.unique(y)) for part in parts[0]
    ]
    n = len(parts[0][0][1])
    alone = np.concatenate([each.fitted.progress.outputs[:n] for each in first])
    np.testing.assert_allclose(np.sort(kept.outputs[: 3 * n], 0), np.sort(alone, 0), rtol=1e-12)
    wrong = (kept.outputs[:900, 0] > 0) != kept.positive[:900, 0]
    assert wrong[600:].mean() < wrong[:300].mean()
    assert fit_distributed(shards, algo="so", max_iter=2).fitted.progress.n_trials == 900


@pytest.mark.parametrize(("mixing", "n_classes"), [("uniform", 2), ("ring", 2), ("ring", 4)])
def test_progress_shows_only_known_figures(mixing, n_classes, capsys):
    """The Perceptron makes a correction for each mistake. With 48,000 rows, shards are mixed once
    in later epochs; with two classes, a shard is not visited in each part of a ring."""
    X, y = make_data(48_000, n_classes=n_classes)
    how = {"algo": "perceptron", "max_iter": 3, "random_state": 0, "mixing": mixing}
    rounds = []
    fit_distributed(cut(X, y, 2), verbose=1, on_round=rounds.append, **how)
    _, *lines = capsys.readouterr().err.splitlines()
    lines = [line.replace(",", "").split()[:6] for line in lines]
    before = np.cumsum([0, *(sum(each.corrections) for each in rounds)]).tolist()
    last = {epoch: (rows, corrections) for rows, epoch, _, corrections, *_ in lines}
    assert last == {str(i): ("48000", str(before[i])) for i in (1, 2, 3)}
    for rows, epoch, _, corrections, *errors in lines:
        error, other = errors if epoch == "1" else reversed(errors)
        assert other == "-"
        if mixing == "ring":
            assert error == "-"
            continue
        # A first row with output 0 is corrected, but may be predicted correctly.
        made = int(corrections) - before[int(epoch) - 1]
        assert made - 2 <= round(float(error) * int(rows) / 100) <= made


def test_file_that_a_worker_does_not_find_is_reported_with_a_remedy(tmp_path):
    paths = write_each(tmp_path, cut(*make_data(), 2))
    with pytest.raises(FileNotFoundError, match=r"Shard 1 of 2.*c\.svm: no such file.*shared"):
        fit_distributed([paths[0], [str(tmp_path / "c.svm")]], algo="arow")
