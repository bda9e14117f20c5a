"""PNG files by hand, whose header can promise more than their data hold."""

import struct
import zlib


def png(
    width: int, height: int, depth: int, colour: int, rows: bytes, transparent: tuple[int, ...] = ()
) -> bytes:
    """Return a file; of ``transparent`` there is a value of each channel, as they are stored."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    levels = struct.pack(f">{len(transparent)}H", *transparent)
    data = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    clear = chunk(b"tRNS", levels) if transparent else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + clear + data
