"""What PyTorch has for it: a baseline on a GPU. forward gets the inputs, then the dims."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, Q, K, V, *dims):
        return F.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=True)[0]


def get_inputs():
    return []
