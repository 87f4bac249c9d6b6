# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face cache that colleagues share: snapshots are links into blobs, and links and blobs are of several users."""

import os
import subprocess
from pathlib import Path

import pytest
from samples import jpeg
from stoker_program import Finished, clean_environment
from tar_bytes import simple_tar

FIRST, SECOND, THIRD = 1, 2, 3
SECRET = b"what nobody else may read"


@pytest.fixture
def user(as_other_user):
    """user(1, "check", …): runs the program as that user, who is also in the group of SECOND."""
    if os.geteuid() != 0:
        pytest.fail("needs two users: run the tests as root")

    def run(number, *words, status=0) -> Finished:
        home = as_other_user.directory / f"home of {number}"
        home.mkdir(exist_ok=True)
        home.chmod(0o700)
        os.chown(home, number, number)
        finished = subprocess.run(
            [as_other_user.program, *words],
            user=number,
            group=number,
            extra_groups=[SECOND],
            cwd=home,
            env=clean_environment(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        return Finished(finished).require(status)

    run.home = lambda number: as_other_user.directory / f"home of {number}"
    return run


def made(path: Path, owner: int, mode: int) -> Path:
    os.chown(path, owner, SECOND, follow_symlinks=False)
    if not path.is_symlink():
        path.chmod(mode)
    return path


def directory(path: Path, owner: int, mode: int) -> Path:
    path.mkdir(exist_ok=True)
    return made(path, owner, mode)


SHARDS = [simple_tar({f"{i}.txt".encode(): b"%d" % i}) for i in range(3)]


class Repository:
    """As huggingface_hub writes one. FIRST has downloaded revision a; SECOND revision b, which has one more file."""

    def __init__(self, hub: Path, mode: int, names: list[str], contents: list[bytes]):
        self.path = directory(hub / "datasets--org--name", FIRST, mode)
        self.mode = mode
        for name in ("blobs", "snapshots"):
            directory(self.path / name, FIRST, mode)
        for i, data in enumerate(contents):
            blob = self.path / f"blobs/{i:040x}"
            blob.write_bytes(data)
            made(blob, SECOND if i == 2 else FIRST, mode & 0o664)
        self.snapshot("a", FIRST, names[:2])
        self.snapshot("b", SECOND, names)

    def snapshot(self, revision: str, owner: int, names: list[str]) -> None:
        top = directory(self.path / "snapshots" / revision, owner, self.mode)
        for i, name in enumerate(names):
            path = top / name
            for above in reversed(path.relative_to(top).parents[:-1]):
                directory(top / above, owner, self.mode)
            up = "../" * (len(path.relative_to(top).parts) + 1)
            path.symlink_to(f"{up}blobs/{i:040x}")
            made(path, owner, 0)


@pytest.fixture(params=[0o2775, 0o2770], ids=["readable by all", "for the group"])
def hub(as_other_user, request):
    return directory(as_other_user.directory / "hub", 0, request.param), request.param


KINDS = {
    "shards": ([f"data/{i:05}.tar" for i in range(3)], SHARDS),
    "photos": ([f"train/cat/{i}.jpg" for i in range(3)], [jpeg(i) for i in range(3)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_colleague_reads_every_snapshot(user, hub, kind):
    """Also FIRST that of SECOND, whose links lead to files of FIRST."""
    path, mode = hub
    repository = Repository(path, mode, *KINDS[kind])
    for number in (FIRST, SECOND, THIRD):
        for revision, samples in (("a", 2), ("b", 3)):
            snapshot = repository.path / "snapshots" / revision
            assert user(number, "check", snapshot, "--json").json["samples"] == samples
            packed = user.home(number) / f"packed-{revision}"
            user(number, "pack", snapshot, packed)
            place = directory(user.home(number) / f"place-{revision}", number, 0o700)
            staged = user(number, "stage", snapshot, place, "--json").json
            assert staged["samples"] == samples and staged["complete"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["closed directory", "closed file", "closed group"])
def test_a_link_to_what_its_owner_may_not_read(user, hub, kind, how):
    """SECOND's link leads to a file of FIRST that SECOND cannot read: FIRST does not copy it for them."""
    path, mode = hub
    names, contents = KINDS[kind]
    repository = Repository(path, mode, names, contents)
    user(FIRST, "--version")
    if how == "closed directory":
        secret = user.home(FIRST) / "secret"
    else:
        secret = repository.path / "blobs/secret"
    secret.write_bytes(simple_tar({b"a.txt": SECRET}) if kind == "shards" else contents[0] + SECRET)
    made(secret, FIRST, {"closed directory": 0o644, "closed file": 0o600, "closed group": 0o640}[how])
    if how == "closed group":
        os.chown(secret, FIRST, FIRST)
    link = repository.path / "snapshots/b" / names[0]
    link.unlink()
    link.symlink_to(os.path.relpath(secret, link.parent))
    made(link, SECOND, 0)
    packed = user.home(FIRST) / "packed"
    finished = user(FIRST, "pack", repository.path / "snapshots/b", packed, status=1)
    outside_of_a_folder = kind == "photos" and how == "closed directory"
    why = "which is outside the folder" if outside_of_a_folder else f"is a link of user {SECOND} that leads out"
    assert why in finished.text
    assert not any(SECRET in path.read_bytes() for path in packed.rglob("*") if path.is_file())


def test_photos_outside_of_a_cache_are_still_not_followed(user, as_other_user):
    """A folder called `snapshots` opens nothing but the `blobs` next to it, and not by another link."""
    top = directory(as_other_user.directory / "repo", FIRST, 0o755)
    elsewhere = directory(as_other_user.directory / "elsewhere", FIRST, 0o755)
    (elsewhere / "0.jpg").write_bytes(jpeg(0))
    for name in ("snapshots", "snapshots/a"):
        directory(top / name, FIRST, 0o755)
    (top / "blobs").symlink_to(elsewhere)
    (top / "snapshots/a/0.jpg").symlink_to("../../blobs/0.jpg")
    finished = user(SECOND, "check", top / "snapshots/a", status=1)
    assert "which is outside the folder" in finished.text
