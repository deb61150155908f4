"""Every number S times in its row, every row S times."""

import numpy as np


def reference(X, S):
    return np.repeat(np.repeat(X, S, axis=2), S, axis=3)
