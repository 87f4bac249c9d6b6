# SPDX-License-Identifier: Apache-2.0
"""Where bench/experiment.py works: directories that go when it ends, a slow storage, programs that end with it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED_STORAGE = os.environ.get("STOKER_SHARED_STORAGE", str(ROOT / "build/release/shared_storage"))


INSTEAD = "\nor measure on storage of your own: --shared DIR --local DIR"


def run(*words, env: dict[str, str] | None = None) -> str:
    """What a program printed. When we are stopped, it is, with all that it has started."""
    words = [str(word) for word in words]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.communicate()
        raise
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)} failed:\n{output}{errors}")
    return output


def files_of(directory: str) -> Iterator[str]:
    """Those below it, found by listing alone: to look at each would cost a request, and be remembered."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files_of(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path


def each_file(directory: pathlib.Path, function: Callable[[str], object]) -> None:
    """By many threads: what is done waits for storage, not for a core."""
    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(function, files_of(str(directory))):
            pass


def forget(directory: pathlib.Path) -> None:
    """The kernel drops what it keeps of the files, as far as it was written."""
    each_file(directory, forget_file)


def forget_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def is_mounted(path: pathlib.Path) -> bool:
    """Also where nobody answers any more, which stat() would not say."""
    escaped = (
        os.fsencode(path)
        .replace(b"\\", b"\\134")
        .replace(b" ", b"\\040")
        .replace(b"\t", b"\\011")
        .replace(b"\n", b"\\012")
    )
    return any(
        line.split(b" ")[4] == escaped for line in pathlib.Path("/proc/self/mountinfo").read_bytes().splitlines()
    )


class SlowStorage:
    """A directory behind bench/shared_storage. Mounted anew, its client remembers nothing and all counts are 0."""

    def __init__(self, directory: pathlib.Path, mountpoint: pathlib.Path, settings: list[str]):
        self.directory = directory
        self.mountpoint = mountpoint
        self.settings = settings
        self.process: subprocess.Popen | None = None

    def mount(self) -> None:
        self.unmount()
        command = [SHARED_STORAGE, *self.settings, str(self.directory), str(self.mountpoint)]
        try:
            # A session of its own: Ctrl-C must not take it away from those who read.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
        except FileNotFoundError:
            cause = f"{SHARED_STORAGE} is not there: cmake --build build/release --target shared_storage"
            sys.exit(f"{cause} (needs libfuse3-dev){INSTEAD}")
        while not is_mounted(self.mountpoint):
            if self.process.poll() is not None:
                cause = self.process.stderr.read().decode(errors="replace").strip()
                needs = "It needs /dev/fuse, and without root fusermount3 (Debian: fuse3)"
                sys.exit(f"the slow storage cannot be mounted: {cause}\n{needs}{INSTEAD}")
            time.sleep(0.01)

    def unmount(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stderr.close()
            self.process = None
        if is_mounted(self.mountpoint):
            subprocess.run(["fusermount3", "-u", "-z", str(self.mountpoint)], check=False)


class Workspace:
    """`shared`, where the dataset lies, and `local`, where it is brought: new directories, removed at the end."""

    def __init__(self) -> None:
        self.made: list[pathlib.Path] = []
        self.slow: SlowStorage | None = None

    def open(self, shared: pathlib.Path | None, local: pathlib.Path, settings: list[str]) -> None:
        self.local = self.make(local)
        if shared:
            self.shared = self.below = self.make(shared)
        else:
            # What is behind the slow storage, and where it is shown.
            self.below, self.shared = self.make(local), self.make(local)
            self.slow = SlowStorage(self.below, self.shared, settings)

    def make(self, parent: pathlib.Path) -> pathlib.Path:
        try:
            self.made.append(pathlib.Path(tempfile.mkdtemp(prefix="stoker-experiment-", dir=parent.resolve())))
        except OSError as error:
            sys.exit(f"{parent}: {error.strerror}")
        return self.made[-1]

    def clear_local(self) -> None:
        for path in self.local.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def remove(self) -> None:
        if self.slow:
            self.slow.unmount()
        for path in self.made:
            if is_mounted(path):
                print(f"{path} is still mounted and stays: fusermount3 -u {path}", file=sys.stderr)
            else:
                subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=False)
