"""What all first-order learners share, whatever their vectors are made of.

- ``rules``: how far a step goes, and when one is made.
- ``labels``: what is kept of each label, its rule's numbers included.
- ``log``: a rule's corrections, as the trials leave them behind.
"""
