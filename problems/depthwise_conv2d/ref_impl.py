"""Depthwise convolution: for every place (r, s) of the filters, what they see of their channels."""

import numpy as np


def reference(X, F, PAD, STRIDE):
    images, channels, height, width = X.shape
    _, rows, columns = F.shape
    padded = np.pad(X, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)))
    out_height = (height + 2 * PAD - rows) // STRIDE + 1
    out_width = (width + 2 * PAD - columns) // STRIDE + 1
    Y = np.zeros((images, channels, out_height, out_width), dtype=X.dtype)
    for r in range(rows):
        for s in range(columns):
            seen = padded[:, :, r : r + STRIDE * out_height : STRIDE, s : s + STRIDE * out_width : STRIDE]
            Y += seen * F[:, r, s][:, None, None]
    return Y
