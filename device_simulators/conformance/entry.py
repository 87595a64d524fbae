"""What pytest loads in every run: it registers the suite's options only where an argument names the suite."""


def pytest_load_initial_conftests(early_config, args: list[str]) -> None:
    """A conftest.py of an installed package is read too late for options
    (https://github.com/pytest-dev/pytest/issues/1596).
    """
    named = (arg.replace("/", ".") for arg in args if not arg.startswith("-"))
    if any("device_simulators.conformance" in arg for arg in named):
        early_config.pluginmanager.import_plugin("device_simulators.conformance.plugin")
