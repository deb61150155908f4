import torch
import torch.nn as nn


class Model(nn.Module):
    """Rectifier: as many bytes as the layer norm moves, and no element waits for another."""

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(17, 4194304)]


def get_init_inputs():
    return []
