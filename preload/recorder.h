/* SPDX-License-Identifier: MIT */
/*
 * What the recorder's own files share and nobody else in preload/ needs: the file and its extents,
 * the index, a lane's parts. Locks: a lane's lock guards struct lane, the extent lock guards the
 * list of extents and the file's end (order: preload.h).
 */
#ifndef GT_RECORDER_H
#define GT_RECORDER_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include "preload.h"

#pragma GCC visibility push(hidden)

#define GT_NONE UINT32_MAX /* no slot, no site */

/*
 * The order of the stores below decides whether a killed process leaves a readable file. The tests
 * build the recorder once for each of these faults and must find it; otherwise it is a constant 0.
 */
enum gt_mutant {
	GT_MUTANT_ONE_REDO = 1,	    /* a single redo line */
	GT_MUTANT_KEY_FIRST = 2,    /* a slot's key before its fields */
	GT_MUTANT_USED_FIRST = 3,   /* a chunk is listed before its bytes are there */
	GT_MUTANT_RECYCLE_FULL = 4, /* an extent is taken over without being emptied */
	GT_MUTANT_ONE_CTR = 5,	    /* a single set of counters */
	GT_MUTANT_NO_REDO = 6,	    /* a site changes in place */
	GT_MUTANT_KIND_FIRST = 7,   /* an extent is listed before its fields are there */
};
#ifndef GT_MUTANT
#define GT_MUTANT 0
#endif
#define gt_mutant(m) (GT_MUTANT == (m))

/* ---- file.c --------------------------------------------------------------------------------- */

/* Creates (O_EXCL, mode 0600) and maps a file with an empty header; -errno. Nothing else may exist.
 */
int gt_file_open(const char *path, uint64_t limit);
/* Mapped, zeroed room behind the last listed extent; it counts once gt_file_grown is called. */
void *gt_file_grow(uint64_t length);
void gt_file_grown(uint64_t length);
/* Is the address in the mapping? And, for one whose page the file does not have any more: from there
 * on, and in front if the header is gone too, memory in place of the file. Async-signal-safe. */
bool gt_file_has(uintptr_t address);
bool gt_file_detach(uintptr_t address);
void gt_file_forget(void);  /* in a forked child: the kernel has taken the mapping already */
extern char gt_file_path[]; /* as a person would type it from where the process started */

/* ---- extent.c ------------------------------------------------------------------------------- */

/* A ring extent for a lane that has filled its last one: new, or the oldest of somebody's. */
struct gt_extent *gt_ring_take(uint32_t lane, uint64_t first_seq);
void gt_ring_close(struct gt_extent *e); /* nobody writes it any more: it may be taken */
void gt_extents_forget(void);

static inline uint64_t gt_round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* Elements of one size, numbered through over a growing set of extents. */
struct gt_array {
	struct gt_extent **extents;
	uint32_t extent_count;
	uint32_t room;	     /* elements in the extents */
	uint32_t count;	     /* elements handed out */
	uint32_t per, size;  /* elements per extent, bytes of one */
	uint64_t reciprocal; /* 2^64 / per, rounded up: a division costs as much as a lock */
};
void gt_array_init(struct gt_array *a, uint32_t size);
bool gt_array_grow(struct gt_array *a, enum gt_extent_kind kind, uint32_t lane);

static inline void *gt_array_at(const struct gt_array *a, uint32_t i)
{
	uint32_t e = (uint32_t)((unsigned __int128)a->reciprocal * i >> 64);

	return (char *)a->extents[e] + sizeof(struct gt_extent) +
	       (uint64_t)(i - e * a->per) * a->size;
}

/* ---- clock.c -------------------------------------------------------------------------------- */

void gt_clock_start(void);  /* time 0 is now */
void gt_clock_anchor(void); /* bound the drift; at each seal */

/* ---- index.c -------------------------------------------------------------------------------- */

#define GT_INDEX_TABLES 128u
#define GT_BUCKET	12u

struct gt_bucket {		/* a cache line */
	uint8_t tag[GT_BUCKET]; /* a byte of the hash, 0 = empty */
	uint32_t passed;	/* entries that belong here or before, and are behind */
	uint32_t value[GT_BUCKET];
};
_Static_assert(sizeof(struct gt_bucket) == 64, "a cache line");

struct gt_index_table {
	struct gt_bucket *buckets;
	uint32_t count, used; /* of buckets, of entries */
};

/* The hash under which value was added: it is not kept. */
typedef uint32_t gt_hash_fn(const void *owner, uint32_t value);

/*
 * From a hash to the numbers stored under it; what they stand for is compared by the caller. 128 small
 * tables that grow each on its own: a pause when one grows, not when all.
 */
