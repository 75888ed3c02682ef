"""A run that is resumed from a checkpoint gives the same model, bit for bit, as an uninterrupted
run."""

import os
from pathlib import Path

import numpy as np
import pytest

from depth import some
from problems.command_line import two_classes, write
from sparsemargin import load_svmlight, save_model
from sparsemargin.datasets import make_zipf_text
from sparsemargin.files import sources
from sparsemargin.kernels import RBF
from sparsemargin.readers import cache_order
from sparsemargin.saving.model_files import load_learner
from sparsemargin.streaming import run
from sparsemargin.streaming.report import Interruption
from sparsemargin.streaming.stream import learn_svmlight

NEVER = 1e9
KERNEL = {"kernel": RBF(1.0, max_support=60, when_full="skip")}
RUNS = [
    ("text", {}), ("text", {"algo": "alma", "max_iter": 3}), ("gz", {"algo": "pnorm", "p": 4}),
    ("text", {"algo": "margin", "max_iter": 6, "n_iter_no_change": 1}),
    ("three", {"max_iter": 2, "shuffle": False}), ("three", {"algo": "ho", "max_updates": 30}),
    ("text", {"algo": "pnorm", **KERNEL, "max_iter": 3}), ("sorted", {"max_iter": 3}),
    ("sorted", {"class_weight": "balanced"}),
    ("three", {"class_weight": "balanced", "max_iter": 2}),
    ("lists", {"multilabel": True, "max_iter": 2}), ("lists", {"positive": "1"}),
    ("text", {"init_model": "earlier", "max_iter": 2}), ("late", {}), ("text", {"hash_bits": 6}),
    ("text", {"algo": "perceptron", "hypothesis": "last", "max_iter": 30}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Use a temporary working directory, and blocks so small that a few KB are many blocks."""
    monkeypatch.setattr(run, "_CHECKPOINT_EVERY", NEVER)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 2048)
    monkeypatch.setattr(cache_order, "_MIXED_BYTES", 1 << 14)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files(tmp_path):
    import gzip

    text, _ = two_classes(tmp_path)
    X, y = make_zipf_text(300, 3000, mean_nnz=12, n_classes=3, random_state=0)
    order = np.argsort(y, kind="stable")
    three, by_label = (
        write(tmp_path / "three", X, y),
        write(tmp_path / "sorted", X[order], y[order]),
    )
    labels = [tuple({int(label), i % 4}) for i, label in enumerate(y)]
    lists, late, gz = (tmp_path / name for name in ("lists", "late", "gz"))
    lines = three.read_text().splitlines()
    lists.write_text("".join(
        f"{','.join(map(str, each))} {line.split(maxsplit=1)[1]}\n"
        for each, line in zip(labels, lines, strict=True)
    ))  # fmt: skip
    late.write_text(text.read_text() + "7 3:1\n")
    gz.write_bytes(gzip.compress(text.read_bytes()))
    return {
        "text": text,
        "three": three,
        "sorted": by_label,
        "lists": lists,
        "late": late,
        "gz": gz,
    }


class Killed(Exception):
    """An exception that no code handles, like the end of a process."""


def learn(path, n_blocks=0, end=Killed, **settings):
    """Train, and raise `end` after `n_blocks` blocks. Return the learner and all progress reports.

    The learner is None if the run was killed.
    """
    told = []

    def report(moment):
        told.append(moment)
        # A checkpoint is written after the block before the last one.
        run._CHECKPOINT_EVERY = 0 if len(told) == n_blocks - 1 else NEVER
        if len(told) == n_blocks:
            raise end

    try:
        learner = learn_svmlight(path, report=report, **settings)
    except Killed:
        return None, told
    return learner, told


ENDS = [Killed, KeyboardInterrupt]


def bits(learner):
    """Return the bytes of the model file of a learner."""
    save_model(learner, "bits")
    return Path("bits").read_bytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "settings", "end"), [
    (*run, end) for i, run in enumerate(RUNS) for end in some(ENDS[i % 2 :][:1], ENDS)
])  # fmt: skip
def test_resumed_run_is_bitwise_equal(files, name, settings, end):
    """The run is interrupted in different places, by Ctrl-C or killed after a checkpoint."""
    path, settings = files[name], dict(settings)
    if "init_model" in settings:
        settings["init_model"], _ = learn(files["text"], algo="alma", random_state=0)
    else:
        settings["random_state"] = 0
    whole, moments = learn(path, **settings)
    settings["checkpoint"] = "run"
    for n_blocks in {2, 5, len(moments) // 2, len(moments) - 1}:
        for how in {"n_blocks": n_blocks, "end": end}, {"resume": True}:
            resumed, told = learn(path, **how, **settings)
        assert bits(resumed) == bits(whole)
        assert (told[-1].rows, told[-1].corrections) == (moments[-1].rows, moments[-1].corrections)
        assert [each.mistakes for each in told[-1:]] == [moments[-1].mistakes]
        os.unlink("run")


@pytest.mark.parametrize(("change", "told"), [
    ({"alpha": 0.5}, "other alpha"), ({"algo": "pnorm"}, "other algorithm"),
    ({"max_iter": 3}, "other max_iter"), ({"dtype": np.float32}, "other files"),
    ({"positive": "1"}, "other files, positive"), ({"classes": [-1, 1, 2]}, "classes of the model"),
    ("text", "other files"), ("model", "is a model, not a checkpoint"), ("none", "there is no ch"),
    ("svmlight", "not a model file"),
])  # fmt: skip
def test_checkpoint_of_another_run_is_rejected(files, change, told):
    path, settings = files["text"], {"algo": "alma", "random_state": 0, "checkpoint": "run"}
    with pytest.warns(Interruption, match=r"resume=True to continue from run\."):
        model, _ = learn(path, 2, KeyboardInterrupt, **settings)
    if change == "text":
        path.write_text(path.read_text() + "1 1:1\n")
    elif change == "model":
        save_model(model, "run")
    elif change == "none":
        os.unlink("run")
    elif change == "svmlight":
        Path("run").write_text("1 1:1\n")
    else:
        settings |= change
    before = Path("run").read_bytes() if change != "none" else None
    with pytest.raises((ValueError, FileNotFoundError), match=f"{told}.*"):
        learn(path, resume=True, **settings)
    if before is not None:
        assert Path("run").read_bytes() == before


def test_ctrl_c_leaves_a_model_in_resumed_runs_too(files):
    settings = {"algo": "alma", "max_iter": 3, "random_state": 0, "checkpoint": "run"}
    for n_blocks, resume in (5, False), (1, True), (8, True):
        with pytest.warns(Interruption):
            model, _ = learn(files["text"], n_blocks, KeyboardInterrupt, resume=resume, **settings)
        save_model(model, "model")
        X, _ = load_svmlight(files["text"])
        assert load_learner("model")[0].n_features_in_ <= X.shape[1]


def test_unwritable_checkpoint_does_not_stop_the_run(files):
    def cut(**settings):
        with pytest.warns(UserWarning, match="^The checkpoint|^Interrupted") as warned:
            learner, _ = learn(files["text"], 9, KeyboardInterrupt, algo="alma", **settings)
        return bits(learner), [str(warning.message) for warning in warned]

    model, told = cut(random_state=0, checkpoint="none/run")
    missing = "The checkpoint could not be written: none/run: there is no folder"
    assert [missing in each for each in told] == [True, True, False]
    assert model == cut(random_state=0)[0]
