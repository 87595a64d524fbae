"""labels: the names that this machine has, as a file for other wallets; and what of another program's file
can be taken (BIP-329). Reads and writes the configuration, without a daemon.
"""

from pathlib import Path

from custody.common.terminal import aside
from custody.common.text import count, foreign, name_key
from signerd.cli.desk import Desk, asking, path_option, read_file, write_file
from signerd.errors import InvalidRequest


@path_option("--export", "target", metavar="FILE", help="Write them to this new file.")
@path_option("--import", "source", metavar="FILE", help="Take what can be taken from this file.")
@asking
def labels(desk: Desk, target: Path | None, source: Path | None) -> None:
    """Exchange your own names of payees and keys with other wallets (BIP-329).

    Nothing that has a name here gets another one. A daemon that runs takes new names when it starts again.
    """
    from custody.common.labels import MAX_BYTES, read_labels, report, sorted_out, write_labels, written_words
    from signerd.account.config import find_config, load_config
    from signerd.account.labels import alike_faults, fault_of, known_labels, require_read, with_names
    from signerd.daemon.editing import staged

    if (target is None) == (source is None):
        raise InvalidRequest("give one file, with --export or with --import")
    path = find_config(desk.state)
    config = load_config(path)
    known = known_labels(config, desk.state)
    if target is not None:
        write_file(target, write_labels(known))
        desk.give({"file": str(target), "labels": len(known)}, written_words(known, target))
        return
    assert source is not None
    try:
        found = read_labels(read_file(source, MAX_BYTES))
    except ValueError as error:
        raise InvalidRequest(f"{source} {error}") from None
    said, others = sorted_out(known, found.records, config.network)
    names: dict[str, str] = {}
    present = {name_key(name): address for name, address in config.addresses.items()}
    alike = alike_faults(config, desk.state, others.values())
    for number, each in others.items():
        fault = alike.get(each.ref) or fault_of(each, present, config.network)
        said[number] = f"not taken: {fault}" if fault else "taken"
        if fault is None:
            name = (each.label or "").strip()
            names[name] = present[name_key(name)] = each.ref
    if names:
        text = with_names(path, names)
        require_read(path, text, config.addresses | names)
        aside(f"{count(len(names), 'address gets', 'addresses get')} a name in {path}:")
        for name, address in names.items():
            aside(f"  {address}  {foreign(name)}")
        desk.confirm("Write them there?", "Nothing was written.")
        with staged(path, text) as put:
            put()
    report(found, said, as_json=desk.as_json)
