"""Tables 1 to 5 of Gentile (2001) and Table 1 of Gentile (2000): ALMA_2 with kernels on USPS, MNIST
and Letter. And which width of the Gaussian gives the counts that the first prints of USPS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from papers.kernels import (
    AGGRESSIVE,
    ALMA,
    AVERAGE,
    CORRECTIONS,
    LAST,
    PERCEPTRON,
    ROMMA,
    SUPPORT,
    VOTE,
    Pair,
    Printed,
    PrintedLine,
    Run,
    alike,
    allowed,
    figures_of,
    means,
    smaller,
    table,
    varied,
)
from papers.recipe import ALMA as PAPER
from papers.recipe import (
    ALMA_CONFERENCE,
    Allowed,
    Claim,
    Finding,
    Measured,
    Paper,
    Recipe,
    Repeats,
    Table,
    compared,
    incomparable,
)

# -- What is printed -----------------------------------------------------------------------------

EPOCHS = (1, 2, 3)
USPS_SIGMA = 3.5
LETTER_DEGREE = 5
LETTER_SIGMAS = {PERCEPTRON: 4.0, ALMA: 3.0}
MNIST_DEGREE = 4  # where none is printed
MNIST_SCALE = 255.0

_HYPOTHESES = {"last": LAST, "avg": AVERAGE, "voted": VOTE}

# A line: the algorithm, alpha or d if printed, the hypothesis, error % and corrections by epoch.
_TABLE_1 = """
    Perceptron last      6.03 1148  5.45 1395  5.30 1515
    Perceptron avg       5.49 1148  5.24 1395  5.00 1515
    ALMA_2 1.0 last      6.42 1250  5.62 1557  5.38 1713
    ALMA_2 1.0 avg       5.51 1250  4.93 1557  5.06 1713
    ALMA_2 0.95 last     5.72 1752  5.05 2087  4.85 2239
    ALMA_2 0.95 avg      5.18 1752  4.68 2087  4.73 2239
    ALMA_2 0.9 last      5.43 2251  5.06 2606  4.90 2746
    ALMA_2 0.9 avg       5.06 2251  4.72 2606  4.77 2746
"""
_TABLE_3 = """
    Perceptron last      2.71 7901  2.14 10421  2.03 11787
    Perceptron voted     2.23 7901  1.86 10421  1.76 11787
    ROMMA last           2.48 7963  1.96 9995   1.79 10971
    agg-ROMMA last       2.05 30088 1.76 44495  1.67 58583
    ALMA_2 1.0 d=4 last  2.52 7454  2.01 9658   1.86 10934
    ALMA_2 1.0 d=4 avg   1.77 7454  1.52 9658   1.47 10934
    ALMA_2 1.0 d=5 last  2.40 7105  1.86 9048   1.65 10004
    ALMA_2 1.0 d=5 avg   1.67 7105  1.46 9048   1.39 10004
    ALMA_2 1.0 d=6 last  2.35 7001  1.83 8782   1.67 9633
    ALMA_2 1.0 d=6 avg   1.64 7001  1.48 8782   1.36 9633
    ALMA_2 0.9 d=4 last  2.10 9911  1.74 12711  1.64 14244
    ALMA_2 0.9 d=4 avg   1.69 9911  1.49 12711  1.40 14244
    ALMA_2 0.9 d=5 last  1.93 10373 1.64 12700  1.49 13820
    ALMA_2 0.9 d=5 avg   1.59 10373 1.39 12700  1.32 13820
    ALMA_2 0.9 d=6 last  1.84 11652 1.53 13712  1.45 14598
    ALMA_2 0.9 d=6 avg   1.48 11652 1.32 13712  1.27 14598
    ALMA_2 0.8 d=4 last  1.98 12810 1.72 16464  1.60 18528
    ALMA_2 0.8 d=4 avg   1.68 12810 1.44 16464  1.35 18528
