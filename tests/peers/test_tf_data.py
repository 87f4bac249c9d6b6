# SPDX-License-Identifier: Apache-2.0
"""stoker.tensorflow.dataset in a real TensorFlow."""

import json
from pathlib import Path

import numpy as np
import pytest
import stoker
from samples import jpeg, npy, write_files

PACKAGES = str(Path(stoker.__file__).parents[1])
COUNT = 30

COMMON = """
import json, sys
if sys.argv[1] not in sys.path:
    sys.path.append(sys.argv[1])
import numpy as np
import stoker.tensorflow
import tensorflow as tf
from stoker.transforms import PerBatch, RandomResizedCrop, Resize
path = sys.argv[2]

def samples(data):
    return [batch["sample"].numpy().tolist() for batch in data]

def refused(*words, **options):
    try:
        stoker.tensorflow.dataset(*words, **options)
    except ValueError as error:
        return str(error)
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("tf_data")
    files = {}
    for i in range(COUNT):
        files |= {
            f"{i:03d}.jpg": jpeg(i, 30, 20),
            f"{i:03d}.cls": str(i % 5).encode(),
            f"{i:03d}.txt": f"text {i} é".encode() + b"\xff" * (i == 7),
            f"{i:03d}.tokens.npy": npy(np.arange(i % 7, dtype="int32") + i),
            f"{i:03d}.frames.npy": npy(np.full((i % 4 + 1, 3), i, "float32")),
            f"{i:03d}.odd.npy": npy(np.full((i % 4 + 1, i % 2 + 1), i, "float32")),
        }
        if i % 2:
            files[f"{i:03d}.note.txt"] = b"not every sample has one"
    write_files(root / "files", files)
    stoker.pack(root / "files", root / "packed")
    return root / "packed"


@pytest.fixture
def tf_data(peer_tensorflow, dataset):
    """tf_data(script): what it printed, from JSON."""
    return lambda script: json.loads(peer_tensorflow(COMMON + script, PACKAGES, dataset))


def test_every_iteration_is_the_next_epoch(tf_data, dataset):
    found = tf_data("""
data = stoker.tensorflow.dataset(path, 8, fields=["label"], seed=3)
print(json.dumps([int(data.cardinality()), [samples(data) for _ in range(3)]]))
""")
    loader = stoker.Loader(dataset, 8, fields=["label"], seed=3)
    assert found == [4, [[batch["sample"].tolist() for batch in loader] for _ in range(3)]]


def test_elements_have_dtypes_and_shapes(tf_data):
    found = tf_data("""
def spec(*words, **options):
    made = stoker.tensorflow.dataset(*words, **options)
    for batch in made:
        tf.nest.assert_same_structure(made.element_spec, batch)
    return {name: [part.dtype.name, part.shape.as_list()] for name, part in made.element_spec.items()}

half = lambda dtype: spec(path, 8, [Resize((6, 5)), lambda image: image.astype(tf.as_dtype(dtype).as_numpy_dtype)])["image"]
pairs = stoker.tensorflow.dataset(path, 8, [Resize((6, 5))], as_supervised=True)
print(json.dumps({
    "picture": spec(path, 8, [Resize((6, 5))]),
    "padded": spec(path, 8, fields=["tokens", "odd"], pad={"tokens": 0, "odd": -1}),
    "half": [half("float16"), half("bfloat16")],
    "pairs": [[part.dtype.name, part.shape.as_list()] for part in pairs.element_spec],
    "rows": [[len(image), len(label)] for image, label in pairs],
}))
""")
    picture = ["uint8", [None, 6, 5, 3]]
    assert found["picture"] == {"image": picture, "label": ["int64", [None]], "sample": ["int64", [None]]}
    assert found["padded"]["tokens"] == ["int32", [None, None]]
    assert found["padded"]["odd"] == ["float32", [None, None, None]]
    assert found["half"] == [["float16", [None, 6, 5, 3]], ["bfloat16", [None, 6, 5, 3]]]
    assert found["pairs"] == [picture, ["int64", [None]]]
    assert found["rows"] == [[8, 8], [8, 8], [8, 8], [6, 6]]


def test_what_has_a_size_of_its_own(tf_data, dataset):
    found = tf_data("""
data = stoker.tensorflow.dataset(path, 8, fields=["image", "txt", "tokens", "frames"], shuffle=False)
rows = {name: [] for name in data.element_spec}
for batch in data:
    for name, column in batch.items():
        values = column.to_list() if isinstance(column, tf.RaggedTensor) else column.numpy().tolist()
        rows[name] += [value.hex() if isinstance(value, bytes) else value for value in values]
