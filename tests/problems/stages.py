"""Changes of models in tests: files, copies, and interrupted fits."""

import copy
import io
import pickle

import joblib

from sparsemargin.saving.model_files import save_model
from sparsemargin.tasks.load_model import load_model


class InterruptingOutput(io.StringIO):
    """Calls a function when the given line is printed."""

    def __init__(self, call, at_line):
        super().__init__()
        self.call, self.lines_left = call, at_line

    def write(self, text):
        self.lines_left -= text.count("\n")
        if self.lines_left == 0:
            self.lines_left = -1
            self.call()
        return super().write(text)


def through_a_file(model, tmp_path):
    joblib.dump(model, tmp_path / "model")
    return joblib.load(tmp_path / "model", mmap_mode="r")


def through_a_model_file(model, tmp_path):
    save_model(model, tmp_path / "a.model")
    return load_model(tmp_path / "a.model")


COPIES = {
    "pickle": lambda model, tmp_path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, tmp_path: copy.deepcopy(model),
    "memory-mapped file": through_a_file,
    "model file": through_a_model_file,
}
