"""`python -m device_simulators`"""

import sys

from device_simulators.cli import main

sys.exit(main())
