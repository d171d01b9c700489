"""Draw docs/pictures/error_region.png: Figure 1 of the paper, from `sfumato paper error-region`.

Run it with `.venv/bin/python docs/pictures/error_region.py`. Nothing in the picture is random.
"""

from pathlib import Path

from sfumato.paper.error_region import error_region
from sfumato.paper.experiment import RunOptions

if __name__ == "__main__":
    target = Path(__file__).with_suffix(".png")
    target.write_bytes(error_region(RunOptions(runs=1)).render_figure("png"))
    print(f"{target.name}: {target.stat().st_size // 1024} kB")
