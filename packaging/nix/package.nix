# From the archives of a release, or from `src`, a checkout.
{
  lib,
  rustPlatform,
  fetchurl,
  src ? null,
}:

let
  version = "0.1.0";
  archive =
    name: sha256:
    fetchurl {
      url = "https://example.org/volfs/releases/download/v0.1.0/${name}.tar.gz";
      inherit sha256;
    };
  crates = archive "volfs-${version}-vendor" "0000000000000000000000000000000000000000000000000000000000000000";
  fromRelease = {
    src = archive "volfs-${version}" "0000000000000000000000000000000000000000000000000000000000000000";
    postUnpack = ''
      mkdir "$sourceRoot/vendor"
      tar -xf ${crates} -C "$sourceRoot/vendor" --strip-components=1
    '';
    cargoVendorDir = "vendor";
    cratesFolder = "vendor";
  };
  fromCheckout = {
    inherit src;
    cargoLock.lockFile = src + "/Cargo.lock";
    # the name that nixpkgs gives to what it makes of Cargo.lock
    cratesFolder = "../cargo-vendor-dir";
  };
in
rustPlatform.buildRustPackage (
  {
    pname = "volfs";
    inherit version;

    postPatch = ''
      patchShebangs scripts
    '';

    buildPhase = ''
      runHook preBuild
      ./scripts/install.sh --crates "$cratesFolder"
      runHook postBuild
    '';

    installPhase = ''
      runHook preInstall
      ./scripts/install.sh --crates "$cratesFolder" "$out"
      runHook postInstall
    '';

    # tests need libzfp, and mount
    doCheck = false;

    doInstallCheck = true;
    installCheckPhase = ''
      "$out/bin/volfs" --version | grep -F ${version}
    '';

    meta = {
      description = "Mounts seismic and microscopy volumes (ZGY, VDS, WKW, Zarr, N5, HDF5) as files";
      longDescription = ''
        volfs shows seismic surveys in ZGY and VDS (OpenVDS), microscopy volumes in WKW
        (webKNOSSOS), Zarr, N5 and precomputed (Neuroglancer), and arrays in HDF5 and
        netCDF as a read-only tree of raw samples, NumPy files and JSON, at every level
        of detail. Any program that can read a file can read an inline, a slice or a
        trace; bricks are decoded when they are read, and nothing is converted or
        copied.

        Mounting needs /dev/fuse, and for ordinary users fusermount3 of the system
        (package fuse3), which is set-user-ID.
      '';
      homepage = "https://example.org/volfs";
      license = lib.licenses.asl20;
      mainProgram = "volfs";
      platforms = lib.platforms.linux;
    };
  }
  // (if src == null then fromRelease else fromCheckout)
)
