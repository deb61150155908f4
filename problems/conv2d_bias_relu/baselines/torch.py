"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, W, bias, *dims):
        pad, stride = dims[7:9]
        return F.relu(F.conv2d(X, W, bias, stride=stride, padding=pad))


def get_inputs():
    return []
