"""Build hook: compile protos/ into protos/gen/ before every build and editable install."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileProtos(BuildHookInterface):
    """Compiles before hatchling looks at what there is to pack."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes protos/gen and adds it to the artifacts."""
        root = Path(self.root, "protos")
        sys.path.insert(0, str(root))
        from compile import compile_protos

        compile_protos(root)
        build_data["artifacts"].append("protos/gen/**")
