"""Laws for every algorithm and any way of training: in one call or many, from a matrix, a file or a
shard, with any number of threads, dense or in blocks."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from depth import pairwise, some
from problems.lives import LIMITS, VARIANTS, assert_alike, classifier, lowered, rows
from problems.shards import write
from sparsemargin import fit_csr, fit_svmlight, load_model, save_model
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin._engine.rows.parts import summed
from sparsemargin.distributed import fit_distributed
from sparsemargin.distributed.fit import _NOT_MIXED
from sparsemargin.files import sources
from sparsemargin.kernels import RBF
from sparsemargin.models import ALGORITHMS
from sparsemargin.models.inputs.rows import open_rows
from sparsemargin.models.parameters import declarations

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Algorithms that use one solver for files and another for matrices agree up to rounding errors.
TOLERANCE = {"ho": 1e-9, "so": 1e-9}

each_algorithm = pytest.mark.parametrize("algo", ALGORITHMS)
of_classes = pytest.mark.parametrize("n_classes", [2, 5])


def in_parts(model, X, y, n):
    """Train on n rows at a time."""
    for start in range(0, len(y), n):
        model.partial_fit(X[start : start + n], y[start : start + n], classes=np.unique(y))
    return model


@pytest.mark.parametrize(
    ("algo", "limit", "many", "n_classes"),
    pairwise([*VARIANTS], [*LIMITS], [False, True], [2, 3, 5])[:: some(2, 1)],
)
def test_limits_change_no_bit(algo, limit, many, n_classes, monkeypatch, tmp_path):
    monkeypatch.setattr(vector_blocks, "GROUP", 2)
    X, y = rows(50, 20, n_classes, 3, many=many)
    X_more, y_more = rows(9, 20, n_classes, 4, many=many)
    ways = []
    for names in (), (limit,):
        model = classifier(algo, n_jobs=2)
        with lowered(names):
            if many and not model.supports_multilabel:
                with pytest.raises(ValueError, match="several labels"):
                    model.fit(X, y)
                return
            model.fit(X, y).partial_fit(X_more, y_more)
            save_model(model, tmp_path / "a.model")
            # Outputs are computed under the limits used in training.
            for each in model, load_model(tmp_path / "a.model"):
                ways.append(each.decision_function(X))
    assert len({outputs.tobytes() for outputs in ways}) == 1


@each_algorithm
@of_classes
def test_training_in_parts_equals_one_epoch(algo, n_classes):
    X, y = rows(60, 20, n_classes, 5)
    how = {"shuffle": False, "intercept_scaling": 1.0, "max_iter": 1}
    whole = in_parts(classifier(algo, **how), X, y, 60)
    assert_alike(in_parts(classifier(algo, **how), X, y, 7), whole, X)


WEIGHED = [algo for algo, (each, _) in VARIANTS.items() if each.weighs_steps()]
KERNELS = [algo for algo, (each, _) in ALGORITHMS.items() if "kernel" in declarations(each)]


def kernels_of(algo):
    """Return the parameters of models without a kernel, and with one."""
    return [{}, {"kernel": RBF(1.0)}] if algo in KERNELS else [{}]


@pytest.mark.parametrize(
    ("algo", "n_classes", "limit"), pairwise([*VARIANTS, *KERNELS], [2, 5], [None, *LIMITS])
)
def test_fit_ends_with_the_trial_of_the_last_correction(algo, n_classes, limit):
    X, y = rows(60, 20, n_classes, 8)
    weigh = {"sample_weight": np.arange(60) % 3} if algo in WEIGHED and n_classes == 2 else {}
    n_trials = 40 if weigh else 60
    for kernel in kernels_of(algo):
        how = {"shuffle": False, "max_corrections": 7, **kernel}
        with lowered([limit] if limit else []):
            ended = classifier(algo, max_iter=100, n_jobs=2, **how).fit(X, y, **weigh)
            assert np.all(ended.n_corrections_ == 7)
            made = ended.n_iter_ * n_trials
            assert made == round(made) == ended.t_ - 1
            whole = classifier(algo, max_iter=made / n_trials, **how).fit(X, y, **weigh)
            short = classifier(algo, max_iter=(made - 1) / n_trials, **how).fit(X, y, **weigh)
        assert_alike(whole, ended, X)
        assert np.sum(short.n_corrections_) < np.sum(ended.n_corrections_)


@pytest.mark.parametrize("algo", WEIGHED)
@pytest.mark.parametrize("shuffle", [False, True])
@of_classes
def test_rows_of_weight_0_have_no_effect(algo, shuffle, n_classes):
    X, y = rows(60, 20, n_classes, 9)
    counts = np.arange(60) % 3 > 0
    for kernel in kernels_of(algo):
        how = {"max_iter": 12.3, "intercept_scaling": 1.0, "shuffle": shuffle, **kernel}
        weighted = classifier(algo, **how).fit(X, y, sample_weight=counts.astype(float))
        without = classifier(algo, **how).fit(X[counts], y[counts])
        assert_alike(weighted, without, X, tolerance=1e-12)


@each_algorithm
@of_classes
def test_file_gives_the_model_of_its_matrix(algo, n_classes, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 500)
    X, y = rows(60, 20, n_classes, 6)
    X.sum_duplicates()
    how = {"random_state": 0, "intercept_scaling": 1.0, "shuffle": False}
    how |= {"radius": 10.0} if algo == "cramma" else {}
    path = write(tmp_path / "rows.svm", X, y)
    if algo == "maxmargin":
        with pytest.raises(ValueError, match="keeps a number for every row"):
            fit_svmlight(path, algo, n_features=20)
        return
    for max_iter in 1, 3:
        params = {**how, "max_iter": max_iter}
        of_file = fit_svmlight(path, algo, n_features=20, **params)
        of_matrix = fit_csr(X, y.astype(float), algo, **params)
        assert_alike(of_file, of_matrix, X, tolerance=TOLERANCE.get(algo, 0.0))


@pytest.mark.parametrize(
    "algo", [name for name, (each, _) in ALGORITHMS.items() if each.classifier not in _NOT_MIXED]
)
@of_classes
def test_one_shard_gives_the_model_of_one_machine(algo, n_classes):
    X, y = rows(60, 20, n_classes, 7)
    how = {"random_state": 0, "max_iter": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_alike(fit_distributed([(X, y)], algo=algo, **how), fit_csr(X, y, algo, **how), X)


@each_algorithm
@of_classes
def test_repeated_columns_are_summed_before_a_step(algo, n_classes):
    X, y = rows(60, 20, n_classes, 7)
    added = summed(open_rows(X))
    apart = csr_matrix(tuple(added.arrays), shape=X.shape)
    assert apart.nnz < X.nnz
    how = {"random_state": 0, "max_iter": 3}
    assert_alike(fit_csr(X, y, algo, **how), fit_csr(apart, y, algo, **how), apart)
