"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, X, gamma, *dims):
        return F.rms_norm(X, gamma.shape, gamma, 1e-6)


def get_inputs():
    return []
