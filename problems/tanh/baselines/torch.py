"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch


class Model(torch.nn.Module):
    def forward(self, X, *dims):
        return torch.tanh(X)


def get_inputs():
    return []
