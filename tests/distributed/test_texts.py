"""Shards of texts, and the default learner."""

import numpy as np
import pytest

import sparsemargin
from problems.shards import assert_same, cut
from sparsemargin import load_model
from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import fit_distributed
from sparsemargin.models.pipelines import parts_of
from sparsemargin.streaming.learn_texts import vectorizer_for
from sparsemargin.text import HashingVectorizer, TfidfVectorizer

WORDS = {
    "spam": ["cheap", "pills", "watches", "buy", "now", "free", "offer", "win", "cash"],
    "ham": ["lunch", "noon", "see", "you", "meeting", "tomorrow", "report", "thanks", "home"],
}


def messages(n_texts=120):
    rng = np.random.default_rng(0)
    labels = rng.choice(list(WORDS), n_texts)
    both = [*WORDS["spam"], *WORDS["ham"]]
    return [
        " ".join([*rng.choice(WORDS[label], 3), *rng.choice(both, 2)]) for label in labels
    ], labels  # fmt: skip


@pytest.fixture
def paths(tmp_path):
    texts, labels = messages()
    for s in range(3):
        lines = [f"{labels[i]}\t{texts[i]}\n" for i in range(s, 120, 3)]
        (tmp_path / f"{s}.tsv").write_text("".join(lines))
    return [str(tmp_path / f"{s}.tsv") for s in range(3)]


@pytest.mark.parametrize("weights", [None, "balanced"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_default_classifier_is_that_of_one_machine(n_classes, weights):
    X, y = make_zipf_text(4000, 3000, n_classes=n_classes, random_state=0)
    how = {"random_state": 0, "class_weight": weights}
    alone = sparsemargin.fit_csr(X, y, **how)
    assert_same(fit_distributed([(X, y)], **how), alone)
    shards = fit_distributed(cut(X, y, 4), **how)
    assert type(shards) is type(alone)
    assert shards.n_iter_ == alone.n_iter_
    assert shards.get_params()["r"] == alone.get_params()["r"]


def test_dense_rows_use_the_learner_of_fit_csr():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 30)) + 5
    outputs = X @ rng.standard_normal(30)
    y = (outputs > np.median(outputs)).astype(int)
    alone = sparsemargin.fit_csr(X, y, random_state=0)
    assert type(alone).__name__ == "SecondOrderPerceptron"
    assert_same(fit_distributed([(X, y)], random_state=0), alone)
    assert type(fit_distributed(cut(X, y, 3), random_state=0)) is type(alone)


def test_files_of_texts_give_the_model_of_fit_text(paths):
    how = {"algo": "arow", "max_iter": 2, "random_state": 0}
    # The sizes of shards are not known in advance, so they have 4 million hashed features.
    alone = sparsemargin.fit_text(paths[0], features=vectorizer_for([]), **how)
    model = fit_distributed(paths[:1], **how)
    assert [name for name, _ in model.pipeline_.steps] == [
        name for name, _ in alone.pipeline_.steps
    ]
    assert_same(model.classifier_, alone.classifier_)
    assert model.vectorizer_.terms_ == alone.vectorizer_.terms_
    shards = fit_distributed(paths, random_state=0)
    assert shards.predict(["buy cheap pills", "see you home"]).tolist() == ["spam", "ham"]


def test_interrupted_fit_is_resumed_with_its_vectorizer(paths, tmp_path):
    how = {"max_iter": 3, "random_state": 0, "algo": "arow"}
    whole = fit_distributed(paths, **how)
    kept = tmp_path / "mail.model"
    fit_distributed(paths, checkpoint=kept, **{**how, "max_iter": 1})
    cut = load_model(kept)
    assert isinstance(cut, sparsemargin.TextClassifier)
    assert cut.predict(["buy cheap pills", "see you home"]).tolist() == ["spam", "ham"]
    for model in fit_distributed(paths, checkpoint=kept, resume=True, **how), load_model(kept):
        before, classifier = parts_of(model)
        assert before[-1].terms_ == whole.vectorizer_.terms_ == cut.vectorizer_.terms_
        assert_same(classifier, whole.classifier_)


