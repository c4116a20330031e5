"""`python -m edge.cli`, the same as `edge`."""

import sys

from edge.cli import main

sys.exit(main())
