"""
Features with the largest weights
=================================

A linear model has a vector of weights for each class. Bars to the right show features that support
the class, hatched bars to the left features that speak against it.
"""

# %%
# Convert sentences about three sports to a matrix of words.
import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer

from sparsemargin import ALMAClassifier
from sparsemargin.plotting import StrongestFeaturesDisplay

SENTENCES = {
    "sailing": [
        "the boat heeled and the sail filled with wind",
        "a long tack against the wind brought the boat home",
        "they reefed the sail as waves broke over the boat",
    ],
    "chess": [
        "a bishop and a rook against the queen",
        "the knight took the pawn and checked the king",
        "with a pawn on the seventh rank the king was lost",
    ],
    "cycling": [
        "the wheel broke on the climb and the chain came off",
        "wind from the side split the riders on the road",
        "a climb of ten miles with one gear and no chain",
    ],
}
texts = [text for of_sport in SENTENCES.values() for text in of_sport]
sports = [sport for sport, of_sport in SENTENCES.items() for _ in of_sport]
vectorizer = TfidfVectorizer(stop_words="english")
X = vectorizer.fit_transform(texts)

# %%
# The names come from the vectorizer. For a DataFrame, the columns have the names.
model = ALMAClassifier(max_iter=20, random_state=0).fit(X, sports)
StrongestFeaturesDisplay.from_estimator(
    model, feature_names=vectorizer.get_feature_names_out(), top=8
)
plt.show()
