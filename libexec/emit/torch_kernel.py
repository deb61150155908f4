"""Launches kernel.cu as plan.json says, on PyTorch's tensors, device and current stream. Needs
torch, its driver and the standard library; a device that the cubin beside this file is not for also
needs NVRTC, which torch brings."""

import ctypes
import glob
import os
import threading

import torch

from .shapes import HERE, Shapes

ATTRIBUTES = {  # facts of a device, by the driver's numbers for them
    "warp_size": 10,
    "sm_count": 16,
    "l2_bytes": 38,
    "max_threads_per_sm": 39,
    "sm_shared_bytes": 81,
    "registers_per_sm": 82,
    "shared_bytes_optin": 97,
}
MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14  # of a function
COOPERATIVE, CLUSTER = 2, 4  # of a launch
MAP_TYPES = {"int32": 3, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9, "tf32": 11}
ALIGNMENT = 256
POINTER, NUMBER, MAP = range(3)


class KernelError(RuntimeError):
    pass


class UnfitError(KernelError):
    """Before anything was launched: it is not for this device, or not at these dims."""


class BeyondError(UnfitError):
    """It was not checked at such a size."""


class LaunchValue(ctypes.Union):
    _fields_ = [
        ("bytes", ctypes.c_char * 64),
        ("cooperative", ctypes.c_int),
        ("cluster", ctypes.c_uint * 3),
    ]


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", LaunchValue)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


class Driver:
    """libcuda, which torch has loaded already; every result is looked at."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(result, ctypes.byref(text))
            raise KernelError("%s: %s" % (name, (text.value or b"%d" % result).decode()))

    def attribute(self, device, number):
        value = ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value


# --- NVRTC, for other devices than the cubin's ---


def nvrtc_candidates():
    root = os.path.dirname(torch.__file__)
    site = os.path.dirname(root)
    patterns = [
        os.path.join(site, "nvidia", "*", "lib", "libnvrtc.so*"),
        os.path.join(root, "lib", "libnvrtc*.so*"),
        os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64", "libnvrtc.so*"),
    ]
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    found = [path for path in found if "builtins" not in path and ".alt." not in path]
    return found + ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]


def include_folders():
    """Where a toolkit's headers lie, as pip and as an installer has them."""
    site = os.path.dirname(os.path.dirname(torch.__file__))
    folders = glob.glob(os.path.join(site, "nvidia", "*", "include"))
    folders.append(os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include"))
    for path in list(folders):
        folders.append(os.path.join(path, "cccl"))
    return [path for path in folders if os.path.isdir(path)]


def nvrtc_compile(source, arch, flags):
    fault = None
    for path in nvrtc_candidates():
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as error:
            fault = error
    else:
        raise KernelError("no NVRTC to compile the kernel for %s with: %s" % (arch, fault))
    options = ["--gpu-architecture=" + arch, "--device-as-default-execution-space", *flags]
    if not any("-std=" in flag for flag in flags):
        options.append("--std=c++17")
    options.append("--include-path=" + os.path.join(HERE, "include"))
    options += ["--include-path=" + folder for folder in include_folders()]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
    if library.nvrtcCompileProgram(program, len(options), words) != 0:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        library.nvrtcGetProgramLog(program, log)
        raise KernelError("the kernel does not compile for %s:\n%s" % (arch, log.value.decode()))
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, cubin)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


# --- one device ---


class Device:
    """A loaded module, its functions, and the plans that were computed for it."""

    def __init__(self, driver, shapes, index):
        plan = shapes.plan
        device, self.module, self.functions = ctypes.c_int(), ctypes.c_void_p(), {}
        driver("cuDeviceGet", ctypes.byref(device), index)
        self.facts = {name: driver.attribute(device, n) for name, n in ATTRIBUTES.items()}
        major, minor = driver.attribute(device, 75), driver.attribute(device, 76)
        capability = self.facts["compute_capability"] = 10 * major + minor
        arch = "sm_%d%s" % (capability, "a" if capability >= 90 else "")
        cubin = os.path.join(HERE, "kernel.%s.cubin" % arch)
        if os.path.exists(cubin):
            with open(cubin, "rb") as file:
                image = file.read()
        else:
            with open(os.path.join(HERE, "kernel.cu"), "rb") as file:
                image = nvrtc_compile(file.read(), arch, plan["flags"])
        driver("cuModuleLoadData", ctypes.byref(self.module), image)
        for launch in plan["launches"]:
            function = ctypes.c_void_p()
            entry = launch["entry"].encode()
            driver("cuModuleGetFunction", ctypes.byref(function), self.module, entry)
            self.functions[launch["entry"]] = function
        self.plans = {}


