import torch
import torch.nn as nn


class Model(nn.Module):
    """A convolution, tanh, a factor, a bias, the maximum of 4 x 4: as level 2 of KernelBench has it
    (there with a batch of 128)."""

    def __init__(self, in_channels, out_channels, kernel_size, factor, bias_shape, pool):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.factor = factor
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.pool = nn.MaxPool2d(pool)

    def forward(self, x):
        return self.pool(torch.tanh(self.conv(x)) * self.factor + self.bias)


def get_inputs():
    return [torch.rand(16, 8, 256, 256)]


def get_init_inputs():
    return [8, 64, 3, 2.0, (64, 1, 1), 4]
