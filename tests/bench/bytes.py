"""Bytes per event of a trace's history, from its extents alone (docs/format.md).

usage: bytes.py TRACE    prints packed bytes (chunk headers included) per sealed event
"""
import struct
import sys

EXTENT = struct.Struct("<IIQQQQQQQ")  # kind, lane, offset, length, gen, used, first seq, index, serial
CHUNK = struct.Struct("<IIQIIII")  # magic, lane, first seq, events, raw, packed, spare
RING = 5

data = open(sys.argv[1], "rb").read()
end = struct.unpack_from("<Q", data, 24)[0]
at, events, packed = 4096, 0, 0
while at < end:
    kind, _, _, length, _, used, _, _, _ = EXTENT.unpack_from(data, at)
    chunk = at + EXTENT.size
    while kind == RING and chunk < at + used:
        _, _, _, n, _, size, _ = CHUNK.unpack_from(data, chunk)
        events += n
        packed += 64 + size
        chunk += 64 + (size + 7) // 8 * 8
    at += length
if not events:
    sys.exit("no sealed events in " + sys.argv[1])
print("%.3f" % (packed / events))
