from importlib.metadata import version

import tallyfold


def test_the_module_reports_the_version_of_its_package() -> None:
    assert tallyfold.__version__ == version("tallyfold")
