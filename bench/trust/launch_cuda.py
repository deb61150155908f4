"""Launches a CUDA candidate by the driver's API and NVRTC: what its front matter says, read here. No twagent, no torch."""
import ctypes
import glob
import os
import re
import sys

import yaml

from spec import number

TYPES = ("typedef signed char int8_t; typedef signed short int16_t; typedef signed int int32_t; typedef signed long long int64_t;\n"
         "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;\n"
         "typedef unsigned long long uint64_t; typedef uint64_t uintptr_t; typedef int64_t intptr_t;\n")
NUMBERS = ("#ifndef INFINITY\n#define INFINITY __builtin_bit_cast(float, 0x7f800000)\n#endif\n"
           "#ifndef NAN\n#define NAN __builtin_bit_cast(float, 0x7fffffff)\n#endif\n")
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "float64": 8}
MAP_TYPES = {"int32": 3, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9, "tf32": 11}
FACTS = {"warp_size": 10, "sm_count": 16, "l2_bytes": 38, "max_threads_per_sm": 39, "sm_shared_bytes": 81,
         "registers_per_sm": 82, "shared_bytes_optin": 97}


class Fault(Exception):
    pass


def listed(value):
    """Expressions of a list or of one text; commas inside parentheses divide nothing."""
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    parts, depth = [""], 0
    for letter in str(value):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def plan_of(text):
    """What is needed of a candidate's front matter, each tune parameter at its first number."""
    match = re.match(r"/\*---\n(.*?)---\*/", text, re.S)
    head = yaml.safe_load(match[1])
    head["tune"] = {k: v[0] if isinstance(v, list) else v for k, v in (head.get("tune") or {}).items() if k != "where"}
    return head


# ---- NVRTC ----


def nvrtc():
    sites = [os.path.join(p, "nvidia/*/lib/libnvrtc.so*") for p in sys.path if p.endswith("-packages")]
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for pattern in [*sites, home + "/lib64/libnvrtc.so*", "/usr/local/cuda*/lib64/libnvrtc.so*"]:
        for path in sorted(glob.glob(pattern)):
            if "builtins" not in path and ".alt." not in path and "static" not in path:
                return ctypes.CDLL(path)
    return ctypes.CDLL("libnvrtc.so")


def headers():
    sites = [os.path.join(p, "nvidia/*/include") for p in sys.path if p.endswith("-packages")]
    found = [f for pattern in [*sites, os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include"] for f in glob.glob(pattern)]
    return [*found, *(os.path.join(f, "cccl") for f in found)]


def compile_source(text, arch):
    """The cubin, or None where it does not compile."""
    head = plan_of(text)
    flags = (head.get("compile") or {}).get("flags") or []
    flags = flags.split() if isinstance(flags, str) else flags
    first = "".join(re.findall(r"^#include[^\n]*\n", text, re.M))
    body = re.sub(r"^#include[^\n]*\n", "\n", text, flags=re.M)
    unit = TYPES + first + NUMBERS + "".join("#define %s %d\n" % one for one in head["tune"].items()) + body
    options = ["--gpu-architecture=" + arch, "--device-as-default-execution-space", *flags,
               *(["--std=c++17"] if not any("-std=" in f for f in flags) else []), *("--include-path=" + h for h in headers())]
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    names = [b"stdint.h", b"float.h", b"limits.h"]
    texts = [b"\n", b"#define FLT_MAX 3.40282347e+38F\n", b"#define INT_MAX 0x7fffffff\n"]
    made = library.nvrtcCreateProgram(ctypes.byref(program), unit.encode(), b"mutant.cu", len(names),
                                      (ctypes.c_char_p * 3)(*texts), (ctypes.c_char_p * 3)(*names))
    if made != 0:
        raise Fault("nvrtcCreateProgram: %d" % made)
    if library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options])):
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        library.nvrtcGetProgramLog(program, log)
        compile_source.log = log.value.decode(errors="replace")
        return None
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, cubin)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


# ---- the driver ----


class Value(ctypes.Union):
    _fields_ = [("bytes", ctypes.c_char * 64), ("cooperative", ctypes.c_int), ("cluster", ctypes.c_uint * 3)]


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", Value)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Allocation(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("meta", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


library = None


def driver(name, *arguments):
    global library
    library = library or ctypes.CDLL("libcuda.so.1")
    result = getattr(library, name)(*arguments)
    if result != 0:
        text = ctypes.c_char_p()
        library.cuGetErrorName(result, ctypes.byref(text))
        raise Fault("%s: %s" % (name, (text.value or b"%d" % result).decode()))


def attribute(device, which):
    value = ctypes.c_int()
    driver("cuDeviceGetAttribute", ctypes.byref(value), which, device)
    return value.value


def facts(device=0):
    known = {name: attribute(device, which) for name, which in FACTS.items()}
    known["compute_capability"] = 10 * attribute(device, 75) + attribute(device, 76)
    return known


