from ..readers.sequences import read_sequences as read_sequences
from .cells import CellNormalizer as CellNormalizer
from .kmers import KmerVectorizer as KmerVectorizer
