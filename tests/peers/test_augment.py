# SPDX-License-Identifier: Apache-2.0
"""Every augmentation beside torchvision's: the same pixels given the same parameters."""

import pytest
from augment_scripts import run

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


@pytest.mark.parametrize(
    "name", ["autocontrast", "equalize", "invert", "grayscale", "horizontal_flip", "vertical_flip"]
)
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
