import numpy as np


def reference(X):
    return np.rint(X * X.dtype.type(1000000)).astype(np.int32)
