# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel: each process gets its share of every epoch without being told which.

    torchrun --nproc-per-node 2 examples/ddp.py DATASET [--epochs N]

Behind every epoch the processes tell each other what they have seen: every sample, once.
"""

import argparse

import stoker
import torch
import torch.distributed as dist
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32, help="of each process")
options = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(0)
data = stoker.open(options.dataset)
loader = stoker.Loader(data, options.batch_size, [RandomResizedCrop(32), RandomHorizontalFlip()], output="torch")
model = DistributedDataParallel(
    nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, len(data.classes))
    )
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(options.epochs):
    seen = []
    for batch in loader:
        image = batch["image"].permute(0, 3, 1, 2).float() / 127.5 - 1
        loss = nn.functional.cross_entropy(model(image), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += batch["sample"].tolist()

    by_rank = [None] * dist.get_world_size()
    dist.all_gather_object(by_rank, seen)
    if dist.get_rank() == 0:
        everything = [sample for share in by_rank for sample in share]
        missing, again = len(data) - len(set(everything)), len(everything) - len(set(everything))
        shares = " + ".join(str(len(share)) for share in by_rank)
        print(f"epoch {epoch}, {shares} samples, {missing} missing, {again} seen again: loss {loss.item():.6f}", flush=True)
if dist.get_rank() == 0:
    print(loader.verdict())
dist.barrier()  # whoever leaves while another one still talks may abort
dist.destroy_process_group()
