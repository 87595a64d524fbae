"""The targets by name, which is also the name of the corpus's folder."""

from fuzz.target import Target
from fuzz.targets import codes, key_files, platform, psbt, tokens, worker

TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET for module in (psbt, worker, codes, key_files, tokens, platform)
}
