"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, *dims):
        return F.gelu(X, approximate="tanh")


def get_inputs():
    return []
