"""Lists each page with code, with the test that runs it or the reason why none does."""

import re

from tests.support.pages import DOCS, PAGES, ROOT

RUN = {
    "build/client.md": "tests/signerd/client/test_pairing.py",
    "build/devices.md": "tests/firmware_bridge/airgap/test_docs.py",
    "build/firmware_bridge.md": "tests/firmware_bridge/test_guide.py",
    "build/tutorial-device.md": "tests/end_to_end/test_tutorials.py",
    "build/tutorial-payment.md": "tests/end_to_end/test_tutorials.py",
    "build/tutorial-web.md": "tests/signerd/browser/test_web_tutorial.py",
    "build/webhooks.md": "tests/custody/test_webhooks_guide.py",
    "operate/replacing.md": "tests/custody/cli/test_treasurer.py",
    "sign/backup.md": "tests/docs/test_code.py",
    "sign/rules.md": "tests/signerd/core/rules/test_reading.py",
    "understand/tokens.md": "tests/multisig/tokens/test_page.py",
}
NOT_RUN = {
    "build/adding/endpoint.md": "a row of this project's own table, with invented names",
}
CODE = re.compile(r"^```(?:python|toml|json|html)$", re.MULTILINE)


def test_each_page_with_code_is_run_or_says_why_not():
    found = {str(page.relative_to(DOCS)) for page in PAGES if CODE.search(page.read_text(encoding="utf-8"))}
    assert found == set(RUN) | set(NOT_RUN)


def test_the_tests_that_run_them_read_the_page():
    for page, test in RUN.items():
        assert page.split("/")[-1] in (ROOT / test).read_text(encoding="utf-8"), page


def test_the_backup_of_the_guide_is_a_configuration(tmp_path):
    """docs/sign/backup.md."""
    from signerd.account.config import load_config

    text = (DOCS / "sign" / "backup.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
    file = tmp_path / "config.toml"
    file.write_text(
        'network = "regtest"\n[platform]\nurl = "https://custody.example"\n' + block.replace("age1…", key)
    )
    assert load_config(file).backup.every_days == 7
