def reference(A, B):
    return (A > 0).sum(axis=1), A @ B
