# SPDX-License-Identifier: Apache-2.0
"""The extension shares a process with other libraries: it exports one symbol, and either may be imported first."""

import subprocess
from pathlib import Path

import pytest
import stoker
from samples import jpeg, write_files

# What each library does with the array, so that its own code runs, not only its imports.
USES = {
    ("torch", "torch"): "torch.nn.Linear(16, 2)(torch.from_numpy(array[0, :, :, 0]).float()).sum().backward()",
    ("torch", "PIL.Image"): "PIL.Image.fromarray(array[0]).resize((5, 5)).tobytes()",
    ("tensorflow", "tensorflow"): "tensorflow.reduce_mean(tensorflow.cast(array, tensorflow.float32)).numpy()",
    ("arrow", "pyarrow"): "pyarrow.array(array.ravel()).sum().as_py()",
    ("hdf5", "h5py"): "h5py.File('x.h5', 'w').create_dataset('x', data=array, compression='gzip').file.close()",
    ("opencv", "cv2"): "cv2.imdecode(cv2.imencode('.jpg', array[0])[1], cv2.IMREAD_COLOR)",
    ("opencv", "zarr"): "zarr.array(array)[...]",
    ("lmdb", "lmdb"): "lmdb.Environment(sys.argv[2] + str(id(batch))).begin(write=True).put(b'x', array.tobytes())",
}

SCRIPT = """
import sys
sys.path.append(sys.argv[1])
import {first}
import {second}
photos = stoker.open(sys.argv[3])
assert len(photos) == 6 and photos[0]["image"][:2] == b"\\xff\\xd8"
for _ in range(2):
    for batch in stoker.Loader(photos, 3, [stoker.transforms.RandomResizedCrop(16)]):
        array = batch["image"]
        assert array.shape == (3, 16, 16, 3)
        {use}
try:
    stoker.open("/no/such/dataset")
except FileNotFoundError as error:  # thrown in C++, caught in Python
    assert "/no/such/dataset" in str(error)
else:
    raise AssertionError("opened a dataset that does not exist")
print("done")
"""


def extension() -> Path:
    [found] = Path(stoker.__file__).parent.glob("_core*.so")
    return found


def test_only_the_entry_point_is_exported():
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", extension()], check=True, capture_output=True, text=True
    ).stdout.split("\n")
    assert [line.split()[-1] for line in listed if line] == ["PyInit__core"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    directory = tmp_path_factory.mktemp("photos")
    write_files(directory, {f"{i}.jpg": jpeg(i) for i in range(6)})
    return directory


@pytest.mark.parametrize("ours_first", [True, False], ids=["stoker-first", "stoker-second"])
@pytest.mark.parametrize(("group", "library"), USES, ids=[library for _, library in USES])
def test_next_to_other_libraries(group, library, ours_first, photos, peer_interpreter, tmp_path):
    first, second = ("stoker, stoker.transforms", library) if ours_first else (library, "stoker, stoker.transforms")
    script = SCRIPT.format(first=first, second=second, use=USES[group, library])
    done = subprocess.run(
        [peer_interpreter(group), "-c", script, Path(stoker.__file__).parents[1], tmp_path / "data", photos],
        cwd=tmp_path,
        env={"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
