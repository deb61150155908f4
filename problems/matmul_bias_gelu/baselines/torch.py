"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, A, B, bias, *dims):
        return F.gelu(torch.addmm(bias, A, B))


def get_inputs():
    return []
