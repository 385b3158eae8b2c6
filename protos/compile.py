"""Compile protos/brain into protos/gen: messages, stubs and their types. `python protos/compile.py`, or `make protos`.

Directory equals package, so that the generated imports (`from brain.v1 import page_pb2`) work as they are.
"""

import shutil
import subprocess
import sys
from pathlib import Path


def compile_protos(root: Path) -> None:
    """Writes root/gen anew from root/brain; raises CalledProcessError with protoc's own words when a file is wrong."""
    out = root / "gen"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    files = sorted(str(p) for p in root.glob("brain/**/*.proto"))
    services = [f for f in files if f.endswith("_service.proto")]
    bin_folder = Path(sys.executable).parent
    plugins = [f"--plugin={name}={bin_folder / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]
    # `python -m` and not protoc.main(): only the former adds the bundled google/protobuf/*.proto.
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", *plugins]
    subprocess.run([*protoc, f"--python_out={out}", f"--mypy_out=quiet:{out}", *files], check=True)
    subprocess.run([*protoc, f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet:{out}", *services], check=True)
    for package in [out / "brain", *(p for p in (out / "brain").rglob("*") if p.is_dir() and p.name != "__pycache__")]:
        (package / "__init__.py").touch()
        (package / "py.typed").touch()


if __name__ == "__main__":
    compile_protos(Path(__file__).parent)