"""
_TABLE_5 = """
    Perceptron last      6.18 5010  4.50 6131  4.15 7001
    Perceptron avg       4.83 5010  3.70 6131  3.33 7001
    ALMA_2 1.0 last      7.00 5484  4.92 6685  4.45 7194
    ALMA_2 1.0 avg       4.82 5484  3.87 6685  3.47 7194
    ALMA_2 0.9 last      4.90 8312  3.85 9644  3.50 10178
    ALMA_2 0.9 avg       3.85 8312  3.10 9644  3.02 10178
    ALMA_2 0.8 last      4.20 11258 3.55 13003 3.27 13673
    ALMA_2 0.8 avg       3.60 11258 2.97 13003 2.80 13673
"""

_CONFERENCE = """
    Perceptron last      2.71 7901  2.14 10421 2.03 11787
    Perceptron voted     2.23 7901  1.86 10421 1.76 11787
    agg-ROMMA last       2.05 30088 1.76 44495 1.67 58583
    ALMA_2 1.0 last      2.52 7454  2.01 9658  1.86 10934
    ALMA_2 1.0 voted     1.77 7454  1.52 9658  1.47 10934
    ALMA_2 0.9 last      2.10 9911  1.74 12711 1.64 14244
    ALMA_2 0.9 voted     1.69 9911  1.49 12711 1.40 14244
    ALMA_2 0.8 last      1.98 12810 1.72 16464 1.60 18528
    ALMA_2 0.8 voted     1.68 12810 1.44 16464 1.35 18528
"""

# By alpha: corrections and support vectors of each class after each epoch, in turn.
_TABLE_2 = {
    1.0: """
        99  46 129 147 142 156 101 102 169 159
        99  46 129 147 142 156 101 102 169 159
        121 58 164 183 174 195 127 128 206 201
        121 55 159 182 168 193 126 124 202 195
        138 67 174 204 193 208 145 137 228 219
        138 61 173 197 184 205 142 132 224 210
    """,
    0.95: """
        149 79  192 203 190 214 148 144 226 207
        149 79  192 203 190 214 148 144 226 207
        176 94  226 242 226 255 174 168 277 249
        175 89  224 238 221 253 173 163 272 243
        186 105 235 256 243 273 188 184 297 272
        185 94  233 250 234 268 184 173 288 254
    """,
    0.9: """
        200 110 246 255 243 279 193 182 287 256
        200 110 246 255 243 279 193 182 287 256
        224 128 284 294 286 320 224 209 331 306
        223 123 282 290 280 314 220 201 323 294
        230 137 294 312 300 334 235 226 349 329
        229 126 288 305 289 328 227 214 337 309
    """,
}
_TABLE_4 = {
    1.0: """
        441 373 738 914 715 792 504 727 1076 1174
        441 373 738 914 715 792 504 727 1076 1174
        572 501 952 1181 915 1016 654 933 1412 1522
        549 467 932 1134 887 993 635 902 1353 1463
        642 583 1071 1335 1024 1143 719 1076 1604 1737
        616 517 1016 1237 978 1087 697 995 1481 1616
    """,
    0.9: """
        611 492 998 1206 970 1065 695 948 1420 1506
        611 492 998 1206 970 1065 695 948 1420 1506
        776 656 1269 1548 1212 1353 876 1224 1829 1968
        741 597 1205 1434 1153 1282 821 1139 1719 1832
        861 753 1401 1721 1354 1489 963 1384 2073 2245
        801 647 1301 1575 1247 1394 896 1252 1857 1986
    """,
    0.8: """
        814 637 1303 1534 1271 1395 906 1214 1819 1917
        814 637 1303 1534 1271 1395 906 1214 1819 1917
        1023 841 1652 1986 1585 1755 1152 1586 2370 2514
        953 742 1528 1817 1476 1627 1064 1423 2134 2273
        1140 965 1846 2231 1768 1956 1279 1788 2684 2871
        1026 803 1642 1951 1593 1744 1135 1532 2318 2438
    """,
}


def run_of(data: str, algorithm: str, alpha: float = 0.0, degree: int = MNIST_DEGREE) -> Run:
    """Return the run that the paper's sections 4.1 to 4.3 describe."""
    most = EPOCHS[-1]
    if data == "usps":
        return Run(data, algorithm, "rbf", most, sigma=USPS_SIGMA, alpha=alpha)
    if data == "letter":
        sigma = LETTER_SIGMAS[algorithm]
        return Run(data, algorithm, "polyrbf", most, LETTER_DEGREE, sigma=sigma, alpha=alpha)
    return Run(data, algorithm, "poly", most, degree, MNIST_SCALE, alpha=alpha)


