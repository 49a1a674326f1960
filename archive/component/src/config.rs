//! The settings of an engine, which are the same wherever a component is compiled or run.

use std::path::Path;

use wasmtime::{CacheConfig, Config, Engine};

/// The depth to which components may call.
pub(super) const STACK: usize = 1 << 20;

/// Returns an engine as all processes of a node have it: code that one compiles, the others run.
pub(super) fn make_engine(code: Option<&Path>) -> wasmtime::Result<Engine> {
    Engine::new(&config(code)?)
}

fn config(code: Option<&Path>) -> wasmtime::Result<Config> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        // Results are the same on every node, whatever its processor does with values that are no numbers.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true);
    if let Some(code) = code {
        let mut settings = CacheConfig::new();
        settings
            .with_directory(code)
            // A file that is used often would be written again, and then not be what was noted.
            .with_optimized_compression_usage_counter_threshold(u64::MAX);
        config.cache(Some(wasmtime::Cache::new(settings)?));
    }
    Ok(config)
}
