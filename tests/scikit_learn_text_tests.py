"""scikit-learn's own tests of its vectorizers, with ours in their place.

    python tests/scikit_learn_text_tests.py
    python tests/scikit_learn_text_tests.py -k stop_words

The tests are those of the scikit-learn that is installed. None is expected to fail.
"""

import os
import sys

import pytest
from sklearn.feature_extraction import text as theirs

from sparsemargin import text as ours

if __name__ == "__main__":
    for name in ours.__all__:
        setattr(theirs, name, getattr(ours, name))
    quiet = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:randomly", "-W", "ignore"]
    module = ["--pyargs", "sklearn.feature_extraction.tests.test_text"]
    sys.exit(pytest.main([*quiet, *sys.argv[1:], "-c", os.devnull, *module]))
