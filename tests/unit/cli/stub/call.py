"""call.py FOLDER MODE: imports an emitted package with the torch beside this file, and calls it.
"function": run(X) of the problem relu. "module": ModelNew of the problem in test_emit.c."""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch  # noqa: E402

folder = os.path.abspath(sys.argv[1])
for name in os.listdir(folder):
    if name.endswith(".py"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            compile(file.read(), name, "exec")
cubin = os.path.join(folder, "kernel.sm_90.cubin".replace("sm_90", "sm_90a"))
if not os.path.exists(cubin):
    with open(cubin, "w", encoding="utf-8") as file:
        file.write("no NVRTC here, and the fake driver loads anything")
sys.path.insert(0, os.path.dirname(folder))
package = importlib.import_module(os.path.basename(folder))
values = [(-1.5) ** (i % 7) for i in range(3 * 5)]
expected = [max(value, 0.0) for value in values]


def must_raise(kind, function, *arguments, **more):
    try:
        function(*arguments, **more)
    except kind:
        return
    sys.exit("expected %s" % kind.__name__)


if sys.argv[2] == "function":
    x = torch.Tensor((3, 5), torch.float32, values)
    y = package.run(x)
    assert y.shape == (3, 5) and list(y.cells) == expected, list(y.cells)
    launch = package.run.device(0).plans[(((3, 5),), ())][1][0]
    assert list(launch.config.grid) == [1, 1, 1] and launch.config.block[0] == 256
    large = package.run.prepare(package.run.device(0), ((4096, 4096),), {})[1][0]
    assert list(large.config.grid) == [8 * 132, 1, 1], list(large.config.grid)
    import warnings

    with warnings.catch_warnings(record=True) as said:  # checked up to M=4096, N=4096
        warnings.simplefilter("always")
        for shape in ((4097, 1), (1, 4097), (4096, 1)):
            y = package.run(torch.Tensor(shape, torch.float32, [2.0] * (shape[0] * shape[1])))
            assert y.shape == shape and set(y.cells) == {2.0 if shape[0] == 4096 else 1002.0}, set(y.cells)
    assert len(said) == 1 and "PyTorch computes it" in str(said[0].message), [str(each.message) for each in said]
    must_raise(package.UnfitError, package.kernel.Kernel(), torch.Tensor((4100, 1), torch.float32))
    must_raise(TypeError, package.run, x, x)
    must_raise(TypeError, package.run, torch.Tensor((3, 5), torch.int32))
    must_raise(ValueError, package.run, x, M=4)
    must_raise(ValueError, package.run, torch.Tensor((3,), torch.float32))
else:
    model = package.ModelNew()
    x = torch.Tensor((15,), torch.float32, values)
    out, none = model(x, 0.5)
    assert none is None and out.shape == (15,) and list(out.cells) == expected, list(out.cells)
    for named in ({"scale": 0.5, "x": x}, {"x": x, "scale": 0.5}):
        assert list(model(**named)[0].cells) == expected
    assert list(model(x, scale=0.5)[0].cells) == expected
    assert model.called == 0
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert model(x, 0.25) == "original" and model(x, 0.25) == "original"
        assert model(torch.Tensor((3, 4), torch.float32), 0.5) == "original"
        assert model(torch.Tensor((65,), torch.float32), 0.5) == "original"
        assert model(torch.Tensor((66,), torch.float32), 0.5) == "original"
        package.kernel.devices[0].facts["sm_count"] = 16
        assert model(torch.Tensor((16,), torch.float32), 0.5) == "original"
        found = package.kernel.devices[0]
        package.kernel.devices[0] = package.KernelError("does not compile for sm_120a")
        assert model(x, 0.5) == "original"
        package.kernel.devices[0] = found
        model.training = False
        assert model(x, 0.5) == "original"
    words = [str(each.message) for each in said]
    wanted = ["constant argument", "shape", "was checked up to B=64 and no further", "tune numbers are not for this device", "sm_120a", "training mode"]
    assert len(words) == len(wanted), words
    assert all(want in word for want, word in zip(wanted, words)), words

    def set_with(cluster):
        set_to, launcher = [], importlib.import_module(os.path.basename(folder) + ".kernel")
        plan = {"grid": ["8", "8", "8"], "block": ["32"], "shared": "", "cooperative": False}
        plan.update(cluster=cluster, args=[])
        launcher.Launch(lambda *call: set_to.append(call[2:]), None, plan, package.kernel.shapes, {}, {})
        return set_to

    assert set_with(["8"]) == [] and set_with(["2", "4"]) == [] and set_with(["16"]) == [(14, 1)]
    assert set_with(["4", "4"]) == [(14, 1)] and set_with(["2", "2", "4"]) == [(14, 1)]
