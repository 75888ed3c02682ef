"""Tables 1 to 3 and Figure 2 of Brotto, Gentile & Vitale (2007): what they print and state.

Four things to know when reading the tables:

- Each algorithm stands with the setting of c or a that is best on the test set; "best training and
  best test setting coincided" (Table 1). Which one it was is not printed.
- The text says that HO_p(c) with c > 0 outperforms HO_p(0) in all experiments; Table 1 prints the
  same test error of HO_7 and HO_7(0) on Lymphoma, where only the updates differ.
- Table 3 has one epoch with kernels "with parameters chosen via 5-fold cross validation on the
  training set across standard ranges", which are not printed; only the best on the test set are.
- Figure 2 gives its curves as a plot alone. Printed are the axes, the settings and what the text
  says of the order of the curves: those of HO_p(0) and HO_p(c) are hard to tell apart (caption),
  the second always slightly better.

Source: C. Brotto, C. Gentile and F. Vitale, "On Higher-Order Perceptron Algorithms", NIPS 2007,
section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sparsemargin.datasets import BROTTO_TOPICS

#: What the paper's algorithms are in the library's parameters: the last hypothesis, through the
#: origin, with all mistakes in the matrix.
AS_PRINTED: dict[str, Any] = {
    "hypothesis": "last", "fit_intercept": False, "max_updates": None,
}  # fmt: skip

#: The values of c that the paper tried; 0 is the p-norm Perceptron.
CS = (0.0, 0.2, 0.4, 0.6, 0.8)


class Printed(NamedTuple):
    """Updates in training, and the error on the test set in percent."""

    updates: str
    error: str


#: Table 1, by data set and algorithm: means over 1000 splits, updates over 5 epochs.
TABLE_1 = {
    "Breast": {
        "FO": Printed("45.2", "23.4"),
        "HO_2": Printed("21.7", "16.4"),
        "HO_4": Printed("24.5", "13.3"),
        "HO_7(0)": Printed("47.4", "15.7"),
        "HO_7": Printed("24.5", "12.0"),
        "HO_10": Printed("32.4", "13.5"),
        "SO": Printed("29.6", "15.0"),
    },
    "Lymphoma": {
        "FO": Printed("22.1", "11.8"),
        "HO_2": Printed("19.6", "10.0"),
        "HO_4": Printed("18.9", "10.0"),
        "HO_7(0)": Printed("23.0", "11.5"),
        "HO_7": Printed("20.0", "11.5"),
        "HO_10": Printed("23.1", "11.9"),
        "SO": Printed("19.3", "9.6"),
    },
}

#: Table 2, by topic and algorithm: one epoch over 10,000 stories, 10,000 others to test.
TABLE_2 = {
    BROTTO_TOPICS[70]: {
        "FO": Printed("993", "7.20"), "HO_2": Printed("941", "6.83"), "SO": Printed("880", "6.95"),
    },
    BROTTO_TOPICS[101]: {
        "FO": Printed("673", "6.39"), "HO_2": Printed("665", "5.81"), "SO": Printed("677", "5.48"),
    },
    BROTTO_TOPICS[4]: {
        "FO": Printed("803", "6.14"), "HO_2": Printed("783", "5.94"), "SO": Printed("819", "6.05"),
    },
    BROTTO_TOPICS[59]: {
        "FO": Printed("767", "6.45"), "HO_2": Printed("762", "6.04"), "SO": Printed("760", "6.84"),
    },
}  # fmt: skip


class PrintedKernel(NamedTuple):
    """Corrections in training, of all ten digits, and the error on the test set in percent.

    `matrix_updates` are those of the sparse version that changed the matrix; None: not printed.
    """

    updates: str
    error: str
    matrix_updates: str | None = None


#: Table 3, by data set and kernel, and by algorithm.
TABLE_3 = {
    ("usps", "gauss"): {
        "FO": PrintedKernel("1385", "6.53"), "HO_2": PrintedKernel("945", "4.76"),
        "sparse HO_2": PrintedKernel("965", "5.13", "440"), "SO": PrintedKernel("1003", "5.05"),
    },
    ("usps", "poly"): {
        "FO": PrintedKernel("1609", "7.37"), "HO_2": PrintedKernel("1090", "5.71"),
        "sparse HO_2": PrintedKernel("1081", "5.52", "551"), "SO": PrintedKernel("1054", "5.53"),
    },
    ("mnist", "gauss"): {
        "FO": PrintedKernel("5834", "2.10"), "HO_2": PrintedKernel("5351", "1.79"),
        "sparse HO_2": PrintedKernel("5363", "1.81", "2596"), "SO": PrintedKernel("5684", "1.82"),
    },
    ("mnist", "poly"): {
        "FO": PrintedKernel("8148", "3.04"), "HO_2": PrintedKernel("6404", "2.27"),
        "sparse HO_2": PrintedKernel("6476", "2.28", "3311"), "SO": PrintedKernel("6440", "2.03"),
    },
}  # fmt: skip


class Panels(NamedTuple):
    """The axes of one half of Figure 2: updates above, test error in percent below.

    The lower axis of the noisy set is shifted by `noise`, its test labels being wrong that often.
    """

    updates: tuple[float, float]
    error: tuple[float, float]


#: Figure 2, by the noise of the artificial set: "Artificial 0.0" and "Artificial 0.1".
FIGURE_2_AXES = {
    0.0: Panels((300, 800), (6, 26)),
    0.1: Panels((400, 2400), (6, 26)),
}

FIGURE_2_EPOCHS = (1, 2, 3, 5, 10, 15, 20)

#: The pairs of curves of which the text says that the first lies below, on both sets.
FIGURE_2_ORDER = (("HO_2(0.4)", "FO"), ("HO_7(0.4)", "HO_7(0)"))
