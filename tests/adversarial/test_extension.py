# SPDX-License-Identifier: Apache-2.0
"""The extension in one process with other libraries: it shows one symbol and disturbs no other library, in either order of import."""

import os
import subprocess
from pathlib import Path

import pytest
import stoker
from samples import jpeg
from tar_bytes import simple_tar

CORE = sorted(Path(stoker.__file__).parent.glob("_core*.so"))


def test_one_symbol_is_exported():
    (core,) = CORE
    lines = subprocess.run(["nm", "-D", "--defined-only", core], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in lines.splitlines()]
    assert [name for name in names if "PyInit__core" not in name] == [], f"{len(names)} symbols"
    assert len(names) == 1


def test_no_symbol_is_unique_across_the_process():
    (core,) = CORE
    lines = subprocess.run(["nm", "-D", core], check=True, capture_output=True, text=True).stdout.splitlines()
    unique = [line for line in lines if len(line.split()) > 1 and line.split()[-2] in ("u", "i")]
    assert not unique


@pytest.fixture
def packages(tmp_path) -> Path:
    """A directory for PYTHONPATH that has stoker alone, not what else is installed next to it."""
    path = tmp_path / "packages"
    path.mkdir()
    (path / "stoker").symlink_to(Path(stoker.__file__).parent)
    return path


@pytest.fixture
def photos(tmp_path) -> Path:
    path = tmp_path / "photos"
    path.mkdir()
    files = {}
    for i in range(16):
        files[b"%03d.jpg" % i] = jpeg(i)
        files[b"%03d.cls" % i] = b"%d" % (i % 4)
    (path / "x-000000.tar").write_bytes(simple_tar(files))
    return path


USE_STOKER = """
def use_stoker():
    import sys, warnings
    warnings.simplefilter("ignore")
    from stoker.transforms import RandomResizedCrop
    seen = 0
    for epoch in range(2):
        for batch in stoker.Loader(sys.argv[1], 4, [RandomResizedCrop(16)]):
            seen += len(batch["label"])
    assert seen == 32, seen
    assert len(stoker.open(sys.argv[1])) == 16
    assert stoker.check(sys.argv[1]).good
"""

USES = {
    "torch": ("torch", "import torch", "assert float((torch.ones(64, 64) @ torch.ones(64, 64)).sum()) == 64**3"),
    "tensorflow": (
        "tensorflow",
        "import tensorflow as tf",
        "assert sum(int(x) for x in tf.data.Dataset.range(10).map(lambda x: x * 2, num_parallel_calls=2)) == 90",
    ),
    "pyarrow": (
        "arrow",
        "import pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq, io",
        "sink = io.BytesIO(); pq.write_table(pa.table({'a': ['x1', 'y2']}), sink, compression='zstd');"
        # Where its threads have read, pyarrow 26.0.1 sometimes aborts when Python ends, also without stoker (7 of 60 times).
        "assert pq.read_table(io.BytesIO(sink.getvalue()), use_threads=False)['a'].to_pylist() == ['x1', 'y2'];"
        "assert pc.match_substring_regex(pa.array(['a1']), '[0-9]').to_pylist() == [True]",
    ),
    "h5py": (
        "hdf5",
        "import h5py, io, numpy as np",
        "f = h5py.File(io.BytesIO(), 'w'); f.create_dataset('x', data=np.arange(9), compression='gzip', chunks=(3,));"
        "assert f['x'][8] == 8",
    ),
    "lmdb": (
        "lmdb",
        "import lmdb, tempfile",
        "e = lmdb.open(tempfile.mkdtemp()); t = e.begin(write=True); t.put(b'k', b'v'); t.commit();"
        "assert e.begin().get(b'k') == b'v'",
    ),
    "Pillow": (
        "webdataset",
        "import io; from PIL import Image",
        "b = io.BytesIO(); Image.new('RGB', (64, 64)).save(b, 'JPEG'); Image.open(io.BytesIO(b.getvalue())).load()",
    ),
}


@pytest.mark.parametrize("order", ["stoker first", "stoker second"])
@pytest.mark.parametrize("library", sorted(USES))
def test_both_work_in_one_process(library, order, packages, photos, request, fresh_python):
    group, imports, use = USES[library]
    peer = request.getfixturevalue(f"peer_{group}")
    both = ["import stoker", imports] if order == "stoker first" else [imports, "import stoker"]
    script = "\n".join([*both, USE_STOKER, "use_stoker()", use, "use_stoker()", use, "print('good')"])
    env = {"PYTHONPATH": os.fspath(packages), "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
    done = fresh_python(script, photos, interpreter=peer.interpreter(), env=env, timeout=180)
    assert done.stdout.splitlines()[-1] == "good"


def test_the_use_of_a_library_between_import_and_first_loader(packages, photos, request, fresh_python):
    """Regular expressions and formatting of another library's C++ before ours were ever used, in one thread more."""
    peer = request.getfixturevalue("peer_arrow")
    script = f"""
import stoker, threading
import pyarrow as pa, pyarrow.compute as pc, pyarrow.csv, io
{USE_STOKER}
def work():
    for i in range(50):
        pc.replace_substring_regex(pa.array(["a1b2"] * 100), "[0-9]+", "x")
        pyarrow.csv.read_csv(io.BytesIO(b"a,b\\n1,2.5\\n"))
threads = [threading.Thread(target=work), threading.Thread(target=use_stoker)]
[t.start() for t in threads]
[t.join() for t in threads]
print("good")
"""
    done = fresh_python(script, photos, interpreter=peer.interpreter(), env={"PYTHONPATH": os.fspath(packages)})
    assert done.stdout.splitlines()[-1] == "good"
