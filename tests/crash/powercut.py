"""Power loss for a killed process: takes back what it wrote but never fsynced.

kill -9 alone cannot show a missing fsync: the kernel still has the pages. The preloaded
powercut.so logs the old bytes of every write below a folder, and each finished fsync;
after the kill, apply() puts back the synced image, then keeps a random part of the
unsynced 4 KiB blocks (a disk may have written any of them).
Not covered: mmap writes, O_DIRECT/io_uring, lost directory entries.
"""
import collections
import os
import struct
import subprocess

BLOCK = 4096
HEAD = struct.Struct("<cQQQQH")  # kind, seq, offset, old length of the range, old file size, path length


class Cut:
    def __init__(self, work, ignore_flushes=False):
        self.ignore = ignore_flushes
        here = os.path.dirname(os.path.abspath(__file__))
        self.dir, self.log, self.so = os.path.realpath(work), os.path.join(work, "powercut.log"), os.path.join(work, "powercut.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self.so, os.path.join(here, "powercut.c"), "-ldl", "-lpthread"], check=True)

    def env(self):
        open(self.log, "wb").close()
        return {"LD_PRELOAD": self.so, "POWERCUT_DIR": self.dir, "POWERCUT_LOG": self.log, **({"POWERCUT_IGNORE": "1"} if self.ignore else {})}

    def records(self):
        with open(self.log, "rb") as f:
            data = f.read()
        at, out = 0, collections.defaultdict(list)
        while at + HEAD.size <= len(data):
            kind, seq, offset, length, size, n = HEAD.unpack_from(data, at)
            end = at + HEAD.size + n + (length if kind == b"W" else 0)
            if end > len(data):
                break  # the kill came in the middle of a record, so before its write
            path = data[at + HEAD.size:at + HEAD.size + n].decode()
            out[path].append((kind, seq, offset, size, data[at + HEAD.size + n:end]))
            at = end
        return out

    def apply(self, rng):
        for path, recs in self.records().items():
            if not os.path.exists(path):
                continue
            synced = max((seq for kind, seq, *_ in recs if kind == b"S"), default=-1)
            undo = [r for r in recs if r[0] == b"W" and r[1] > synced]
            if not undo:
                continue
            with open(path, "rb") as f:
                current = f.read()
            image = bytearray(current)
            for _, _, offset, size, old in reversed(undo):  # the oldest pre-image wins
                if len(image) < offset:
                    image.extend(bytes(offset - len(image)))
                image[offset:offset + len(old)] = old
                if len(image) > size:
                    del image[size:]
                elif len(image) < size:
                    image.extend(bytes(size - len(image)))
            keep = rng.choice([0.0, 0.0, 0.5, 0.9])
            out = bytearray(image)
            for at in range(0, len(current), BLOCK):
                new = current[at:at + BLOCK]
                if new != bytes(image[at:at + BLOCK]) and rng.random() < keep:
                    if len(out) < at:
                        out.extend(bytes(at - len(out)))
                    out[at:at + len(new)] = new
            with open(path, "r+b") as f:
                f.write(out)
                f.truncate(len(out))
