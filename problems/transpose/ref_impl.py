"""Transposition: B[j, i] = A[i, j]."""

import numpy as np


def reference(A):
    return np.ascontiguousarray(A.T)
