def reference(X, Y):
    return ((X[:, None] - Y[None]) ** 2).sum(axis=2).argmin(axis=1)
