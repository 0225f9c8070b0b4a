"""Generates libs/atoll/api from protos/, and messages of others beside their adapters.

The same input gives the same bytes.

The rules of buf.validate stay inside the generated descriptors, where
protovalidate reads them, but the import of its schema is taken out: the client
then neither needs protovalidate nor collides with another copy of that schema
in the same process.
"""

import argparse
import filecmp
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
THIRD_PARTY = ROOT / "third_party" / "protos"
TARGET = ROOT / "libs"
RULES_SCHEMA = "buf/validate/validate.proto"
ETCD_WIRE = Path("atoll/adapters/etcd/wire/etcdwire.proto")
PLUGINS = ("python", "grpc_python", "mypy", "mypy_grpc")


def main() -> int:
    """Generates, or with --check compares; the exit code tells a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        generate(made)
        beside = generate_beside(made, ETCD_WIRE)
        if check:
            changed = differences(made / "atoll" / "api", TARGET / "atoll" / "api")
            return report([f"atoll/api/{path}" for path in changed] + outdated(made, beside))
        replace(made / "atoll" / "api", TARGET / "atoll" / "api")
        for path in outdated(made, beside):
            shutil.copyfile(made / path, TARGET / path)
    return 0


def generate(into: Path) -> None:
    """Writes the modules of every proto file below `into`."""
    files = sorted(path.relative_to(PROTOS).as_posix() for path in PROTOS.rglob("*.proto"))
    if not files:
        sys.exit("gen_protos: no .proto file under protos/")
    image = into / "image.binpb"
    image.write_bytes(without_rules_schema(described(files, into)))
    outputs = [f"--{plugin}_out={'quiet:' * plugin.startswith('mypy')}{into}" for plugin in PLUGINS]
    run_protoc([f"--descriptor_set_in={image}", *outputs, *files])
    image.unlink()
    for package in packages(into / "atoll" / "api"):
        (package / "__init__.py").write_text(docstring(package.relative_to(into / "atoll")))


def generate_beside(into: Path, proto: Path) -> list[str]:
    """Writes the messages of one proto file of libs/ below `into`; the paths of the modules."""
    outputs = [f"--python_out={into}", f"--mypy_out=quiet:{into}"]
    run_protoc([f"-I{TARGET}", *outputs, proto.as_posix()])
    return [proto.with_name(f"{proto.stem}_pb2{end}").as_posix() for end in (".py", ".pyi")]


def outdated(made: Path, paths: list[str]) -> list[str]:
    """Those of `paths` that are not under libs/ as they were made."""
    return [
        path
        for path in paths
        if not (TARGET / path).exists()
        or not filecmp.cmp(made / path, TARGET / path, shallow=False)
    ]


def described(files: list[str], scratch: Path) -> FileDescriptorSet:
    """Descriptors of `files` and all that they import, comments included."""
    image = scratch / "described.binpb"
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    includes = [f"-I{folder}" for folder in (PROTOS, THIRD_PARTY, well_known)]
    options = ["--include_imports", "--include_source_info", f"--descriptor_set_out={image}"]
    run_protoc([*includes, *options, *files])
    described_files = FileDescriptorSet.FromString(image.read_bytes())
    image.unlink()
    return described_files


def without_rules_schema(files: FileDescriptorSet) -> bytes:
    """The same descriptors, whose rules are options of a schema that nobody imports."""
    kept = FileDescriptorSet()
    for file in files.file:
        if file.name != RULES_SCHEMA:
            drop_import(file, RULES_SCHEMA)
            kept.file.append(file)
    return kept.SerializeToString(deterministic=True)


def drop_import(file: FileDescriptorProto, name: str) -> None:
    """Takes `name` out of the imports of `file`, which has no public or weak ones."""
    if file.public_dependency or file.weak_dependency:
        sys.exit(f"gen_protos: {file.name}: public and weak imports are not supported")
    imports = [dependency for dependency in file.dependency if dependency != name]
    del file.dependency[:]
    file.dependency.extend(imports)


def run_protoc(arguments: list[str]) -> None:
    """Runs the protoc of grpcio-tools with this environment's plugins; exits when it fails."""
    plugins = Path(sys.executable).parent
    os.environ["PATH"] = f"{plugins}{os.pathsep}{os.environ['PATH']}"
    if protoc.main(["protoc", *arguments]) != 0:
        sys.exit("gen_protos: protoc failed")


def packages(api: Path) -> Iterator[Path]:
    """`api` and every folder below it."""
    yield api
    yield from sorted(path for path in api.rglob("*") if path.is_dir())


def docstring(package: Path) -> str:
    """What the __init__.py of a generated package says."""
    return f'"""Generated from protos/atoll/{package.as_posix()}; see tools/gen_protos.py."""\n'


def differences(made: Path, kept: Path) -> list[str]:
    """Paths that only one of the two trees has, or whose bytes differ."""
    ours, theirs = tree(made), tree(kept)
    changed = {
        path for path in ours & theirs if not filecmp.cmp(made / path, kept / path, shallow=False)
    }
    return sorted((ours ^ theirs) | changed)


def tree(folder: Path) -> set[str]:
    """Files below `folder`, without what the interpreter caches."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def report(paths: list[str]) -> int:
    """Prints what differs; 1 when something does."""
    for path in paths:
        print(f"libs/{path}: differs from what its proto file gives; run `make protos`")
    return 1 if paths else 0


def replace(made: Path, target: Path) -> None:
    """Puts the tree `made` where `target` is; unchanged files keep their times."""
    for path in sorted(tree(target) - tree(made)):
        (target / path).unlink()
    for path in sorted(tree(made)):
        goal = target / path
        if not goal.exists() or not filecmp.cmp(made / path, goal, shallow=False):
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made / path, goal)


if __name__ == "__main__":
    sys.exit(main())
