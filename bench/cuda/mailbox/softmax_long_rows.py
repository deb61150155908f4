import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax of long rows, as level 1 of KernelBench has it (there with 4096 rows)."""

    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.rand(64, 393216)]


def get_init_inputs():
    return []
