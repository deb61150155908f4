"""Gaussian error linear unit, with the error function itself."""

import math

import numpy as np


def reference(X):
    erf = np.vectorize(math.erf, otypes=[X.dtype])(X / math.sqrt(2))
    return X / 2 * (1 + erf)