def _by_epoch(data: str, text: str) -> list[PrintedLine]:
    """Return lines of errors and corrections, epoch by epoch."""
    return [_line(data, line) for line in text.strip().splitlines()]


def _line(data: str, text: str) -> PrintedLine:
    words, figures = text.split()[:-6], text.split()[-6:]
    degrees = [int(word[2:]) for word in words if word.startswith("d=")] or [MNIST_DEGREE]
    alphas = [float(word) for word in words if word[0].isdigit()] or [0.0]
    run = run_of(data, words[0], alphas[0], degrees[0])
    quantities = (_HYPOTHESES[words[-1]], CORRECTIONS) * len(EPOCHS)
    epochs = [T for T in EPOCHS for _ in range(2)]
    cells = zip(quantities, epochs, figures, strict=True)
    return " ".join(words), tuple(Printed(run, *cell) for cell in cells)


def _by_class(data: str, blocks: dict[float, str]) -> Iterator[PrintedLine]:
    kinds = [(T, quantity) for T in EPOCHS for quantity in (CORRECTIONS, SUPPORT)]
    for alpha, text in blocks.items():
        run = run_of(data, ALMA, alpha)
        for (T, quantity), line in zip(kinds, text.strip().splitlines(), strict=True):
            printed = enumerate(line.split())
            cells = tuple(Printed(run, quantity, T, figure, k) for k, figure in printed)
            yield f"ALMA_2 {alpha} T={T} {quantity}", cells


BY_EPOCH = tuple(f"{name}, T={T}" for T in EPOCHS for name in ("error %", "corrections"))
BY_CLASS = tuple(map(str, range(10)))

LINES = {
    "alma-table1": _by_epoch("usps", _TABLE_1),
    "alma-table2": list(_by_class("usps", _TABLE_2)),
    "alma-table3": _by_epoch("mnist", _TABLE_3),
    "alma-table4": list(_by_class("mnist", _TABLE_4)),
    "alma-table5": _by_epoch("letter", _TABLE_5),
    "nips-table1": _by_epoch("mnist", _CONFERENCE),
}


# -- What the figures may differ by ---------------------------------------------------------------

_OTHER_DIGITS = incomparable(
    "the digits at hand lie further apart than the paper's: ALMA_2(0.9) corrects six times as often"
)
_NOISE_CONTROL = incomparable(
    'the paper quotes the "best noise-controlled version", whose amount of noise control is '
    "printed nowhere; here it runs without any"
)
_ROMMA_COUNTS = Allowed(
    relative=0.08,
    why="5.5 to 7 % fewer than Li & Long's, whose figures the paper quotes, in any scale of x and "
    "with soft margins too; the cause was not found",
)
_MISPRINT = Allowed(
    relative=0.05,
    why="7001 is 300 more than is measured, while all other counts of the table come within 1 %: "
    "6701 misprinted, it seems",
)
_LETTER_AVERAGE = Allowed(
    0.4,
    why="after one epoch the averages err 0.1 to 0.4 points more than printed, as on MNIST up to "
    "0.16; votes come nearer",
)
_ONE_LETTER_AVERAGE = Allowed(
    1.0, why=f"of one permutation, whose deviation is 0.3 points; {_LETTER_AVERAGE.why}"
)


def _allowed_on_mnist(printed: Printed, quick: bool) -> Allowed:
    """Return what a figure may differ by: ROMMA's have reasons of their own."""
    if printed.run.algorithm == AGGRESSIVE:
        return _NOISE_CONTROL
    if printed.run.algorithm == ROMMA and printed.is_count:
        return _ROMMA_COUNTS
    return allowed(printed, quick)


def _allowed_on_usps(printed: Printed, quick: bool) -> Allowed:
    return _OTHER_DIGITS


