"""Draw the charts of the pages from the kept figures, or from models fitted here.

The chart of texts is drawn with its tables: `python benchmarks/texts.py --chart`.

    python benchmarks/pictures.py
"""

import probabilities
import scale
import tables
from matplotlib import rc_context
from timing import FOLDER

STATIC = FOLDER.parent / "docs" / "_static"
SUBJECTS = (scale, tables, probabilities)

if __name__ == "__main__":
    # The salt makes the same figures give the same bytes.
    with rc_context({"svg.hashsalt": "sparsemargin"}):
        for subject in SUBJECTS:
            subject.draw_pictures(STATIC)
