def reference(X):
    return 2 * X
