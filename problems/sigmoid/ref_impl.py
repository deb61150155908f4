"""Logistic function: every number's place between 0 and 1."""

import numpy as np


def reference(X):
    with np.errstate(over="ignore"):  # exp(-X) of a large negative X is infinite, its reciprocal right
        return 1 / (1 + np.exp(-X))
