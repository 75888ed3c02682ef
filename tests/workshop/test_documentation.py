"""What the README, the pages and the docstrings show is what comes out, and is all there is."""

import doctest
import importlib
import re
from ast import literal_eval
from inspect import ismodule, signature
from pathlib import Path

import pytest
from click import Context

import depth
import papers
import sparsemargin
from problems.published_files import data_folder
from sparsemargin.cli.app import main
from sparsemargin.models import ALGORITHMS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What is made by `make docs` lies in folders of its own.
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for folder in (DOCS, DOCS / "algorithms", DOCS / "api", DOCS / "guide")
        for page in folder.glob("*.md")
    ),
]
PUBLIC_MODULES = [
    "sparsemargin",
    "sparsemargin.datasets",
    "sparsemargin.distributed",
    "sparsemargin.evaluation",
    "sparsemargin.plotting",
    "papers.theory",
]
# The loaders' examples read these files.
LOADERS = {
    "papers.data.letter": ["letter-recognition.data.gz"],
    "papers.data.mnist": ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"],
    "sparsemargin.datasets._microarrays": [
        "breast_er_west2001.csv.gz",
        "colon_alon1999.csv.gz",
        "leukemia_golub1999.csv.gz",
        "Lymphoma96x4026.arff.gz",
        "lymphoma_labels.csv",
    ],
    "sparsemargin.datasets._rcv1": ["rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt"],
    "papers.data.sonar": ["sonar.mines", "sonar.rocks"],
    "papers.data.usps": ["zip.test.gz"],
    "papers.data.wbc": ["breast-cancer-wisconsin.data"],
}
LONGER = {"sparsemargin.datasets._rcv1"}


def modules_with_examples():
    for package in (sparsemargin, papers):
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            if ">>> " in path.read_text():
                yield ".".join(path.relative_to(folder.parent).with_suffix("").parts)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[depth.long] if name in LONGER else [])
     for name in modules_with_examples()],
)  # fmt: skip
def test_examples_of_docstrings(name):
    if name in LOADERS:
        data_folder(*LOADERS[name])
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_pages(page):
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.failed == 0
    assert outcome.attempted == page.read_text().count("\n>>> ")


def targets(page):
    """What a page links to within the project, outside of its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def anchors(page):
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in targets(page):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if "notebooks" in file.parts:
            # They are brought there when the pages are made.
            file = ROOT / "examples" / file.name
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}"


def entries(page):
    """What the autosummaries of a page list, with the modules before the names."""
    module = ""
    for line in page.read_text().splitlines():
        if found := re.fullmatch(r"\.\. (?:current)?module:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   ([A-Za-z_]\w*)|\.\. autodata:: (\w+)", line):
            yield f"{module}.{found[1] or found[2]}"


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_reference_has_every_public_name(name):
    listed = [entry for page in sorted((DOCS / "api").glob("*.md")) for entry in entries(page)]
    module = importlib.import_module(name)
    public = {f"{name}.{each}" for each in module.__all__ if not ismodule(getattr(module, each))}
    assert sorted(entry for entry in listed if entry.rpartition(".")[0] == name) == sorted(public)


def test_reference_has_every_estimator():
    assert {learner.classifier for learner, _ in ALGORITHMS.values()} < set(sparsemargin.__all__)


CLASSIFIERS = sorted({learner.classifier for learner, _ in ALGORITHMS.values()})


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_docstrings_have_every_parameter_with_its_default(name):
    classifier = getattr(sparsemargin, name)
    section = re.search(r"\nParameters\n-+\n(.*?)\n\n", classifier.__doc__, re.DOTALL)[1]
    shown = re.findall(r"^(\w+) : .+, default=(.+)$", section, re.MULTILINE)
    declared = {name: each.default for name, each in signature(classifier).parameters.items()}
    assert {name: literal_eval(default) for name, default in shown} == declared
    assert len(shown) == len(declared)
    assert not re.search(r"^(?!    |\w+ : )", section, re.MULTILINE)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_docstrings_have_the_attributes_there_are(name):
    classifier = getattr(sparsemargin, name)
    section = re.search(r"\nAttributes\n-+\n(.*?)\n\n", classifier.__doc__, re.DOTALL)[1]
    shown = re.findall(r"^\w+", section, re.MULTILINE)
    properties = {each for each in dir(classifier) if re.fullmatch(r"[a-z]\w*_", each)}
    if "kernel" not in signature(classifier).parameters:
        properties -= {"support_", "dual_coef_", "n_support_", "pool_bytes_", "n_passed_over_"}
    assert properties <= set(shown)


def test_reference_has_every_command():
    text = (DOCS / "api" / "command_line.md").read_text()
    shown = re.findall(r"^```\{command-help\} (\w+)$", text, flags=re.MULTILINE)
    assert shown == main.list_commands(Context(main))


def test_every_algorithm_has_its_page():
    text = (DOCS / "algorithms" / "index.md").read_text()
    linked = re.findall(r"^\| \[[^]]+\]\((\w+)\.md\) \| `\"(\w+)\"`", text, flags=re.MULTILINE)
    assert {algo for _, algo in linked} == set(ALGORITHMS)
    for page, algo in linked:
        learner, _ = ALGORITHMS[algo]
        text = (DOCS / "algorithms" / f"{page}.md").read_text()
        assert f"~sparsemargin.{learner.classifier}" in text
