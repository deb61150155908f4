"""Is what a module computes a problem that ships? Then the starts of that one are starts of it (shipped_match.py).
Used by torch_problem.py.
"""

import math

import torch

ELEMENTS_MOST = 1 << 26


class Module:
    """What torch_problem has described, at a batch of our choice."""

    def __init__(self, described):
        self.described = described
        self.paths = {e["input"]: e["path"] for e in described.binding["parameters"]}
        batch = described.batch
        least = max(2, batch[3]) if batch else 0
        sizes = [least, least + 1, batch[1]] if batch and batch[1] > least else [batch[1]] if batch else []
        self.mine = {
            "dims": [],  # the batch is no padding
            "shapes": [{batch[0]: size} for size in sizes] or [{}],
            "inputs": [self.tensor(p["name"], described.shape_of(p), p["tensor"].dtype) for p in described.inputs],
            "outputs": [{"name": n, "shape": list(map(str, s)), "dtype": d} for n, s, d in described.outputs],
        }

    @staticmethod
    def tensor(name, shape, dtype):
        return {"name": name, "shape": list(map(str, shape)), "dtype": str(dtype).replace("torch.", "")}

    def run(self, size, values):
        described = self.described
        arguments, parameters = list(described.arguments), {}
        for place, value in zip(described.inputs, values):
            value = torch.from_numpy(value).to(described.device).to(place["tensor"].dtype)
            if place["index"] is None:
                parameters[self.paths[place["name"]]] = value
            else:
                arguments[place["index"]] = value
        return [result.detach().cpu().double().numpy() for _, result in described.try_run(arguments, parameters)]


def find(described, shipped):
    """As shipped_match's, or None."""
    try:
        import shipped_match

        module = Module(described)
        small = module.mine["shapes"][0]
        tensors = module.mine["inputs"] + module.mine["outputs"]
        if sum(math.prod(shipped_match.evaluate(t, small) for t in tensor["shape"]) for tensor in tensors) > ELEMENTS_MOST:
            return None
        shipped_match.SIZES_MOST = 1
        return shipped_match.find(module.mine, shipped, module.run)
    except Exception:  # no numpy, a module that takes nothing else: it has no starts, that is all
        return None
