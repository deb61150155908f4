import numpy as np


def reference(X):
    largest = np.argsort(-X, axis=1, kind="stable")[:, :4]
    return np.take_along_axis(X, largest, 1), largest
