"""The scanner against scikit-learn and the plain reference on many files: make scanner-equality.

PYTHONPATH=tests python -m long.scanner_equality [--files N] [--first SEED]

Besides N random texts, the RCV1 subsets are compared, where SPARSEMARGIN_DATA leads to them.
"""

import argparse
import bz2
import os
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np

from problems.svmlight_checks import check_against_reference, check_against_sklearn, try_to_scan
from problems.svmlight_texts import random_options, random_text
from references.svmlight import Options

RCV1 = "rcv1_subsets_topics.svm.bz2"


def plain_options(source):
    """Return options that scikit-learn knows."""
    options = random_options(source)
    options.base, options.hash_bits, options.max_index = options.least, 0, 2**63 - 1
    return options


def compare_random_texts(first, n_files):
    """Return how often scikit-learn took a text, the scanner did, and what it refused."""
    counts = Counter()
    for seed in range(first, first + n_files):
        source = random.Random(seed)
        options = plain_options(source)
        text = random_text(source, options)
        try:
            counts["equal to scikit-learn"] += check_against_sklearn(text, options)
            taken = check_against_reference(text, options)
        except AssertionError:
            raise SystemExit(f"seed {seed}: {options}\n{text!r}") from None
        counts["taken" if taken else f"refused: {try_to_scan(text, options)[0][0]}"] += 1
    return counts


def compare_rcv1(folder):
    text = bz2.decompress((Path(folder) / RCV1).read_bytes())
    for dtype in np.float64, np.float32:
        options = Options(dtype=dtype, base=1, least=1, multilabel=True)
        assert check_against_sklearn(text, options)
    return text.count(b"\n"), text.count(b":")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first file")
    arguments = parser.parse_args()
    start = time.perf_counter()
    for what, count in compare_random_texts(arguments.first, arguments.files).most_common():
        print(f"{count:8}  {what}")
    print(f"{arguments.files} texts: no difference, {time.perf_counter() - start:.0f} s")
    folder = os.environ.get("SPARSEMARGIN_DATA")
    if folder:
        print("RCV1, {} rows and {} entries: no difference".format(*compare_rcv1(folder)))
    else:
        print("RCV1 was not compared: SPARSEMARGIN_DATA names no folder")


if __name__ == "__main__":
    main()
