# SPDX-License-Identifier: Apache-2.0
"""Every augmentation beside torchvision's: the same pixels given the same parameters, and the same distributions."""

import json
from pathlib import Path

import pytest
import stoker

PACKAGES = str(Path(stoker.__file__).parents[1])

# The package is put behind torch's own, so that NumPy and Pillow are the peer's. Each script prints how much it compared.
PRELUDE = """
import collections, json, math, sys
sys.path.append(sys.argv[1])
import numpy as np
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F
from stoker import _augmentations as ours
from stoker import _core

arguments = sys.argv[2:]
rng = np.random.default_rng(7)
SIZES = [(1, 1), (1, 9), (8, 1), (2, 2), (3, 3), (5, 4), (16, 16), (17, 33), (64, 64), (101, 57), (224, 224)]


def pictures():
    for height, width in SIZES:
        y, x = np.mgrid[0:height, 0:width]
        yield rng.integers(0, 256, (height, width, 3), dtype="uint8")
        yield np.stack([x * 255 // max(1, width - 1), y * 255 // max(1, height - 1), (7 * x + 3 * y) % 256], 2).astype("uint8")
        yield np.full((height, width, 3), rng.integers(0, 256, 3), dtype="uint8")
        yield rng.integers(90, 130, (height, width, 3), dtype="uint8")


def require_equal(found, wanted, what):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, (what, found.shape, wanted.shape)
    if not np.array_equal(found, wanted):
        where = np.argwhere(found != wanted)
        raise AssertionError(f"{what}: {len(where)} of {found.size} differ, the first at {where[0]}")


def affine(image, translate=(0, 0), shear=(0.0, 0.0), **options):
    return F.affine(image, angle=0.0, translate=list(translate), scale=1.0, shear=list(shear), **options)


def slope(magnitude):
    return math.degrees(math.atan(magnitude))


# What RandAugment does with a PIL image, as its source says it.
THEIRS = {
    "brightness": lambda image, amount: F.adjust_brightness(image, amount),
    "contrast": lambda image, amount: F.adjust_contrast(image, amount),
    "saturation": lambda image, amount: F.adjust_saturation(image, amount),
    "sharpness": lambda image, amount: F.adjust_sharpness(image, amount),
    "hue": lambda image, amount: F.adjust_hue(image, amount),
    "posterize": lambda image, amount: F.posterize(image, int(amount)),
    "solarize": lambda image, amount: F.solarize(image, amount),
    "autocontrast": lambda image, amount: F.autocontrast(image),
    "equalize": lambda image, amount: F.equalize(image),
    "invert": lambda image, amount: F.invert(image),
    "grayscale": lambda image, amount: F.rgb_to_grayscale(image, 3),
    "horizontal_flip": lambda image, amount: F.horizontal_flip(image),
    "vertical_flip": lambda image, amount: F.vertical_flip(image),
    "shear_x": lambda image, amount, **o: affine(image, shear=(slope(amount), 0.0), center=[0, 0], **o),
    "shear_y": lambda image, amount, **o: affine(image, shear=(0.0, slope(amount)), center=[0, 0], **o),
    "translate_x": lambda image, amount, **o: affine(image, translate=(int(amount), 0), **o),
    "translate_y": lambda image, amount, **o: affine(image, translate=(0, int(amount)), **o),
    "rotate": lambda image, amount, **o: F.rotate(image, angle=amount, **o),
}


def compare(name, picture, amount, **options):
    wanted = THEIRS[name](Image.fromarray(picture), amount, **options)
    found = _core.apply_operation(picture, name, {"amount": amount, **options})
    require_equal(found, wanted, f"{name} {amount} {options} of {picture.shape}")
    return 1


def random_amounts(low, high, *others):
    return [float(value) for value in rng.uniform(low, high, 6)] + [float(value) for value in others]


def require_likely(counts, expected, what):
    # chi-square; beyond 4.5 deviations (Wilson and Hilferty) nobody would call it chance
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    freedom = len(counts) - 1
    statistic = ((counts - expected) ** 2 / expected).sum() / freedom
    deviations = (statistic ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert deviations < 4.5, (what, deviations, counts, expected)


def require_same_distribution(mine, others, what):
    # Kolmogorov and Smirnov: a chance of one in ten thousand
    mine, others = np.sort(mine), np.sort(others)
    both = np.concatenate([mine, others])
    apart = np.abs(np.searchsorted(mine, both, "right") / len(mine) - np.searchsorted(others, both, "right") / len(others))
    limit = 2.2 * math.sqrt((len(mine) + len(others)) / (len(mine) * len(others)))
    assert apart.max() < limit, (what, apart.max(), limit)
"""


