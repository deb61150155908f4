"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, W, mean, variance, gamma, beta, *dims):
        pad, stride = dims[7:9]
        return F.silu(F.batch_norm(F.conv2d(X, W, stride=stride, padding=pad), mean, variance, gamma, beta))


def get_inputs():
    return []
