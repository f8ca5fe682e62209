# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Volfs(Package):
    """volfs shows seismic surveys in ZGY and VDS (OpenVDS), microscopy volumes in WKW
    (webKNOSSOS), Zarr, N5 and precomputed (Neuroglancer), and arrays in HDF5 and
    netCDF as a read-only tree of raw samples, NumPy files and JSON, at every level
    of detail. Any program that can read a file can read an inline, a slice or a
    trace; bricks are decoded when they are read, and nothing is converted or
    copied.

    Mounting needs /dev/fuse, and for ordinary users fusermount3 of the system
    (package fuse3), which is set-user-ID."""

    homepage = "https://example.org/volfs"
    url = "https://example.org/volfs/releases/download/v0.1.0/volfs-0.1.0.tar.gz"

    license("Apache-2.0")

    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")

    conflicts("platform=darwin")
    conflicts("platform=windows")

    # the crates, so that a build needs no network
    resource(
        name="vendor",
        url="https://example.org/volfs/releases/download/v0.1.0/volfs-0.1.0-vendor.tar.gz",
        sha256="0000000000000000000000000000000000000000000000000000000000000000",
        placement="vendor",
        when="@0.1.0",
    )

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        env.set("CARGO_PROFILE_RELEASE_STRIP", "true")

    def install(self, spec: Spec, prefix: Prefix) -> None:
        Executable("./scripts/install.sh")(prefix, extra_env={"CARGO_BUILD_JOBS": str(make_jobs)})

    def test_version(self):
        """volfs tells its version"""
        volfs = Executable(self.prefix.bin.volfs)
        assert str(self.version) in volfs("--version", output=str)