def run(peer, body, *arguments) -> int:
    """What the script printed: the number of comparisons it made, all of them good."""
    return json.loads(peer(PRELUDE + body, PACKAGES, *[str(argument) for argument in arguments]))


COLOUR = """
name = arguments[0]
AMOUNTS = {
    "hue": lambda: random_amounts(-0.5, 0.5, -0.5, 0, 0.5, 0.003),
    "posterize": lambda: [float(bits) for bits in range(1, 9)],
    "solarize": lambda: random_amounts(0, 256, 0, 128, 255, 256),
}
done = 0
for picture in pictures():
    for amount in AMOUNTS.get(name, lambda: random_amounts(0, 3, 0, 0.5, 1, 1.9))():
        done += compare(name, picture, amount)
print(done)
"""


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "sharpness", "hue", "posterize", "solarize"])
def test_colours_are_torchvisions(peer_torch, name):
    assert run(peer_torch, COLOUR, name) > 300


@pytest.mark.parametrize("name", ["autocontrast", "equalize", "invert", "grayscale", "horizontal_flip", "vertical_flip"])
def test_what_has_no_amount_is_torchvisions(peer_torch, name):
    assert run(peer_torch, "print(sum(compare(arguments[0], picture, 0.0) for picture in pictures()))", name) == 44


GEOMETRY = """
name, interpolation = arguments
AMOUNTS = {
    "shear_x": lambda: random_amounts(-1, 1, 0, 0.3, -0.99),
    "shear_y": lambda: random_amounts(-1, 1, 0, 0.3, -0.99),
    "translate_x": lambda: random_amounts(-40, 40, 0, 1, -1, 300),
    "translate_y": lambda: random_amounts(-40, 40, 0, 1, -1, 300),
    "rotate": lambda: random_amounts(-400, 400, 0, 30, 45, 90, -90, 180, 270, 360, 4.5),
}
done = 0
for picture in pictures():
    for amount in AMOUNTS[name]():
        fill = tuple(int(value) for value in rng.integers(0, 256, 3))
        done += compare(name, picture, amount, interpolation=interpolation, fill=fill)
print(done)
"""


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("name", ["shear_x", "shear_y", "translate_x", "translate_y", "rotate"])
def test_geometry_is_torchvisions(peer_torch, name, interpolation):
    assert run(peer_torch, GEOMETRY, name, interpolation) > 300


EVERY_COLOUR = """
shades = np.arange(256, dtype="uint8")
everything = np.stack(np.meshgrid(shades, shades, shades, indexing="ij"), -1).reshape(4096, 4096, 3)
print(compare("hue", everything, 0.31) + compare("saturation", everything, 1.37) + compare("grayscale", everything, 0.0))
"""


def test_every_colour_there_is(peer_torch):
    assert run(peer_torch, EVERY_COLOUR) == 3


FINISH = """
dtype, layout = arguments
NUMPY = {"uint8": "uint8", "float32": "float32", "float16": "uint16", "bfloat16": "uint16"}
done = 0
for picture in pictures():
    mean, std = rng.uniform(0, 1, 3).tolist(), rng.uniform(0.1, 1, 3).tolist()
    for scale in (False, True):
        for normalize in [None] if dtype == "uint8" else [None, ours.Normalize(mean, std)]:
            steps = [v2.PILToTensor()]
            if dtype != "uint8":
                steps.append(v2.ToDtype(torch.float32, scale=scale))
            if normalize:
                steps.append(v2.Normalize(mean, std))
            steps.append(v2.ToDtype(getattr(torch, dtype), scale=scale))
            wanted = v2.Compose(steps)(Image.fromarray(picture))
            wanted = wanted if layout == "NCHW" else wanted.permute(1, 2, 0)
            wanted = wanted.contiguous()
            wanted = wanted.view(torch.uint16) if NUMPY[dtype] == "uint16" else wanted
            options = ours._finish_options(ours.ToDtype(getattr(torch, dtype), scale), normalize, layout)
            found = _core.finish(picture, options).view(NUMPY[dtype]).reshape(wanted.shape)
            require_equal(found, wanted.numpy(), options)
            done += 1
print(done)
"""


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16", "bfloat16"])
def test_finish_is_torchvisions(peer_torch, dtype, layout):
    assert run(peer_torch, FINISH, dtype, layout) >= 88


