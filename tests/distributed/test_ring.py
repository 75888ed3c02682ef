"""Vectors that visit the shards one after the other are bitwise equal to those of one machine."""

import itertools

import numpy as np
import pytest
from scipy.sparse import vstack

import sparsemargin
from depth import pairwise
from problems.shards import assert_same, cut, make_data
from sparsemargin.distributed import fit_distributed

LEARNERS = {
    "pnorm 6": {"algo": "pnorm", "p": 6}, "alma": {"algo": "alma"}, "arow": {"algo": "arow"},
    "arow average": {"algo": "arow", "hypothesis": "average"},
    "margin": {"algo": "margin", "margin": 0.5},
}  # fmt: skip


def in_turn(shards, first):
    """All rows, starting with those of one of the shards."""
    turned = shards[first:] + shards[:first]
    return vstack([X for X, _ in turned], "csr"), np.concatenate([y for _, y in turned])


def labels_of(model, n_shards):
    """The vectors that begin at each shard."""
    cuts = [len(model.coef_) * s // n_shards for s in range(n_shards + 1)]
    return [slice(first, last) for first, last in itertools.pairwise(cuts)]


def assert_ring(model, shards, how):
    for first, labels in enumerate(labels_of(model, len(shards))):
        alone = sparsemargin.fit_csr(*in_turn(shards, first), **how)
        np.testing.assert_array_equal(model.coef_[labels], alone.coef_[labels])
        np.testing.assert_array_equal(model.intercept_[labels], alone.intercept_[labels])
        assert model.t_ == alone.t_


@pytest.mark.parametrize(
    ("name", "n_shards", "n_classes"),
    pairwise(list(LEARNERS), [2, 3, 7], [2, 3, 5, 7, 12, 20]),
)
def test_ring_vectors_are_bitwise_equal_to_one_machine(name, n_shards, n_classes):
    shards = cut(*make_data(150, n_classes=n_classes, dtype=np.float32), n_shards)
    how = {**LEARNERS[name], "max_iter": 2, "shuffle": False, "intercept_scaling": 1.0}
    assert_ring(fit_distributed(shards, mixing="ring", **how), shards, how)


def test_ring_learns_many_labels_and_shuffled_rows():
    X, _ = make_data(200)
    Y = (np.random.default_rng(0).random((200, 5)) < 0.3).astype(int)
    shards, how = cut(X, Y, 3), {"algo": "arow", "random_state": 0, "max_iter": 2}
    plain = fit_distributed(shards, shuffle=False, intercept_scaling=1.0, **how)
    assert_ring(plain, shards, {**how, "shuffle": False, "intercept_scaling": 1.0})
    rounds = []
    model = fit_distributed(shards, on_round=rounds.append, **how)
    told = [(each.trials, each.mixtures, len(each.corrections)) for each in rounds]
    assert told == 2 * [(200, 3, 3)]
    assert not np.array_equal(model.coef_, plain.coef_)
    counted = np.vstack([200 - Y.sum(axis=0), Y.sum(axis=0)])
    np.testing.assert_array_equal(model.fitted.rows_by_class, 2 * counted)


def test_vectors_keep_the_outputs_of_progressive_validation():
    shards = cut(*make_data(240, n_classes=5), 3)
    how = {"algo": "arow", "max_iter": 1, "shuffle": False, "intercept_scaling": 1.0}
    model = fit_distributed(shards, mixing="ring", **how)
    kept = model.fitted.progress
    # The rows of all shards alternately, which are equally late in the epoch.
    turns = np.arange(240).reshape(3, 80).T.ravel()
    for first, labels in enumerate(labels_of(model, 3)):
        one = sparsemargin.AROWClassifier(intercept_scaling=1.0)
        alone = one.partial_fit(*in_turn(shards, first), model.classes_).fitted.progress
        for name in "outputs", "positive":
            of_rows = np.roll(getattr(alone, name)[:240, labels], 80 * first, axis=0)
            np.testing.assert_array_equal(getattr(kept, name)[:240, labels], of_rows[turns])
    assert kept.n_trials == 240
    X, y = in_turn(shards, 0)
    told = model.predict_proba(X)
    np.testing.assert_allclose(told.sum(axis=1), 1.0)
    assert np.mean(told.argmax(axis=1) == y) > 0.6


def test_ring_is_used_for_many_labels_and_can_be_resumed(tmp_path):
    shards = cut(*make_data(n_classes=4), 4)
    how = {"algo": "alma", "max_iter": 3, "random_state": 0}
    whole = fit_distributed(shards, mixing="ring", **how)
    assert_same(fit_distributed(shards, **how), whole)
    path = tmp_path / "ring.model"
    fit_distributed(shards, checkpoint=path, **{**how, "max_iter": 1})
    assert_same(fit_distributed(shards, checkpoint=path, resume=True, **how), whole)
    path.unlink()
    more = cut(*make_data(n_classes=4), 5)
    assert_same(fit_distributed(more, **how), fit_distributed(more, mixing="uniform", **how))
    with pytest.raises(ValueError, match="learned one by one"):
        fit_distributed(shards, mixing="ring", multi_class="joint", **how)


@pytest.mark.parametrize(("n_shards", "n_classes", "mixing"), [
    (4, 4, "ring"), (4, 3, "uniform"), (9, 11, "ring"), (9, 10, "uniform"),
])  # fmt: skip
def test_more_shards_need_more_classes_for_a_ring(n_shards, n_classes, mixing):
    shards = cut(*make_data(n_classes=n_classes), n_shards)
    how = {"algo": "alma", "max_iter": 1, "random_state": 0}
    assert_same(fit_distributed(shards, **how), fit_distributed(shards, mixing=mixing, **how))
