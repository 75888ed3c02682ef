from . import pipeline as pipeline
from .vectorizers import CountVectorizer as CountVectorizer
from .vectorizers import HashingVectorizer as HashingVectorizer
from .vectorizers import TfidfVectorizer as TfidfVectorizer
