# SPDX-License-Identifier: Apache-2.0
"""What augmentations draw beside torchvision's: the same distributions."""

from augment_scripts import run

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
