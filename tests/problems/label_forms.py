"""Labels of every type, and every way to hand them over: in memory, and in files of every form."""

import csv
import datetime
import enum
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sparsemargin.text import HashingVectorizer

REFUSED, MISSING = "refused", "no label"


class Word(enum.StrEnum):
    """Text members, whose names are not their values."""

    FIRST = "apple"
    SECOND = "pear"


class Mixed(str, enum.Enum):  # noqa: UP042
    """Members that `str` writes as ``Mixed.FIRST``."""

    FIRST = "apple"
    SECOND = "pear"


class Number(enum.IntEnum):
    """Whole numbers with names."""

    FIRST = 7
    SECOND = 8


class Plain(enum.Enum):
    """Members that are neither numbers nor text."""

    FIRST = 1
    SECOND = 2


#: Two values of each kind, and the two labels that they are, or what is said of them.
KINDS = {
    "words": (["apple", "pear"], ["apple", "pear"]),
    "numpy words": ([np.str_("apple"), np.str_("pear")], ["apple", "pear"]),
    "figures": (["1", "0"], ["0", "1"]),
    "truths": ([True, False], ["False", "True"]),
    "numpy truths": ([np.bool_(True), np.bool_(False)], ["False", "True"]),
    "integers": ([3, -4], ["-4", "3"]),
    "numpy integers": ([np.int16(3), np.int16(-4)], ["-4", "3"]),
    "large integers": ([2**53 + 1, 2**53 + 2], [str(2**53 + 1), str(2**53 + 2)]),
    "unsigned": ([2**64 - 1, 2**64 - 2], [str(2**64 - 2), str(2**64 - 1)]),
    "whole floats": ([1.0, 0.0], ["0", "1"]),
    "numpy floats": ([np.float32(1), np.float32(0)], ["0", "1"]),
    "fractions of floats": ([0.5, 1.5], REFUSED),
    "infinite": ([float("inf"), 1.0], REFUSED),
    "huge floats": ([1e300, 1.0], REFUSED),
    "whole decimals": ([Decimal("1"), Decimal("20")], ["1", "20"]),
    "decimals": ([Decimal("0.5"), Decimal("1.5")], REFUSED),
    "fractions": ([Fraction(4, 2), Fraction(3)], ["2", "3"]),
    "bytes": ([b"apple", "bär".encode()], ["apple", "bär"]),
    "bytes that are not UTF-8": ([b"s\xe9a", b"land"], REFUSED),
    "StrEnum": ([Word.FIRST, Word.SECOND], ["apple", "pear"]),
    "(str, Enum)": ([Mixed.FIRST, Mixed.SECOND], ["apple", "pear"]),
    "IntEnum": ([Number.FIRST, Number.SECOND], ["7", "8"]),
    "Enum": ([Plain.FIRST, Plain.SECOND], REFUSED),
    "dates": ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], REFUSED),
    "times": ([datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)], REFUSED),
    "objects": ([{"a": 1}, {"b": 2}], REFUSED),
    "text and numbers": (["apple", 1], REFUSED),
    "truths and numbers": ([True, 2], REFUSED),
    "line ends": (["a\nb", "c\rd"], ["a\nb", "c\rd"]),
    "names of numbers": (["inf", "mock"], ["inf", "mock"]),
    "NaN as words": (["nan", "naan"], ["naan", "nan"]),
    "exponents": (["1e5", "0x1"], ["0x1", "1e5"]),
    "zeros": (["01", "1"], ["01", "1"]),
    "NUL": (["a\0", "b"], REFUSED),
}


def _pandas(dtype=None):
    def made(values):
        import pandas

        return pandas.Series(values, dtype=dtype)

    return made


def _objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _pyarrow(values, chunked=False):
    import pyarrow

    plain = [None if v is None or v != v else v for v in values]
    array = pyarrow.array(plain, **({"type": pyarrow.uint64()} if 2**64 - 1 in plain else {}))
    return pyarrow.chunked_array([array[:3], array[3:]]) if chunked else array


def _polars(values):
    import polars

    try:
        return polars.Series(values)
    except polars.exceptions.PanicException as error:  # polars takes no Decimal("NaN")
        raise ValueError from error


#: What labels may come in, by name; some raise where they can't hold the values.
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "objects of numpy": _objects,
    "numpy": np.array,
    "pandas": _pandas(),
    "objects of pandas": _pandas("object"),
    "categories": _pandas("category"),
    "string": _pandas("string"),
    "string[pyarrow]": _pandas("string[pyarrow]"),
    "Int64": _pandas("Int64"),
    "UInt64": _pandas("UInt64"),
    "boolean": _pandas("boolean"),
    "Float64": _pandas("Float64"),
    "int64[pyarrow]": _pandas("int64[pyarrow]"),
    "pyarrow": _pyarrow,
    "chunks of pyarrow": lambda values: _pyarrow(values, chunked=True),
    "polars": _polars,
}


def write_jsonl(path, texts, labels):
    with open(path, "w") as file:
        rows = zip(texts, labels, strict=True)
        file.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)


def write_csv(path, texts, labels):
    """As pandas writes them."""
    import pandas

    pandas.DataFrame({"text": texts, "label": pandas.Series(labels)}).to_csv(path, index=False)


def write_pyarrow_csv(path, texts, labels):
    import pyarrow
    from pyarrow.csv import write_csv

    write_csv(pyarrow.table({"text": texts, "label": _pyarrow(labels)}), path)


def write_parquet(path, texts, labels):
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.table({"text": texts, "label": _pyarrow(labels)}), path)


def write_dictionary(path, texts, labels):
    import pyarrow
    from pyarrow.parquet import write_table

    encoded = _pyarrow(labels).dictionary_encode()
    write_table(pyarrow.table({"text": texts, "label": encoded}), path)


def write_tsv(path, texts, labels):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writerows(zip(labels, texts, strict=True))


def write_fasttext(path, texts, labels):
    assert not any(set(" \t\n\r\0") & set(str(label)) for label in labels)
    with open(path, "w") as file:
        rows = zip(texts, labels, strict=True)
        file.writelines(f"__label__{label} {text}\n" for text, label in rows)


#: What writes files, by the ends of their names.
WRITERS = {
    "a.jsonl": write_jsonl, "a.csv": write_csv, "b.csv": write_pyarrow_csv,
    "a.parquet": write_parquet, "b.parquet": write_dictionary, "a.tsv": write_tsv,
    "a.ft": write_fasttext,
}  # fmt: skip

#: Forms in which values have the types that they have in memory.
TYPED = ("a.jsonl", "a.parquet", "b.parquet")


def vectorizer():
    return HashingVectorizer(n_features=64, binary=True, dtype=np.float32)
