"""Compressed logs and spreadsheets, from a file and from a pipe."""

import bz2
import gzip
import io
import lzma
import zipfile

import pytest

import latfit
from conftest import DATA
from latfit.errors import LogError


def zipped(*names, data=b"latency\n1\n2\n", **options):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data, **options)
    return whole.getvalue()


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": lambda d: zipped("a/log.csv", data=d)}


def with_zstandard():
    package = pytest.importorskip("zstandard")
    return package.ZstdCompressor().compress


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*PACKED, "zst"])
@pytest.mark.parametrize("name", ["probes.csv", "jobs.swf"])
def test_packing_does_not_matter(kind, name, tmp_path, run):
    pack = PACKED[kind] if kind in PACKED else with_zstandard()
    plain = latfit.read_log(DATA / name, max_refused=1)
    (tmp_path / "log").write_bytes(pack((DATA / name).read_bytes()))
    assert latfit.read_log(tmp_path / "log", max_refused=1).frame.equals(plain.frame)
    piped = run("convert", "-", "-o", tmp_path / "x.csv", "--max-refused", 1, stdin=(tmp_path / "log").read_bytes())
    assert piped.returncode == 0
    assert f"{len(plain.frame)} probes (".encode() in b" ".join(piped.stdout.split())  # long paths wrap its line


@pytest.mark.parametrize("kind", [*PACKED, "zst"])
def test_damaged_data_are_reported(kind, tmp_path):
    pack = PACKED[kind] if kind in PACKED else with_zstandard()
    data = pack(b"latency\n" + b"".join(b"%d.5\n" % (i * i % 977) for i in range(5000)))
    for broken in (data[:-20], data[:400], data[:200] + b"\0" * 50 + data[250:]):
        (tmp_path / "log").write_bytes(broken)
        with pytest.raises(LogError, match=r"damaged or cut short|no zip|unpacked"):
            latfit.read_log(tmp_path / "log")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "this is a spreadsheet: save its sheet as CSV"),
        (zipped("mimetype", "content.xml"), "this is a spreadsheet"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "this is a spreadsheet"),
        (zipped("a.csv", "b.csv"), "this zip file has 2 members"),
        (zipped(), "binary file"),
    ],
)
def test_an_archive_without_a_log_is_refused(data, says, tmp_path):
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(LogError, match=says):
        latfit.read_log(tmp_path / "log")


def test_folders_and_resource_forks_are_skipped(tmp_path):
    (tmp_path / "log").write_bytes(zipped("a/", "a/log.csv", "__MACOSX/a/._log.csv"))
    assert len(latfit.read_log(tmp_path / "log").frame) == 2


def test_a_zip_file_of_a_future_version_is_refused(tmp_path):
    data = zipped("log.csv")
    at = data.index(b"PK\x01\x02") + 6  # the version needed to extract, in the directory
    (tmp_path / "log").write_bytes(data[:at] + b"\x94\x00" + data[at + 2 :])
    with pytest.raises(LogError, match=r"cannot be unpacked \(zip file version 14.8\)"):
        latfit.read_log(tmp_path / "log")
