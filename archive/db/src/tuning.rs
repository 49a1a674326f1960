//! The setup of RocksDB: its memory, and the compression of tables.

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, Env,
    LogLevel, WriteBufferManager,
};

/// The compression of the rows of a table on disk. Rows of every compression can be read, whichever is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableCompression {
    /// No compression: for rows that are compressed already, or random.
    None,
    /// LZ4: fast both ways.
    Lz4,
    /// Zstandard in the last level, which has nine tenths of a large table, and LZ4 in the others, whose rows are
    /// written again soon. Smaller than LZ4 alone; a block takes about twice as long to read.
    Zstd,
}

impl TableCompression {
    fn set(self, options: &mut rocksdb::Options) {
        let (upper, last) = match self {
            Self::None => (DBCompressionType::None, DBCompressionType::None),
            Self::Lz4 => (DBCompressionType::Lz4, DBCompressionType::Lz4),
            Self::Zstd => (DBCompressionType::Lz4, DBCompressionType::Zstd),
        };
        options.set_compression_type(upper);
        options.set_bottommost_compression_type(last);
    }
}

/// The choices of the user of a database.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// The bytes for cached blocks and unwritten rows together.
    pub(crate) memory: usize,
    /// Whether batches may be written without a sync.
    pub(crate) syncs_later: bool,
    compression: Vec<(&'static str, TableCompression)>,
}

impl Tuning {
    pub(crate) const fn new() -> Self {
        Self {
            memory: 128 << 20,
            syncs_later: false,
            compression: Vec::new(),
        }
    }

    /// Sets the compression of a table; the last choice for a table counts.
    pub(crate) fn compress_table(&mut self, table: &'static str, compression: TableCompression) {
        self.compression.retain(|(name, _)| *name != table);
        self.compression.push((table, compression));
    }

    /// Returns the options of one table, from those of the database.
    pub(crate) fn to_table(&self, table: &str, database: &rocksdb::Options) -> rocksdb::Options {
        let mut options = database.clone();
        let chosen = self.compression.iter().find(|(name, _)| *name == table);
        chosen
            .map_or(TableCompression::Lz4, |(_, compression)| *compression)
            .set(&mut options);
        options
    }

    /// Returns the options of the database in RocksDB's terms, with `env` for a database that is not on disk.
    pub(crate) fn to_rocksdb(&self, env: Option<&Env>) -> rocksdb::Options {
        let cache = Cache::new_lru_cache(self.memory);
        // Unwritten rows are charged to the cache, so that they and blocks share one bound.
        let buffers = WriteBufferManager::new_write_buffer_manager_with_cache(
            self.memory / 2,
            false,
            cache.clone(),
        );

        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        blocks.set_block_size(16 << 10);
        blocks.set_bloom_filter(10.0, false);
        // Without this, indexes and filters stay in memory for every open file, beside the bound.
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        // A shard of the cache has a small part of the bound. An undivided filter of a large file would not fit, and be
        // read from the disk, whole, for every row that is asked for: 3 MB, with ten million rows.
        blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        blocks.set_partition_filters(true);
        blocks.set_metadata_block_size(16 << 10);
        blocks.set_pin_top_level_index_and_filter(true);

        let mut options = rocksdb::Options::default();
        if let Some(env) = env {
            options.set_env(env);
        }
        options.create_if_missing(true);
        options.set_paranoid_checks(true);
        // The strictest mode that opens after a kill: `AbsoluteConsistency` refuses every torn tail. Damage before the
        // tail is refused; no mode notices a log that vanished: see [`Options::at_least`].
        options.set_wal_recovery_mode(if self.syncs_later {
            // Pages of an unsynced log reach the disk in any order: everything behind the first hole is left out. No
            // table is ahead of that: RocksDB syncs the logs before it flushes one of several tables.
            DBRecoveryMode::PointInTime
        } else {
            DBRecoveryMode::TolerateCorruptedTailRecords
        });
        // The tail of a closed log is not tolerated: its size is in the manifest.
        options.set_track_and_verify_wals_in_manifest(true);
        options.set_block_based_table_factory(&blocks);
        options.set_write_buffer_manager(&buffers);
        options.set_write_buffer_size((self.memory / 8).max(1 << 20));
        options.set_max_total_wal_size(256 << 20);
        options.set_max_background_jobs(2);
        options.set_max_open_files(512);
        options.set_bytes_per_sync(1 << 20);
        // RocksDB's own log file: small, and of little use when all is well.
        options.set_log_level(LogLevel::Warn);
        options.set_max_log_file_size(1 << 20);
        options.set_keep_log_file_num(2);
        options.set_stats_dump_period_sec(0);
        options.set_stats_persist_period_sec(0);
        options
    }
}

#[cfg(test)]
mod tests {
    use rocksdb::{BottommostLevelCompaction, CompactOptions};

    use super::*;
    use crate::{DatabaseOptions, MemoryPlace};

    /// Returns the bytes on disk of two tables with the same rows, of which the first has this compression.
    fn sizes(memory: &MemoryPlace, compression: TableCompression) -> [u64; 2] {
        let options = DatabaseOptions::new("test", 1, &["chosen", "other"]);
        let options = options.with_compression("chosen", compression);
        let database = memory.open(&options).unwrap();
        ["chosen", "other"].map(|name| {
            let table = database.table::<u64, String>(name).unwrap();
            let mut load = database.load().unwrap();
            for number in 0..20_000_u64 {
                let value = format!("http://www.example.org/{:x}", number.pow(2) * 7919);
                load.put(&table, &number, &value).unwrap();
            }
            load.finish().unwrap();
            let inner = &database.inner;
            let family = inner.family(name).unwrap();
            // Without this, flushed rows become the last level as they are.
            let mut force = CompactOptions::default();
            force.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
            let all = None::<&[u8]>;
            inner.db.compact_range_cf_opt(family, all, all, &force);
            assert_eq!(table.count(), Ok(20_000));
            let size = inner
                .db
                .property_int_value_cf(family, "rocksdb.total-sst-files-size");
            size.unwrap().unwrap()
        })
    }

    /// Fails if the choice is ignored, or applied to another table.
    #[test]
    fn each_table_is_compressed_as_chosen() {
        let sizes = |chosen| sizes(&MemoryPlace::new().unwrap(), chosen);
        let [none, other] = sizes(TableCompression::None);
        let [lz4, same] = sizes(TableCompression::Lz4);
        let [zstd, again] = sizes(TableCompression::Zstd);
        assert!(none > lz4 && lz4 > zstd, "{none} {lz4} {zstd}");
        let near = |size: u64| size.abs_diff(lz4) < lz4 / 20;
        assert!(
            near(other) && near(same) && near(again),
            "{lz4}: {other} {same} {again}"
        );
    }

    /// Fails if a table can only be read with the compression that it was written with.
    #[test]
    fn table_is_read_after_another_choice() {
        let memory = MemoryPlace::new().unwrap();
        let choices = [
            TableCompression::Zstd,
            TableCompression::None,
            TableCompression::Lz4,
        ];
        for compression in choices {
            sizes(&memory, compression);
        }
        let database = memory
            .open(&DatabaseOptions::new("test", 1, &["chosen", "other"]))
            .unwrap();
        assert_eq!(database.verify(), Ok(40_001));
    }
}
