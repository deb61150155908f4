"""A matrix product, a bias for each column, the Gaussian error linear unit with erf itself."""

import math

import numpy as np


def reference(A, B, bias):
    X = A @ B + bias
    erf = np.vectorize(math.erf, otypes=[X.dtype])(X / math.sqrt(2))
    return X / 2 * (1 + erf)
