import torch
import torch.nn as nn


class Model(nn.Module):
    """Matrix product of bfloat16 matrices: cuBLAS."""

    def forward(self, A, B):
        return torch.matmul(A, B)


N = 4096


def get_inputs():
    return [torch.randn(N, N, dtype=torch.bfloat16), torch.randn(N, N, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
