"""The results of a type checker for a user's code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import depth

ROOT = Path(__file__).parents[2]
RIGHT = """
from pathlib import Path
from typing import assert_type
import numpy as np
import sparsemargin
from sparsemargin import ALMAClassifier, PNormPerceptron, fit_csr, load_model, save_model
from sparsemargin.datasets import make_zipf_text
from sparsemargin.evaluation import margin_distribution, margins
from sparsemargin.plotting import MarginDistributionDisplay

X, y = make_zipf_text(300, random_state=0)
model = fit_csr(X, y, algo="ho", p=7, random_state=0)
score: float = model.score(X, y)
outputs: np.ndarray = model.decision_function(X)
alma = ALMAClassifier(p=4, alpha=0.5, max_iter=None, hypothesis="last").fit(X, y)
assert_type(alma, ALMAClassifier)
weighted = PNormPerceptron(p="log", class_weight="balanced")
weighted.partial_fit(X, y, classes=np.array([-1, 1]), sample_weight=np.ones(300))
save_model(model, Path("m.model"))
again: int = load_model("m.model").n_features_in_
streamed = sparsemargin.fit_svmlight(["a.svm", "b.svm"], algo="pnorm", p=4, max_iter=3)
display = MarginDistributionDisplay.from_estimator(alma, X, y)
assert_type(display, MarginDistributionDisplay)
share = margin_distribution(margins(alma, X, y)).share
version: str = sparsemargin.__version__
"""
WRONG = {
    'fit_csr(X, y, algo="adaboost")': "arg-type",
    "ALMAClassifier(alfa=0.5)": "call-arg",
    'ALMAClassifier(hypothesis="mean")': "arg-type",
    "fit_csr(X)": "call-arg",
}
# Only numpy's third-party types matter here; reading the rest would double the time.
SETTINGS = """
[mypy]
[mypy-dask.*,distributed.*,joblib.*,matplotlib.*,scipy.*,sklearn.*]
follow_imports = skip
ignore_missing_imports = True
"""


@depth.long
def test_user_code_is_type_checked(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: nothing checks the types")
    (tmp_path / "user.py").write_text(RIGHT + "\n".join(WRONG) + "\n")
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={os.devnull}", "user.py"],
        cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert checked.returncode == 1, checked.stderr
    # The strictness for the library itself is set in its own configuration.
    found = [line for line in checked.stdout.splitlines() if line.startswith("user.py:")]
    errors = [line for line in found if ": error: " in line]
    assert len(errors) == len(WRONG), errors
    for number, (error, kind) in enumerate(zip(errors, WRONG.values(), strict=True), 1):
        assert error.startswith(f"user.py:{RIGHT.count(chr(10)) + number}: ")
        assert error.endswith(f"[{kind}]")
