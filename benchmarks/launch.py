"""Run a command, or a library call on a file, and print its seconds and memory as a line of JSON.

The operating system includes the parent's memory at the start of a process in its peak. Therefore
commands are started by a Python process without packages, and no peak below a few megabytes can be
measured. For the same reason, calls import only what they need.

    python -I -S launch.py command COMMAND ARGUMENT...
    python launch.py call '{"call": NAME, "params": {...}, "few": FILE, "text": FILE, "test": FILE}'

A call is first made on a few rows, then on the text. The result is evaluated on the test text.
"""

import json
import os
import sys
from time import perf_counter

# Bytes in a unit of ru_maxrss.
UNIT = 1 if sys.platform == "darwin" else 1024


def command(*words):
    """Run the command, print its cost as the last line, and exit with its status."""
    start = perf_counter()
    process = os.posix_spawnp(words[0], words, os.environ)
    _, status, usage = os.wait4(process, 0)
    facts = {"seconds": perf_counter() - start, "peak_bytes": usage.ru_maxrss * UNIT}
    print(json.dumps(facts), flush=True)
    sys.exit(os.waitstatus_to_exitcode(status))


def _fit_svmlight(cached=False, **params):
    import sparsemargin

    def run(text):
        return sparsemargin.fit_svmlight(
            text, cache=f"{text}.smcache" if cached else None, **params
        )

    return run, _estimator_error


def _fit_sklearn(**params):
    import numpy as np
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import SGDClassifier

    def run(text):
        X, y = load_svmlight_file(text)
        # load_svmlight_file returns int64 indices (1.9), which scikit-learn's linear models reject.
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return SGDClassifier(**params).fit(X, y)

    return run, _estimator_error


def _estimator_error(model, test_text):
    import sparsemargin

    X, y = sparsemargin.load_svmlight(test_text)
    X.resize(X.shape[0], model.n_features_in_)
    return {"test_error": float((model.predict(X) != y).mean())}


def _fit_vw(cached=False, options=()):
    from vowpalwabbit import Workspace

    def run(text):
        cache = ["--cache_file", f"{text}.cache"] if cached else []
        return Workspace(arg_list=["--quiet", "-d", text, *cache, *options])

    def tell(model, test_text):
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            model.save(saved := f"{folder}/model")
            model.finish()
            return {"test_error": vw_error(saved, test_text)}

    return run, tell


def vw_error(saved, test_text):
    """The test error of a model saved by vw."""
    from vowpalwabbit import Workspace

    predicted = f"{saved}.predictions"
    files = ["-i", str(saved), "-d", str(test_text), "-p", predicted]
    Workspace(arg_list=["--quiet", "-t", *files]).finish()
    return error_of(predicted, test_text)


def error_of(predictions, test_text):
    """The share of predictions, one per line, whose sign differs from the label's."""
    with open(predictions) as found, open(test_text) as lines:
        pairs = zip(found, lines, strict=True)
        wrong = [(float(each) >= 0) != (float(line.partition(" ")[0]) >= 0) for each, line in pairs]
    return sum(wrong) / len(wrong)


def _load_svmlight(**params):
    import scipy.sparse  # noqa: F401 (imported by the first call)

    import sparsemargin

    return lambda text: sparsemargin.load_svmlight(text, **params), _contents


def _load_svmlight_file():
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file, _contents


def _contents(loaded, test_text):
    X, y = loaded
    return {"contents": [*X.shape, X.nnz, float(X.data.sum()), float(y.sum())]}


#: Each makes two functions: the call on a text that is timed, and the evaluation of its result.
CALLS = {
    "fit_svmlight": _fit_svmlight, "sklearn": _fit_sklearn, "vw": _fit_vw,
    "load_svmlight": _load_svmlight, "load_svmlight_file": _load_svmlight_file,
}  # fmt: skip


def call(wanted):
    """Make the call, and print its cost and its evaluation."""
    from resource import RUSAGE_SELF, getrusage

    wanted = json.loads(wanted)
    run, tell = CALLS[wanted["call"]](**wanted["params"])
    run(wanted["few"])
    start = perf_counter()
    result = run(wanted["text"])
    facts = {
        "seconds": perf_counter() - start,
        "peak_bytes": getrusage(RUSAGE_SELF).ru_maxrss * UNIT,
    }
    print(json.dumps(facts | tell(result, wanted["test"])), flush=True)


if __name__ == "__main__":
    {"command": command, "call": call}[sys.argv[1]](*sys.argv[2:])
