"""`python -m firmware_bridge.virtual`"""

import sys

from firmware_bridge.virtual.cli import main

sys.exit(main())
