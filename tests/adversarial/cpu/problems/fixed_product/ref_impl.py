import numpy as np


def reference(A, B):
    product = A.astype(np.int64) * B
    return np.clip(product >> 16, -2147483648, 2147483647).astype(np.int32)
