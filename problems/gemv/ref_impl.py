"""Matrix times vector: y[i] is the sum over j of A[i, j] * x[j]."""


def reference(A, x):
    return A @ x
