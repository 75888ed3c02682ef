"""What no online learner can hold of scikit-learn's contract."""

ONLINE = "An online algorithm makes one correction where a row of weight 2 stands for two rows."

NOT_EQUIVALENT = {
    "check_sample_weight_equivalence_on_dense_data": ONLINE,
    "check_sample_weight_equivalence_on_sparse_data": ONLINE,
}
