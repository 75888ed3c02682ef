"""K-mers beside scikit-learn's characters, and sequences from files."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sparsemargin import AROWClassifier, fit_text, load_model, save_model
from sparsemargin.genomes import KmerVectorizer, read_sequences

LETTERS = st.text("ACGTN", max_size=60)
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def named(vectorizer, sequences):
    """Counts of each sequence by k-mer."""
    names, X = vectorizer.get_feature_names_out(), vectorizer.transform(sequences)
    return [dict(zip(names[row.indices].tolist(), row.data.tolist(), strict=True)) for row in X]


def by_hand(sequence, k, canonical):
    counts = {}
    for start in range(len(sequence) - k + 1):
        kmer = sequence[start : start + k]
        if "N" not in kmer:
            kmer = min(kmer, kmer.translate(COMPLEMENT)[::-1]) if canonical else kmer
            counts[kmer] = counts.get(kmer, 0) + 1
    return counts


@settings(max_examples=50, deadline=None)
@given(st.lists(LETTERS, min_size=1, max_size=4), st.integers(1, 6), st.booleans())
def test_counts_are_those_by_hand(sequences, k, canonical):
    vectorizer = KmerVectorizer(k, canonical=canonical)
    assert named(vectorizer, sequences) == [by_hand(each, k, canonical) for each in sequences]


@pytest.mark.parametrize("k", [1, 4, 7])
def test_counts_are_those_of_characters(k):
    random = np.random.RandomState(0)
    sequences = ["".join(random.choice(list("ACGT"), 400)) for _ in range(20)]
    theirs = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False)
    Y = theirs.fit_transform(sequences)
    ours = KmerVectorizer(k, canonical=False)
    at = {name: j for j, name in enumerate(ours.get_feature_names_out())}
    X = ours.transform(each.encode() for each in sequences)
    assert X.sum() == Y.sum()
    assert not (X[:, [at[name] for name in theirs.get_feature_names_out()]] != Y).nnz


def test_rna_case_and_strands_are_one():
    dna = KmerVectorizer(3).transform(["ACGGTTA"])
    for other in "acgguua", "ACGGUUA", "TAACCGT", b"ACGGTTA":
        assert not (KmerVectorizer(3).transform([other]) != dna).nnz
    assert not KmerVectorizer(3).transform(["ACNNGü", ""]).nnz


@pytest.mark.parametrize("k", [11, 15, 16, 31])
def test_long_kmers_are_hashed(k):
    random = np.random.RandomState(k)
    sequence = "".join(random.choice(list("ACGT"), 3000))
    X = KmerVectorizer(k).transform([sequence, sequence.translate(COMPLEMENT)[::-1]])
    assert X.shape == (2, 4**10)
    assert X[0].sum() == 3001 - k
    assert not (X[0] != X[1]).nnz
    # Of so few, hardly two meet.
    assert X[0].nnz > 2950 - k
    small = KmerVectorizer(k, n_features=100).transform([sequence])
    assert small.shape == (1, 100)
    assert small.toarray().min() > 5


def test_wrong_parameters_and_names():
    for wrong in {"k": 0}, {"k": 32}, {"k": 5, "n_features": 0}, {"k": 5, "canonical": 2}:
        with pytest.raises(ValueError, match=list(wrong)[-1]):
            KmerVectorizer(**wrong).transform(["ACGT"])
    with pytest.raises(ValueError, match="is one sequence"):
        KmerVectorizer(2).transform("ACGT")
    with pytest.raises(ValueError, match="are hashed"):
        KmerVectorizer(12).get_feature_names_out()


def test_models_of_sequences_are_saved_and_learn_from_files(tmp_path):
    random = np.random.RandomState(0)
    kinds = random.randint(2, size=200)
    shares = [0.3, 0.2, 0.2, 0.3], [0.2, 0.3, 0.3, 0.2]
    texts = ["".join(random.choice(list("ACGT"), 200, p=shares[kind])) for kind in kinds]
    model = make_pipeline(KmerVectorizer(3), AROWClassifier(random_state=0)).fit(texts, kinds)
    save_model(model, tmp_path / "kmers.model")
    assert np.array_equal(load_model(tmp_path / "kmers.model").predict(texts), model.predict(texts))
    lines = [f"{kind}\t{text}\n" for kind, text in zip(kinds, texts, strict=True)]
    (tmp_path / "reads.tsv").write_text("".join(lines))
    streamed = fit_text(tmp_path / "reads.tsv", vectorizer=KmerVectorizer(3), algo="arow")
    assert np.mean(streamed.predict(texts) == kinds) > 0.95


@pytest.mark.parametrize("packed", [False, True])
def test_sequences_from_files(tmp_path, packed):
    def written(text):
        path = tmp_path / ("reads.gz" if packed else "reads")
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        return path

    fasta = ">one first\nACGT\nNN\n\n>two\n>three\nAC\r\nGT\n"
    expected = [("one first", b"ACGTNN"), ("two", b""), ("three", b"ACGT")]
    assert list(read_sequences(written(fasta))) == expected
    fastq = "@one\nACGT\n+\n@@@@\n@two\nGG\n+two\nII\n"
    assert list(read_sequences(written(fastq))) == [("one", b"ACGT"), ("two", b"GG")]
    for text, words in (("@one\nACGT\n+\nII\n", "line 1"), ("@one\nAC\n", "line 1"),
                        ("ACGT\n", "line 1: the file is neither")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            list(read_sequences(written(text)))
