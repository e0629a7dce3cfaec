# SPDX-License-Identifier: MIT
"""Colours as they are seen, for pages and pictures: relative luminance and contrast of WCAG 2."""
import functools


def of_hex(text):
    """Red, green and blue of "#rrggbb", to 255."""
    return tuple(int(text[i:i + 2], 16) for i in (1, 3, 5))


def linear(colour):
    """The light of each of the three."""
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in colour)]


@functools.lru_cache(maxsize=None)
def luminance(colour):
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)
