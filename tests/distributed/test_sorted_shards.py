"""Shards whose rows are sorted by label: parts of a random order, accuracy, and warnings."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sparsemargin
from depth import some
from problems.first_order import examples
from problems.shards import assert_same, cut, make_data, write, write_each
from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import fit_distributed
from sparsemargin.distributed.rounds import ShardOptions
from sparsemargin.distributed.schema import WHOLE, Part, schema_of_files, schema_of_matrices
from sparsemargin.distributed.shards import FileShard, MatrixShard
from sparsemargin.readers import cache_order

ignored = pytest.mark.filterwarnings("ignore:.*sorted by their labels")
SHUFFLED = r"change 2 times in 240 rows.* The rows of each shard are shuffled\. Pass shuffle=False"


def in_order(X, y):
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def write_texts(folder, shards):
    """Write files of texts, whose words are the features of each row."""
    paths = []
    for s, (X, y) in enumerate(shards):
        lines = [
            f"{label}\t{' '.join(f'w{j}' for j in row.indices)}\n"
            for row, label in zip(X, y, strict=True)
        ]
        (folder / f"{s}.tsv").write_text("".join(lines))
        paths.append(str(folder / f"{s}.tsv"))
    return paths


FORMS = {"memory": lambda _, shards: shards, "svmlight": write_each, "texts": write_texts}


@pytest.fixture(scope="module")
def data():
    return make_zipf_text(6000, 4000, random_state=0)


@ignored
@pytest.mark.parametrize(("form", "how"), some(
    list(zip(FORMS, [{"algo": "arow", "max_iter": 3}, {"algo": "pnorm"}, {}], strict=True)),
    list(product(FORMS, [{"algo": "arow", "max_iter": 3}, {"algo": "pnorm"}, {}])),
))  # fmt: skip
def test_sorted_shards_are_as_accurate_as_others(form, how, data, tmp_path):
    X, y = data
    shards, right = cut(X[:5000], y[:5000], 4), []
    (tmp_path / "sorted").mkdir()
    test = X[5000:]
    if form == "texts":
        test = [" ".join(f"w{j}" for j in row.indices) for row in test]
    for folder, given_shards in (
        (tmp_path, shards), (tmp_path / "sorted", [in_order(*each) for each in shards])
    ):  # fmt: skip
        model = fit_distributed(FORMS[form](folder, given_shards), random_state=0, **how)
        right.append(np.mean(model.predict(test).astype(float) == y[5000:]))
    assert right[1] > right[0] - 0.02
    assert right[0] > 0.88


def test_sorted_shards_cause_one_warning(tmp_path):
    X, y = make_data(n_classes=3)
    shards = [(X, y), *[in_order(X, y)] * 2]
    paths = write_each(tmp_path, shards)
    for form, mixing in (paths, "uniform"), (paths, "ring"), (shards, "uniform"):
        told = f"Shard 1, and 1 more like it: the rows are sorted.*{SHUFFLED}"
        with pytest.warns(UserWarning, match=told) as warned:
            fit_distributed(form, algo="alma", mixing=mixing)
        assert len(warned) == 1
    told = r"Shard 1, and 1 more like it: .*change 2 times in 240 rows.*last rows outweigh.*Mix all"
    for form in paths, shards:
        with pytest.warns(UserWarning, match=told) as warned:
            fit_distributed(form, algo="alma", shuffle=False)
        assert len(warned) == 1


def test_sorted_shards_with_a_positive_label_are_mixed(tmp_path):
    paths = write_each(tmp_path, [in_order(*make_data(n_classes=3))] * 2)
    with pytest.warns(UserWarning, match=SHUFFLED):
        fit_distributed(paths, algo="alma", positive=1)


@pytest.mark.filterwarnings("error")
def test_sorted_shards_in_memory_that_are_used_as_a_whole_do_not_warn():
    X, y = make_data(n_classes=3)
    fit_distributed([in_order(X, y)], algo="alma")
    fit_distributed([in_order(X, y)] * 3, algo="alma")  # a ring
    fit_distributed([(X[s : s + 80], y[s : s + 80]) for s in (0, 80, 160)], algo="alma")


@ignored
def test_one_sorted_file_gives_the_model_of_one_machine(tmp_path):
    """Apart from the scale of the intercept, which first rows determine."""
    path = write(tmp_path / "a.svm", *in_order(*make_data(1000)))
    for how in {"algo": "arow", "intercept_scaling": 1.0}, {"algo": "so", "fit_intercept": False}:
        how |= {"max_iter": 2, "random_state": 0}
        assert_same(fit_distributed([path], **how), sparsemargin.fit_svmlight(path, **how))


@ignored
@pytest.mark.parametrize("form", ["memory", "svmlight"])
def test_resumed_fit_of_sorted_shards_is_bitwise_equal(form, tmp_path):
    """The order of the rows is that of the interrupted fit, with another generator, too."""
    shards = FORMS[form](tmp_path, [in_order(*each) for each in cut(*make_data(900), 3)])
    how, kept = {"algo": "alma", "max_iter": 3}, {"checkpoint": tmp_path / "a.model"}

    def fit(seed, **more):
        return fit_distributed(shards, random_state=np.random.RandomState(seed), **how, **more)

    def interrupt(done):
        if done.epoch == 2:
            raise OSError("interrupted")

    whole = fit(3)
    with pytest.raises(OSError, match="interrupted"):
        fit(3, on_round=interrupt, **kept)
    assert_same(fit(4, resume=True, **kept), whole)
    with pytest.raises(AssertionError):
        assert_same(fit(4), whole)


@ignored
@pytest.mark.parametrize("form", some(["svmlight"], FORMS))
def test_workers_do_not_change_the_model_of_sorted_shards(form, tmp_path):
    distributed = pytest.importorskip("distributed")
    shards = FORMS[form](tmp_path, [in_order(*each) for each in cut(*make_data(900), 3)])
    alone = fit_distributed(shards, random_state=0)
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        there = fit_distributed(shards, random_state=0, client=client)
    assert_same(*(getattr(each, "classifier_", each) for each in (there, alone)))


def test_unknown_label_of_a_sorted_file_is_located(tmp_path):
    path = write(tmp_path / "a.svm", *in_order(*make_data(n_classes=3)))
    row = int(np.sum(make_data(n_classes=3)[1] < 2))
    with pytest.raises(ValueError, match=rf"a\.svm, row {row}: the label 2 is none of the classes"):
        fit_distributed([path] * 2, algo="alma", classes=[0, 1])


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A shard of rows with numbers as values, in memory and as a file, and their schemas."""
    X, y = csr_matrix(np.arange(1.0, 701.0)[:, None]), np.repeat([0, 1], 350)
    path, options = write(tmp_path_factory.mktemp("rows") / "a.svm", X, y), ShardOptions()
    in_memory = MatrixShard.of(X, y)
    of_file = FileShard([path], options.reading(), None, options.max_index)
    survey = of_file.survey()
    schema = schema_of_files([survey], ["shard 0"], None, None)
    return [
        (in_memory, schema_of_matrices([in_memory.survey()], ["shard 0"])),
        (of_file, replace(schema, checksums={of_file.name: survey.checksum})),
    ]


