"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, W, *dims):
        pad, stride = dims[6:8]
        return F.conv2d(X, W[:, None], stride=stride, padding=pad, groups=W.shape[0])


def get_inputs():
    return []
