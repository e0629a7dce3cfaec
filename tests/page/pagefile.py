# SPDX-License-Identifier: MIT
"""A page read back: its parts, and its blobs by the description in docs/page.md. A second reader of the
format, which shares nothing with the page's own script."""
import base64
import json
import re
import struct
import zlib


class Blob:
    def __init__(self, text):
        raw = zlib.decompress(base64.b64decode(text, validate=True), -15)
        length = struct.unpack("<I", raw[:4])[0]
        self.head = json.loads(raw[4:4 + length])
        self.columns, at = {}, 4 + length
        for name, count, size in self.head["cols"]:
            self.columns[name] = self.numbers(name, raw[at:at + size], count)
            at += size
        if at != len(raw):
            raise ValueError("%d bytes behind the columns" % (len(raw) - at))

    @staticmethod
    def numbers(name, data, count):
        values, value, shift, total = [], 0, 0, 0
        for byte in data:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                number = value >> 1 if not value & 1 else -(value + 1) // 2
                total += number
                values.append(number if name.endswith(("_v", "_s")) else total)
                value = shift = 0
        if len(values) != count:
            raise ValueError("%s has %d values, not %d" % (name, len(values), count))
        return values

    def rows(self, letter):
        """(time, tag, {place: bytes}, sum) of each row; the dictionary is the same one, changed."""
        c, at, now, total = self.columns, 0, {}, 0
        for t, tag, count in zip(c[letter + "_t"], c[letter + "_b"], c[letter + "_n"]):
            place = 0
            for i in range(at, at + count):
                place += c[letter + "_s"][i]
                now[place] = now.get(place, 0) + c[letter + "_v"][i]
                total += c[letter + "_v"][i]
            at += count
            yield t, tag, now, total


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.meta = json.loads(self.island("application/json", "gt-meta"))
        ids = re.findall(r'<script type="application/octet-stream" id="gt-blob-(\d+)">', self.text)
        self.blob_texts = [self.island("application/octet-stream", "gt-blob-" + i) for i in ids]

    def island(self, kind, name):
        return re.search(r'<script type="%s" id="%s">(.*?)</script>' % (re.escape(kind), name), self.text,
                         re.S).group(1)

    def blobs(self):
        return [Blob(text) for text in self.blob_texts]

    def scripts(self):
        return re.findall(r"<script>(.*?)</script>", self.text, re.S)