def _allowed_on_letter(printed: Printed, quick: bool) -> Allowed:
    if printed.text == "7001":
        return _MISPRINT
    if (printed.quantity, printed.epochs) == (AVERAGE, 1):
        return _ONE_LETTER_AVERAGE if quick else _LETTER_AVERAGE
    return allowed(printed, quick)


# -- What the text says ---------------------------------------------------------------------------


def _errors(lines: Sequence[PrintedLine]) -> dict[tuple[Run, str, float], Printed]:
    return {
        (each.run, each.quantity, each.epochs): each
        for each in figures_of(lines) if not each.is_count
    }  # fmt: skip


def _better(lines: Sequence[PrintedLine], hypothesis: str) -> list[Pair]:
    """Return errors of a hypothesis beside those of the last vector of the same run."""
    errors = _errors(lines)
    return [
        (each, errors[run, LAST, T])
        for (run, quantity, T), each in errors.items() if quantity == hypothesis
    ]  # fmt: skip


def _falling_alpha(lines: Sequence[PrintedLine], quantity: str) -> list[Pair]:
    """Pairs of figures of ALMA_2 that differ in alpha alone, the smaller alpha first."""
    # By alpha, as corrections stand in the lines of both hypotheses.
    found: dict[tuple, dict[float, Printed]] = {}
    for each in figures_of(lines):
        if each.run.algorithm == ALMA and each.quantity == quantity:
            like = (each.run.degree, each.epochs, each.label)
            found.setdefault(like, {})[each.run.alpha] = each
    return [(of[a], of[b]) for of in found.values() for a, b in pairwise(sorted(of))]


def _less_sparse(lines: Sequence[PrintedLine], quantity: str, quick: bool) -> Claim:
    """The smaller alpha, the larger a count."""
    pairs = [(more, less) for less, more in _falling_alpha(lines, quantity)]
    return smaller(f"The smaller α, the more {quantity}", pairs, quick)


