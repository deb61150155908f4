"""Leaky rectifier: a hundredth of every negative number."""

import numpy as np


def reference(X):
    return np.where(X > 0, X, X * X.dtype.type(0.01))
