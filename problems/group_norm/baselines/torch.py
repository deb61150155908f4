"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, gamma, beta, *dims):
        return F.group_norm(X, dims[4], gamma, beta)


def get_inputs():
    return []
