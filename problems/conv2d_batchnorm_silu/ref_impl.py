"""Convolution, batch normalization with given statistics, sigmoid linear unit."""

import numpy as np


def convolution(X, F, PAD, STRIDE):
    images, _, height, width = X.shape
    filters, _, rows, columns = F.shape
    padded = np.pad(X, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)))
    out_height = (height + 2 * PAD - rows) // STRIDE + 1
    out_width = (width + 2 * PAD - columns) // STRIDE + 1
    Y = np.zeros((images, filters, out_height, out_width), dtype=X.dtype)
    for r in range(rows):
        for s in range(columns):
            below = padded[:, :, r : r + STRIDE * out_height : STRIDE]
            seen = below[:, :, :, s : s + STRIDE * out_width : STRIDE]
            Y += np.einsum("kc,ncij->nkij", F[:, :, r, s], seen, optimize=True)
    return Y


def reference(X, F, mean, variance, gamma, beta, PAD, STRIDE):
    mean, variance, gamma, beta = (v[:, None, None] for v in (mean, variance, gamma, beta))
    Y = (convolution(X, F, PAD, STRIDE) - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    with np.errstate(over="ignore"):  # exp(-Y) of a large negative Y is infinite, the quotient right
        return Y / (1 + np.exp(-Y))
