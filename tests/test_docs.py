"""The docs name tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_test_in_the_table_of_faults_exists():
    text = (ROOT / "docs" / "design" / "faults.md").read_text("utf-8")
    sources = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")}
    files = set(re.findall(r"[\w/]+\.py", text))
    names = set(re.findall(r"::(test_\w+)", text))
    assert len(names) > 80
    assert [name for name in names if not any(f"def {name}(" in source for source in sources.values())] == []
    assert [name for name in files if not any(str(path).endswith(name) for path in sources)] == []
