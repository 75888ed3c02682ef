"""Rows to be cut into shards, the algorithms that can be mixed, and files of rows."""

import numpy as np
from scipy.sparse import csr_matrix

# Parameters for fits of three epochs.
MIXED = {
    "perceptron": {},
    "pnorm 2": {"algo": "pnorm", "p": 2},
    "pnorm 6": {"algo": "pnorm", "p": 6},
    "alma 2": {"algo": "alma", "p": 2},
    "alma 6": {"algo": "alma", "p": 6, "normalize": "running"},
    "arow": {},
    "arow average": {"algo": "arow", "max_loss": 1.0, "hypothesis": "average"},
    "margin": {"margin": 0.5, "hypothesis": "average"},
    "last": {"algo": "pnorm", "p": 4, "hypothesis": "last"},
    "normalized": {"algo": "pnorm", "p": 3, "normalize_hypotheses": True},
    "joint": {"algo": "alma", "p": 3, "multi_class": "joint"},
    "ho": {"p": 3, "max_updates": 60},
    "so": {"max_updates": 60},
}


def parameters(name):
    chosen = MIXED[name]
    return {"algo": chosen.get("algo", name), "max_iter": 3, "random_state": 5, **chosen}


def make_data(n_rows=240, n_features=40, n_classes=2, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.3)
    outputs = X @ rng.standard_normal((n_features, n_classes)) + rng.standard_normal(n_classes)
    return csr_matrix(X.astype(dtype)), outputs.argmax(axis=1)


def cut(X, y, n_shards):
    return [(X[s::n_shards], y[s::n_shards]) for s in range(n_shards)]


def assert_same(model, other):
    """Assert that two models are bitwise equal."""
    for one, same in (model.coef_, other.coef_), (model.intercept_, other.intercept_):
        one, same = (each.toarray() if hasattr(each, "toarray") else each for each in (one, same))
        np.testing.assert_array_equal(one, same)
    np.testing.assert_array_equal(model.n_corrections_, other.n_corrections_)
    assert model.space.trials == other.space.trials
    assert (model.n_iter_, model.n_features_in_) == (other.n_iter_, other.n_features_in_)


def write(path, X, y):
    """Write an svmlight file without rounding; labels are numbers, text, or sequences of them."""
    lines = []
    for row, label in zip(X, y, strict=True):
        label = ",".join(map(str, label)) if isinstance(label, list | tuple) else label
        entries = (f"{j + 1}:{v!r}" for j, v in zip(row.indices, row.data.tolist(), strict=True))
        lines.append(f"{label} {' '.join(entries)}\n")
    path.write_text("".join(lines))
    return str(path)


def write_each(folder, shards):
    return [write(folder / f"{s}.svm", *shard) for s, shard in enumerate(shards)]
