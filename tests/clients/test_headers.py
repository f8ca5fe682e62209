"""Text headers that name lodN.raw: NRRD (pynrrd, SimpleITK) and MetaImage (SimpleITK, whole and in regions; VTK)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import CHANNELS, IMAGES, LAYERS, SURVEYS, assert_same, level, levels

VOLUMES = [*SURVEYS, *IMAGES]


@pytest.mark.parametrize("layer", LAYERS)
def test_pynrrd_reads_nhdr(mount: Path, layer: str) -> None:
    nrrd = pytest.importorskip("nrrd")
    for of_level in levels(mount, layer):
        samples, header = nrrd.read(str(of_level.file(".nhdr")), index_order="C")
        assert_same(samples, of_level.samples())
        assert header["lod"] == str(of_level.lod)


@pytest.mark.parametrize("layer", IMAGES)
def test_pynrrd_reads_positions_of_nhdr(mount: Path, layer: str) -> None:
    nrrd = pytest.importorskip("nrrd")
    for of_level in levels(mount, layer):
        header = nrrd.read_header(str(of_level.file(".nhdr")))
        axes = of_level.about["axes"][::-1]
        np.testing.assert_allclose(header["space origin"], [axis["first"] for axis in axes])
        np.testing.assert_allclose(np.diag(header["space directions"]), [axis["step"] for axis in axes])


@pytest.mark.parametrize("suffix", [".nhdr", ".mhd"])
@pytest.mark.parametrize("layer", [*VOLUMES, *CHANNELS])
def test_simpleitk_reads_whole_levels(mount: Path, layer: str, suffix: str) -> None:
    itk = pytest.importorskip("SimpleITK")
    for of_level in levels(mount, layer):
        assert_same(itk.GetArrayFromImage(itk.ReadImage(str(of_level.file(suffix)))), of_level.samples())


@pytest.mark.parametrize("layer", VOLUMES)
def test_simpleitk_reads_regions_through_mhd(mount: Path, layer: str) -> None:
    itk = pytest.importorskip("SimpleITK")
    of_level = level(mount, layer)
    reader = itk.ImageFileReader()
    reader.SetFileName(str(of_level.file(".mhd")))
    reader.ReadImageInformation()
    assert reader.GetSize() == of_level.shape[::-1]
    first = [extent // 3 for extent in of_level.shape]
    count = [min(5, extent - start) for extent, start in zip(of_level.shape, first)]
    reader.SetExtractIndex(first[::-1])
    reader.SetExtractSize(count[::-1])
    box = tuple(slice(start, start + n) for start, n in zip(first, count))
    assert_same(itk.GetArrayFromImage(reader.Execute()), of_level.samples()[box])


@pytest.mark.parametrize("layer", IMAGES)
def test_both_headers_give_the_same_positions(mount: Path, layer: str) -> None:
    itk = pytest.importorskip("SimpleITK")
    for of_level in levels(mount, layer):
        axes = of_level.about["axes"][::-1]
        for suffix in (".nhdr", ".mhd"):
            image = itk.ReadImage(str(of_level.file(suffix)))
            np.testing.assert_allclose(image.GetOrigin(), [axis["first"] for axis in axes])
            np.testing.assert_allclose(image.GetSpacing(), [axis["step"] for axis in axes])


@pytest.mark.parametrize("layer", [*SURVEYS, "demo/cells/color"])
def test_vtk_has_the_positions_of_itk_once_its_matrix_is_transposed(mount: Path, layer: str) -> None:
    vtk = pytest.importorskip("vtk")
    itk = pytest.importorskip("SimpleITK")
    of_level = levels(mount, layer)[-1]
    file = str(of_level.file(".mhd"))
    reader = vtk.vtkMetaImageReader()
    reader.SetFileName(file)
    # what docs/your-program.md says to type in ParaView
    mended = vtk.vtkProgrammableFilter()
    mended.SetInputConnection(reader.GetOutputPort())

    def script() -> None:
        survey = mended.GetOutput()
        survey.ShallowCopy(mended.GetInput())
        element = survey.GetDirectionMatrix().GetElement
        survey.SetDirectionMatrix([element(row, column) for column in range(3) for row in range(3)])

    mended.SetExecuteMethod(script)
    mended.Update()
    last = [extent - 1 for extent in of_level.shape[::-1]]
    point = [0.0, 0.0, 0.0]
    mended.GetOutput().TransformIndexToPhysicalPoint(last, point)
    np.testing.assert_allclose(point, itk.ReadImage(file).TransformIndexToPhysicalPoint(last), rtol=1e-9)