def test_missing_texts_and_encodings_are_those_of_fit_text(tmp_path):
    pandas = pytest.importorskip("pandas")
    texts, labels = messages()
    table = pandas.DataFrame({"text": [*texts, None], "label": [*labels, "ham"]})
    table.to_parquet(tmp_path / "a.parquet")
    lines = [f"{label}\tcaf\xe9 {text}\n" for text, label in zip(texts, labels, strict=True)]
    (tmp_path / "a.tsv").write_bytes("".join(lines).encode("latin-1"))
    how = {"algo": "arow", "max_iter": 1, "random_state": 0}
    vectorizer = vectorizer_for([])
    for path, own in ("a.parquet", {"missing": "drop"}), ("a.tsv", {"encoding": "latin-1"}):
        alone = sparsemargin.fit_text(tmp_path / path, features=vectorizer, **how, **own)
        model = fit_distributed([tmp_path / path], checkpoint=tmp_path / "a.model", **how, **own)
        assert_same(model.classifier_, alone.classifier_)
        assert load_model(tmp_path / "a.model").missing == own.get("missing", "error")
    with pytest.raises(ValueError, match="missing"):
        fit_distributed([tmp_path / "a.parquet"], **how)
    pairs = [([*texts, None], [*labels, "ham"])]
    dropped = fit_distributed(pairs, missing="drop", **how)
    assert_same(dropped.classifier_, fit_distributed([(texts, labels)], **how).classifier_)


def test_unsavable_vectorizer_is_rejected_before_training(paths, tmp_path):
    rounds, vectorizer = [], HashingVectorizer(n_features=64, tokenizer=str.split)
    how = {"checkpoint": tmp_path / "a.model", "on_round": rounds.append, "max_iter": 1}
    with pytest.raises(ValueError, match=r"is a function\. A model file can't hold functions"):
        fit_distributed(paths, features=vectorizer, **how)
    assert rounds == []