def _more_accurate(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    """The smaller alpha, the less the averages err."""
    pairs = _falling_alpha(lines, AVERAGE)
    text = "The smaller α, the less the averages of ALMA_2 err"
    return smaller(text, pairs, quick, least_share=0.75)


def _best_of_alma(lines: Sequence[PrintedLine], hypothesis: str, quick: bool) -> Claim:
    """Return the claim that ALMA_2's hypothesis errs less than any other algorithm's."""
    errors = _errors(lines)
    pairs = [
        (ours, theirs)
        for (run, quantity, T), ours in errors.items()
        for (other, _, at), theirs in errors.items()
        if run.algorithm == ALMA != other.algorithm and quantity == hypothesis and at == T
    ]
    return smaller(
        f'ALMA_2\'s "{"voted" if hypothesis == VOTE else "avg"}" is the most accurate of all',
        pairs, quick,
    )  # fmt: skip


def _larger_degree(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    errors = _errors(lines)
    pairs = [
        (errors[run_of("mnist", ALMA, alpha, 6), AVERAGE, T],
         errors[run_of("mnist", ALMA, alpha, 4), AVERAGE, T])
        for alpha in (1.0, 0.9) for T in EPOCHS
    ]  # fmt: skip
    return smaller("The averages of ALMA_2 err less with d = 6 than with d = 4", pairs, quick)


def _comparable(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    errors = _errors(lines)
    runs = run_of("usps", PERCEPTRON), run_of("usps", ALMA, 1.0)
    pairs = [
        (errors[runs[0], hypothesis, T], errors[runs[1], hypothesis, T])
        for hypothesis in (LAST, AVERAGE) for T in EPOCHS
    ]  # fmt: skip
    text = "ALMA_2(1.0) and the Perceptron err alike: by less than a point"
    return alike(text, pairs, quick, most=1.0)


def _once_each(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    """In one epoch a row corrects a label once at most."""
    pairs = [
        (each, each._replace(quantity=SUPPORT)) for each in figures_of(lines)
        if (each.quantity, each.epochs) == (CORRECTIONS, 1)
    ]  # fmt: skip

    def examine(found: list[tuple[float, float]]) -> Finding:
        same = [corrections == support for corrections, support in found]
        return Finding(all(same), f"in {sum(same)} of {len(same)} cells")

    return compared('For one epoch "clearly" Corr = SV', means(pairs, quick), examine)


# -- Which width gives the counts of USPS ---------------------------------------------------------

#: With the stated one, the first, ALMA_2(0.9) corrects six times as often as Table 1 prints: to the
#: data at hand the kernel is far narrower than to the paper's.
SIGMAS = (USPS_SIGMA, 4.5, 5.0, 5.25, 5.5, 6.0)
#: Those that make up for the distance between the digits.
NEAREST = (5.25, 5.5)

_TRIED = incomparable("one of the widths tried, not one that makes up for the digits' distance")
_COUNT = Allowed(
    relative=0.1, why="a width only makes up for digits that lie further apart: the four algorithms"
    " agree on it within a tenth of their counts",
)  # fmt: skip
_ERROR = Allowed(0.6, why="as the counts: over two permutations up to 0.35 points more, or less")
_ONE_ERROR = Allowed(1.0, why="of one permutation, whose deviation is up to 0.5 points")


def _allowed_of_width(printed: Printed, quick: bool) -> Allowed:
    if printed.run.sigma not in NEAREST:
        return _TRIED
    if printed.is_count:
        return _COUNT
    return _ONE_ERROR if quick else _ERROR


def _name(run: Run) -> str:
    return " ".join([run.algorithm, *([str(run.alpha)] if run.alpha else []), f"σ={run.sigma:g}"])


BY_WIDTH = varied(
    LINES["alma-table1"], (CORRECTIONS, AVERAGE), [{"sigma": sigma} for sigma in SIGMAS], _name
)


def _widths(quick: bool) -> tuple[Table, ...]:
    of_alma = [
        each
        for each in figures_of(BY_WIDTH)
        if each.run.alpha == 0.9 and each.quantity == CORRECTIONS
    ]
    works = tuple(each.run.work(quick) for each in of_alma)

    def six_times(measured: Measured) -> Finding:
        times = of_alma[0].mean(quick).of(measured) / of_alma[0].number
        return Finding(times > 5, f"{times:.1f} times the printed count")

    def falling(measured: Measured) -> Finding:
        counts = [each.mean(quick).of(measured) for each in of_alma]
        holds = counts[0] > counts[-1] and min(counts) < of_alma[0].number < max(counts)
        return Finding(holds, ", ".join(f"{count:,.0f}" for count in counts))

    claims = (
        Claim(
            "With the stated σ = 3.5 ALMA_2(0.9) corrects more than five times as often as printed",
            works, six_times,
        ),
        Claim("Its corrections fall with the width, through the printed count", works, falling),
    )  # fmt: skip
    columns = ("corrections, T=1", "error of avg %, T=1")
    return (
        table("Counts and errors by width", columns, BY_WIDTH, quick, _allowed_of_width, claims),
    )


# -- The recipes ----------------------------------------------------------------------------------


def _claims(name: str, quick: bool) -> tuple[Claim, ...]:
    lines = LINES[name]
    if name in ("alma-table2", "alma-table4"):
        return _once_each(lines, quick), _less_sparse(lines, SUPPORT, quick)
    if name == "nips-table1":
        return (
            _best_of_alma(lines, VOTE, quick),
            smaller("The vote errs less than the last vector", _better(lines, VOTE), quick),
        )
    common = _more_accurate(lines, quick), _less_sparse(lines, CORRECTIONS, quick)
    text, pairs = "The average errs less than the last vector", _better(lines, AVERAGE)
    if name == "alma-table1":
        why_not = (
            "with a kernel so narrow to the digits at hand, the Perceptron's average errs as much "
            "as its last vector"
        )
        average = smaller(text, pairs, quick, why_not=why_not)
        return _comparable(lines, quick), *common, average
    if name == "alma-table5":
        return *common, smaller(text, pairs, quick, least_share=0.75 if quick else 1.0)
    return (
        _best_of_alma(lines, AVERAGE, quick), _larger_degree(lines, quick), *common,
        smaller(text, pairs, quick),
    )  # fmt: skip


def _table(quick: bool, name: str, title: str) -> tuple[Table, ...]:
    of_data = {"usps": _allowed_on_usps, "mnist": _allowed_on_mnist, "letter": _allowed_on_letter}
    lines = LINES[name]
    run = next(figures_of(lines)).run
    columns = BY_CLASS if name in ("alma-table2", "alma-table4") else BY_EPOCH
    return (table(title, columns, lines, quick, of_data[run.data], _claims(name, quick)),)


USPS = "USPS, 7,291 training and 2,007 test digits; Gaussian kernel, σ = 3.5"
_MNIST = "MNIST, 60,000 training and 10,000 test digits; kernel (1 + x·z/255)^d"
_LETTER = (
    "Letter, the first 16,000 rows to train, 4,000 to test; kernel (1 + G)^5, the Gaussian's width "
    "σ = 4 for the Perceptron, 3 for ALMA_2"
)
PROTOCOL = (
    "One against the rest, C = √2 and B = 1/α. Each repeat takes the training rows in a random "
    "order of its own, the same in every epoch."
)

USPS_REMARK = (
    "With the stated width ALMA_2(0.9) corrects six times as often as printed: the digits at hand "
    "lie further apart than the paper's. alma-width finds the width that makes up for it."
)
_SVM_LINE = "The line that the paper quotes of a support vector machine is left out."
_QUOTED = (
    "The paper quotes the Perceptron's and ROMMA's lines from Freund & Schapire, Li & Long and Li; "
    "here they are run. The best noise control of aggressive ROMMA is not printed: its line is not "
    "comparable."
)
_AVERAGES = (
    "Over five permutations the averages of ALMA_2 err 0.11 points more than printed after one "
    "epoch, 0.04 after two and three; counts and last vectors come out. The cause is not known."
)


def _recipe(
    name: str,
    item: str,
    title: str,
    data: str,
    of_table: str,
    needs: str,
    *remarks: str,
    paper: Paper = PAPER,
) -> Recipe:
    parts = partial(_table, name=name, title=of_table)
    return Recipe(
        name, paper, item, title, data, PROTOCOL, parts, Repeats(quick=1, full=10), (needs,),
        remarks,
    )  # fmt: skip


RECIPES = (
    _recipe(
        "alma-table1", "Table 1", "ALMA_2 on USPS", USPS, "USPS", "usps", USPS_REMARK
    ),
    _recipe(
        "alma-table2", "Table 2", "Corrections and support vectors on USPS, by class", USPS,
        "USPS, by class", "usps", USPS_REMARK, _SVM_LINE,
    ),
    _recipe(
        "alma-table3", "Table 3", "ALMA_2 on MNIST", _MNIST, "MNIST", "mnist", _QUOTED, _AVERAGES
    ),
    _recipe(
        "alma-table4", "Table 4", "Corrections and support vectors on MNIST, by class", _MNIST,
        "MNIST, by class, d = 4", "mnist", _SVM_LINE,
    ),
    _recipe("alma-table5", "Table 5", "ALMA_2 on Letter", _LETTER, "Letter", "letter"),
    Recipe(
        "alma-width", PAPER, "Table 1, one epoch", "Which width gives the counts of USPS",
        "USPS, 7,291 training and 2,007 test digits; Gaussian kernel",
        "One epoch on a random order of the rows for every algorithm and width.",
        _widths, Repeats(quick=1, full=10), needs=("usps",),
        remarks=(
            "A study of ours: about 1.5 times the stated width gives the paper's counts of all "
            "four algorithms, as if its digits lay that much nearer to each other: in another "
            "scale, or smoothed.",
        ),
    ),
    _recipe(
        "nips-table1", "Table 1", "ALMA_2 on MNIST, by votes", _MNIST, "MNIST, d = 4", "mnist",
        _QUOTED,
        'The figures under "voted" are those that the journal paper prints under "avg", and says '
        "to be the average's. Each is compared with what its own word stands for: of one epoch the "
        "vote comes nearer.",
        paper=ALMA_CONFERENCE,
    ),
)  # fmt: skip
