/* The tuning constants of the core. They change the speed, and the results only by rounding.
 *
 * Each can be set when the core is compiled, for example with -DRFFPK_SLOT_ROWS=2048. The command
 * beside each builds the core with those values and prints the ratios of the times that they take.
 */
#ifndef RFFPK_TUNING_H
#define RFFPK_TUNING_H

/* Rows of a slot. Sums are merged slot by slot in the order of the rows: this number and the
 * instruction set determine the bits of a result, the number of threads does not. All work that
 * belongs to no stage, the merge included, measured 1.2 % of the pass at k F = 2 160 and 0.6 % at
 * 119 000.
 *     python -m bench.speed.constants SLOT_ROWS 512 2048 */
#ifndef RFFPK_SLOT_ROWS
#define RFFPK_SLOT_ROWS 1024
#endif

/* Where the features are the columns of sparse rows, a slot has more rows: so many that they have
 * this many entries for each column, as the sums of a slot are set to zero and merged.
 *     python -m bench.speed.constants SLOT_ENTRIES 1 16 */
#ifndef RFFPK_SLOT_ENTRIES
#define RFFPK_SLOT_ENTRIES 4
#endif

/* Least number of clusters from which the hard rule adds each row to the sums of its cluster alone.
 * With fewer the product of all weights, nearly all of them 0, with the features is faster.
 *     python -m bench.speed.constants ONE_HOT_CLUSTERS 1 1000000 --clusters 32 */
#ifndef RFFPK_ONE_HOT_CLUSTERS
#define RFFPK_ONE_HOT_CLUSTERS 32
#endif

/* Bytes of a tile, a block of rows in work: it should stay in the second-level cache and leave room
 * there for the coefficients. Flat within 2 % from 512 KiB to 1 MiB on a cache of 1 MiB (Zen 4).
 *     python -m bench.speed.constants TILE_BYTES 327680 524288 1048576 */
#ifndef RFFPK_TILE_BYTES
#define RFFPK_TILE_BYTES (640 << 10)
#endif

/* Rows of a tile where TILE_BYTES allows them: a power of two, at least 64. Flat within 2 % from
 * 256 to 512 (Zen 4).
 *     python -m bench.speed.constants MAX_TILE_ROWS 128 512 */
#ifndef RFFPK_MAX_TILE_ROWS
#define RFFPK_MAX_TILE_ROWS 256
#endif

/* How far ahead of the transposition the rows are prefetched, in bytes after the next block of as
 * many rows as a vector holds numbers. 4 to 12 KiB measured alike, beyond 24 KiB the load of narrow
 * rows takes a third longer (Zen 4).
 *     python -m bench.speed.constants PREFETCH_BYTES 4096 32768 */
#ifndef RFFPK_PREFETCH_BYTES
#define RFFPK_PREFETCH_BYTES 8192
#endif

/* Landmarks in a block, whose products with some rows are made and searched for the nearest while
 * they are in the first-level cache: a multiple of 12, four of them in a part.
 *     python -m bench.speed.constants LANDMARK_BLOCK 12 48 96 */
#ifndef RFFPK_LANDMARK_BLOCK
#define RFFPK_LANDMARK_BLOCK 24
#endif

/* Rows that look for their nearest points in cells together: those that visit a cell share what is
 * read of it, and all keep what they have found. */
#ifndef RFFPK_CELL_ROWS
#define RFFPK_CELL_ROWS 512
#endif

/* Lines of a block of the large matrix in the skinny product. While a block is multiplied with all
 * coefficients, the next one is prefetched: with few coefficients the product runs at the rate of
 * memory, with many at that of a product of large matrices. 64 to 256 lines measured alike (Zen 5).
 *     python -m bench.speed.constants SKINNY_DEPTH 64 256 */
#ifndef RFFPK_SKINNY_DEPTH
#define RFFPK_SKINNY_DEPTH 128
#endif

/* Bytes of each of these lines, a multiple of 256. 1 to 4 KiB measured alike (Zen 5).
 *     python -m bench.speed.constants SKINNY_BYTES 1024 4096 */
#ifndef RFFPK_SKINNY_BYTES
#define RFFPK_SKINNY_BYTES 2048
#endif

/* Most sums of slots for each thread that wait for those of a slower slot, so that a thread which
 * other work keeps from running for some milliseconds does not hold up the others.
 *     python -m bench.speed.constants BUFFERS_PER_THREAD 2 8 128 */
#ifndef RFFPK_BUFFERS_PER_THREAD
#define RFFPK_BUFFERS_PER_THREAD 32
#endif

/* Most bytes of these sums for each thread, which lets them stay small beside the rows: where those
 * of a slot are large there are fewer.
 *     python -m bench.speed.constants BUFFER_BYTES_PER_THREAD 1048576 67108864 --clusters 1000 */
#ifndef RFFPK_BUFFER_BYTES_PER_THREAD
#define RFFPK_BUFFER_BYTES_PER_THREAD (8 << 20)
#endif

/* Most bytes of the sums of one slot for each thread: there are fewer threads where these would
 * take more. It is a limit of memory: with two threads it takes effect from k F = 67 million on.
 * What a lower one would cost: python -m bench.speed.constants BUFFER_BYTES 33554432 --clusters
 * 20000 --rows 20000 */
#ifndef RFFPK_BUFFER_BYTES
#define RFFPK_BUFFER_BYTES (1 << 30)
#endif

/* Multiply-adds that one thread does in about the time that it takes to wake another one and to
 * wait for the end of its work. A loop has no more threads than such portions of work.
 *     python -m bench.speed.constants THREAD_WORK 1000000 16000000 --rows 2048 */
#ifndef RFFPK_THREAD_WORK
#define RFFPK_THREAD_WORK 2000000
#endif

#endif
