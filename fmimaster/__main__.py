"""``python -m fmimaster``: the command line."""

import sys

from fmimaster.cli import main

sys.exit(main())
