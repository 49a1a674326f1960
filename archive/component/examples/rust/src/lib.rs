//! Lists the hosts of the responses of each file: a line `HOST TAB RESPONSES` for each.
//!
//! Without the standard library the component imports nothing.

#![no_std]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use exports::holdfast::batch::records::{ArchiveRecord, File, Guest};
use holdfast::batch::host;

wit_bindgen::generate!({ path: "../../wit", world: "record-job" });

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// A component has one thread.
struct Counts(RefCell<BTreeMap<String, u64>>);
unsafe impl Sync for Counts {}
static COUNTS: Counts = Counts(RefCell::new(BTreeMap::new()));

struct Domains;

impl Guest for Domains {
    fn describe() -> String {
        "Lists the hosts of the responses of each file. No arguments.".to_string()
    }

    fn begin(_file: File, arguments: Vec<(String, String)>) -> Result<(), String> {
        match arguments.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("there is no argument {name:?}")),
        }
    }

    fn record(record: ArchiveRecord) -> Result<(), String> {
        if record.kind != "response" {
            return Ok(());
        }
        let url = record.url.ok_or("a response without a URL")?;
        // An answer of a name server belongs to no host, nor does any other URL that is not `SCHEME://HOST…`.
        let Some((_, rest)) = url.split_once("://") else {
            return Ok(());
        };
        let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
        if host.is_empty() {
            return Ok(());
        }
        *COUNTS.0.borrow_mut().entry(host.to_lowercase()).or_default() += 1;
        Ok(())
    }

    fn end() -> Result<(), String> {
        for (host, count) in COUNTS.0.borrow().iter() {
            host::write(format!("{host}\t{count}\n").as_bytes());
        }
        Ok(())
    }
}

export!(Domains);
