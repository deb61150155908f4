"""Batch normalization with given statistics of each channel."""

import numpy as np


def reference(X, mean, variance, gamma, beta):
    mean, variance, gamma, beta = (v[:, None, None] for v in (mean, variance, gamma, beta))
    return (X - mean) / np.sqrt(variance + 1e-5) * gamma + beta
