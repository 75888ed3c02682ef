"""Artificial problems with a sparse target: two problems from papers, and genotypes."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from sparsemargin._checks import check_count, check_flag, check_float_dtype, check_real
from sparsemargin._docs import shares

Instances: TypeAlias = sp.csr_matrix | NDArray[np.floating]
Labels = NDArray[np.int64]
Split = tuple[Instances, Labels, Instances, Labels, NDArray[np.float64]]

# Least margins of the rows of `make_alma_target` and `make_ho_target`.
_ALMA_MARGIN = 1.0
_HO_MARGIN = 0.005
_MAX_ROWS = 2**31 - 1
# Number of values that are drawn at once, which limits the memory.
_BATCH_VALUES = 2**20
# An error is raised if, after `_PATIENCE_BATCHES` batches, less than the share `_LOWEST_RATE` of
# the rows reaches the margin.
_PATIENCE_BATCHES = 64
_LOWEST_RATE = 1e-5
_LOWEST_DENSITY = 1e-9  # lower values overflow the cell numbers
_RAREST, _RAREST_CAUSAL = 0.01, 0.1

_TARGET = {
    "sizes": """
        n_train, n_test : int
            Numbers of rows; `n_test` may be 0.
        """,
    "options": """
        density : float, default=1.0
            Probability that a coordinate is kept, otherwise it is zero (1.0 is the paper's
            protocol).
        sparse : bool, default=True
            Return the instances as `scipy.sparse.csr_matrix`; False: the same numbers as `ndarray`.
        dtype : {numpy.float32, numpy.float64}, default=numpy.float64
            Type of the instances. The margin holds for the values as rounded to this type.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        X_train, X_test : csr_matrix or ndarray of shape (n_rows, n_features)
        y_train, y_test : ndarray of shape (n_rows,), int64
            Labels -1 and +1.
        target : ndarray of shape (n_features,), float64
            In the order X_train, y_train, X_test, y_test, target.

        Raises
        ------
        ValueError
            If an argument is out of range, or if hardly any instance reaches the margin.
        """,
}


@shares(**_TARGET)
def make_alma_target(
    n_train: int = 10000,
    n_test: int = 10000,
    *,
    n_features: int = 300,
    n_relevant: int = 3,
    noise: float = 0.0,
    density: float = 1.0,
    sparse: bool = True,
    dtype: DTypeLike = np.float64,
    random_state=None,
) -> Split:
    """Artificial data of the ALMA paper: margin 1 in training, a clean test set without margin.

    The target u holds random signs in its first `n_relevant` coordinates and zeros elsewhere;
    instances are uniform in [-1, 1]^n. A training instance with ``|u.x| < 1`` is rejected and drawn
    again; its label sign(u.x) is flipped with probability `noise`. The test set keeps every
    instance and the label sign(u.x), with sign(0) = +1.

    Parameters
    ----------
    $sizes
    n_features : int, default=300
        Number of coordinates n.
    n_relevant : int, default=3
        Number s of nonzero coordinates of the target: at least 2, since a single coordinate of
        [-1, 1] cannot exceed the margin.
    noise : float, default=0.0
        Probability that a training label is flipped. The instances do not depend on it.
    $options

    References
    ----------
    C. Gentile (2001). A new approximate maximal margin classification algorithm. JMLR 2,
    213-242, section 4.4.

    Examples
    --------
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, target = make_alma_target(200, 100, random_state=0)
    >>> X.shape, X_test.shape, int(abs(target).sum())
    ((200, 300), (100, 300), 3)
    >>> bool((y * (X @ target) >= 1).all())
    True
    """
    n_train, n_test, n_features, noise, density, sparse, dtype = _check(
        n_train, n_test, n_features, noise, density, sparse, dtype
    )
    n_relevant = check_count("n_relevant", n_relevant, 2, n_features)
    target_stream, relevant_stream, rest_stream, flip_stream, test_stream = spawn_streams(
        random_state, 5
    )
    target = _random_target(target_stream, n_features, n_relevant)

    # Rejection depends on the relevant coordinates only, so only they are drawn again.
    relevant = _rows_with_margin(
        lambda n_rows: _uniform_rows(relevant_stream, n_rows, n_relevant, density).astype(dtype),
        target[:n_relevant],
        _ALMA_MARGIN,
        n_train,
        density,
        "raise density or n_relevant",
    )
    rest = _uniform_rows(rest_stream, n_train, n_features - n_relevant, density).astype(dtype)
    X_train = sp.csr_matrix(sp.hstack([relevant, rest], format="csr"))
    X_test = _uniform_rows(test_stream, n_test, n_features, density).astype(dtype)
    y_train = _flip(_labels(X_train, target), noise, flip_stream)
    y_test = _labels(X_test, target)
    return _as_asked(X_train, sparse), y_train, _as_asked(X_test, sparse), y_test, target


@shares(**_TARGET)
def make_ho_target(
    n_train: int = 1000,
    n_test: int = 1000,
    *,
    n_features: int = 500,
    n_relevant: int = 50,
    noise: float = 0.0,
    density: float = 1.0,
    sparse: bool = True,
    dtype: DTypeLike = np.float64,
    random_state=None,
) -> Split:
    """Artificial data of the Higher-order Perceptron paper: unit vectors with margin 0.005.

    The target u holds random signs in its first `n_relevant` coordinates, zeros elsewhere, and is
    scaled to 2-norm 1; instances are uniform in [-1, 1]^n, then scaled to 2-norm 1. In both sets
    an instance with ``|u.x| < 0.005`` is rejected and drawn again, and the label sign(u.x) is
    flipped with probability `noise`.

    Parameters
    ----------
    $sizes
    n_features : int, default=500
        Number of coordinates n.
    n_relevant : int, default=50
        Number of nonzero coordinates of the target.
    noise : float, default=0.0
        Probability that a label is flipped, in the test set too (the paper has 0 and 0.1). The
        instances do not depend on it.
    $options

    References
    ----------
    C. Brotto, C. Gentile, F. Vitale (2007). On higher-order Perceptron algorithms. NIPS 20,
    section 4, Task 1 ("Artificial 0.0" and "Artificial 0.1").

    Examples
    --------
    >>> from sparsemargin.datasets import make_ho_target
    >>> X, y, X_test, y_test, target = make_ho_target(200, 100, random_state=0)
    >>> bool((y * (X @ target) >= 0.005).all())
    True
    """
    n_train, n_test, n_features, noise, density, sparse, dtype = _check(
        n_train, n_test, n_features, noise, density, sparse, dtype
    )
    n_relevant = check_count("n_relevant", n_relevant, 1, n_features)
    target_stream, *streams = spawn_streams(random_state, 5)
    target = _random_target(target_stream, n_features, n_relevant) / np.sqrt(n_relevant)

    def labelled(n_rows, row_stream, flip_stream):
        X = _rows_with_margin(
            lambda n: normalize(_uniform_rows(row_stream, n, n_features, density)).astype(dtype),
            target,
            _HO_MARGIN,
            n_rows,
            density,
            "raise density or n_relevant, or lower n_features",
        )
        return _as_asked(X, sparse), _flip(_labels(X, target), noise, flip_stream)

    return *labelled(n_train, *streams[:2]), *labelled(n_test, *streams[2:]), target


def make_genotypes(
    n_samples: int,
    n_features: int = 100_000,
    *,
    n_causal: int = 30,
    heritability: float = 0.8,
    dtype: DTypeLike = np.float32,
    random_state=None,
) -> tuple[sp.csr_matrix, Labels, NDArray[np.float64]]:
    """Artificial genotypes with a trait that few variants determine.

    The frequency f of a variant's minor allele is half of a draw from Beta(0.8, 2.2), but at least
    0.01. A genotype is the number of minor alleles in two independent draws: 0, 1 or 2
    (Hardy-Weinberg). A quarter of the genotypes are not 0. The causal variants are chosen among
    those with f > 0.1. Their effects are normal, divided by the genotype's standard deviation
    sqrt(2 f (1 - f)), and scaled so that the variance of ``X @ effects`` is the heritability.
    Normal noise is added to give a liability of variance 1. The half of the samples with the higher
    liability has label 1.

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 2.
    n_features : int, default=100_000
        Number of variants.
    n_causal : int, default=30
        Number of variants with an effect.
    heritability : float, default=0.8
        Share of the liability's variance that is explained by the variants, from 0 to 1.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the counts.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features)
        Canonical format (sorted indices, no duplicates), with int32 indices if the number of
        nonzeros permits.
    y : ndarray of shape (n_samples,), int64
        Labels -1 and +1, half of each; if the number of rows is odd, one more is +1.
    effects : ndarray of shape (n_features,), float64
        Effect of one allele on the liability; 0 except for the causal variants.

    Raises
    ------
    ValueError
        If an argument is out of range, or if too few variants have f > 0.1.

    Examples
    --------
    >>> from sparsemargin.datasets import make_genotypes
    >>> X, y, effects = make_genotypes(100, 2000, random_state=0)
    >>> X.shape, set(X.data.tolist()), int(y.sum()), int((effects != 0).sum())
    ((100, 2000), {1.0, 2.0}, 0, 30)
    """
    n_samples = check_count("n_samples", n_samples, 2, _MAX_ROWS)
    n_features = check_count("n_features", n_features, 1, _MAX_ROWS)
    n_causal = check_count("n_causal", n_causal, 1, n_features)
    heritability = check_real("heritability", heritability, 0, 1)
    dtype = check_float_dtype(dtype)
    frequency_stream, effect_stream, row_stream, noise_stream = spawn_streams(random_state, 4)

    frequencies = np.maximum(0.5 * frequency_stream.beta(0.8, 2.2, size=n_features), _RAREST)
    effects = _genetic_effects(effect_stream, frequencies, n_causal) * np.sqrt(heritability)
    X = _genotypes(row_stream, n_samples, frequencies, dtype)
    noise = noise_stream.standard_normal(n_samples) * np.sqrt(1 - heritability)
    y = np.full(n_samples, np.int64(-1))
    y[np.argsort(X @ effects + noise, kind="stable")[n_samples // 2 :]] = 1
    return X, y, effects


def spawn_streams(random_state, n_streams: int) -> list[np.random.RandomState]:
    """Split `random_state` into independent streams, one for each random quantity.

    With separate streams, a draw does not depend on how many numbers another one takes. The same
    seed gives the same instances for any noise, and for any size of internal batches. The sequences
    of RandomState are frozen by NumPy, so published seeds remain valid.
    """
    try:
        parent = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, an integer from 0 to 2**32 - 1 or a numpy RandomState, "
            f"got {random_state!r}"
        ) from error
    seeds = parent.randint(2**31 - 1, size=n_streams)
    return [check_random_state(int(seed)) for seed in seeds]


def _check(n_train, n_test, n_features, noise, density, sparse, dtype) -> tuple:
    return (
        check_count("n_train", n_train, 1, _MAX_ROWS),
        check_count("n_test", n_test, 0, _MAX_ROWS),
        check_count("n_features", n_features, 1, _MAX_ROWS),
        check_real("noise", noise, 0, 1),
        check_real("density", density, _LOWEST_DENSITY, 1),
        check_flag("sparse", sparse),
        check_float_dtype(dtype),
    )


def _genetic_effects(stream, frequencies: NDArray, n_causal: int) -> NDArray[np.float64]:
    """Draw the effect of an allele of each variant; the resulting scores have variance 1."""
    common = np.flatnonzero(frequencies > _RAREST_CAUSAL)
    if len(common) < n_causal:
        raise ValueError(
            f"only {len(common)} of {len(frequencies)} variants drawn have a frequency above "
            f"{_RAREST_CAUSAL}, too few for n_causal={n_causal}: lower it, or raise n_features"
        )
    causal = stream.choice(common, size=n_causal, replace=False)
    of_unit_variance = stream.standard_normal(n_causal)
    of_unit_variance /= np.linalg.norm(of_unit_variance)
    effects = np.zeros(len(frequencies))
    effects[causal] = of_unit_variance / np.sqrt(
        2 * frequencies[causal] * (1 - frequencies[causal])
    )
    return effects


def _genotypes(stream, n_rows: int, frequencies: NDArray, dtype: np.dtype) -> sp.csr_matrix:
    """Draw minor allele counts in batches of rows, so that memory is needed for nonzeros only."""
    # One uniform number determines both draws.
    at_least_one, two = 1 - (1 - frequencies) ** 2, frequencies**2
    batch_rows = max(1, _BATCH_VALUES // len(frequencies))
    found = []
    for start in range(0, n_rows, batch_rows):
        size = min(batch_rows, n_rows - start), len(frequencies)
        uniform = stream.random_sample(size)
        found.append(sp.csr_matrix((uniform < at_least_one).astype(dtype) + (uniform < two)))
    return sp.vstack(found, format="csr", dtype=dtype)


def _random_target(stream, n_features: int, n_relevant: int) -> NDArray[np.float64]:
    target = np.zeros(n_features)
    target[:n_relevant] = 2 * stream.randint(2, size=n_relevant) - 1
    return target


def _uniform_rows(stream, n_rows: int, n_cols: int, density: float) -> sp.csr_matrix:
    """Draw CSR rows with kept coordinates uniform in [-1, 1], in time O(nonzeros)."""
    cells = _kept_cells(stream, n_rows * n_cols, density)
    data = stream.uniform(-1, 1, size=cells.size)
    indptr = np.searchsorted(cells, np.arange(n_rows + 1) * n_cols)
    return sp.csr_matrix((data, cells % max(n_cols, 1), indptr), shape=(n_rows, n_cols))


def _kept_cells(stream, n_cells: int, density: float) -> NDArray[np.int64]:
    """Draw which of `n_cells` cells are kept, independently, as increasing cell numbers.

    The gaps between successes of a Bernoulli sequence are geometric, so no empty cell is visited.
    """
    found, last = [np.empty(0, dtype=np.int64)], -1
    while last < n_cells - 1:
        expected = (n_cells - 1 - last) * density
        gaps = stream.geometric(density, size=int(expected + 4 * np.sqrt(expected)) + 16)
        found.append(last + np.cumsum(gaps))
        last = found[-1][-1]
    cells = np.concatenate(found)
    return cells[: np.searchsorted(cells, n_cells)]


def _rows_with_margin(
    draw: Callable[[int], sp.csr_matrix],
    target: NDArray[np.float64],
    margin: float,
    n_rows: int,
    density: float,
    remedy: str,
) -> sp.csr_matrix:
    """Draw batches until `n_rows` rows with |target.x| >= margin are found."""
    batch_rows = int(min(max(_BATCH_VALUES / (target.size * density), 1), _BATCH_VALUES))
    found: list[sp.csr_matrix] = []
    n_found = n_drawn = 0
    while not found or n_found < n_rows:
        given_up = n_drawn >= _PATIENCE_BATCHES * batch_rows
        if given_up and n_found < _LOWEST_RATE * n_drawn:
            raise ValueError(
                f"only {n_found} of {n_drawn} instances drawn with density={density} reach the "
                f"margin {margin}: {remedy}"
            )
        rows = draw(batch_rows)
        found.append(rows[np.abs(rows @ target) >= margin])
        n_found += found[-1].shape[0]
        n_drawn += batch_rows
    return sp.vstack(found, format="csr")[:n_rows]


def _labels(X: sp.csr_matrix, target: NDArray[np.float64]) -> Labels:
    return np.where(X @ target >= 0, np.int64(1), np.int64(-1))


def _flip(y: NDArray[np.int64], noise: float, stream) -> Labels:
    return np.where(stream.random_sample(y.size) < noise, -y, y)


def _as_asked(X: sp.csr_matrix, sparse: bool):
    return X if sparse else X.toarray()
