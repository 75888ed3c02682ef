"""A thousand labels on a million features: the seconds and the peak memory of one fit.

Dense float32 weights would take 5.4 GB at 1,355,191 features and 1,000 labels. The fit runs in a
process of its own, which reads the rows and holds nothing else of size.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from contestants import ONE_EPOCH, RAW
from corpora import Shape
from label_data import draw_labelled
from label_race import errors
from measure import timed
from peak_memory import MEGABYTE, STATUS, resident_peak
from scipy.sparse import csr_matrix, load_npz, save_npz

from sparsemargin import PNormPerceptron

WARM_UP_ROWS, WARM_UP_FEATURES = 50, 200
AIM_BYTES = 4 * 2**30


def _save(folder: Path, name: str, X: csr_matrix, Y: np.ndarray) -> None:
    save_npz(folder / f"{name}.npz", X, compressed=False)
    np.save(folder / f"{name}.npy", Y)


def _load(folder: Path, name: str) -> tuple[csr_matrix, np.ndarray]:
    return load_npz(folder / f"{name}.npz"), np.load(folder / f"{name}.npy")


def _fit(folder: Path) -> dict[str, Any]:
    """Run in the child: read the rows, fit, predict, and tell what that took."""
    X, Y = _load(folder, "train")
    model = PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="last", random_state=0)
    # A first fit pays for lazy imports. It gets little, or the memory it frees would be reused and
    # hide what the second one needs.
    model.fit(X[:WARM_UP_ROWS, :WARM_UP_FEATURES], Y[:WARM_UP_ROWS])
    # Sets the peak back to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_peak()
    seconds, _ = timed(lambda: model.fit(X, Y))
    fit_peak = resident_peak()
    X_test, Y_test = _load(folder, "test")
    predict_seconds, predicted = timed(lambda: model.predict(X_test))
    return {
        "fit_seconds": seconds,
        "predict_seconds": predict_seconds,
        "X_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "dense_bytes": 4 * X.shape[1] * Y.shape[1],
        "added_bytes": fit_peak - before,
        "peak_bytes": fit_peak,
        "predict_peak_bytes": resident_peak(),
        **errors(Y_test, predicted),
    }


def many_features(shape: Shape, n_labels: int) -> dict[str, Any] | None:
    """Fit one epoch of the Perceptron, last, in a new process.

    Returns
    -------
    dict or None
        Seconds, bytes and test errors; None where the system doesn't tell the peak of a process
        (only Linux does).
    """
    if not STATUS.exists():
        return None
    corpus = draw_labelled(shape, n_labels)
    with tempfile.TemporaryDirectory() as folder:
        _save(Path(folder), "train", corpus.X, corpus.Y)
        _save(Path(folder), "test", corpus.X_test, corpus.Y_test)
        del corpus
        command = [sys.executable, __file__, folder]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    facts = {"n_samples": shape.n_train, "n_features": shape.n_features, "n_labels": n_labels}
    return facts | json.loads(told)


def show(entry: dict[str, Any] | None) -> None:
    """Print what the fit took."""
    if entry is None:
        print("\nPeak memory: left out, this system doesn't tell the peak of a process")
        return
    print(
        f"\n{entry['n_labels']:,} labels x {entry['n_features']:,} features, "
        f"{entry['n_samples']:,} rows, float32, one epoch, last: {entry['fit_seconds']:.1f} s, "
        f"peak {entry['peak_bytes'] / MEGABYTE:,.0f} MB, of which the fit adds "
        f"{entry['added_bytes'] / MEGABYTE:,.0f} to X's {entry['X_bytes'] / MEGABYTE:,.0f} "
        f"(dense weights: {entry['dense_bytes'] / MEGABYTE:,.0f} MB; aim: < "
        f"{AIM_BYTES / MEGABYTE:,.0f}); predicting the test rows {entry['predict_seconds']:.1f} s; "
        f"Hamming error {100 * entry['hamming_error']:.3f} %"
    )


if __name__ == "__main__":
    print(json.dumps(_fit(Path(sys.argv[1]))))