struct gt_index {
	struct gt_index_table table[GT_INDEX_TABLES];
	gt_hash_fn *hash_of;
	const void *owner;
};
int gt_index_init(struct gt_index *ix, gt_hash_fn *hash_of, const void *owner);
bool gt_index_grow(const struct gt_index *ix, struct gt_index_table *t);
void gt_index_add(struct gt_index *ix, uint32_t hash, uint32_t value); /* where there is room */
struct gt_probe;
/* The entry that a search for this hash has returned last; nothing was added since. */
void gt_index_remove(struct gt_index *ix, uint32_t hash, const struct gt_probe *found);

/* The highest bits of a hash choose the table, the next ones the bucket, the lowest are the tag. */
#define GT_INDEX_TABLE(ix, hash) (&(ix)->table[(hash) / (UINT32_MAX / GT_INDEX_TABLES + 1)])

static inline struct gt_index_table *gt_index_table(struct gt_index *ix, uint32_t hash)
{
	return GT_INDEX_TABLE(ix, hash);
}

static inline uint32_t gt_index_home(const struct gt_index_table *t, uint32_t hash)
{
	return (uint32_t)((uint64_t)(hash * GT_INDEX_TABLES) * gt_load_relaxed(&t->count) >> 32);
}

static inline uint32_t gt_index_behind(const struct gt_index_table *t, uint32_t at)
{
	return at + 1 == t->count ? 0 : at + 1;
}

static inline uint8_t gt_index_tag(uint32_t hash)
{
	return (uint8_t)(hash & 255 ? hash : 1);
}

/* A bit for each entry of the bucket that has this tag. */
static inline uint32_t gt_bucket_match(const struct gt_bucket *b, uint8_t tag)
{
	uint32_t bits = 0;
#ifdef __SSE2__
	__m128i wanted = _mm_set1_epi8((char)tag);

	bits = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(*(const __m128i *)b, wanted));
	bits &= (1u << GT_BUCKET) - 1;
#else
	for (unsigned i = 0; i < GT_BUCKET; i++)
		bits |= (uint32_t)(b->tag[i] == tag) << i;
#endif
	return bits;
}

/* On its way to the cache while the lock is waited for; what it reads need not be the table's. */
static inline void gt_index_prefetch(const struct gt_index *ix, uint32_t hash)
{
	const struct gt_index_table *t = GT_INDEX_TABLE(ix, hash);

	__builtin_prefetch(gt_load_relaxed(&t->buckets) + gt_index_home(t, hash), 1);
}

/* Room for one more of this hash. */
static inline bool gt_index_reserve(struct gt_index *ix, uint32_t hash)
{
	struct gt_index_table *t = gt_index_table(ix, hash);

	return gt_likely(t->used < t->count * (GT_BUCKET / 4 * 3)) || gt_index_grow(ix, t);
}

struct gt_probe { /* a search */
	const struct gt_index_table *table;
	uint32_t home;	   /* bucket it began with */
	uint32_t at, last; /* bucket, entry that was returned last */
	uint32_t found;	   /* entries of the bucket that are still to be returned */
	uint8_t tag;
};

static inline struct gt_probe gt_index_probe(const struct gt_index *ix, uint32_t hash)
{
	struct gt_probe p = {.table = GT_INDEX_TABLE(ix, hash), .tag = gt_index_tag(hash)};

	p.at = p.home = gt_index_home(p.table, hash);
	p.found = gt_bucket_match(&p.table->buckets[p.at], p.tag);
	return p;
}

/*
 * Next number that may be stored under the hash, GT_NONE at the end: of the way, or of all buckets, each
 * of which something may have gone past, not all at the same time.
 */
static inline uint32_t gt_index_next(struct gt_probe *p)
{
	while (!p->found) {
		if (gt_likely(!p->table->buckets[p->at].passed))
			return GT_NONE;
		p->at = gt_index_behind(p->table, p->at);
		if (p->at == p->home)
			return GT_NONE;
		p->found = gt_bucket_match(&p->table->buckets[p->at], p->tag);
	}
	p->last = (uint32_t)__builtin_ctz(p->found);
	p->found &= p->found - 1;
	return p->table->buckets[p->at].value[p->last];
}

static inline uint32_t gt_hash(uint64_t key)
{
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
	key = (key ^ key >> 29) * 0xd6e8feb86659fd93ull;
	return (uint32_t)(key >> 32);
}

/* ---- lane.c, commit.c, site.c, ring.c, columns.c -------------------------------------------- */

struct gt_site_key {
	uint32_t native, python;
	uint8_t space, mask;
	uint16_t api;
};

