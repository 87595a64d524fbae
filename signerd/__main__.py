"""`python -m signerd`"""

from signerd.cli import main

main()
