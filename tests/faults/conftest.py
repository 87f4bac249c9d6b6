# SPDX-License-Identifier: Apache-2.0
"""What strikes: a shim at the n-th call with which the program changes the file system (see kill_at.c), and other users."""

import os
import subprocess
from pathlib import Path

import pytest
from samples import image_folder


@pytest.fixture(scope="session")
def shim(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "kill_at.so"
    source = Path(__file__).with_name("kill_at.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture
def count_calls(shim, stoker_cli, tmp_path):
    """count_calls("pack", …): runs the program to its end and returns how many calls changed the file system."""

    def count(*arguments) -> int:
        answer = tmp_path / "count"
        stoker_cli(*arguments, env={"LD_PRELOAD": str(shim), "KILL_COUNT": str(answer)})
        calls = int(answer.read_text())
        answer.unlink()
        assert calls > 0, "the shim counts nothing: is the program linked statically?"
        return calls

    return count


@pytest.fixture
def scratch(as_other_user):
    """Where everybody writes, as on a node."""
    if os.geteuid() != 0:
        pytest.fail("needs two users: run the tests as root")
    path = as_other_user.directory / "scratch"
    path.mkdir()
    path.chmod(0o1777)
    return path


@pytest.fixture
def shared(as_other_user, stoker_cli):
    source = as_other_user.directory / "source"
    image_folder(source)
    packed = as_other_user.directory / "packed"
    stoker_cli("pack", source, packed, "--shard-size", "12K")
    for path in [packed, *packed.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return packed


@pytest.fixture
def user_namespaces():
    """For tests that need them. In a chroot the kernel makes none, not even for root: only there these tests are skipped."""
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    if "/" not in mounted:
        pytest.skip("in a chroot the kernel makes no user namespaces")
    if subprocess.run(["unshare", "--user", "true"], user=1, group=1, extra_groups=[], cwd="/").returncode != 0:
        pytest.fail("users cannot make namespaces here: sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces")
