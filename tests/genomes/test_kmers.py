"""K-mers compared with scikit-learn's character n-grams, and sequences from files."""

import bz2
import gzip
import lzma
import warnings

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
    """Return the counts of each sequence as a dict by k-mer."""
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
def test_kmer_counts_agree_with_counts_by_hand(sequences, k, canonical):
    vectorizer = KmerVectorizer(k, canonical=canonical)
    assert named(vectorizer, sequences) == [by_hand(each, k, canonical) for each in sequences]


@pytest.mark.parametrize("k", [1, 4, 7])
def test_kmer_counts_agree_with_character_ngrams(k):
    random = np.random.RandomState(0)
    sequences = ["".join(random.choice(list("ACGT"), 400)) for _ in range(20)]
    theirs = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False)
    Y = theirs.fit_transform(sequences)
    ours = KmerVectorizer(k, canonical=False)
    at = {name: j for j, name in enumerate(ours.get_feature_names_out())}
    X = ours.transform(each.encode() for each in sequences)
    assert X.sum() == Y.sum()
    assert not (X[:, [at[name] for name in theirs.get_feature_names_out()]] != Y).nnz


def test_rna_lower_case_and_reverse_strand_are_equal_to_dna():
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
    # There are so few k-mers that hash collisions are rare.
    assert X[0].nnz > 2950 - k
    small = KmerVectorizer(k, n_features=100).transform([sequence])
    assert small.shape == (1, 100)
    assert small.toarray().min() > 5


def test_invalid_parameters_and_feature_names():
    for wrong in {"k": 0}, {"k": 32}, {"k": 5, "n_features": 0}, {"k": 5, "canonical": 2}:
        with pytest.raises(ValueError, match=list(wrong)[-1]):
            KmerVectorizer(**wrong).transform(["ACGT"])
    with pytest.raises(ValueError, match="is one sequence"):
        KmerVectorizer(2).transform("ACGT")
    with pytest.raises(ValueError, match="are hashed"):
        KmerVectorizer(12).get_feature_names_out()


def test_sequence_models_are_saved_and_learn_from_files(tmp_path):
    random = np.random.RandomState(0)
    kinds = random.randint(2, size=200)
    shares = [0.3, 0.2, 0.2, 0.3], [0.2, 0.3, 0.3, 0.2]
    texts = ["".join(random.choice(list("ACGT"), 200, p=shares[kind])) for kind in kinds]
    model = make_pipeline(KmerVectorizer(3), AROWClassifier(random_state=0)).fit(texts, kinds)
    save_model(model, tmp_path / "kmers.model")
    assert np.array_equal(load_model(tmp_path / "kmers.model").predict(texts), model.predict(texts))
    lines = [f"{kind}\t{text}\n" for kind, text in zip(kinds, texts, strict=True)]
    (tmp_path / "reads.tsv").write_text("".join(lines))
    streamed = fit_text(tmp_path / "reads.tsv", features=KmerVectorizer(3), algo="arow")
    assert np.mean(streamed.predict(texts) == kinds) > 0.95


