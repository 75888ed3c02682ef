"""From svmlight text to a matrix, and to a model."""

import tempfile
from pathlib import Path
from time import perf_counter

from sklearn.datasets import dump_svmlight_file

import sparsemargin
from sparsemargin.datasets import make_zipf_text


class Svmlight:
    """Text of the RCV1 shape, the page cache warm."""

    n_rows = 10_000

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "rows.svm")
        dump_svmlight_file(*make_zipf_text(self.n_rows, random_state=0), str(self.path))

    def teardown(self):
        self.folder.cleanup()

    def time_load(self):
        sparsemargin.load_svmlight(self.path, n_jobs=1)

    def time_fit(self):
        sparsemargin.fit_svmlight(self.path, "perceptron", fit_intercept=False)

    def track_load_megabytes_per_second(self):
        start = perf_counter()
        sparsemargin.load_svmlight(self.path, n_jobs=1)
        return self.path.stat().st_size / 1e6 / (perf_counter() - start)

    track_load_megabytes_per_second.unit = "MB/s"
