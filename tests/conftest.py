# SPDX-License-Identifier: Apache-2.0
"""What the tests share: the program, the peers' interpreters, another user, a small file system."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from stoker_program import Finished, clean_environment, program

NOBODY = 65534
# Where ./test keeps the peers' environments; the tests themselves have a cache of their own.
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """An index of another file that once had a test's path must not be found again, nor a site's file that the developer has."""
    own = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "XDG_CONFIG_HOME": str(tmp_path_factory.mktemp("config"))}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home directory of the programs under test; the cache is in it."""
    path = tmp_path / "home"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def stoker_environment(home: Path) -> dict[str, str]:
    return clean_environment(home)


@pytest.fixture
def stoker_cli(stoker_environment):
    """stoker_cli("pack", source, destination, status=0): runs the program, compares its exit status.

    status=None accepts any but death by a signal. `memory` bounds the address space in bytes.
    """

    def run(*arguments, status=0, env=None, cwd=None, timeout=120, memory=None, **options) -> Finished:
        def limit():
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        finished = Finished(
            subprocess.run(
                [program(), *arguments],
                env={**stoker_environment, **(env or {})},
                cwd=cwd,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                preexec_fn=limit if memory else None,
                **options,
            )
        )
        return finished.require(status)

    return run


# --- Peers ----------------------------------------------------------------------------------------

# Reads requests as JSON lines and runs each script in a fresh namespace; imports stay loaded, which
# for TensorFlow saves seconds a script.
PEER_LOOP = """
import contextlib, io, json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    request = json.loads(line)
    sys.argv = ["script", *request["arguments"]]
    printed = io.StringIO()
    error = None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(request["script"], "script", "exec"), {"__name__": "__main__"})
    except BaseException:
        error = traceback.format_exc()
    answers.write(json.dumps({"stdout": printed.getvalue(), "error": error}) + "\\n")
    answers.flush()
"""


class PeerError(AssertionError):
    """A script failed in the peer's interpreter; the message is its traceback."""


class Peer:
    """peer(script, *arguments) runs Python text, or a file, where a peer's libraries are; returns what it printed."""

    def __init__(self, group: str):
        self.group = group
        self.process = None

    def interpreter(self) -> str:
        variable = f"STOKER_PEER_{self.group.upper()}"
        made = sorted(CACHE.glob(f"stoker/venvs/{self.group}-*/bin/python"), key=lambda path: path.lstat().st_mtime)
        path = os.environ.get(variable) or (str(made[-1]) if made else "")
        if not path or not os.access(path, os.X_OK):
            pytest.fail(
                f"the peer {self.group} is missing ({path or 'no environment of it'}): ./test makes it from "
                f"tests/peers/{self.group}.txt, or set {variable} to the Python that has these packages"
            )
        return path

    def start(self) -> subprocess.Popen:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")
        self.log = tempfile.TemporaryFile()
        return subprocess.Popen(
            [self.interpreter(), "-c", PEER_LOOP],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def __call__(self, script, *arguments) -> str:
        if isinstance(script, Path):
            script = script.read_text()
        if self.process is None or self.process.poll() is not None:
            self.process = self.start()
        request = {"script": script, "arguments": [os.fspath(argument) for argument in arguments]}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
            self.log.seek(0)
            tail = self.log.read().decode(errors="replace")[-3000:]
            raise PeerError(f"{self.group} died with status {self.process.returncode}\n{tail}")
        answer = json.loads(answer)
        if answer["error"]:
            raise PeerError(answer["error"])
        return answer["stdout"]

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait(timeout=60)
            self.log.close()


def peer_fixture(group: str):
    @pytest.fixture(scope="session", name=f"peer_{group}")
    def peer():
        with contextlib.closing(Peer(group)) as made:
            yield made

    return peer


@pytest.fixture
def peer_interpreter():
    """peer_interpreter("torch"): the Python that has a peer's libraries, for tests that need a process of their own."""
    return lambda group: Peer(group).interpreter()


peer_webdataset = peer_fixture("webdataset")
peer_torch = peer_fixture("torch")
peer_tensorflow = peer_fixture("tensorflow")
peer_tensorboard = peer_fixture("tensorboard")
peer_lmdb = peer_fixture("lmdb")
peer_scipy = peer_fixture("scipy")
peer_hdf5 = peer_fixture("hdf5")
peer_arrow = peer_fixture("arrow")


# --- Another user, a small file system ------------------------------------------------------------


class OtherUser:
    """Runs the program as someone whom permissions stop; root is not."""

    def __init__(self, directory: Path):
        self.directory = directory  # everybody can reach it
        self.home = directory / "home"
        self.home.mkdir()
        self.program = directory / "stoker"
        shutil.copy2(program(), self.program)
        self.is_root = os.geteuid() == 0
        self.give(self.home)

    def give(self, path: Path) -> None:
        """Makes `path` and what lies in it the other user's."""
        if self.is_root:
            for each in [path, *path.rglob("*")]:
                os.chown(each, NOBODY, NOBODY, follow_symlinks=False)

    def __call__(self, *arguments, status=0, env=None, timeout=120, **options) -> Finished:
        if self.is_root:
            options.update(user=NOBODY, group=NOBODY, extra_groups=[])
        finished = Finished(
            subprocess.run(
                [self.program, *arguments],
                env={**clean_environment(self.home), **(env or {})},
                cwd=self.directory,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                **options,
            )
        )
        return finished.require(status)


@pytest.fixture
def as_other_user():
    """Its `directory` can be reached by everybody, unlike pytest's own; calling it runs the program as nobody."""
    directory = Path(tempfile.mkdtemp(prefix="stoker-test-"))
    directory.chmod(0o755)
    try:
        yield OtherUser(directory)
    finally:
        for path, _, _ in os.walk(directory):
            with contextlib.suppress(OSError):
                os.chmod(path, 0o755)
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def small_file_system(tmp_path: Path):
    """small_file_system(bytes) mounts a tmpfs of that size and returns its path."""
    mounted = []

    def mount(size: int) -> Path:
        if os.geteuid() != 0:
            pytest.fail("this test mounts a tmpfs of a few MB and needs root for it: run the tests as root")
        path = tmp_path / f"small-{len(mounted)}"
        path.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, text=True
        )
        if done.returncode != 0:
            pytest.fail(f"mounting a tmpfs failed: {done.stderr} (in a container: needs CAP_SYS_ADMIN)")
        mounted.append(path)
        return path

    yield mount
    for path in mounted:
        subprocess.run(["umount", path], check=False) if os.path.ismount(path) else None
