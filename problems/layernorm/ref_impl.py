"""Layer normalization over the last axis, with a scale and a shift for each column."""

import numpy as np


def reference(X, gamma, beta):
    mean = X.mean(axis=-1, keepdims=True)
    variance = ((X - mean) ** 2).mean(axis=-1, keepdims=True)
    return (X - mean) / np.sqrt(variance + 1e-5) * gamma + beta
