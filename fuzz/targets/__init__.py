"""Every parser of untrusted input, by the name that `make fuzz` and the folder of its corpus have for it."""

from fuzz.target import Target
from fuzz.targets import codes, key_files, platform, psbt, tokens, worker

TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET for module in (psbt, worker, codes, key_files, tokens, platform)
}
