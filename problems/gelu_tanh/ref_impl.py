"""Gaussian error linear unit, in the approximation by tanh."""

import numpy as np


def reference(X):
    return 0.5 * X * (1 + np.tanh(0.7978845608028654 * (X + 0.044715 * (X * X * X))))
