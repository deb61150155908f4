"""A process takes privileges away from itself once more, within the sandbox that it is in: what twagent's own sandbox
does in C (src/process/sandbox_landlock.c, sandbox_seccomp.c), for forks of a warm Python, which can start no program.
"""

import ctypes
import os
import signal
import struct

SYSTEM = ["/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/dev/null"]
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKES_NO_FILE = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12  # devices, sockets, pipes, links
libc = ctypes.CDLL(None, use_errno=True)


def system_call(number, *arguments):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_void_p(a) if isinstance(a, int) else a for a in arguments])


def landlock(reads, rights, folder):
    """`reads` with these rights, `folder` (or None) to write to, nothing else; where the kernel has Landlock."""
    version = system_call(444, 0, 0, 1)
    if version < 1:
        return
    known = (1 << 13) - 1 | (version >= 2) << 13 | (version >= 3) << 14 | (version >= 5) << 15
    attributes = struct.pack("QQQ", known, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    attributes = attributes[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = system_call(444, ctypes.c_char_p(attributes), len(attributes), 0)
    if rules < 0:
        raise OSError("Landlock refuses a ruleset")
    writes = [(folder, known & ~(EXECUTE | MAKES_NO_FILE))] if folder else []
    for path, allowed in [(path, rights) for path in reads] + writes:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what is not there cannot be opened either
        if not os.path.isdir(path):
            allowed &= EXECUTE | READ_FILE
        if path == "/dev/null":
            allowed |= WRITE_FILE
        rule = struct.pack("=Qi", allowed & known, opened)
        if system_call(445, rules, 1, ctypes.c_char_p(rule), 0) != 0:
            raise OSError(f"Landlock refuses {path}")
        os.close(opened)
    if system_call(446, rules, 0) != 0:
        raise OSError("Landlock refuses")
    os.close(rules)


# clone, prlimit64, then what is refused: fork, vfork, execve, execveat, kill, tkill, tgkill, sched_setaffinity; what
# Landlock does not, of files that are only named: chmod, fchmod, fchmodat, fchmodat2, utime, utimes, futimesat,
# utimensat, the three of setxattr, the three of removexattr, setxattrat, removexattrat; a lock on one; inotify
CALLS = {
    "x86_64": (
        0xC000003E, 56, 302,
        (57, 58, 59, 322, 62, 200, 234, 203, 90, 91, 268, 452, 132, 235, 261, 280, 188, 189, 190, 197, 198, 199, 463, 466)
        + (73, 253, 294),
    ),
    "aarch64": (
        0xC00000B7, 220, 261,
        (221, 281, 129, 130, 131, 122, 52, 53, 452, 88, 5, 6, 7, 14, 15, 16, 463, 466) + (32, 26),
    ),
}  # fmt: skip


def refuse_processes():
    """No new process, no thread, no program, no signal to anybody. Over the filter that is there already."""
    machine = os.uname().machine
    if machine not in CALLS:
        raise OSError(f"no filter for {machine}")
    arch, clone, limit, refused = CALLS[machine]
    load, equal, done = 0x20, 0x15, 0x06
    allow, refuse, kill = (done, 0, 0, 0x7FFF0000), (done, 0, 0, 0x00050001), (done, 0, 0, 0x80000000)
    code = [(load, 0, 0, 4), (equal, 1, 0, arch), kill, (load, 0, 0, 0)]
    for number in refused:
        code += [(equal, 0, 1, number), refuse]
    code += [(equal, 0, 1, clone), refuse]  # threads, too, of which a process could have all that a machine has
    code += [(equal, 0, 4, limit), (load, 0, 0, 16), (equal, 0, 1, 0), allow, refuse]  # its own
    code += [allow]
    text = b"".join(struct.pack("=HBBI", *line) for line in code)
    held = ctypes.create_string_buffer(text)
    program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(held))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0:
        raise OSError("seccomp refuses")


def die_with_parent(parent):
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def outlive_parent():
    libc.prctl(1, 0, 0, 0, 0)
