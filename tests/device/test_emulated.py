"""A bundle that is really built, checked on a fake device that computes with the HTP emulator."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.device.conftest import Archive, Desk
from tests.e2e.conftest import Workshop, workshop
from tests.libs import fake_maven

__all__ = ["workshop"]
BUILD = "v2.51.0.260929181845"


def test_a_real_context_binary_gives_the_numbers_of_its_manifest(
    desk: Desk, workshop: Workshop, archive: Archive
) -> None:
    built = workshop.build("--soc", "SM8650")
    assert built.code == 0, built.err
    (bundle,) = (path for path in workshop.dist.iterdir() if path.is_dir())
    files = {
        f"lib/{Path(name).name}": data
        for name, data in fake_maven.libraries(BUILD).items()
        if "V73" not in name and "Prepare" not in name and "Gpu" not in name
    }
    listed = [{"path": name, "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()]
    facts = {"kind": "qnn-libs", "os": "android", "arch": "aarch64", "qairt": "2.51.0", "build_id": BUILD}
    phone = desk.phone()
    desk.behave(phone, wrappers={"net.bin": str(bundle / "net_ctx.onnx")})
    done = desk.run(bundle, "--libs", str(archive({**facts, "files": listed}, files)))
    assert done.code == 0, done.err
    (output,) = done.document["graphs"][0]["outputs"]
    numerics = workshop.forge("verify", str(bundle), "--json").document["bundles"][0]["graphs"][0]["outputs"][0]
    assert output["max_abs"] == pytest.approx(numerics["max_abs"], rel=1e-6)
    assert 0 < output["max_abs"] < 0.01
    assert output["cosine"] == pytest.approx(numerics["cosine"], abs=1e-9)
