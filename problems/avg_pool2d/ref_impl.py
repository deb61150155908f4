"""Average pooling: for every place (r, s) of the window, what it sees of the images."""

import numpy as np


def reference(X, K, PAD, STRIDE):
    images, channels, height, width = X.shape
    padded = np.pad(X, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)))
    out_height = (height + 2 * PAD - K) // STRIDE + 1
    out_width = (width + 2 * PAD - K) // STRIDE + 1
    Y = np.zeros((images, channels, out_height, out_width), dtype=X.dtype)
    for r in range(K):
        for s in range(K):
            seen = padded[:, :, r : r + STRIDE * out_height : STRIDE, s : s + STRIDE * out_width : STRIDE]
            Y += seen
    return Y / (K * K)
