import numpy as np


def reference(X, G):
    x = X.reshape(X.shape[0], G, -1)
    d = x - x.mean(axis=-1, keepdims=True)
    return (d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5)).reshape(X.shape)
