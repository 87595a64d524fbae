"""`python -m signerd.hwi`"""

from signerd.hwi import main

main()
