def reference(X):
    return X * 3 + 1
