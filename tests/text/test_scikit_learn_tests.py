"""scikit-learn's tests of its vectorizers pass with the vectorizers of this library."""

import subprocess
import sys
from pathlib import Path

from depth import long


@long
def test_scikit_learn_vectorizer_tests_pass(tmp_path):
    script = Path(__file__).parents[1] / "scikit_learn_text_tests.py"
    run = [sys.executable, str(script), "--rootdir", str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
