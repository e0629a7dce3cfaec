/* SPDX-License-Identifier: MIT */
/* What cppcheck has to know of uthash, which it does not read. */
#define HASH_ITER(hh, head, el, tmp) for ((el) = (head), (tmp) = (head); (el); (el) = (tmp))