class Launch:
    """One launch of one shape: all but pointers and the stream is settled."""

    def __init__(self, driver, function, launch, shapes, scope, names):
        def triple(texts):
            return [shapes.number(text, scope) for text in texts] + [1] * (3 - len(texts))

        self.function = function
        self.config = config = LaunchConfig()
        config.grid[:], config.block[:] = triple(launch["grid"]), triple(launch["block"])
        config.shared_bytes = shapes.number(launch["shared"], scope) if launch["shared"] else 0
        attributes = []
        if launch["cooperative"]:
            attributes.append(LaunchAttribute(id=COOPERATIVE))
            attributes[-1].value.cooperative = 1
        if launch["cluster"]:
            attributes.append(LaunchAttribute(id=CLUSTER))
            attributes[-1].value.cluster[:] = triple(launch["cluster"])
            x, y, z = attributes[-1].value.cluster[:]
            if x * y * z > 8:
                driver("cuFuncSetAttribute", function, NON_PORTABLE_CLUSTER, 1)
        self.attributes = (LaunchAttribute * max(1, len(attributes)))(*attributes)
        config.attributes, config.attribute_count = self.attributes, len(attributes)
        if config.shared_bytes > 0:
            driver("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, config.shared_bytes)
        self.arguments = []
        for name in launch["args"]:
            if name in names["tensors"]:
                self.arguments.append((POINTER, names["tensors"][name]))
            elif name in names["maps"]:
                self.arguments.append((MAP, names["maps"][name]))
            else:
                number = scope[name] if name in scope else int(name, 16 if "x" in name else 10)
                self.arguments.append((NUMBER, ctypes.c_longlong(number)))

    def __call__(self, driver, pointers, maps, stream):
        count = len(self.arguments)
        cells, kept = (ctypes.c_void_p * max(1, count))(), []
        for i, (kind, what) in enumerate(self.arguments):
            if kind == POINTER:
                what = ctypes.c_ulonglong(pointers[what])
                kept.append(what)
            cells[i] = maps[what] if kind == MAP else ctypes.addressof(what)
        config = LaunchConfig.from_buffer_copy(self.config)
        config.stream = stream
        driver("cuLaunchKernelEx", ctypes.byref(config), self.function, cells, None)


def aligned_map():
    """(a buffer to keep, the address in it that is a multiple of 64)"""
    buffer = ctypes.create_string_buffer(192)
    return buffer, (ctypes.addressof(buffer) + 63) // 64 * 64


class Kernel:
    """kernel(tensors..., dim=number...): the outputs, new tensors, one or a tuple of them."""

    def __init__(self):
        self.shapes = Shapes()
        plan = self.shapes.plan
        self.inputs, self.outputs = plan["inputs"], plan["outputs"]
        tensors = self.inputs + self.outputs + plan["workspaces"]
        self.names = {
            "tensors": {tensor["name"]: i for i, tensor in enumerate(tensors)},
            "maps": {each["name"]: i for i, each in enumerate(plan["maps"])},
        }
        self.tensors = tensors
        self.lock, self.devices, self.driver = threading.Lock(), {}, None

    def device(self, index):
        if index not in self.devices:
            with self.lock:
                if index not in self.devices:
                    self.driver = self.driver or Driver()
                    try:
                        self.devices[index] = Device(self.driver, self.shapes, index)
                    except KernelError as fault:  # kept: compiling again would end as it did
                        self.devices[index] = fault
        if isinstance(self.devices[index], KernelError):
            raise self.devices[index]
        return self.devices[index]

    def prepare(self, device, shapes_of, given):
        key = (shapes_of, tuple(sorted(given.items())))
        prepared = device.plans.get(key)
        if prepared is None:
            with self.lock:
                dims = self.shapes.dims(shapes_of, given)
                if self.shapes.beyond(dims) is not None:
                    raise BeyondError(self.shapes.beyond(dims))
                scope = dict(device.facts, **self.shapes.plan["tune"], **dims)
                if not self.shapes.valid_tune(scope):
                    raise KernelError("its tune numbers are not for this device at %s" % dims)
                plan = self.shapes.plan
                launches = [
                    Launch(self.driver, device.functions[each["entry"]], each, self.shapes, scope, self.names)
                    for each in plan["launches"]
                ]
                rest = self.tensors[len(self.inputs) :]
                shapes = [(self.shapes.extents(t, scope), getattr(torch, t["dtype"])) for t in rest]
                prepared = device.plans[key] = (scope, launches, shapes)
        return prepared

    def encode(self, map_, scope, pointer):
        """cuTensorMapEncodeTiled of one map; all zeros where the hardware has none."""
        tensor = self.tensors[self.names["tensors"][map_["tensor"]]]
        texts = map_["shape"] or tensor["shape"]
        extents = [self.shapes.number(text, scope) for text in reversed(texts)]
        box = [self.shapes.number(text, scope) for text in reversed(map_["box"])]
        steps = [self.shapes.number(text, scope) for text in reversed(map_["strides"])]
        rank, stride = len(extents), torch.empty(0, dtype=getattr(torch, tensor["dtype"])).element_size()
        strides = []
        for extent in extents:
            strides.append(stride)
            stride *= extent
        buffer, address = aligned_map()
        if all(each % 16 == 0 for each in strides[1:]):
            kind = "tf32" if map_["tf32"] else tensor["dtype"]
            self.driver(
                "cuTensorMapEncodeTiled",
                ctypes.c_void_p(address),
                MAP_TYPES[kind],
                rank,
                ctypes.c_void_p(pointer),
                (ctypes.c_ulonglong * rank)(*extents),
                (ctypes.c_ulonglong * rank)(*(strides[1:] + [0])),
                (ctypes.c_uint * rank)(*box),
                (ctypes.c_uint * rank)(*steps),
                0,
                map_["swizzle"],
                map_["promotion"],
                0,
            )
        return buffer, address

    def __call__(self, *tensors, **dims):
        if len(tensors) != len(self.inputs):
            raise TypeError("expected %d tensors, got %d" % (len(self.inputs), len(tensors)))
        where = tensors[0].device
        for tensor, spec in zip(tensors, self.inputs):
            if tensor.device != where or where.type != "cuda":
                raise TypeError("%s is on %s, expected one CUDA device" % (spec["name"], tensor.device))
            if tensor.dtype != getattr(torch, spec["dtype"]):
                raise TypeError("%s is %s, expected %s" % (spec["name"], tensor.dtype, spec["dtype"]))
        with torch.cuda.device(where), torch.no_grad():
            # Dense and aligned, as the kernel was proved on; a copy where they are not.
            tensors = [t.detach().contiguous() for t in tensors]
            tensors = [t.clone() if t.data_ptr() % ALIGNMENT else t for t in tensors]
            stream = torch.cuda.current_stream()
            try:
                device = self.device(stream.device.index)
                scope, launches, rest = self.prepare(device, tuple(t.shape for t in tensors), dims)
            except BeyondError:
                raise
            except KernelError as fault:
                raise UnfitError(str(fault)) from fault
            made = [torch.empty(shape, dtype=dtype, device=where) for shape, dtype in rest]
            pointers = [t.data_ptr() for t in tensors + made]
            self.launch(scope, launches, pointers, tensors + made, stream.cuda_stream)
        outputs = made[: len(self.outputs)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def launch(self, scope, launches, pointers, tensors, stream):
        plan, stream = self.shapes.plan, ctypes.c_void_p(stream)
        for each in plan["memsets"]:
            index = self.names["tensors"][each["tensor"]]
            size = tensors[index].numel() * tensors[index].element_size()
            target = ctypes.c_ulonglong(pointers[index])
            self.driver("cuMemsetD8Async", target, ctypes.c_ubyte(each["byte"]), ctypes.c_size_t(size), stream)
        maps = [
            self.encode(each, scope, pointers[self.names["tensors"][each["tensor"]]])
            for each in plan["maps"]
        ]
        addresses = [address for _, address in maps]
        for launch in launches:
            launch(self.driver, pointers, addresses, stream)
