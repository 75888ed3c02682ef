from .cells import CellNormalizer as CellNormalizer
from .kmers import KmerVectorizer as KmerVectorizer
from .kmers import read_sequences as read_sequences
