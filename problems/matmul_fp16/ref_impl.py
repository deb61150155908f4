"""Matrix product: C[i, j] is the sum over k of A[i, k] * B[k, j]."""


def reference(A, B):
    return A @ B