BATCHES = """
dtype, layout = arguments


def batch_of(rows, height, width):
    # numbers as normalized pictures have them, or bytes
    shape = (rows, 3, height, width)
    if dtype == "uint8":
        return torch.from_numpy(rng.integers(0, 256, shape, dtype="uint8"))
    return torch.from_numpy(rng.normal(0, 1.5, shape).astype("float32")).to(getattr(torch, dtype))


def to_bytes(batch):
    batch = batch if layout == "NCHW" else batch.permute(0, 2, 3, 1)
    return batch.contiguous().view(torch.uint8).numpy().reshape(-1)


def form_of(batch):
    rows, _, height, width = batch.shape
    return {"rows": rows, "height": height, "width": width, "dtype": dtype, "layout": layout}


class Given:
    def make_params(self, flat_inputs):
        return self.params


class MixUp(Given, v2.MixUp):
    pass


class CutMix(Given, v2.CutMix):
    pass


def theirs(kind, batch, params):
    transform = kind(num_classes=10)
    transform.params = params
    return transform(batch, torch.arange(len(batch)) % 10)[0]


SHAPES = [(1, 3, 4), (2, 7, 5), (5, 16, 16), (9, 1, 1), (4, 33, 17)]
done = 0
"""

MIX_UP = """
for shape in SHAPES:
    for lam in [0.0, 1.0, 0.5, *rng.uniform(0, 1, 6).tolist()]:
        batch = batch_of(*shape)
        require_equal(_core.mix_up(to_bytes(batch), form_of(batch), lam), to_bytes(theirs(MixUp, batch, {"lam": lam})), lam)
        done += 1
if dtype == "float16":  # every number there is, but NaN, whose bits may differ
    bits = np.arange(65538, dtype="int32").astype("uint16")
    numbers = np.stack([bits, rng.permutation(bits)]).view("float16").reshape(2, 3, 1, -1)
    batch = torch.from_numpy(numbers)
    found = _core.mix_up(to_bytes(batch), form_of(batch), 0.3).view("float16")
    wanted = to_bytes(theirs(MixUp, batch, {"lam": 0.3})).view("float16")
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    require_equal(np.nan_to_num(found).view("uint16"), np.nan_to_num(wanted).view("uint16"), "every float16")
print(done)
"""


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_mix_up_is_torchvisions(peer_torch, dtype, layout):
    assert run(peer_torch, BATCHES + MIX_UP, dtype, layout) == 45


CUT_MIX = """
for shape in SHAPES:
    for _ in range(8):
        batch = batch_of(*shape)
        rows, height, width = shape
        x1, x2 = sorted(rng.integers(0, width + 1, 2).tolist())
        y1, y2 = sorted(rng.integers(0, height + 1, 2).tolist())
        wanted = theirs(CutMix, batch, {"box": (x1, y1, x2, y2), "lam_adjusted": 0.5})
        found = _core.cut_mix(to_bytes(batch), form_of(batch), (y1, x1, y2 - y1, x2 - x1))
        require_equal(found, to_bytes(wanted), (shape, x1, y1, x2, y2))
        done += 1
print(done)
"""


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_cut_mix_is_torchvisions(peer_torch, dtype, layout):
    assert run(peer_torch, BATCHES + CUT_MIX, dtype, layout) == 40


ERASE = """
for _, height, width in SHAPES:
    for _ in range(8):
        batch = batch_of(1, height, width)
        top, left = int(rng.integers(height)), int(rng.integers(width))
        rows, columns = int(rng.integers(1, height - top + 1)), int(rng.integers(1, width - left + 1))
        value = rng.uniform(0, 200, 3).tolist()
        form, region = form_of(batch), (top, left, rows, columns)
        wanted = F.erase(batch, top, left, rows, columns, torch.tensor(value)[:, None, None])
        require_equal(_core.erase(to_bytes(batch), form, region, tuple(value), 0), to_bytes(wanted), region)
        # Noise: the same numbers in every type and layout, which torch rounds as we do.
        plain = {**form, "dtype": "float32", "layout": "NHWC"}
        noise = _core.erase(np.zeros(height * width * 12, "uint8"), plain, region, None, 5).view("float32")
        noise = torch.from_numpy(noise.reshape(height, width, 3)).permute(2, 0, 1)
        wanted = F.erase(batch, top, left, rows, columns, noise[:, top : top + rows, left : left + columns])
        require_equal(_core.erase(to_bytes(batch), form, region, None, 5), to_bytes(wanted), region)
        done += 2
form = {"rows": 1, "height": 200, "width": 200, "dtype": "float32", "layout": "NHWC"}
noise = _core.erase(np.zeros(480000, "uint8"), form, (0, 0, 200, 200), None, 3).view("float32")
require_same_distribution(noise, torch.randn(120000, generator=torch.Generator().manual_seed(1)).numpy(), "noise")
print(done)
"""


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16", "bfloat16"])
def test_erase_is_torchvisions(peer_torch, dtype, layout):
    assert run(peer_torch, BATCHES + ERASE, dtype, layout) == 80


