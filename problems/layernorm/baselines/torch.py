"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, gamma, beta, *dims):
        return F.layer_norm(X, gamma.shape, gamma, beta, 1e-5)


def get_inputs():
    return []
