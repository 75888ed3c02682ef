"""What the README, the pages and the docstrings show is what comes out, and is all there is."""

import doctest
import importlib
import re
import shlex
from ast import literal_eval
from contextlib import suppress
from inspect import ismodule, signature
from pathlib import Path

import pytest
from click import Context, MissingParameter

import depth
import papers
import sparsemargin
from problems.published_files import data_folder
from sparsemargin.cli.app import main
from sparsemargin.models import ALGORITHMS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What is made by `make docs` lies in folders of its own.
WRITTEN = [DOCS / folder for folder in (".", "algorithms", "api", "development", "guide")]
PAGES = [ROOT / "README.md", *sorted(page for folder in WRITTEN for page in folder.glob("*.md"))]
OTHERS = sorted([*ROOT.glob("[CS]*.md"), *ROOT.glob("[ef]*/README.md")])
of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

# The loaders' examples read these files.
LOADERS = {
    "papers.data.letter": "letter-recognition.data.gz",
    "papers.data.mnist": "t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz",
    "sparsemargin.datasets._microarrays":
        "breast_er_west2001.csv.gz colon_alon1999.csv.gz leukemia_golub1999.csv.gz "
        "Lymphoma96x4026.arff.gz lymphoma_labels.csv",
    "sparsemargin.datasets._rcv1": "rcv1_subsets_topics.svm.bz2 rcv1_topics.txt",
    "papers.data.sonar": "sonar.mines sonar.rocks",
    "papers.data.usps": "zip.test.gz",
    "papers.data.wbc": "breast-cancer-wisconsin.data",
}  # fmt: skip


def modules_with_examples():
    for package in (papers, sparsemargin):
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            if ">>> " in path.read_text():
                name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
                yield pytest.param(name, marks=[depth.long] if name.endswith("_rcv1") else [])


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_of_docstrings(name):
    if name in LOADERS:
        data_folder(*LOADERS[name].split())
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


@of_each_page
def test_examples_of_the_pages(page, tmp_path, monkeypatch):
    # Files that a page writes are not to stay.
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.failed == 0
    assert outcome.attempted == page.read_text().count("\n>>> ")


def test_the_documentation_can_be_read_in_two_hours():
    # As `wc -w` counts: numbers, code and the lines of tables, too.
    assert sum(len(page.read_text().split()) for page in PAGES) <= 30_000
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def anchors(page):
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES + OTHERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", prose):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if "notebooks" in file.parts:
            # They are brought there when the pages are made.
            file = ROOT / "examples" / file.name
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}"
    for script in re.findall(r"\{image\} /gallery/images/sphx_glr_(\w+)_001", page.read_text()):
        assert (ROOT / "examples" / "plots" / f"{script}.py").exists(), f"{page.name}: {script}"


def listed_in_reference():
    """What the autosummaries list, with the modules before the names."""
    for page in sorted((DOCS / "api").glob("*.md")):
        module = ""
        for line in page.read_text().splitlines():
            if found := re.fullmatch(r"\.\. (?:current)?module:: (\S+)", line):
                module = found[1]
            elif found := re.fullmatch(r"   ([A-Za-z_]\w*)|\.\. autodata:: (\w+)", line):
                yield module, found[1] or found[2]


ROOMS = [
    f"sparsemargin.{room}" for room in ("datasets", "distributed", "evaluation", "plotting", "text")
]


@pytest.mark.parametrize("name", ["sparsemargin", *ROOMS, "papers.theory"])
def test_reference_has_every_public_name(name):
    module = importlib.import_module(name)
    public = [each for each in module.__all__ if not ismodule(getattr(module, each))]
    assert sorted(each for of, each in listed_in_reference() if of == name) == sorted(public)


@pytest.mark.parametrize("name", sorted({learner.classifier for learner, _ in ALGORITHMS.values()}))
def test_docstrings_have_every_parameter_with_its_default_and_every_attribute(name):
    classifier = getattr(sparsemargin, name)
    sections = {
        title: re.search(rf"\n{title}\n-+\n(.*?)\n\n", classifier.__doc__, re.DOTALL)[1]
        for title in ("Parameters", "Attributes")
    }
    shown = re.findall(r"^(\w+) : .+, default=(.+)$", sections["Parameters"], re.MULTILINE)
    declared = [(name, each.default) for name, each in signature(classifier).parameters.items()]
    assert sorted((name, literal_eval(default)) for name, default in shown) == sorted(declared)
    assert not re.search(r"^(?!    |\w+ : )", sections["Parameters"], re.MULTILINE)
    properties = {each for each in dir(classifier) if re.fullmatch(r"[a-z]\w*_", each)}
    if "kernel" not in dict(declared):
        properties -= {"support_", "dual_coef_", "n_support_", "n_passed_over_"}
    assert properties <= set(re.findall(r"^\w+", sections["Attributes"], re.MULTILINE))


def test_reference_has_every_command():
    text = (DOCS / "api" / "command_line.md").read_text()
    shown = re.findall(r"^```\{command-help\} (\w+)(?: --help-all)?$", text, flags=re.MULTILINE)
    assert shown == main.list_commands(Context(main))


def commands_of(page):
    """The words after `sparsemargin` of each command that a page shows."""
    text = page.read_text().replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    for line in [*blocks.splitlines(), *re.findall(r"`(sparsemargin [a-z][^`]*)`", text)]:
        for part in re.split(r"[|;]|&&|\$\(", line.partition(" #")[0]):
            words = shlex.split(part.replace("(", "").replace(")", ""))
            if words[:1] == ["sparsemargin"] and "--help" not in words:
                yield words[1:]


@of_each_page
def test_commands_of_the_pages_have_options_that_there_are(page):
    group = Context(main)
    for name, *arguments in commands_of(page):
        command = main.get_command(group, name)
        assert command is not None, name
        # Prose may name an option without the files.
        with suppress(MissingParameter):
            command.make_context(name, arguments, parent=group)


def test_every_algorithm_has_its_page():
    text = (DOCS / "algorithms" / "index.md").read_text()
    linked = re.findall(r"^\| \[[^]]+\]\((\w+)\.md\) \| `\"(\w+)\"`", text, flags=re.MULTILINE)
    assert {algo for _, algo in linked} == set(ALGORITHMS)
    for page, algo in linked:
        classifier = ALGORITHMS[algo][0].classifier
        assert classifier in sparsemargin.__all__
        assert f"~sparsemargin.{classifier}" in (DOCS / f"algorithms/{page}.md").read_text()
