"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, *dims):
        window, pad, stride = dims[4:7]
        return F.avg_pool2d(X, window, stride=stride, padding=pad)


def get_inputs():
    return []