class Walled:
    """Memory of the device between addresses where nothing is mapped: whoever goes beyond it faults."""

    GRAIN = 2 << 20

    def __init__(self, size, device=0):
        self.size = -(-size // self.GRAIN) * self.GRAIN
        where = Location(1, device)
        prop = Allocation(type=1, location=where)
        handle, self.base = ctypes.c_ulonglong(), ctypes.c_ulonglong()
        driver("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(self.size), ctypes.byref(prop), ctypes.c_ulonglong(0))
        driver("cuMemAddressReserve", ctypes.byref(self.base), ctypes.c_size_t(self.size + 2 * self.GRAIN),
               ctypes.c_size_t(0), ctypes.c_ulonglong(0), ctypes.c_ulonglong(0))
        self.begin = self.base.value + self.GRAIN
        driver("cuMemMap", ctypes.c_ulonglong(self.begin), ctypes.c_size_t(self.size), ctypes.c_size_t(0), handle,
               ctypes.c_ulonglong(0))
        access = Access(where, 3)
        driver("cuMemSetAccess", ctypes.c_ulonglong(self.begin), ctypes.c_size_t(self.size), ctypes.byref(access),
               ctypes.c_size_t(1))


class Kernel:
    """A loaded candidate; call(pointers by name, dims, dtypes and shapes by name)."""

    def __init__(self, cubin, plan, known):
        self.plan, self.known, self.module, self.functions = plan, known, ctypes.c_void_p(), {}
        driver("cuModuleLoadData", ctypes.byref(self.module), cubin)
        for launch in plan["launch"]:
            function = ctypes.c_void_p()
            driver("cuModuleGetFunction", ctypes.byref(function), self.module, launch["entry"].encode())
            self.functions[launch["entry"]] = function

    def workspaces(self, dims):
        scope = {**self.known, **self.plan["tune"], **dims}
        return {name: (w["dtype"], tuple(number(a, scope) for a in listed(w["shape"])))
                for name, w in (self.plan.get("workspace") or {}).items()}

    def map(self, spec, scope, pointer, dtype, shape):
        """A tensor map: 128 bytes at a multiple of 64; zeros where the hardware has none for such rows."""
        extents = [number(a, scope) for a in reversed(listed(spec["shape"]))] if "shape" in spec else list(reversed(shape))
        box = [number(a, scope) for a in reversed(listed(spec["box"]))]
        steps = [number(a, scope) for a in reversed(listed(spec["strides"]))] if "strides" in spec else [1] * len(extents)
        buffer = ctypes.create_string_buffer(192)
        address = -(-ctypes.addressof(buffer) // 64) * 64
        strides, step = [], SIZES[dtype]
        for extent in extents:
            strides.append(step)
            step *= extent
        rank = len(extents)
        swizzle = {"none": 0, "32B": 1, "64B": 2, "128B": 3}[spec.get("swizzle", "none")]
        l2 = {"none": 0, "64B": 1, "128B": 2, "256B": 3}[spec.get("l2", "none")]
        if all(s % 16 == 0 for s in strides[1:]):
            driver("cuTensorMapEncodeTiled", ctypes.c_void_p(address), MAP_TYPES[spec.get("type", dtype)], rank,
                   ctypes.c_void_p(pointer), (ctypes.c_ulonglong * rank)(*extents),
                   (ctypes.c_ulonglong * rank)(*strides[1:], 0), (ctypes.c_uint * rank)(*box), (ctypes.c_uint * rank)(*steps),
                   0, swizzle, l2, 0)
        return buffer, address

    def __call__(self, pointers, dims, tensors):
        """pointers, tensors: {name: address}, {name: (dtype, shape)}, workspaces among them. Not waited for."""
        scope = {**self.known, **self.plan["tune"], **dims}
        stream = ctypes.c_void_p(0)
        for name, byte in (self.plan.get("memset") or {}).items():
            dtype, shape = tensors[name]
            size = SIZES[dtype]
            for axis in shape:
                size *= axis
            driver("cuMemsetD8Async", ctypes.c_ulonglong(pointers[name]), ctypes.c_ubyte(byte), ctypes.c_size_t(size), stream)
        maps = {name: self.map(m, scope, pointers[m["tensor"]], *tensors[m["tensor"]])
                for name, m in (self.plan.get("tma") or {}).items()}
        for launch in self.plan["launch"]:
            triple = lambda key: ([number(a, scope) for a in listed(launch[key])] + [1, 1])[:3]
            config, attributes, function = Config(), [], self.functions[launch["entry"]]
            config.grid[:], config.block[:] = triple("grid"), triple("block")
            config.shared = -(-number(launch.get("shared", 0), scope) // 16) * 16
            if config.shared > 0:
                driver("cuFuncSetAttribute", function, 8, config.shared)
            if launch.get("cooperative"):
                attributes.append(Attribute(id=2))
                attributes[-1].value.cooperative = 1
            if "cluster" in launch:
                attributes.append(Attribute(id=4))
                attributes[-1].value.cluster[:] = cluster = triple("cluster")
                if cluster[0] * cluster[1] * cluster[2] > 8:
                    driver("cuFuncSetAttribute", function, 14, 1)
            held = (Attribute * max(1, len(attributes)))(*attributes)
            config.attributes, config.count = held, len(attributes)
            kept, cells = [], (ctypes.c_void_p * len(launch["args"]))()
            for i, name in enumerate(launch["args"]):
                if name in maps:
                    cells[i] = maps[name][1]
                    continue
                cell = ctypes.c_ulonglong(pointers[name]) if name in pointers else \
                    ctypes.c_longlong(dims[name] if name in dims else number(name if isinstance(name, int) else str(name), scope))
                kept.append(cell)
                cells[i] = ctypes.addressof(cell)
            driver("cuLaunchKernelEx", ctypes.byref(config), function, cells, None)