# --- Distributions ---------------------------------------------------------------------------------

SPACES = """
NAMES = {
    "shear_x": "ShearX", "shear_y": "ShearY", "translate_x": "TranslateX", "translate_y": "TranslateY",
    "rotate": "Rotate", "brightness": "Brightness", "saturation": "Color", "contrast": "Contrast",
    "sharpness": "Sharpness", "posterize": "Posterize", "solarize": "Solarize", "autocontrast": "AutoContrast",
    "equalize": "Equalize", "identity": "Identity",
}
SIZE = (224, 160)


def amounts_of(kind, name, bins):
    # what an operation may be given: by bin, where it has a sign the negative ones behind the others
    magnitudes, signed = kind._AUGMENTATION_SPACE[NAMES[name]]
    values = magnitudes(bins, *SIZE)
    values = np.zeros(1) if values is None else values.numpy().astype("float64")
    values = np.concatenate([values, -values]) if signed else values
    if name in ("brightness", "saturation", "contrast", "sharpness"):
        values = 1 + values
    return 255 * values if name == "solarize" else values


def bin_of(amount, values):
    # torch's own last bit depends on the vectors of the CPU that calculates it
    at = int(np.abs(values - amount).argmin())
    assert abs(values[at] - amount) <= 1e-6 * max(1, abs(amount)), (amount, values[at])
    return at


def require_even_names(counts, total):
    assert set(counts) == set(NAMES)
    require_likely([counts[name] for name in NAMES], [total / 14] * 14, "operations")
"""

RAND_AUGMENT = """
samples = 14000
for num_ops, magnitude, bins in [(2, 9, 31), (3, 0, 2), (1, 10, 11), (2, 30, 31)]:
    step = ours.RandAugment(num_ops, magnitude, bins)._step()
    counts, negative, signed = collections.Counter(), 0, 0
    for changes in _core.draw_steps([step], SIZE, 11, samples):
        counts["identity"] += num_ops - len(changes)
        for name, amount in changes:
            counts[name] += 1
            values = amounts_of(v2.RandAugment, name, bins)
            choices = values if len(values) == 1 else values[magnitude::bins]
            found = bin_of(amount, choices)
            if len(choices) == 2 and choices[0] != choices[1]:
                signed += 1
                negative += found
    require_even_names(counts, samples * num_ops)
    if magnitude:
        require_likely([negative, signed - negative], [signed / 2] * 2, "signs")
print(samples)
"""


def test_rand_augment_draws_as_torchvision(peer_torch):
    assert run(peer_torch, SPACES + RAND_AUGMENT) == 14000


TRIVIAL_AUGMENT = """
samples, bins = 60000, 31
counts, places = collections.Counter(), collections.defaultdict(collections.Counter)
for changes in _core.draw_steps([ours.TrivialAugmentWide()._step()], SIZE, 12, samples):
    for name, amount in changes or [("identity", 0.0)]:
        counts[name] += 1
        places[name][round(amount, 5)] += 1
require_even_names(counts, samples)
for name in NAMES:
    values = np.round(amounts_of(v2.TrivialAugmentWide, name, bins), 5)
    wanted = collections.Counter(values.tolist())
    assert all(any(abs(found - value) < 3e-5 for value in wanted) for found in places[name]), name
    found = [sum(count for place, count in places[name].items() if abs(place - value) < 3e-5) for value in wanted]
    if len(wanted) > 1:
        require_likely(found, [counts[name] * times / len(values) for times in wanted.values()], name)
print(samples)
"""


def test_trivial_augment_draws_as_torchvision(peer_torch):
    assert run(peer_torch, SPACES + TRIVIAL_AUGMENT) == 60000


COLOR_JITTER = """
samples = 24000
jitter = (0.4, (0.5, 1.25), 1.5, 0.1)
theirs = v2.ColorJitter(*jitter)
names = ["brightness", "contrast", "saturation", "hue"]
drawn = _core.draw_steps([ours.ColorJitter(*jitter)._step()], (8, 8), 13, samples)
orders = collections.Counter(tuple(name for name, _ in changes) for changes in drawn)
assert len(orders) == 24
require_likely(list(orders.values()), [samples / 24] * 24, "orders")
for name in names:
    low, high = getattr(theirs, name)
    factors = np.array([dict(changes)[name] for changes in drawn])
    assert low <= factors.min() and factors.max() <= high
    require_likely(np.histogram(factors, 20, (low, high))[0], [samples / 20] * 20, name)
alone = _core.draw_steps([ours.ColorJitter(hue=(0.1, 0.2), brightness=0)._step()], (8, 8), 13, 100)
assert all([name for name, _ in changes] == ["hue"] and 0.1 <= changes[0][1] <= 0.2 for changes in alone)
for step, p in [(ours.RandomGrayscale(), 0.1), (ours.RandomVerticalFlip(0.7), 0.7)]:
    often = sum(map(len, _core.draw_steps([step._step()], (8, 8), 14, samples)))
    require_likely([often, samples - often], [p * samples, (1 - p) * samples], step)
print(samples)
"""


