"""scikit-learn estimators, built on the learners of `sparsemargin.models`."""