print(json.dumps([rows, {name: [part.dtype.name, part.shape.as_list()] for name, part in data.element_spec.items()}]))
""")
    rows, specs = found
    assert specs["image"] == specs["txt"] == ["string", [None]]
    assert specs["tokens"] == ["int32", [None, None]] and specs["frames"] == ["float32", [None, None, 3]]
    ds = stoker.open(dataset)
    assert rows["image"] == [sample["image"].hex() for sample in ds]
    assert rows["txt"] == [sample["txt"].encode("utf-8", "surrogateescape").hex() for sample in ds]
    assert rows["tokens"] == [sample["tokens"].tolist() for sample in ds]
    assert rows["frames"] == [sample["frames"].tolist() for sample in ds]


def test_what_fits_into_no_tensor_is_said(tf_data):
    odd, note, supervised, output, options = tf_data("""
loader = stoker.Loader(path, 8, fields=["label"])
print(json.dumps([
    refused(path, 8, fields=["odd"]),
    refused(path, 8, fields=["note"]),
    refused(path, 8, fields=["txt", "label"], as_supervised=True),
    refused(path, 8, fields=["label"], output="tensorflow"),
    refused(loader, 8),
]))
""")
    assert "give the Loader pad={'odd': 0}" in odd
    assert "leave it out with fields=" in note
    assert "no field 'image'" in supervised
    assert "output='numpy'" in output
    assert "data is a Loader" in options


def test_pipelines(tf_data, dataset):
    found = tf_data("""
loader = stoker.Loader(path, 4, fields=["label"])
data = stoker.tensorflow.dataset(loader)
parts = [samples(data.take(2)) for _ in range(2)]
mapped = data.map(lambda batch: {**batch, "label": batch["label"] + 1}).prefetch(2)
parts.append([batch["label"].numpy().tolist() for batch in mapped])
loader.set_epoch(0)
parts.append(samples(data.repeat(2)))
for _ in range(20):  # dropped midway, while they are asking for more
    next(iter(data.prefetch(4)))
loader.set_epoch(1)
parts.append(samples(data))
print(json.dumps(parts))
""")
    loader = stoker.Loader(dataset, 4, fields=["label"])
    epochs = [[(b["sample"].tolist(), b["label"].tolist()) for b in loader] for _ in range(3)]
    numbers = [[sample for sample, _ in epoch] for epoch in epochs]
    assert found[0] == numbers[0][:2] and found[1] == numbers[1][:2]
    assert found[2] == [[label + 1 for label in labels] for _, labels in epochs[2]]
    assert found[3] == numbers[0] + numbers[1]
    assert found[4] == numbers[1]


def test_keras_sees_every_epoch_in_another_order(tf_data, dataset):
    found = tf_data("""
loader = stoker.Loader(path, 8, [RandomResizedCrop(8)], seed=2)
data = stoker.tensorflow.dataset(loader, as_supervised=True)
seen = []

class Model(tf.keras.Model):
    def call(self, image):
        return tf.zeros([tf.shape(image)[0], 5])

    def train_step(self, pair):
        seen.append(pair[1].numpy().tolist())
        return {"loss": tf.constant(0.0)}

model = Model()
model.compile(run_eagerly=True)
model.fit(data, epochs=2, verbose=0)
loader.set_epoch(7)
model.fit(data, initial_epoch=7, epochs=8, verbose=0)
print(json.dumps(seen))
""")
    loader = stoker.Loader(dataset, 8, [stoker.transforms.RandomResizedCrop(8)], seed=2)
    expected = []
    for epoch in (0, 1, 7):
        loader.set_epoch(epoch)
        expected += [batch["label"].tolist() for batch in loader]
    assert found == expected


def test_a_resumed_loader_goes_on(tf_data):
    begun, rest, after, cardinality = tf_data("""
before = stoker.Loader(path, 8, fields=["label"])
batches = iter(before)
begun = [next(batches)["sample"].tolist() for _ in range(3)]
loader = stoker.Loader(path, 8, fields=["label"])
loader.load_state_dict(before.state_dict())
data = stoker.tensorflow.dataset(loader)
print(json.dumps([begun, samples(data), samples(data), int(data.cardinality())]))
""")
    assert sorted(sum(begun + rest, [])) == sorted(sum(after, [])) == list(range(COUNT))
    assert len(rest) == 1 and cardinality == -2  # tf.data.UNKNOWN_CARDINALITY
