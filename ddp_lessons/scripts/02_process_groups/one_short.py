"""Two ranks are told that there will be three."""

import os

import torch.distributed as dist

os.environ["WORLD_SIZE"] = "3"

dist.init_process_group("gloo")
dist.destroy_process_group()
