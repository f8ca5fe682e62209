# `nix run 'git+https://example.org/volfs?dir=packaging/nix' -- --help`, or in a clone `nix build ./packaging/nix`. The crates are
# fetched by the checksums of Cargo.lock.
{
  description = "Mounts seismic and microscopy volumes (ZGY, VDS, WKW, Zarr, N5, HDF5) as files";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forAll = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = forAll (pkgs: {
        default = pkgs.callPackage ./package.nix { src = ../..; };
      });
      checks = self.packages;
      overlays.default = final: _: { volfs = final.callPackage ./package.nix { }; };
    };
}
