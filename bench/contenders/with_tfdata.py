# SPDX-License-Identifier: Apache-2.0
"""tf.data over a TFRecord file of the original bytes, which `with_tfdata.py write PHOTOS FILE` makes. JPEG only, and
resized without antialiasing, as TensorFlow's own ImageNet recipes do it."""

import sys

import tensorflow as tf
from rate import BATCH, SIZE, photos_of, print_rate


def write(folder, file):
    with tf.io.TFRecordWriter(file) as writer:
        for path in photos_of(folder):
            with open(path, "rb") as photo:
                image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[photo.read()]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"image": image})).SerializeToString())


def decode(record):
    data = tf.io.parse_single_example(record, {"image": tf.io.FixedLenFeature([], tf.string)})["image"]
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data),
        tf.zeros([0, 0, 4]),
        min_object_covered=0.1,
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        use_image_if_no_bounding_boxes=True,
    )
    image = tf.image.decode_and_crop_jpeg(data, tf.concat([begin[:2], size[:2]], axis=0), channels=3)
    return tf.cast(tf.image.random_flip_left_right(tf.image.resize(image, [SIZE, SIZE])), tf.uint8)


def load(file, threads, epochs):
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.deterministic = False
    loader = tf.data.TFRecordDataset(file).shuffle(1000).map(decode, num_parallel_calls=threads)
    loader = loader.batch(BATCH).prefetch(2).with_options(options)
    print_rate(lambda: sum(len(batch) for batch in loader), epochs)


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3])
else:
    load(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
