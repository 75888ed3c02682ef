from . import pipeline as pipeline
from .vectorizers import CountVectorizer as CountVectorizer
from .vectorizers import HashingVectorizer as HashingVectorizer
from .vectorizers import TfidfVectorizer as TfidfVectorizer
from .word_char import WordCharVectorizer as WordCharVectorizer
from .word_char_hashing import WordCharHashingVectorizer as WordCharHashingVectorizer
