/* The tuning constants of the core. They change the speed, and the results only by rounding.
 *
 * Each constant can be set when the core is compiled, for example with -DRFFPK_SLOT_ROWS=2048. The
 * command beside a constant builds the core with the values in the command, and prints the ratios
 * of the times. */
#ifndef RFFPK_TUNING_H
#define RFFPK_TUNING_H

/* Rows of a slot. Sums are merged slot by slot in the order of the rows. So this number and the
 * instruction set determine the bits of a result, and the number of threads does not. All work that
 * belongs to no stage, including the merge, measured 1.2 % of the pass at k F = 2 160 and 0.6 % at
 * 119 000.
 *     python -m bench.speed.constants SLOT_ROWS 512 2048 */
#ifndef RFFPK_SLOT_ROWS
#define RFFPK_SLOT_ROWS 1024
#endif

/* Entries for each column in a slot, if the features are the columns of sparse rows. A slot then
 * has more rows, because the sums of every slot are set to zero and merged.
 *     python -m bench.speed.constants SLOT_ENTRIES 1 16 */
#ifndef RFFPK_SLOT_ENTRIES
#define RFFPK_SLOT_ENTRIES 4
#endif

/* With at least this number of clusters, the hard rule adds each row only to the sums of its
 * cluster. With fewer clusters the product of all weights, nearly all of them 0, with the features
 * is faster.
 *     python -m bench.speed.constants ONE_HOT_CLUSTERS 1 1000000 --clusters 32 */
#ifndef RFFPK_ONE_HOT_CLUSTERS
#define RFFPK_ONE_HOT_CLUSTERS 32
#endif

/* Bytes of a tile, a block of rows. It should stay in the second-level cache, and leave room there
 * for the coefficients. Flat within 2 % from 512 KiB to 1 MiB on a cache of 1 MiB (Zen 4).
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

/* How far ahead of the transposition rows are prefetched, in bytes. The distance counts from the
 * end of the next block, which has as many rows as a vector has numbers. 4 to 12 KiB measured
 * alike. Beyond 24 KiB the load of narrow rows takes a third longer (Zen 4).
 *     python -m bench.speed.constants PREFETCH_BYTES 4096 32768 */
#ifndef RFFPK_PREFETCH_BYTES
#define RFFPK_PREFETCH_BYTES 8192
#endif

/* Landmarks in a block. Its products with STEP rows should stay in the first-level cache while they
 * are searched for the nearest landmarks. A multiple of 12; four blocks make a part.
 *     python -m bench.speed.constants LANDMARK_BLOCK 12 48 96 */
#ifndef RFFPK_LANDMARK_BLOCK
#define RFFPK_LANDMARK_BLOCK 24
#endif

/* Rows that search cells together. Rows that visit a cell share the points that are read from it,
 * but all of these rows keep their candidates in memory. */
#ifndef RFFPK_CELL_ROWS
#define RFFPK_CELL_ROWS 512
#endif

/* Lines of a block of the large matrix in the skinny product. While a block is multiplied with all
 * coefficients, the next block is prefetched. With few coefficients the product is limited by the
 * rate of memory. With many coefficients it runs at the rate of a product of large matrices. 64 to
 * 256 lines measured alike (Zen 5).
 *     python -m bench.speed.constants SKINNY_DEPTH 64 256 */
#ifndef RFFPK_SKINNY_DEPTH
#define RFFPK_SKINNY_DEPTH 128
#endif

/* Bytes of a line of a block of the large matrix, a multiple of 256. 1 to 4 KiB measured alike (Zen
 * 5).
 *     python -m bench.speed.constants SKINNY_BYTES 1024 4096 */
#ifndef RFFPK_SKINNY_BYTES
#define RFFPK_SKINNY_BYTES 2048
#endif

/* Largest number of finished slots for each thread whose sums wait for a slower slot. Other work
 * may keep a thread from running for some milliseconds, which should not stop the other threads.
 *     python -m bench.speed.constants BUFFERS_PER_THREAD 2 8 128 */
#ifndef RFFPK_BUFFERS_PER_THREAD
#define RFFPK_BUFFERS_PER_THREAD 32
#endif

/* Most bytes for each thread of sums that wait for a slower slot. It keeps the sums small beside
 * the rows: where the sums of a slot are large, fewer slots can wait.
 *     python -m bench.speed.constants BUFFER_BYTES_PER_THREAD 1048576 67108864 --clusters 1000 */
#ifndef RFFPK_BUFFER_BYTES_PER_THREAD
#define RFFPK_BUFFER_BYTES_PER_THREAD (8 << 20)
#endif

/* Most bytes of the sums that are computed at a time, one slot for each thread. If they would take
 * more, the pass has fewer threads. It is a limit of memory: with two threads it takes effect from
 * k F = 67 million on. This command measures the cost of a lower limit:
 *     python -m bench.speed.constants BUFFER_BYTES 33554432 --clusters 20000 --rows 20000 */
#ifndef RFFPK_BUFFER_BYTES
#define RFFPK_BUFFER_BYTES (1 << 30)
#endif

/* Multiply-adds that one thread does in about the time that it takes to wake another thread and to
 * wait for the end of its work. A loop has at most one thread for each such portion of work.
 *     python -m bench.speed.constants THREAD_WORK 1000000 16000000 --rows 2048 */
#ifndef RFFPK_THREAD_WORK
#define RFFPK_THREAD_WORK 2000000
#endif

#endif
