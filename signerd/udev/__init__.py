"""The udev rules that let the person at a Linux machine open a signing device, and which of them it has."""