def test_color_jitter_draws_as_torchvision(peer_torch):
    assert run(peer_torch, COLOR_JITTER) == 24000


ERASING = """
samples = 20000
for size, options in [((224, 224), {}), ((50, 90), {"scale": (0.1, 0.6), "ratio": (0.5, 4.0)})]:
    height, width = size
    drawn = _core.draw_erasings(ours.RandomErasing(p=0.25, **options)._step(), size, 15, samples)
    regions = np.array([region for region in drawn if region is not None])
    torch.manual_seed(1)
    transform, image = v2.RandomErasing(**options), [torch.zeros(3, height, width)]
    params = [transform.make_params(image) for _ in range(3000)]
    params = [each for each in params if each["v"] is not None]
    found = len(params) / 3000 / 4  # of p = 0.25, those whose ten tries were in vain are missing
    require_likely([len(regions), samples - len(regions)], [samples * found, samples * (1 - found)], "how often")
    low, high = options.get("scale", (0.02, 0.33))
    areas = regions[:, 2] * regions[:, 3] / (height * width)
    assert areas.min() > low * 0.9 and areas.max() < high * 1.05
    assert (regions[:, 0] + regions[:, 2] <= height).all() and (regions[:, 1] + regions[:, 3] <= width).all()
    for at, name in enumerate("ijhw"):
        require_same_distribution(regions[:, at], np.array([each[name] for each in params]), name)
    require_same_distribution(areas, np.array([each["h"] * each["w"] / (height * width) for each in params]), "area")
print(samples)
"""


def test_erasing_draws_as_torchvision(peer_torch):
    assert run(peer_torch, ERASING) == 20000


MIXING = """
samples = 20000
for alpha in [0.01, 0.2, 1.0, 3.0, 50.0]:
    torch.manual_seed(2)
    wanted = torch.distributions.Beta(torch.tensor(alpha), torch.tensor(alpha)).sample((samples,)).double().numpy()
    # torch calculates in float32, where the ends of small alphas are one number
    found = np.clip(_core.draw_betas(alpha, 16, samples), 1e-6, 1 - 1e-6)
    require_same_distribution(found, np.clip(wanted, 1e-6, 1 - 1e-6), alpha)
size = (48, 30)
drawn = _core.draw_cut_mixes(1.0, size, 17, samples)
batch, transform = [torch.zeros(2, 3, *size)], v2.CutMix(num_classes=2)
params = [transform.make_params(batch) for _ in range(3000)]
boxes = np.array([(left, top, left + width, top + height) for (top, left, height, width), _ in drawn])
for at in range(4):
    require_same_distribution(boxes[:, at], np.array([each["box"][at] for each in params]), at)
lambdas = np.array([lam for _, lam in drawn])
require_same_distribution(lambdas, np.array([each["lam_adjusted"] for each in params]), "lambda")
areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
assert np.array_equal(lambdas, 1.0 - areas / (48 * 30))
print(samples)
"""


def test_mixing_draws_as_torchvision(peer_torch):
    assert run(peer_torch, MIXING) == 20000


STEPS = """
steps = [ours.RandAugment(3, 14, interpolation="bilinear", fill=(9, 80, 200)), ours.ColorJitter(0.4, 0.4, 0.4, 0.2),
         ours.TrivialAugmentWide(interpolation="bilinear", fill=(9, 80, 200)), ours.RandomVerticalFlip(), ours.RandomGrayscale()]
steps = [step._step() for step in steps]
done = 0
for sample, picture in enumerate(pictures()):
    changes = _core.draw_steps(steps, picture.shape[:2], 18, sample + 1)[sample]
    image = Image.fromarray(picture)
    for name, amount in changes:
        warp = name in ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
        image = THEIRS[name](image, amount, **({"interpolation": "bilinear", "fill": (9, 80, 200)} if warp else {}))
    require_equal(_core.apply_steps(picture, steps, 18, 0, sample), image, changes)
    done += 1
print(done)
"""


def test_what_is_drawn_is_done(peer_torch):
    assert run(peer_torch, STEPS) == 44
