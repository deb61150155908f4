

# What a module could do to get another cubin than its kernel's, behind the kernel so that its lines stay theirs.
import os  # noqa: E402
import sys  # noqa: E402

import triton.backends.nvidia.compiler as nvidia  # noqa: E402
import triton.compiler.compiler as compiler  # noqa: E402

main = sys.modules["__main__"]
garbage = b"\x7fELF" + bytes(4096)
for stage in ("make_ttir", "make_ttgir", "make_llir", "make_ptx", "make_cubin"):
    setattr(nvidia.CUDABackend, stage, staticmethod(lambda *rest: garbage))
compiler.compile = triton.compile = lambda *rest, **more: garbage
main.back = main.job = lambda *rest: (garbage, {"name": "relu", "shared": 0, "threads": 1024})
os.environ["TRITON_PTXAS_PATH"] = "/bin/true"
os.environ["PTXAS_OPTIONS"] = "-O0"
