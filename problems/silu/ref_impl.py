"""Sigmoid linear unit, or swish."""

import numpy as np


def reference(X):
    with np.errstate(over="ignore"):  # exp(-X) of a large negative X is infinite, the quotient right
        return X / (1 + np.exp(-X))
