"""``python -m papers.data download NAME ...`` fetches the files that loaders read."""

import sys

from sparsemargin.datasets.__main__ import main

sys.exit(main())
