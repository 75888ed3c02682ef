"""Reuters news stories: the LYRL2004 vectors of RCV1, from a sample or from the whole corpus."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse as sp
from sklearn.datasets import fetch_rcv1
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import Bunch, check_random_state

from sparsemargin._checks import check_choice, check_count, check_flag, check_float_dtype
from sparsemargin._docs import LOADER, shares
from sparsemargin.readers.load_svmlight import load_svmlight

from .files import DataHome, data_sets, folders_of, read_files

RCV1Source = Literal["auto", "sample", "corpus"]
RCV1Order = Literal["auto", "given", "shuffled"]
Target: TypeAlias = NDArray[np.int64] | sp.csr_matrix

# The source of the sample has no labels of this topic.
_UNKNOWN_IN_SAMPLE = "M143"


class _Stories(NamedTuple):
    """All rows of a source with their description; in the original order, ids increase."""

    source: str
    X: sp.csr_matrix
    topics: sp.csr_matrix
    names: list[str]
    ids: NDArray[np.integer]
    described: dict[str, str]


@shares(**LOADER)
def load_rcv1(
    topic: str | Iterable[str] | None = "C15",
    *,
    source: RCV1Source = "auto",
    order: RCV1Order = "auto",
    dtype: DTypeLike = np.float64,
    random_state: int = 0,
    return_X_y: bool = False,
    data_home: DataHome = None,
) -> Bunch | tuple[sp.csr_matrix, Target]:
    """RCV1-v2 news stories as TF-IDF vectors of 2-norm 1 over 47,236 terms, and their topics.

    There are two sources:

    ``"sample"``: 27,695 stories, the union of the five "rcv1subset" collections that multi-label
    benchmarks use; no address serves this form of it. It is not the chronological beginning of the
    corpus, and its rows are not exchangeable, so they are shuffled by default. MCAT was derived: it
    is set where M11, M12, M13 or M14 is. The labels of M143 are missing. Exact duplicates were
    removed, but 82 rows equal an earlier row with other topics. Values have six decimals.

    ``"corpus"``: all 804,414 stories, by document number, which is nearly chronological. They are
    read from the files of `sklearn.datasets.fetch_rcv1`, in one of the folders or in scikit-learn's
    own; ``python -m sparsemargin.datasets download rcv1`` calls this function.

    Every call reads the file again, which takes a few seconds, so load several topics at once.

    Parameters
    ----------
    topic : str, iterable of str or None, default="C15"
        A topic by its code, such as ``"C15"`` or ``"GCAT"``, against all others, or several
        topics. None: all topics as an indicator, which first-order classifiers learn in one pass.
    source : {"auto", "sample", "corpus"}, default="auto"
        ``"auto"``: the sample if it is found, else the corpus.
    order : {"auto", "given", "shuffled"}, default="auto"
        ``"given"``: the order of the source; ``"shuffled"``: a random order that depends on
        `random_state`; ``"auto"``: the sample shuffled, the corpus as given.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the values.
    random_state : int, default=0
        Seed of the shuffling. It is an int, so that the rows of two calls have the same order.
    $parameters

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, csr_matrix of shape (n_samples, 47236) with 32-bit indices; column j is term
        j + 1 of LYRL2004. ``target``, for one topic ndarray of shape (n_samples,), int64, +1 if
        the story has the topic and -1 otherwise, else csr_matrix of shape (n_samples, n_topics),
        uint8, 1 if it has. ``target_names``, ndarray of the names of -1 and +1 in this order,
        else of the columns. ``sample_id``, ndarray of shape (n_samples,), the document numbers of
        the corpus, or the rows of the sample's file, from 0. ``source``, ``"sample"`` or
        ``"corpus"``. ``frame``, None. ``DESCR``, source, licence and citation.
    $raises

    References
    ----------
    D. D. Lewis, Y. Yang, T. G. Rose, F. Li (2004). RCV1: A new benchmark collection for text
    categorization research. JMLR 5, 361-397. No formal licence; the authors ask to be cited.
    C. Brotto, C. Gentile, F. Vitale (2007). On higher-order Perceptron algorithms. NIPS 20,
    section 4, Task 2 and Table 2.

    Examples
    --------
    >>> from sparsemargin.datasets import load_rcv1
    >>> X, y = load_rcv1("GCAT", source="sample", return_X_y=True)
    >>> X.shape, int((y[:10_000] == 1).sum())
    ((27695, 47236), 2837)
    >>> bunch = load_rcv1(None, source="sample")
    >>> bunch.target.shape, bunch.target_names[:3].tolist()
    ((27695, 102), ['C11', 'C12', 'C13'])
    """
    check_choice("source", source, get_args(RCV1Source))
    check_choice("order", order, get_args(RCV1Order))
    random_state = check_count("random_state", random_state, 0, 2**32 - 1)
    dtype = check_float_dtype(dtype)
    return_X_y = check_flag("return_X_y", return_X_y)
    stories = _load(source, data_home, dtype)
    columns = _columns(topic, stories)
    rows = np.argsort(stories.ids, kind="stable")
    if order == "shuffled" or (order == "auto" and stories.source == "sample"):
        rows = check_random_state(random_state).permutation(len(rows))
    X = stories.X[rows].astype(dtype, copy=False)
    target = stories.topics[rows][:, columns]
    names = [stories.names[column] for column in columns]
    if isinstance(topic, str):
        target = np.where(target.toarray().ravel() == 1, np.int64(1), np.int64(-1))
        names = [f"not {topic}", topic]
    if return_X_y:
        return X, target
    more = {"sample_id": stories.ids[rows], "source": stories.source, **stories.described}
    return data_sets()["rcv1"].bunch(X, target, names, **more)


def _columns(topic: object, stories: _Stories) -> list[int]:
    """Indices of the requested topics among those of the source."""
    topics = stories.names if topic is None else [topic] if isinstance(topic, str) else topic
    topics = list(topics) if isinstance(topics, Iterable) else []
    if not topics or any(name not in stories.names for name in topics):
        raise ValueError(
            f"topic must be one of those of the {stories.source}, {', '.join(stories.names)}, "
            f"several of them, or None, got {topic!r}"
        )
    return [stories.names.index(name) for name in topics]


def _load(source: RCV1Source, data_home: DataHome, dtype: np.dtype) -> _Stories:
    if source == "corpus":
        return _load_corpus(data_home)
    try:
        return _load_sample(data_home, dtype)
    except FileNotFoundError as no_sample:
        if source == "sample":
            raise
        try:
            return _load_corpus(data_home)
        except FileNotFoundError as no_corpus:
            raise FileNotFoundError(f"{no_corpus}\nNor is its sample there: {no_sample}") from None


def _load_sample(data_home: DataHome, dtype: np.dtype) -> _Stories:
    vectors, topics = read_files("rcv1", data_home)
    n_rows, n_features = vectors.file.shape
    X, labels = load_svmlight(vectors.path, n_features=n_features, dtype=dtype, multilabel=True)
    names = topics.lines()
    known = [number for number, name in enumerate(names) if name != _UNKNOWN_IN_SAMPLE]
    indicator = MultiLabelBinarizer(classes=known, sparse_output=True).fit_transform(labels)
    topic_rows = sp.csr_matrix(indicator, dtype=np.uint8)
    names = [names[number] for number in known]
    return _Stories("sample", X, topic_rows, names, np.arange(n_rows), {})


def _load_corpus(data_home: DataHome) -> _Stories:
    # None is scikit-learn's own folder. fetch_rcv1 creates any other folder that is passed to it.
    folders = [folder for folder in folders_of(data_home).values() if folder is not None]
    for folder in [*(folder for folder in folders if (folder / "RCV1").is_dir()), None]:
        try:
            corpus = fetch_rcv1(data_home=folder, download_if_missing=False)
        except FileNotFoundError:
            continue
        X, topics = sp.csr_matrix(corpus.data), sp.csr_matrix(corpus.target)
        names, described = corpus.target_names.tolist(), {"DESCR": corpus.DESCR}
        return _Stories("corpus", X, topics, names, corpus.sample_id, described)
    raise FileNotFoundError(
        "There is no copy of the whole corpus of RCV1 in these folders or in scikit-learn's own. "
        "Fetch it, once (656 MB), with: python -m sparsemargin.datasets download rcv1"
    )
