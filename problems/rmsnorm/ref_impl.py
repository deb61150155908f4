"""Root-mean-square normalization over the last axis, with a scale for each column."""

import numpy as np


def reference(X, gamma):
    mean_square = (X**2).mean(axis=-1, keepdims=True)
    return X / np.sqrt(mean_square + 1e-6) * gamma
