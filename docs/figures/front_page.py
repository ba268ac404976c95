"""Draw front_page.svg: by the code that the front page shows.

python docs/figures/front_page.py [FOLDER]
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from matplotlib import rc_context

HERE = Path(__file__).parent
_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def main(folder: Path) -> None:
    """Run the example in the folder."""
    page = (HERE.parent / "index.md").read_text(encoding="utf-8")
    example = _EXAMPLE.search(page)
    assert example is not None
    os.chdir(folder)
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # with the salt: the same figure gives the same bytes
    with rc_context({"svg.hashsalt": "fmimaster"}):
        exec(example[1], {"__name__": "__main__"})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