@given(
    cuts=st.sets(st.integers(0, 40), max_size=6), seed=st.integers(0, 2**32),
    number=st.integers(1, 3), size=st.sampled_from([1 << 26, 1 << 13, 1 << 11]),
)  # fmt: skip
@examples(50)
def test_parts_of_a_mixed_shard_have_each_row_once(both, cuts, seed, number, size):
    cuts = [0, *sorted(cuts), 40]
    parts = [Part(*pair, 40) for pair in pairwise(cuts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache_order, "_MIXED_BYTES", size)
        for shard, schema in both:
            schema, values, numbers = replace(schema, mixed=seed), [], []

            def epoch(number, part, shard=shard, schema=schema):
                return list(shard.epoch(schema, seed, number, part))

            for part in parts:
                blocks, (first, last) = epoch(number, part), part.bounds(700)
                of_part = [value for rows, *_ in blocks for value in rows.data.tolist()]
                assert len(of_part) == last - first
                assert sum(len(each) for each in shard.indices(schema, part)) == last - first
                for rows, targets, first_row, order in blocks:
                    np.testing.assert_array_equal(targets, rows.data > 350)
                    assert sorted(order) == list(range(rows.n_rows))
                    numbers += range(first_row, first_row + rows.n_rows)
                # All epochs have the same rows in a part.
                again = epoch(number + 1, part)
                assert sorted(v for rows, *_ in again for v in rows.data) == sorted(of_part)
                if len(of_part) >= 70:
                    assert 0.1 < np.mean(np.array(of_part) > 350) < 0.9
                values += of_part
            assert sorted(values) == list(range(1, 701))
            assert sorted(numbers) == list(range(700))
            assert sorted(v for rows, *_ in epoch(number, WHOLE) for v in rows.data) == sorted(
                values
            )


def test_the_order_of_labels_is_that_of_the_rows(both, tmp_path):
    for shard, _ in both:
        order = shard.survey().label_order
        assert (order.counts.tolist(), order.changes, order.is_sorted) == ([350, 350], 1, True)
    X, y = make_data(n_classes=3)
    path = write(tmp_path / "a.svm", X, [(label, 7) for label in y.tolist()])
    options = ShardOptions(multilabel=True)
    shard = FileShard([path], options.reading(), None, options.max_index)
    assert not shard.survey().label_order.is_sorted
    many = np.eye(3, dtype=int)[y]
    assert MatrixShard.of(X, many).survey().label_order.first is None
