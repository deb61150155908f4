"""run(inputs..., dim=number...) on CUDA tensors: the outputs, new tensors, one or a tuple of them. Dims
come from the inputs' shapes; those that do not may be given by name. No gradients."""

from .kernel import Kernel, KernelError, UnfitError  # noqa: F401

run = Kernel()
