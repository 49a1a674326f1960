//! The bytes of one copy, each proven before a job sees it. The copy is opened when the job first asks for bytes.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_batch::{FileSource, ReadBytesError, StopControl};
use archive_bitarchive::{CatalogEntry, Layout};
use archive_daemon::Counter;
use archive_durable::{DiskError, UncachedFile};
use archive_model::FileContent;
use archive_proof::{ProvenReadError, ProvenReader};

use crate::pick::PickedCopy;

/// The open files of a copy.
#[derive(Debug)]
pub(crate) struct OpenCopy {
    data: UncachedFile,
    outboard: Option<UncachedFile>,
}

impl OpenCopy {
    /// Opens the files. An outboard that cannot be opened counts as absent: that costs time, and blames no data.
    fn open(layout: &Layout, entry: &CatalogEntry) -> Result<Self, DiskError> {
        let target = layout.target_paths(&entry.name);
        Ok(Self {
            data: UncachedFile::open(&target.file)?,
            outboard: UncachedFile::open(&target.outboard).ok(),
        })
    }
}

/// The problem of a copy that showed while it was read.
#[derive(Debug, Default)]
pub(crate) enum CopyProblem {
    /// The copy has shown no problem.
    #[default]
    None,
    /// Some bytes of the copy could not be proven.
    Damaged,
    /// The copy could not be opened.
    Closed(DiskError),
}

/// A reader of one copy.
pub(crate) struct ProvenCopy<'a> {
    picked: &'a PickedCopy,
    copy: &'a OnceLock<OpenCopy>,
    reader: Option<ProvenReader<'a, UncachedFile, UncachedFile>>,
    control: &'a StopControl,
    counted: (&'a AtomicU64, &'a Counter),
    trouble: CopyProblem,
}

impl<'a> ProvenCopy<'a> {
    /// Makes a reader that opens the files into `copy` when it is first asked for bytes.
    pub(crate) fn new(
        picked: &'a PickedCopy,
        copy: &'a OnceLock<OpenCopy>,
        control: &'a StopControl,
        counted: (&'a AtomicU64, &'a Counter),
    ) -> Self {
        Self {
            picked,
            copy,
            reader: None,
            control,
            counted,
            trouble: CopyProblem::None,
        }
    }

    /// Returns the problem that the reads have shown.
    pub(crate) fn into_trouble(self) -> CopyProblem {
        self.trouble
    }

    fn reader(
        &mut self,
    ) -> Result<&mut ProvenReader<'a, UncachedFile, UncachedFile>, ReadBytesError> {
        if self.reader.is_none() {
            let copy = match OpenCopy::open(&self.picked.layout, &self.picked.entry) {
                Ok(copy) => self.copy.get_or_init(|| copy),
                Err(error) => {
                    let reason = error.to_string();
                    self.trouble = CopyProblem::Closed(error);
                    return Err(ReadBytesError::Gone(reason));
                }
            };
            let content = FileContent {
                root: self.picked.root,
                size: self.picked.entry.row.size,
            };
            let reader = ProvenReader::new(&copy.data, copy.outboard.as_ref(), content);
            self.reader = Some(reader);
        }
        self.reader
            .as_mut()
            .ok_or_else(|| ReadBytesError::Gone("it is not open".to_owned()))
    }
}

impl FileSource for ProvenCopy<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadBytesError> {
        let (control, (bytes, counter)) = (self.control.clone(), self.counted);
        let over =
            |why: &dyn std::fmt::Display| ReadBytesError::Gone(format!("the job ends: {why}"));
        control.check_stop().map_err(|stop| over(&stop))?;
        let mut progress = |read| {
            bytes.fetch_add(read, Ordering::Relaxed);
            counter.inc_by(read);
            match control.check_stop() {
                Ok(()) => ControlFlow::Continue(()),
                Err(_stop) => ControlFlow::Break(()),
            }
        };
        match self.reader()?.read_at(offset, buffer, &mut progress) {
            Ok(count) => Ok(count),
            Err(ProvenReadError::Damaged { range, reason }) => {
                self.trouble = CopyProblem::Damaged;
                Err(ReadBytesError::Damaged { range, reason })
            }
            Err(ProvenReadError::Stopped) => Err(over(&"it was stopped")),
        }
    }
}
