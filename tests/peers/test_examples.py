# SPDX-License-Identifier: Apache-2.0
"""Every script of examples/, as a user runs it, where its framework is installed."""

import gzip
import math
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
import stoker
from samples import jpeg, write_files
from stoker_program import ROOT, clean_environment

EXAMPLES = ROOT / "examples"
COUNT = 48
BATCH = 8

# Runs a script that gets SIGTERM while it prints its n-th line: at the same place, however fast the machine is.
STOPPED = """
import builtins, os, runpy, signal, sys
left = int(sys.argv[1])
shown = print
def count(*words, **options):
    global left
    shown(*words, **options)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGTERM)
builtins.print = count
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("examples")
    write_files(root / "photos", {f"{'abc'[i % 3]}/{i:02d}.jpg": jpeg(i, 50, 40) for i in range(COUNT)})
    stoker.pack(root / "photos", root / "packed", to="tar", shard_size="30K")
    return root / "packed"


@pytest.fixture
def run(tmp_path):
    """run(peer, *command, status=0): a command in the peer's Python; the lines that it printed, and how it ended."""
    # Nothing but stoker, so that everything else is the peer's.
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "stoker").symlink_to(Path(stoker.__file__).parent)
    (tmp_path / "home").mkdir()
    environment = {
        **clean_environment(tmp_path / "home"),
        "PYTHONPATH": os.fspath(packages),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }

    def start(peer, *command, status=0) -> list[str]:
        words = [peer.interpreter(), *map(os.fspath, command)]
        done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout.splitlines()

    return start


def losses(lines: list[str]) -> list[float]:
    found = [float(match[1]) for line in lines if (match := re.search(r"loss:? (\S+)$", line))]
    assert all(map(math.isfinite, found))
    return found


def assert_verdict(line: str) -> None:
    assert re.search(r" limits: ", line), line


def assert_goes_on_where_it_stopped(run, peer, script, dataset, where, stopped_status):
    """Stopped midway, then behind the last batch of an epoch, then at the end of another: together one training."""

    def train(directory, epochs, stop=0) -> list[str]:
        command = [EXAMPLES / script, dataset, "--epochs", str(epochs), "--batch-size", str(BATCH), where, directory]
        if stop:
            lines = run(peer, "-c", STOPPED, str(stop), *command, status=stopped_status)
            assert len(lines) == stop
            return lines
        *lines, verdict = run(peer, *command)
        assert_verdict(verdict)
        return lines

    whole = train("undisturbed", 3)
    assert len(whole) == len(losses(whole)) == 3 * COUNT // BATCH
    assert (
        train("resumed", 3, stop=4) + train("resumed", 3, stop=2) + train("resumed", 2) + train("resumed", 3) == whole
    )


def test_pytorch_loop(run, peer_torch, dataset):
    assert_goes_on_where_it_stopped(run, peer_torch, "pytorch_loop.py", dataset, "--checkpoint", 128 + 15)


def test_lightning_fit(run, peer_torch, dataset):
    # Lightning itself ends with status 0 behind SIGTERM.
    assert_goes_on_where_it_stopped(run, peer_torch, "lightning_fit.py", dataset, "--checkpoints", 0)


def test_pytorch_image_folder(run, peer_torch, dataset):
    lines = run(peer_torch, EXAMPLES / "pytorch_image_folder.py", dataset, "--epochs", "2", "--batch-size", str(BATCH))
    assert [line.split(":")[0] for line in lines] == [f"epoch {epoch}, {COUNT} samples" for epoch in range(2)]
    assert len(losses(lines)) == 2


def test_ddp(run, peer_torch, dataset):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    *lines, verdict = run(peer_torch, *torchrun, EXAMPLES / "ddp.py", dataset, "--epochs", "2", "--batch-size", "5")
    shares = f"{COUNT // 2} + {COUNT // 2} samples, 0 missing, 0 seen again"
    assert [line.split(":")[0] for line in lines] == [f"epoch {epoch}, {shares}" for epoch in range(2)]
    assert len(losses(lines)) == 2
    assert_verdict(verdict)


def test_keras_fit(run, peer_tensorflow, dataset):
    *lines, verdict = run(
        peer_tensorflow, EXAMPLES / "keras_fit.py", dataset, "--epochs", "2", "--batch-size", str(BATCH)
    )
    assert [line for line in lines if line.startswith("Epoch")] == ["Epoch 1/2", "Epoch 2/2"]
    assert sum(line.startswith(f"{COUNT // BATCH}/{COUNT // BATCH} - ") for line in lines) == 2
    assert len(losses(lines)) == 2
    assert_verdict(verdict)


WRITE = """
import sys
from pathlib import Path
import tensorflow as tf
photos, directory = map(Path, sys.argv[1:])
for shard in range(2):
    with tf.io.TFRecordWriter(f"{directory}/train-{shard:05d}-of-00002") as writer:
        for path in sorted(photos.glob("*/*.jpg"))[shard::2]:
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[path.read_bytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=["abc".index(path.parent.name)])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
"""


def test_tfrecord_in_both(run, peer_torch, peer_tensorflow, dataset, tmp_path):
    (tmp_path / "records").mkdir()
    peer_tensorflow(WRITE, dataset.parent / "photos", tmp_path / "records")
    digests = []
    for framework, peer in (("torch", peer_torch), ("tensorflow", peer_tensorflow)):
        command = ["tfrecord_in_both.py", framework, tmp_path / "records", "--epochs", "2", "--batch-size", str(BATCH)]
        *lines, verdict = run(peer, EXAMPLES / command[0], *command[1:])
        assert_verdict(verdict)
        digests.append(lines)
    assert digests[0] == digests[1]
    assert [re.sub("[0-9a-f]{16}", "…", line) for line in digests[0]] == [
        f"epoch {epoch}: labels …, pixels …" for epoch in range(2)
    ]
    assert len({digest for line in digests[0] for digest in re.findall("[0-9a-f]{16}", line)}) == 4


def test_every_example_is_tested():
    tests = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.iterdir() if f'"{path.name}"' not in tests and path.is_file()] == []


def test_the_guide_shows_lines_of_the_examples():
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guides/frameworks.md").read_text(), re.DOTALL)
    there = {line.strip() for path in EXAMPLES.glob("*.py") for line in path.read_text().splitlines()}
    assert shown
    assert [line for block in shown for line in block.splitlines() if line.strip() not in {*there, "..."}] == []


def test_mnist_with_and_without_the_three_lines(run, peer_torch, tmp_path):
    """Digits of idx files, compressed; the same training with stoker's lines gets the same of them right."""
    data = tmp_path / "idx"
    data.mkdir()
    images = bytes(range(256)) * (300 * 28 * 28 // 256 + 1)
    labels = bytes(i % 10 for i in range(300))
    (data / "t10k-images-idx3-ubyte.gz").write_bytes(
        gzip.compress(struct.pack(">HBBIII", 0, 8, 3, 300, 28, 28) + images[: 300 * 28 * 28])
    )
    (data / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 300) + labels)
    words = ["--data", data, "--epochs", "2", "--batch", "50"]
    plain = run(peer_torch, EXAMPLES / "mnist/train.py", *words)
    measured = run(peer_torch, EXAMPLES / "mnist/train_measured.py", *words)
    assert len(plain) == 2 and measured[:2] == plain
    assert measured[2].startswith("samples/s: {'value': ")
    (tmp_path / "empty").mkdir()
    run(peer_torch, EXAMPLES / "mnist/train.py", "--data", tmp_path / "empty", status=1)
