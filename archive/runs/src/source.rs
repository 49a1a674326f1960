//! The bytes of one copy, each proven before a job is shown it. Opened when the job first asks for some.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_batch::{Control, ReadError, Source};
use archive_bitarchive::{Entry, Layout};
use archive_daemon::Counter;
use archive_durable::{DiskError, UncachedFile};
use archive_model::Root;
use archive_proof::{ProvenReader, Unproven};

/// A copy that was opened.
#[derive(Debug)]
pub(crate) struct Copy {
    data: UncachedFile,
    outboard: Option<UncachedFile>,
}

impl Copy {
    /// An outboard that cannot be opened is as good as none: that costs time, and blames no data.
    fn open(layout: &Layout, entry: &Entry) -> Result<Self, DiskError> {
        let target = layout.target(&entry.name);
        Ok(Self {
            data: UncachedFile::open(&target.file)?,
            outboard: UncachedFile::open(&target.outboard).ok(),
        })
    }
}

/// What went wrong with a copy while it was read.
#[derive(Debug, Default)]
pub(crate) enum Trouble {
    /// Nothing.
    #[default]
    None,
    /// Some of its bytes could not be shown.
    Damaged,
    /// It could not be opened.
    Closed(DiskError),
}

/// Reads one copy.
pub(crate) struct Proven<'a> {
    entry: &'a Entry,
    root: Root,
    layout: &'a Layout,
    copy: &'a OnceLock<Copy>,
    reader: Option<ProvenReader<'a, UncachedFile, UncachedFile>>,
    control: &'a Control,
    counted: (&'a AtomicU64, &'a Counter),
    trouble: Trouble,
}

impl<'a> Proven<'a> {
    /// A copy that is opened into `copy` when it is first read.
    pub(crate) fn new(
        (entry, root, layout): (&'a Entry, Root, &'a Layout),
        copy: &'a OnceLock<Copy>,
        control: &'a Control,
        counted: (&'a AtomicU64, &'a Counter),
    ) -> Self {
        Self {
            entry,
            root,
            layout,
            copy,
            reader: None,
            control,
            counted,
            trouble: Trouble::None,
        }
    }

    /// What went wrong, when all is read.
    pub(crate) fn into_trouble(self) -> Trouble {
        self.trouble
    }

    fn reader(&mut self) -> Result<&mut ProvenReader<'a, UncachedFile, UncachedFile>, ReadError> {
        if self.reader.is_none() {
            let copy = match Copy::open(self.layout, self.entry) {
                Ok(copy) => self.copy.get_or_init(|| copy),
                Err(error) => {
                    let reason = error.to_string();
                    self.trouble = Trouble::Closed(error);
                    return Err(ReadError::Gone(reason));
                }
            };
            let size = self.entry.row.size;
            let reader = ProvenReader::new(&copy.data, copy.outboard.as_ref(), self.root, size);
            self.reader = Some(reader);
        }
        self.reader
            .as_mut()
            .ok_or_else(|| ReadError::Gone("it is not open".to_owned()))
    }
}

impl Source for Proven<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let (control, (bytes, counter)) = (self.control.clone(), self.counted);
        let over = |why: &dyn std::fmt::Display| ReadError::Gone(format!("the job ends: {why}"));
        control.check().map_err(|stop| over(&stop))?;
        let mut progress = |read| {
            bytes.fetch_add(read, Ordering::Relaxed);
            counter.inc_by(read);
            match control.check() {
                Ok(()) => ControlFlow::Continue(()),
                Err(_stop) => ControlFlow::Break(()),
            }
        };
        match self.reader()?.read_at(offset, buffer, &mut progress) {
            Ok(count) => Ok(count),
            Err(Unproven::Damaged { range, reason }) => {
                self.trouble = Trouble::Damaged;
                Err(ReadError::Damaged { range, reason })
            }
            Err(Unproven::Stopped) => Err(over(&"it was stopped")),
        }
    }
}
