"""Start place.py on two ranks with the launcher that came before torchrun."""

import os
import subprocess
import sys
from pathlib import Path

ranks = os.environ.get("WORLD_SIZE", "2")  # set by launch()
script = Path(__file__).with_name("place.py")
command = ["-m", "torch.distributed.launch", f"--nproc-per-node={ranks}", str(script)]
done = subprocess.run([sys.executable, *command], capture_output=True, text=True)

# The warning's line begins with a path.
_, found, warning = done.stderr.partition("FutureWarning: ")
print(found + " ".join(warning.splitlines()[:2]))
sys.exit(done.returncode)
