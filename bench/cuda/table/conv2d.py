import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True  # the library's fastest way, not its first guess


class Model(nn.Module):
    """AlexNet's first convolution in float32, without a bias: cuDNN, tf32 off."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2, bias=False)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(256, 3, 224, 224)]


def get_init_inputs():
    return []