def test_pattern_gives_one_shard_per_file(paths, tmp_path):
    rounds, vectorizer = [], HashingVectorizer(n_features=1 << 12)
    how = {"random_state": 0, "features": vectorizer}
    how["on_round"] = lambda done: rounds.append(done.corrections)
    expected = fit_distributed(paths, **how)
    pattern = str(tmp_path / "*.tsv")
    for given in pattern, [pattern], [str(tmp_path / "[01].tsv"), paths[2]]:
        assert_same(fit_distributed(given, **how).classifier_, expected.classifier_)
    assert_same(
        fit_distributed([[pattern]], **how).classifier_, fit_distributed([paths], **how).classifier_
    )
    assert [len(made) for made in rounds if len(made) != 3] == [1] * (len(rounds) // 3)
    with pytest.raises(FileNotFoundError, match="no file matches this pattern"):
        fit_distributed(str(tmp_path / "*.csv"))


def test_texts_in_memory_with_and_without_a_vectorizer():
    texts, labels = messages()
    pairs = [(texts[s::3], labels[s::3]) for s in range(3)]
    model = fit_distributed(pairs, random_state=0)
    assert model.predict(["buy cheap pills", "see you home"]).tolist() == ["spam", "ham"]
    assert "cheap" in model.vectorizer_.terms_.values()
    fitted = TfidfVectorizer().fit(texts)
    narrow = fit_distributed(pairs, features=fitted, random_state=0)
    assert narrow.classifier_.n_features_in_ == len(fitted.vocabulary_)
    rows = [(fitted.transform(some), own) for some, own in pairs]
    assert_same(narrow.classifier_, fit_distributed(rows, random_state=0))
    with pytest.raises(ValueError, match="has to read all texts first"):
        fit_distributed(pairs, features=TfidfVectorizer())
    with pytest.raises(ValueError, match="features must be 'auto' or a vectorizer, got 1024"):
        fit_distributed(pairs, features=1024)
    with pytest.raises(ValueError, match=r"Shard 0 of 3.*X is a matrix.* Leave features out"):
        fit_distributed(rows, features=fitted)
    pairs[1] = [*pairs[1][0][:2], None, *pairs[1][0][3:]], pairs[1][1]
    with pytest.raises(ValueError, match=r"Shard 1 of 3.*Text 2, .* is missing.*missing='empty'"):
        fit_distributed(pairs, features=fitted)
    assert fit_distributed(pairs, features=fitted, missing="empty").missing == "empty"


def test_dask_collections_are_split_at_their_partitions(tmp_path):
    bag = pytest.importorskip("dask.bag")
    tables = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    texts, labels = messages()
    labels = labels.astype(object)
    how = {"features": HashingVectorizer(n_features=256), "random_state": 0}
    pairs = [(texts[a : a + 40], labels[a : a + 40]) for a in (0, 40, 80)]
    expected = fit_distributed(pairs, **how).classifier_
    some = [bag.from_sequence(each, npartitions=3) for each in (texts, labels.tolist())]
    assert_same(fit_distributed(*some, **how).classifier_, expected)
    frame = pandas.DataFrame({"body": texts, "kind": labels})
    table = tables.from_pandas(frame, npartitions=3)
    assert_same(fit_distributed(table, text="body", label="kind", **how).classifier_, expected)
    assert_same(fit_distributed(table["body"], table["kind"], **how).classifier_, expected)
    table.to_parquet(str(tmp_path / "mail"))
    files = sorted(map(str, (tmp_path / "mail").glob("*.parquet")))
    whole = fit_distributed(files, text="body", label="kind", shuffle=False, **how)
    assert_same(whole.classifier_, fit_distributed(pairs, shuffle=False, **how).classifier_)
    with pytest.raises(ValueError, match="no column 'text', but body, kind"):
        fit_distributed(table, **how)
    with pytest.raises(ValueError, match="need y, their labels"):
        fit_distributed(some[0], **how)
    with pytest.raises(ValueError, match="in 3 partitions, their labels in 2"):
        fit_distributed(some[0], bag.from_sequence(labels.tolist(), npartitions=2), **how)
    delayed = pytest.importorskip("dask").delayed
    lazy = [tuple(delayed(lambda pair: pair, nout=2)(pair)) for pair in pairs]
    with pytest.raises(ValueError, match=r"X is a list of texts\. Pass features="):
        fit_distributed(lazy, random_state=0)
    assert_same(fit_distributed(lazy, **how).classifier_, expected)


def test_folders_of_parquet_files_are_texts(tmp_path):
    """A folder, a folder of partitions, and a pattern of their folders have the same shards."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts, labels = messages()
    for s in range(2):
        folder = tmp_path / "mail" / f"day={s}"
        folder.mkdir(parents=True)
        table = arrow.table({"text": texts[s::2], "label": list(labels[s::2])})
        parquet.write_table(table, folder / "0.parquet")
    folder, how = tmp_path / "mail", {"cache_dir": tmp_path / "caches", "random_state": 0}
    expected = fit_distributed(f"{folder}/*/*.parquet", **how)
    assert expected.predict(["cheap pills now"]) == ["spam"]
    for given in folder, f"{folder}/day=*", [folder / "day=0", folder / "day=1"]:
        assert_same(fit_distributed(given, **how).classifier_, expected.classifier_)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_without_texts_are_left_out(form, tmp_path):
    pandas = pytest.importorskip("pandas")
    texts, labels = messages()
    table = pandas.DataFrame({"text": texts, "label": labels})
    names = [str(tmp_path / f"{s}.{form}") for s in range(4)]
    for name, rows in zip(names, (slice(0), slice(70), slice(0), slice(70, 120)), strict=True):
        part = table.iloc[rows]
        part.to_csv(name, index=False) if form == "csv" else part.to_parquet(name)
    how = {"random_state": 0, "max_iter": 2}
    expected = fit_distributed(names[1::2], **how)
    model = fit_distributed(str(tmp_path / f"*.{form}"), **how)
    assert_same(model.classifier_, expected.classifier_)
    assert model.vectorizer_.terms_ == expected.vectorizer_.terms_ != {}
    with pytest.raises(ValueError, match=rf"No shard has rows: .*0\.{form}, .*2\.{form}\. Pass"):
        fit_distributed(names[::2], **how)


def test_lists_and_partitions_without_texts_are_left_out():
    texts, labels = messages()
    pairs = [(texts[s::2], labels[s::2]) for s in range(2)]
    expected = fit_distributed(pairs, random_state=0)
    model = fit_distributed([([], []), pairs[0], ([], []), pairs[1]], random_state=0)
    assert_same(model.classifier_, expected.classifier_)
    assert model.vectorizer_.terms_ == expected.vectorizer_.terms_
    bag = pytest.importorskip("dask.bag")
    delayed = pytest.importorskip("dask").delayed
    parts = [([], []), *pairs, ([], [])]
    lazy = [bag.from_delayed([delayed(list)(part[i]) for part in parts]) for i in range(2)]
    how = {"features": HashingVectorizer(n_features=256), "random_state": 0}
    model = fit_distributed(*lazy, **how)
    assert_same(model.classifier_, fit_distributed(pairs, **how).classifier_)


def test_folders_without_parquet_files_raise_the_error_of_fit_text(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.md").write_text("Notes.")
    for folder in tmp_path / "empty", tmp_path / "notes":
        with pytest.raises(IsADirectoryError, match="is a directory") as alone:
            sparsemargin.fit_text(folder)
        with pytest.raises(IsADirectoryError) as raised:
            fit_distributed(folder)
        assert str(raised.value) == str(alone.value)


def test_one_file_per_label_warns(tmp_path):
    texts, labels = messages()
    for label in WORDS:
        lines = [f"{label}\t{texts[i]}\n" for i in np.flatnonzero(labels == label)]
        (tmp_path / f"{label}.tsv").write_text("".join(lines))
    with pytest.warns(UserWarning, match=r"2 of 2 shards have rows of one class .*by fit_text,"):
        fit_distributed(str(tmp_path / "*.tsv"), random_state=0)


def test_too_many_classes_for_the_default_columns_name_the_remedy():
    texts, _ = messages(400)
    shards = [(texts[s::2], [f"c{i % 20}" for i in range(200)]) for s in range(2)]
    with pytest.raises(ValueError, match=r"hash_bits=21; .*HashingVectorizer with 2\*\*21"):
        fit_distributed(shards, algo="arow", max_iter=1)
    features = HashingVectorizer(n_features=2**12)
    model = fit_distributed(shards, algo="arow", max_iter=1, features=features)
    assert len(model.classes_) == 20


def test_class_weights_name_labels_as_files_write_them(tmp_path):
    lines = "".join(f"{'1' if i % 3 else 'x'}\tword{i % 5} more{i % 7}\n" for i in range(60))
    (tmp_path / "a.tsv").write_text(lines)
    how = {"algo": "arow", "max_iter": 1, "random_state": 0}
    shards = [str(tmp_path / "a.tsv")]
    named = fit_distributed(shards, class_weight={1: 2}, **how)
    as_text = fit_distributed(shards, class_weight={"1": 2}, **how)
    assert np.array_equal(named.classifier_.coef_, as_text.classifier_.coef_)
    plain = fit_distributed(shards, **how)
    assert not np.array_equal(named.classifier_.coef_, plain.classifier_.coef_)
