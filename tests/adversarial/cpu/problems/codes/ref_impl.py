import numpy as np


def reference(X):
    scale = np.maximum(np.abs(X).max(axis=1, keepdims=True), X.dtype.type(1e-30)) / X.dtype.type(127)
    return np.rint(X / scale), scale
