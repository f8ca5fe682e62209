"""Writes one test volume with the format's reference library.

    make_data.py KIND PATH EDGE [key=value ...]

KIND is zgy (snr=, brick=), vds (method=, tolerance=, brick=), wkw (dtype=, blocks=), hdf5 (chunk=) or chunks (dtype=, of=: a name of
CHUNKED). The PATH of a VDS may be the URL of an object store, with the connection of openvds in OPENVDS_CONNECTION.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import cubes

LAYER = 64


def make_zgy(path, edge, snr=None, brick="64"):
    """Writes a float32 ZGY file, plain or compressed with ZFP at a signal-to-noise ratio in dB."""
    warnings.filterwarnings("ignore")
    import openzgy.api as zgy

    last = edge - 1.0
    corners = ((0, 0), (25 * last, 0), (0, 12.5 * last), (25 * last, 12.5 * last))
    more = {"compressor": zgy.ZgyCompressFactory("ZFP", snr=float(snr))} if snr else {}
    kind = zgy.SampleDataType.float
    with zgy.ZgyWriter(str(path), size=(edge,) * 3, datatype=kind, zinc=4.0, annotstart=(1, 1), annotinc=(1, 1),
                       corners=corners, bricksize=(int(brick),) * 3, **more) as writer:
        for first in range(0, edge, LAYER):
            below = min(first + LAYER, edge)
            writer.write((first, 0, 0), cubes.seismic((first, 0, 0), (below, edge, edge)))
        # the library needs minutes for coarser levels, and no benchmark reads them
        writer.finalize(decimation=[], progress=None)


def make_vds(path, edge, method="None", tolerance="1", brick="64"):
    """Writes a float32 VDS of one level."""
    import openvds as ov

    layout, channel = ov.VolumeDataLayoutDescriptor, ov.VolumeDataChannelDescriptor
    form = layout(getattr(layout.BrickSize, f"BrickSize_{brick}"), 0, 0, 4, layout.LODLevels.LODLevels_None,
                  layout.Options.Options_None, 0)
    names = (("Sample", "ms"), ("Crossline", ""), ("Inline", ""))
    axes = [ov.VolumeDataAxisDescriptor(edge, name, unit, 0.0, 4.0 * (edge - 1)) for name, unit in names]
    amplitude = channel(ov.VolumeDataFormat.Format_R32, ov.VolumeDataComponents.Components_1, "Amplitude", "", -1200.0,
                        1200.0, ov.VolumeDataMapping.Direct, 1, channel.Flags.Default, 1.0, 0.0)
    error = ov.VDSError()
    vds = ov.create(str(path), os.environ.get("OPENVDS_CONNECTION", ""), form, axes, [amplitude], ov.MetadataContainer(),
                    getattr(ov.CompressionMethod, method), float(tolerance), error)
    if error.code:
        raise RuntimeError(error.string)
    create = ov.IVolumeDataAccessManager.AccessMode.AccessMode_Create
    pages = ov.getAccessManager(vds).createVolumeDataPageAccessor(ov.DimensionsND.Dimensions_012, 0, 0, 8, create, 1024)
    for number in range(pages.getChunkCount()):
        page = pages.createPage(number)
        low, high = (list(corner)[:3][::-1] for corner in page.getMinMax())
        np.array(page.getWritableBuffer(), copy=False)[...] = cubes.seismic(low, high)
        page.release()
    pages.commit()
    ov.close(vds)


def make_wkw(path, edge, dtype="uint8", blocks="lz4"):
    """Writes a WKW dataset of one layer and one mag, blocks of 32^3, all in one file."""
    import wkw

    kind = {"raw": wkw.Header.BLOCK_TYPE_RAW, "lz4": wkw.Header.BLOCK_TYPE_LZ4}[blocks]
    header = wkw.Header(np.dtype(dtype).type, block_len=32, file_len=edge // 32, block_type=kind)
    voxels = np.empty((edge,) * 3, dtype, order="F")
    for first in range(0, edge, LAYER):
        below = min(first + LAYER, edge)
        voxels[:, :, first:below] = cubes.cells((0, 0, first), (edge, edge, below), dtype)
    (path / "color").mkdir(parents=True)
    with wkw.Dataset.create(str(path / "color" / "1"), header) as dataset:
        dataset.write((0, 0, 0), voxels)
    box = {"topLeft": [0, 0, 0], "width": edge, "height": edge, "depth": edge}
    layer = {"name": "color", "category": "color", "dataFormat": "wkw", "boundingBox": box, "elementClass": dtype,
             "numChannels": 1, "mags": [{"mag": [1, 1, 1], "path": "./color/1"}]}
    about = {"id": {"name": path.name, "team": ""}, "scale": {"factor": [4, 4, 4], "unit": "nanometer"},
             "dataLayers": [layer]}
    (path / "datasource-properties.json").write_text(json.dumps(about))


def make_hdf5(path, edge, chunk=""):
    """Writes a float32 HDF5 file: in one piece, or in chunks of this shape (64x64x64) with shuffle and deflate."""
    import h5py

    chunks = {"chunks": tuple(min(int(n), edge) for n in chunk.split("x")), "shuffle": True, "compression": "gzip"} if chunk else {}
    with h5py.File(path, "w", libver="latest") as file:
        array = file.create_dataset("data", (edge,) * 3, "float32", **chunks)
        for first in range(0, edge, LAYER):
            below = min(first + LAYER, edge)
            array[first:below] = cubes.seismic((first, 0, 0), (below, edge, edge))


def inner(codecs, chunk):
    """Returns the codecs of shards of chunks of this edge."""
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    return [{"name": "sharding_indexed", "configuration": {"chunk_shape": [chunk] * 3, "codecs": codecs, "index_codecs": index}}]


LITTLE = [{"name": "bytes", "configuration": {"endian": "little"}}]
ZSTD = [*LITTLE, {"name": "zstd", "configuration": {"level": 5}}]
# what tensorstore is told of volumes in chunks: the driver, and the metadata beside shape and type
CHUNKED = {
    "zarr3-shards": ("zarr3", {"codecs": inner(ZSTD, 32)}, 256),
    "zarr3-zstd": ("zarr3", {"codecs": ZSTD}, 64),
    "zarr3-raw": ("zarr3", {"codecs": LITTLE}, 64),
    "zarr2-blosc": ("zarr", {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}}, 64),
    "n5-gzip": ("n5", {"compression": {"type": "gzip"}}, 64),
    "precomputed-segments": ("neuroglancer_precomputed", {}, 64),
}


def make_chunks(path, edge, of, dtype="uint16"):
    """Writes a volume in chunks with tensorstore, in the order z, y, x, or x, y, z where the format reverses axes."""
    import tensorstore as ts

    driver, metadata, chunk = CHUNKED[of]
    shape, chunks = [edge] * 3, [min(chunk, edge)] * 3
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}
    if driver == "zarr3":
        grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        spec["metadata"] = metadata | {"shape": shape, "data_type": dtype, "chunk_grid": grid}
    elif driver == "zarr":
        spec["metadata"] = metadata | {"shape": shape, "dtype": np.dtype(dtype).str, "chunks": chunks}
    elif driver == "n5":
        spec["metadata"] = metadata | {"dimensions": shape, "dataType": dtype, "blockSize": chunks}
    else:
        spec["multiscale_metadata"] = {"type": "segmentation", "data_type": dtype, "num_channels": 1}
        spec["scale_metadata"] = {"size": shape, "encoding": "compressed_segmentation", "chunk_size": chunks, "key": "1",
                                  "compressed_segmentation_block_size": [8, 8, 8], "resolution": [4, 4, 4]}
    array = ts.open(spec, create=True).result()
    for first in range(0, edge, 256):
        below = min(first + 256, edge)
        # x, y, z
        voxels = cubes.cells((0, 0, first), (edge, edge, below), "uint16" if dtype == "uint32" else dtype)
        if dtype == "uint32":
            voxels = (voxels // 4000).astype(dtype)
        if driver.startswith("zarr"):
            array[first:below] = voxels.T
        elif driver == "n5":
            array[:, :, first:below] = voxels
        else:
            array[:, :, first:below, 0] = voxels


def main():
    """Writes a file to a temporary name first, so that an interrupted run never leaves half a volume under the final name.
    openvds writes LayerStatus last to a store."""
    kind, path, edge, *words = sys.argv[1:]
    write = {"zgy": make_zgy, "vds": make_vds, "wkw": make_wkw, "hdf5": make_hdf5, "chunks": make_chunks}[kind]
    options = dict(word.split("=") for word in words)
    if "://" in path:
        write(path, int(edge), **options)
        return
    path = Path(path)
    fresh = path.with_name("new-" + path.name)
    write(fresh, int(edge), **options)
    fresh.rename(path)


if __name__ == "__main__":
    main()
