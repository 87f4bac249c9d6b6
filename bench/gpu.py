# SPDX-License-Identifier: Apache-2.0
"""Training and inference on a GPU from JPEGs, beside the same on data that lies on the GPU already, interleaved in one run.

    bench/gpu.py [--models resnet18 resnet50] [--what training inference] [--steps 150] [--rounds 3] [--repeat 40] DATASET

Batch 256, bfloat16, channels last, RandomResizedCrop(224) and flip; pictures go to the GPU as uint8 and are normalised
there, in both loops. First the loader alone, to the GPU and without anything done there. DATASET is loaded `repeat` times an epoch, so that a small one gives long epochs. Prints the share of
the synthetic speed, the share of the time that the step waited, and the loader's verdict.
"""

import argparse
import functools
import itertools
import statistics
import time
import warnings

import stoker
import torch
import torchvision
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop

BATCH = 256
MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)


class Training:
    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.model = getattr(torchvision.models, name)().cuda().to(memory_format=torch.channels_last)
        self.model = torch.compile(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9)
        self.mean = torch.tensor(MEAN, device="cuda", dtype=torch.bfloat16).view(1, 3, 1, 1)
        self.scale = 1 / torch.tensor(STD, device="cuda", dtype=torch.bfloat16).view(1, 3, 1, 1)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        pixels = (images.permute(0, 3, 1, 2).to(torch.bfloat16) - self.mean) * self.scale
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(self.model(pixels), labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


class Inference(Training):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.model.eval()

    @torch.inference_mode()
    def step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        pixels = (images.permute(0, 3, 1, 2).to(torch.bfloat16) - self.mean) * self.scale
        with torch.autocast("cuda", torch.bfloat16):
            return (self.model(pixels).argmax(1) == labels).sum()


class Nothing:
    def step(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        pass


def run(training, batches, steps: int) -> float:
    """Samples a second over `steps`."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    samples = 0
    for images, labels in itertools.islice(batches, steps):
        training.step(images, labels)
        samples += len(images)
    torch.cuda.synchronize()
    return samples / (time.perf_counter() - begin)


def endless(loader):
    while True:
        for batch in loader:
            yield batch["image"], batch["label"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["resnet18", "resnet50"])
    parser.add_argument("--what", nargs="+", default=["training", "inference"], choices=["training", "inference"])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=40)
    parser.add_argument("dataset")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batch {BATCH}, bfloat16, channels last")
    there = [(torch.randint(0, 256, (BATCH, 224, 224, 3), dtype=torch.uint8, device="cuda"),
              torch.randint(0, 1000, (BATCH,), device="cuda")) for _ in range(4)]  # fmt: skip
    data = stoker.open(options.dataset)
    new_loader = functools.partial(
        stoker.Loader, [data] * options.repeat, BATCH, [RandomResizedCrop(224), RandomHorizontalFlip()],
        drop_last=True, device="cuda")  # fmt: skip
    loader = new_loader()
    loaded = endless(loader)
    run(Nothing(), loaded, 20)
    alone = [run(Nothing(), loaded, options.steps) for _ in range(options.rounds)]
    print(f"loader alone: {statistics.median(alone):,.0f} images/s ({min(alone):,.0f} to {max(alone):,.0f}); "
          f"decoded by {loader.stats()['decoders']}")  # fmt: skip
    loaded.close()
    for name, what in itertools.product(options.models, options.what):
        training = (Training if what == "training" else Inference)(name)
        loader = new_loader()
        run(training, itertools.cycle(there), 30)
        loaded = endless(loader)
        run(training, loaded, 20)
        shares = []
        for _ in range(options.rounds):
            synthetic = run(training, itertools.cycle(there), options.steps)
            real = run(training, loaded, options.steps)
            shares.append(real / synthetic)
            print(f"  {name} {what}: {real:7,.0f} images/s from JPEGs, {synthetic:7,.0f} synthetic: {shares[-1]:.3f}")
        stats = loader.stats()
        print(f"{name} {what}: share of the synthetic speed {statistics.median(shares):.3f}, waiting "
              f"{100 * stats['waiting_share']:.1f} %, {stats['stages']['decode']['threads']} decoding threads")  # fmt: skip
        print(f"{name} {what}: {loader.verdict()}")
        loaded.close()


if __name__ == "__main__":
    main()