@pytest.mark.parametrize("packed", [False, True])
def test_sequences_are_read_from_files(tmp_path, packed):
    def written(text):
        path = tmp_path / ("reads.gz" if packed else "reads")
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        return path

    # Groups of letters may be separated by blanks, as in GenBank.
    fasta = ">one first\nAC G\tT\nNN\n\n>two\n>three\nAC\r\nGT\n"
    expected = [("one first", b"ACGTNN"), ("two", b""), ("three", b"ACGT")]
    assert list(read_sequences(written(fasta))) == expected
    fastq = "@one\nACGT\n+\n@@@@\n@two\nGG\n+two\nII\n"
    assert list(read_sequences(written(fastq))) == [("one", b"ACGT"), ("two", b"GG")]
    for text, words in (("@one\nACGT\n+\nII\n", "line 1"), ("@one\nAC\n", "line 1"),
                        ("ACGT\n", "line 1: the file is neither")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            list(read_sequences(written(text)))


PACKED = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "plain": bytes,
}  # fmt: skip


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("name", ["a.fa", "a.fa.gz", "A.FA.GZ", "a.fa.bz2", "a"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_sequence_formats_are_detected_by_content(tmp_path, kind, name, end):
    fasta = [b"\xef\xbb\xbf;first", b"", b">s\xe9 1", b"ACGT ", b";a comment", b"NN", b"", b">two"]
    (tmp_path / name).write_bytes(PACKED[kind](end.join(fasta)))
    assert list(read_sequences(tmp_path / name)) == [("s\xe9 1", b"ACGTNN"), ("two", b"")]
    fastq = [b"@one", b"AC", b"GT", b"+one", b"@@", b"+I", b"@two", b"", b"+", b"", b"@three", b"A",
             b"+", b"@", b"", b""]  # fmt: skip
    (tmp_path / name).write_bytes(PACKED[kind](end.join(fastq)))
    assert list(read_sequences(tmp_path / name)) == [
        ("one", b"ACGT"), ("two", b""), ("three", b"A")
    ]  # fmt: skip
    with open(tmp_path / name, "rb") as file:
        assert len(list(read_sequences(file))) == 3


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_truncated_files_are_named(tmp_path, kind):
    bases = bytes(np.random.RandomState(0).choice(list(b"ACGT"), 5000).astype(np.uint8))
    content = PACKED[kind](b">one\n" + bases)
    (tmp_path / "cut.fa").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=rf"cut\.fa: the {kind} archive is damaged or cut off"):
        list(read_sequences(tmp_path / "cut.fa"))


@pytest.mark.parametrize(("text", "words"), [
    ("@a\nAC\n+\nII\n@b\nACGT\n", r"line 5: the record of FASTQ has no line with \+"),
    ("@a\nAC\n+\nII\n\n@b\nACGT\n+\nII\n", "line 6: the record of FASTQ has 4 bases and 2 qual"),
    ("@a\nAC\n+\nIII\n", "line 1: the record of FASTQ has 2 bases and 3 qualities"),
    ("@a\nAC\n+b\nII\n", "line 3: the name after"),
    ("@a\nAC\n+\nII\n>b\nACGT\n", "line 5: a record of FASTQ begins with @"),
    ("\n\nACGT\n", "line 3: the file is neither FASTA"),
    (">a\n" + "ACGT\n" * 20000 + "AC\rGT\n", r"lines of the record 'a' end in \\r"),
])  # fmt: skip
def test_invalid_sequences_are_reported_with_their_line(tmp_path, text, words):
    (tmp_path / "wrong.fq").write_bytes(text.encode())
    with pytest.raises(ValueError, match=rf"wrong\.fq.*{words}"):
        list(read_sequences(tmp_path / "wrong.fq"))


def test_files_without_records_are_empty(tmp_path):
    for text in "", "\n\n", ";a comment\n":
        (tmp_path / "empty.fa").write_text(text)
        assert list(read_sequences(tmp_path / "empty.fa")) == []


def test_proteins_warn_once():
    random = np.random.RandomState(0)
    proteins = ["".join(random.choice(list("ACDEFGHIKLMNPQRSTVWY"), 300)) for _ in range(20)]
    with pytest.warns(UserWarning, match="99 % of the k-mers were left out") as found:
        KmerVectorizer(3).transform(proteins)
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KmerVectorizer(3).transform(["ACGTNNACGT" * 3, "acgu" * 10, ""])


@pytest.mark.parametrize("bad", [None, float("nan"), 3, ("a read", b"ACG")])
def test_items_that_are_no_sequences_are_named(bad):
    with pytest.raises(TypeError, match=r"X\[1\] is .* not a sequence .* Leave missing"):
        KmerVectorizer(3).transform(["ACG", bad])
