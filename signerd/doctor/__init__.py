"""Finding the common trouble and saying what to do about it. Nothing here changes anything."""
