"""The classifier of every way to train has the parameters that were passed."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from depth import some
from problems.shards import make_data, write
from sparsemargin import CellClassifier, TextClassifier, fit_csr, fit_svmlight, fit_text
from sparsemargin.distributed import fit_distributed

# Values other than the defaults.
VALUES = {
    "p": [4], "alpha": [0.5], "class_weight": [{0: 3.0}, None, "balanced"], "max_iter": [1, 3],
    "fit_intercept": [False], "intercept_scaling": [2.0], "hypothesis": ["last", "average"],
    "shuffle": [False], "r": [0.25], "max_loss": [1.0], "margin": [0.2], "random_state": [4],
    "normalize_hypotheses": [True], "multi_class": ["joint", "ovr"], "early_stopping": [True],
    "n_jobs": [1], "C": [1.1],
}  # fmt: skip
X, Y = make_data(n_classes=3)
TEXTS = [" ".join(f"word{j}" for j in row.indices) for row in X]


def fit_texts(_, algo, how):
    own = {
        name: how.pop(name) for name in [*how] if name in TextClassifier().get_params(deep=False)
    }
    return TextClassifier(algo=algo, params=how, **own).fit(TEXTS, Y).classifier_


def fit_cells(_, algo, how):
    pytest.importorskip("anndata", reason="anndata is not installed")
    from problems.cells import adata_of

    own = {
        name: how.pop(name) for name in [*how] if name in CellClassifier().get_params(deep=False)
    }
    counts = csr_matrix((np.ceil(np.abs(X.data)).astype(np.float32), X.indices, X.indptr), X.shape)
    return (
        CellClassifier("kind", algo=algo, params=how, **own)
        .fit(adata_of(counts, Y.astype(str), kind=Y))
        .classifier_
    )


def fit_file_of_texts(folder, algo, how):
    lines = [f"{label}\t{text}\n" for label, text in zip(Y, TEXTS, strict=True)]
    (folder / "texts.tsv").write_text("".join(lines))
    return fit_text(folder / "texts.tsv", algo=algo, **how).classifier_


WAYS = {
    "fit_csr": lambda _, algo, how: fit_csr(X, Y, algo, **how),
    "fit_svmlight": lambda folder, algo, how: fit_svmlight(
        write(folder / "rows.svm", X, Y), algo=algo, **how
    ),
    "fit_distributed": lambda _, algo, how: fit_distributed([(X, Y)] * 2, algo=algo, **how),
    "texts": fit_texts, "file of texts": fit_file_of_texts, "cells": fit_cells,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algo", some([None, "alma"], [None, "pnorm", "alma", "arow"]))
@pytest.mark.parametrize("way", WAYS)
def test_parameters_are_those_of_the_classifier(way, algo, tmp_path):
    plain = {"random_state": 0, "max_iter": 2}
    known = WAYS[way](tmp_path, algo, dict(plain)).get_params().keys()
    arow = fit_csr(X, Y, "arow").get_params()
    for name in known & VALUES.keys():
        for value in VALUES[name]:
            # The default may not have a parameter that one of its candidates lacks, and a value
            # that AROW has anyway leaves the choice to the other candidates.
            if algo is None and (name not in arow or value == arow[name]):
                continue
            model = WAYS[way](tmp_path, algo, {**plain, name: value})
            assert model.get_params()[name] == value, (name, value)
