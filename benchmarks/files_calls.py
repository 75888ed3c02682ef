"""One call of a library on a file, in a process that does nothing else.

Run by `files_race`, through `launch`, with the call as JSON in its argument: its name and
parameters, the text, a short text to warm up with, and the text to test on. Prints its seconds, its
memory, and what came out, as JSON.

Nothing is imported here that the call itself does not need: it would count in its memory.
"""

import json
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from launch import UNIT


class Call(NamedTuple):
    """`run(text)` is timed; `tell(result, test_text)` then says what came out."""

    run: Callable[[str], Any]
    tell: Callable[[Any, str], dict[str, Any]]


def _fit_svmlight(cached: bool = False, **params: Any) -> Call:
    import sparsemargin

    def run(text: str) -> Any:
        # Values of another type are cached apart.
        cache = f"{text}.{params.get('dtype', 'float64')}.smcache" if cached else None
        return sparsemargin.fit_svmlight(text, cache=cache, **params)

    return Call(run, _estimator_error)


def _fit_sklearn(estimator: str, **params: Any) -> Call:
    import numpy as np
    from sklearn import linear_model
    from sklearn.datasets import load_svmlight_file

    def run(text: str) -> Any:
        X, y = load_svmlight_file(text)
        # It returns int64 indices (1.9), which scikit-learn's own linear models refuse.
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return getattr(linear_model, estimator)(**params).fit(X, y)

    return Call(run, _estimator_error)


def _estimator_error(model: Any, test_text: str) -> dict[str, float]:
    import sparsemargin

    X, y = sparsemargin.load_svmlight(test_text)
    X.resize(X.shape[0], model.n_features_in_)
    return {"test_error": float((model.predict(X) != y).mean())}


def _fit_vw(cached: bool = False, options: tuple[str, ...] = ()) -> Call:
    from vowpalwabbit import Workspace

    def run(text: str) -> Any:
        cache = ["--cache_file", f"{text}.cache"] if cached else []
        return Workspace(arg_list=["--quiet", "-d", text, *cache, *options])

    def tell(model: Any, test_text: str) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            saved, predicted = f"{folder}/model", f"{folder}/predictions"
            model.save(saved)
            model.finish()
            files = ["-i", saved, "-d", test_text, "-p", predicted]
            Workspace(arg_list=["--quiet", "-t", *files]).finish()
            return {"test_error": error_of(predicted, test_text)}

    return Call(run, tell)


def error_of(predictions: str | Path, test_text: str | Path) -> float:
    """The share of predictions, one a line, whose sign is not the label's."""
    wrong = n_rows = 0
    with open(predictions) as found, open(test_text) as lines:
        for prediction, line in zip(found, lines, strict=True):
            wrong += (float(prediction) >= 0) != (float(line.partition(" ")[0]) >= 0)
            n_rows += 1
    return wrong / n_rows


def _load_svmlight(**params: Any) -> Call:
    import scipy.sparse  # noqa: F401 (imported by the first call)

    import sparsemargin

    return Call(lambda text: sparsemargin.load_svmlight(text, **params), _contents)


def _load_svmlight_file(**params: Any) -> Call:
    from sklearn.datasets import load_svmlight_file

    return Call(lambda text: load_svmlight_file(text, **params), _contents)


def _contents(loaded: Any, test_text: str) -> dict[str, Any]:
    X, y = loaded
    return {"contents": [*X.shape, X.nnz, float(X.data.sum()), float(y.sum())]}


CALLS: dict[str, Callable[..., Call]] = {
    "fit_svmlight": _fit_svmlight,
    "sklearn": _fit_sklearn,
    "vw": _fit_vw,
    "load_svmlight": _load_svmlight,
    "load_svmlight_file": _load_svmlight_file,
}


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


def main() -> None:
    """Make the call in the argument, and print what it took and what came of it."""
    wanted = json.loads(sys.argv[1])
    call = CALLS[wanted["call"]](**wanted["params"])
    call.run(wanted["few"])
    before, start, cpu_start = _peak_bytes(), perf_counter(), process_time()
    result = call.run(wanted["text"])
    facts = {
        "seconds": perf_counter() - start,
        "cpu_seconds": process_time() - cpu_start,
        "peak_bytes": (peak := _peak_bytes()),
        "added_bytes": peak - before,
    }
    print(json.dumps(facts | call.tell(result, wanted["test"])), flush=True)


if __name__ == "__main__":
    main()
