"""scikit-learn estimators over the learners of `sparsemargin.models`."""
