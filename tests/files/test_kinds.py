"""Archives and Office files are recognised by their contents, not by their names."""

import gzip
import io
import shutil
import zipfile

import numpy as np
import pytest

from problems.command_line import run
from sparsemargin import fit_svmlight, fit_text

EXCEL = r" is an Excel file or another Office document, and not text. Save the table as a .csv"
NPZ = r" is an npz file, and not text. Load it in Python by scipy.sparse.load_npz or numpy.load"
ZIP = r" is a zip archive, and not text. Unpack it, and pass the files in it."


def zipped(*members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in members:
            archive.writestr(name, "text")
    return file.getvalue()


def saved_arrays():
    file = io.BytesIO()
    np.savez(file, data=np.zeros(3), indices=np.zeros(3))
    return file.getvalue()


CONTENTS = {
    "xlsx": (zipped("docProps/app.xml", "[Content_Types].xml", "xl/workbook.xml"), EXCEL),
    "sheets": (zipped("a", "xl/workbook.xml"), EXCEL),
    "ods": (zipped("mimetype", "content.xml"), EXCEL),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), EXCEL),
    "npz": (saved_arrays(), NPZ),
    "arrays and text": (zipped("a.npy", "a.csv"), ZIP),
    "zip": (zipped("a.csv"), ZIP),
    "damaged": (saved_arrays()[:100], ZIP),
}


@pytest.mark.parametrize("content", CONTENTS)
def test_archives_and_office_files_are_refused(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    data, message = CONTENTS[content]
    for name in "a.bin", "a.csv":
        (tmp_path / name).write_bytes(data)
        for how in {}, {"format": "csv"}:
            with pytest.raises(ValueError, match=f"^{name}{message}"):
                fit_text(name, **how)
    expected = message.replace("\\", "")
    assert f"a.csv{expected}" in run("train", "a.csv", "-o", "m", code=1).stderr
    assert f"a.csv{expected}" in run("info", "a.csv", code=1).stderr
    # Open files, and files that are always read as svmlight text, have no kind.
    shutil.copy("a.bin", "a.svm")
    generic = r"^a.(bin|svm) is a zip archive or an Office document"
    with open("a.bin", "rb") as file, pytest.raises(ValueError, match=generic):
        fit_text(file, format="csv")
    with pytest.raises(ValueError, match=generic):
        fit_svmlight("a.svm")


@pytest.mark.parametrize("end", ["tsv", "csv", "jsonl", "txt", "vw", "csv.gz"])
def test_names_in_capitals_have_the_kind_of_other_names(tmp_path, end):
    lines = {
        "tsv": "{0}\t{1}\n", "jsonl": '{{"label": "{0}", "text": "{1}"}}\n',
        "txt": "__label__{0} {1}\n", "vw": "{0} | {1}\n",
    }  # fmt: skip
    header = "label,text\n" * ("csv" in end)
    line = lines.get(end, "{0},{1}\n")
    text = header + "".join(line.format(i % 2, f"word{i % 7} more") for i in range(200))
    content = gzip.compress(text.encode()) if end.endswith("gz") else text.encode()
    for name in f"a.{end}", f"A.{end.upper()}":
        (tmp_path / name).write_bytes(content)
    given = {"text": "text", "label": "label"} if "csv" in end else {}
    expected, model = (
        fit_text(str(tmp_path / name), random_state=0, **given)
        for name in (f"a.{end}", f"A.{end.upper()}")
    )
    assert model.predict(["word1"]).tolist() == expected.predict(["word1"]).tolist()
    assert model.classes_.tolist() == expected.classes_.tolist()