struct gt_ring {		  /* where a lane's full staging goes */
	struct gt_extent *extent; /* being filled; NULL = none yet */
	uint64_t used;		  /* of it: the word in the file may be gone, see truncated.c */
	void *context;		  /* zstd's, in workspace */
	void *workspace;
	uint8_t *raw;		/* columns of one chunk */
	uint64_t plain, packed; /* bytes of the extent's chunks, before and after compression */
	uint32_t *born;		/* beside the cells: see struct gt_staged */
	uint64_t from_us;	/* likewise */
	uint32_t *back;		/* room for gt_columns_encode */
	uint16_t *whole;
	uint8_t *time;
};

struct lane { /* all of it under the lock */
	struct gt_lock lock;
	uint32_t number;
	struct gt_lane *file;
	struct gt_cell *cells;
	uint32_t cap;
	uint32_t free_slot; /* head of a list through gt_slot.spare; number + 1, 0 = empty */
	uint64_t seq, sealed;
	uint64_t last_us; /* a lane's time never goes back */
	struct gt_array slots, sites;
	struct gt_index blocks;	    /* key -> slot */
	struct gt_index site_index; /* struct gt_site_key -> site */
	struct gt_site_key *site_keys;
	uint32_t site_room; /* of site_keys */
	struct gt_ring ring;
};

/* The lane of a device, made at its first event, locked; NULL = not recorded (counted). */
struct lane *gt_lane_enter(int device);
uint32_t gt_lane_number(int device); /* GT_LANE_NONE = no lane for it */
int gt_lane_device(uint32_t number);
void gt_lane_leave(struct lane *l);
void gt_lanes_forget(void);
void gt_lanes_exit(void); /* a GT_OP_EXIT event on each */

/*
 * One event, in the store order that survives a kill anywhere; its sequence number. cell: key,
 * size_stream, site, slot, free_site, aux, extra, and the birth of a block that ends or comes back.
 * slot: that of the cell, NULL if it has none. mask: of its site. The caller has entered the lane and defined the site.
 */
uint64_t gt_commit(struct lane *l, struct gt_slot *slot, struct gt_cell *cell, enum gt_op op,
		   uint32_t mask);

bool gt_sites_init(struct lane *l);
/* Number of the site, defined if new; one without stacks when it cannot be. */
uint32_t gt_site_of(struct lane *l, const struct gt_site_key *key);
/* The GT_REPORT_HOLDERS largest sites by bytes in use, largest first; how many. */
uint32_t gt_site_holders(struct lane *l, struct gt_holder *ret);

bool gt_ring_init(struct lane *l);
void gt_ring_seal(struct lane *l); /* all staged events become a chunk, or are lost, counted */
/* The lane's open extent may be taken: for a live set that must grow when nothing else is left. */
void gt_ring_give_up(struct lane *l);

struct gt_staged { /* the events of a chunk, as gt_columns_encode is given them */
	const struct gt_cell *cells;
	const uint32_t
		*born; /* low half of the number of the alloc of a block that ends; 0 = none */
	uint32_t cap, count;
	uint64_t first;	  /* number of the first */
	uint64_t from_us; /* what is later is behind the first event of the extent, without a gap */
	uint32_t *back;	  /* room for a value per event each ... */
	uint16_t *whole;
	uint8_t *time; /* ... and for a varint per event, and one more */
};
#define GT_RAW_MAX(cells) ((cells)*80ull + 256) /* bytes of a chunk's columns, at most */
size_t gt_columns_encode(uint8_t *out, const struct gt_staged *s);

/* ---- oom.c, nvml.c, fork.c, defs.c ---------------------------------------------------------- */

void gt_oom_forget(void);
void gt_oom_exit(void); /* exit() began: say which refusal ended the run, if one did */
/* Processes on a device with their bytes, as NVML says, if it can be had; how many. */
uint32_t gt_nvml_others(int device, struct gt_other *ret, uint32_t max);
/* The page that a forked child finds zeroed; NULL = the kernel has no such thing. */
uint32_t *gt_fork_page(void);
void gt_fork_child(void); /* nothing of the parent's recorder is used again */
void gt_defs_forget(void);
const uint8_t *gt_device_uuid(int ordinal); /* NULL = not known */

/* ---- truncated.c ---------------------------------------------------------------------------- */

void gt_truncated_watch(void); /* a file is about to be opened */

/* ---- start.c -------------------------------------------------------------------------------- */

extern bool gt_unsaid;	/* gt_stop has something to say, ... */
void gt_stop_say(void); /* ... outside any lock */

#pragma GCC visibility pop

#endif
