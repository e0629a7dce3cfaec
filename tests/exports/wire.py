# SPDX-License-Identifier: MIT
"""Reads a pprof profile by the wire format of protocol buffers alone: what is not in the schema fails."""
import gzip

PROFILE = {1: ("sample_type", "ValueType"), 2: ("sample", "Sample"), 3: ("mapping", "Mapping"),
           4: ("location", "Location"), 5: ("function", "Function"), 6: ("string_table", str),
           9: ("time_nanos", int), 10: ("duration_nanos", int), 14: ("default_sample_type", int)}
MESSAGES = {
    "Profile": PROFILE,
    "ValueType": {1: ("type", int), 2: ("unit", int)},
    "Sample": {1: ("location_id", [int]), 2: ("value", [int]), 3: ("label", "Label")},
    "Label": {1: ("key", int), 2: ("str", int), 3: ("num", int)},
    "Mapping": {1: ("id", int), 5: ("filename", int), 7: ("has_functions", int), 8: ("has_filenames", int),
                9: ("has_line_numbers", int), 10: ("has_inline_frames", int)},
    "Location": {1: ("id", int), 2: ("mapping_id", int), 4: ("line", "Line")},
    "Line": {1: ("function_id", int), 2: ("line", int)},
    "Function": {1: ("id", int), 2: ("name", int), 4: ("filename", int)},
}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
        shift += 7


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def message(data, kind):
    """Fields by name; those that may repeat are lists."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        name, of = MESSAGES[kind][tag >> 3]
        value, at = varint(data, at)
        assert tag & 7 == (0 if of is int else 2), "%s.%s has wire type %d" % (kind, name, tag & 7)
        if of is int:
            fields[name] = value
            continue
        part, at = data[at:at + value], at + value
        assert len(part) == value, "%s.%s ends behind the file" % (kind, name)
        if isinstance(of, list):
            fields[name] = packed(part)
        else:
            fields.setdefault(name, []).append(part.decode() if of is str else message(part, of))
    return fields


class Pprof:
    """A profile whose references have all been followed."""

    def __init__(self, path):
        with gzip.open(path) as file:
            self.fields = message(file.read(), "Profile")
        self.text = self.fields["string_table"]
        assert self.text[0] == "" and len(set(self.text)) == len(self.text), "texts are not told once"
        self.types = [self.text[t["type"]] for t in self.fields["sample_type"]]
        self.units = [self.text[t["unit"]] for t in self.fields["sample_type"]]
        functions = self.table("function")
        mappings = self.table("mapping")
        self.frames = {}
        for number, location in self.table("location").items():
            assert location.get("mapping_id") in (None, *mappings)
            self.frames[number] = self.text[functions[location["line"][0]["function_id"]]["name"]]
        self.samples = self.fields.get("sample", [])
        for sample in self.samples:
            assert len(sample["value"]) == len(self.types) and sample["location_id"]
            assert all(i in self.frames for i in sample["location_id"])

    def table(self, name):
        rows = self.fields.get(name, [])
        table = {row["id"]: row for row in rows}
        assert len(table) == len(rows) and 0 not in table, "ids of %s" % name
        return table

    def labels(self, sample):
        return {self.text[l["key"]]: self.text[l["str"]] if "str" in l else l["num"] for l in sample["label"]}

    def sum(self, kind, **labels):
        column = self.types.index(kind)
        return sum(s["value"][column] for s in self.samples
                   if all(self.labels(s).get(k) == v for k, v in labels.items()))
