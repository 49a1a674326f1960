//! Jobs that fail, are broken, do not read, or are stopped.

use std::io::BufRead;

use super::*;

/// A plan whose job fails at the step that it is given.
#[derive(Debug)]
struct FailingPlan {
    at: &'static str,
    broken: bool,
    reads: Reads,
}

impl FailingPlan {
    fn fail(&self, at: &str) -> Result<(), BatchJobError> {
        let reason = || "é".repeat(3000);
        if at != self.at {
            Ok(())
        } else if self.broken {
            Err(BatchJobError::Broken(reason()))
        } else {
            Err(BatchJobError::Failed(reason()))
        }
    }
}

impl Plan for FailingPlan {
    fn reduce(&self) -> Reduce {
        Reduce::Concatenate
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        self.fail("start")?;
        Ok(Box::new(FailingJob(self)))
    }
}

struct FailingJob<'a>(&'a FailingPlan);

impl Job for FailingJob<'_> {
    fn reads(&self) -> Reads {
        self.0.reads
    }

    fn begin(&mut self, _file: &File, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        out.write(b"b")?;
        self.0.fail("begin")
    }

    fn bytes(&mut self, _bytes: &[u8], out: &mut dyn Sink) -> Result<(), BatchJobError> {
        out.write(b"x")?;
        self.0.fail("bytes")
    }

    fn record(
        &mut self,
        record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        out.write(b"r")?;
        self.0.fail("record")?;
        Ok(record.read_end()?)
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        out.write(b"e")?;
        self.0.fail("end")
    }
}

/// Fails if a record that a job cannot handle ends the job, a component that broke is called again, or a failure has no
/// offset or an endless reason.
#[test]
fn failing_job_continues_and_broken_job_ends() {
    let bytes = write(WarcWriter::gzip_writer(Vec::new(), 6));
    let count = records().len();
    let all = format!("b{}e", "r".repeat(count));
    for (at, broken, reads, output, failures) in [
        ("start", false, Reads::Records, "", 1),
        ("start", true, Reads::Records, "", 1),
        ("begin", false, Reads::Records, "b", 1),
        ("begin", true, Reads::Bytes, "b", 1),
        ("record", false, Reads::Records, all.as_str(), count),
        ("record", true, Reads::Records, "br", 1),
        ("bytes", false, Reads::Bytes, "bx", 1),
        ("bytes", true, Reads::Bytes, "bx", 1),
        ("end", false, Reads::Records, all.as_str(), 1),
        ("end", true, Reads::Bytes, "bxe", 1),
        ("end", true, Reads::Nothing, "be", 1),
        ("never", false, Reads::Nothing, "be", 0),
    ] {
        let plan = FailingPlan { at, broken, reads };
        let mut out = Vec::new();
        let control = StopControl::default();
        let mut source = HoledSource::new(&bytes, &[]);
        let done = run_file(
            &plan,
            FileInput {
                file: &file("a", &bytes),
                source: &mut source,
            },
            &mut out,
            &control,
        )
        .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), output, "{plan:?}");
        assert_eq!(done.failures.len(), failures, "{plan:?}");
        let kind = if broken {
            FailureKind::Component
        } else {
            FailureKind::Job
        };
        for failure in &done.failures {
            assert_eq!(failure.kind, kind, "{plan:?}");
            assert_eq!(failure.reason.chars().count(), 1000, "{plan:?}");
            assert_eq!(
                failure.offset.is_some(),
                at == "record" || at == "bytes",
                "{plan:?}"
            );
        }
    }
}

/// Fails if a file in which every record fails fills the memory with failures, or those beyond the limit are not
/// counted.
#[test]
fn no_more_failures_are_kept_than_may_be() {
    let head = Builder::new(WarcType::Metadata, "urn:uuid:1", DATE)
        .render_head(0)
        .unwrap();
    let bytes = [&head[..], b"\r\n\r\n"].concat().repeat(150);
    let plan = FailingPlan {
        at: "record",
        broken: false,
        reads: Reads::Records,
    };
    let control = StopControl::default();
    let mut source = HoledSource::new(&bytes, &[]);
    let done = run_file(
        &plan,
        FileInput {
            file: &file("a", &bytes),
            source: &mut source,
        },
        &mut Vec::new(),
        &control,
    )
    .unwrap();
    assert_eq!(done.failures.len(), MOST_FAILURES);
    assert_eq!((done.more_failures, done.records), (50, 150));
}

/// Fails if a job that reads a file as bytes is given bytes from behind damage, or its end, as if nothing were lost.
#[test]
fn damage_ends_a_job_for_bytes() {
    let bytes = vec![7; 5000];
    for (damaged, output) in [(&[][..], "bxe"), (&[0], "b"), (&[4], "bx")] {
        let plan = FailingPlan {
            at: "never",
            broken: false,
            reads: Reads::Bytes,
        };
        let mut out = Vec::new();
        let control = StopControl::default();
        let mut source = HoledSource::new(&bytes, damaged);
        let done = run_file(
            &plan,
            FileInput {
                file: &file("a", &bytes),
                source: &mut source,
            },
            &mut out,
            &control,
        )
        .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), output);
        let offsets: Vec<_> = done.failures.iter().map(|failure| failure.offset).collect();
        let expected: Vec<_> = damaged.iter().map(|group| Some(group * GROUP)).collect();
        assert_eq!(offsets, expected);
    }
}

/// Fails if a file that ends before its recorded size counts as read, or an offline volume is not the reason that
/// people see.
#[test]
fn shortened_or_absent_file_is_reported() {
    struct OfflineSource;
    impl FileSource for OfflineSource {
        fn read_at(&mut self, _: u64, _: &mut [u8]) -> Result<usize, ReadBytesError> {
            Err(ReadBytesError::Gone("the volume is offline".into()))
        }
    }
    let bytes = write(WarcWriter::gzip_writer(Vec::new(), 6));
    let control = StopControl::default();
    for reads in [Reads::Bytes, Reads::Records] {
        let plan = FailingPlan {
            at: "never",
            broken: false,
            reads,
        };
        let mut longer = file("a.warc.gz", &bytes);
        longer.size += 100;
        let mut source = HoledSource::new(&bytes, &[]);
        let done = run_file(
            &plan,
            FileInput {
                file: &longer,
                source: &mut source,
            },
            &mut Vec::new(),
            &control,
        )
        .unwrap();
        assert_eq!(done.failures.len(), 1, "{done:?}");
        assert_eq!(done.failures[0].offset, Some(bytes.len() as u64));
        let done = run_file(
            &plan,
            FileInput {
                file: &longer,
                source: &mut OfflineSource,
            },
            &mut Vec::new(),
            &control,
        )
        .unwrap();
        assert_eq!(done.failures.len(), 1, "{done:?}");
        assert_eq!(done.failures[0].reason, "the volume is offline");
    }
}

/// Says stop while it is read.
struct StoppingSource<'a> {
    inner: HoledSource<'a>,
    control: StopControl,
    after: u64,
}

impl FileSource for StoppingSource<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadBytesError> {
        if self.inner.reads == self.after {
            self.control.stop(Stop::Cancelled);
        }
        assert!(self.inner.reads <= self.after, "it read on");
        self.inner.read_at(offset, buffer)
    }
}

/// A sink that has no room.
struct FullSink;

impl Sink for FullSink {
    fn write(&mut self, _: &[u8]) -> Result<(), Stop> {
        Err(Stop::Output)
    }
}

/// Fails if a stopped job reads on to the end of a large record or of bytes without records, or a full output does not
/// stop it.
#[test]
fn a_stop_ends_the_reading_at_once() {
    let mut writer = WarcWriter::plain_writer(Vec::new());
    let head = Builder::new(WarcType::Metadata, "urn:uuid:1", DATE)
        .render_head(6_000_000)
        .unwrap();
    writer
        .write_record(&head, 6_000_000, &mut std::io::repeat(b'x').take(6_000_000))
        .unwrap();
    let large = writer.into_inner();
    let noise = b"no record\n".repeat(500_000);
    for bytes in [large, noise] {
        for after in [0, 1, 5] {
            for reads in [Reads::Bytes, Reads::Records] {
                let plan = FailingPlan {
                    at: "never",
                    broken: false,
                    reads,
                };
                let control = StopControl::default();
                let mut source = StoppingSource {
                    inner: HoledSource::new(&bytes, &[]),
                    control: control.clone(),
                    after,
                };
                let stopped = run_file(
                    &plan,
                    FileInput {
                        file: &file("a", &bytes),
                        source: &mut source,
                    },
                    &mut Vec::new(),
                    &control,
                );
                assert_eq!(stopped, Err(Stop::Cancelled));
            }
        }
    }
    // Before it begins, and by the reader of the output.
    let control = StopControl::default();
    control.stop(Stop::Time);
    let mut source = HoledSource::new(b"", &[]);
    let stopped = run_file(
        &HashPlan,
        FileInput {
            file: &file("a", b""),
            source: &mut source,
        },
        &mut Vec::new(),
        &control,
    );
    assert_eq!(stopped, Err(Stop::Time));
    let bytes = write(WarcWriter::plain_writer(Vec::new()));
    let stopped = run_file(
        &HashPlan,
        FileInput {
            file: &file("a", &bytes),
            source: &mut HoledSource::new(&bytes, &[]),
        },
        &mut FullSink,
        &StopControl::default(),
    );
    assert_eq!(stopped, Err(Stop::Output));
}

/// Looks at one line of each record, and leaves the rest.
#[derive(Debug)]
struct GlancePlan;

impl Plan for GlancePlan {
    fn reduce(&self) -> Reduce {
        Reduce::Concatenate
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(Self))
    }
}

impl Job for GlancePlan {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        _out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        // The job does not care for a line that it could not read.
        let _line = record.read_until(b'\n', &mut Vec::new());
        Err(BatchJobError::Failed("it does not like it".into()))
    }
}

/// Fails if damage in bytes that the job skipped, or whose error the job swallowed, is not reported, or reported twice.
#[test]
fn damage_is_reported_whatever_the_job_reads() {
    for (name, bytes) in files() {
        for damaged in 0..(bytes.len() as u64).div_ceil(GROUP) {
            let mut source = HoledSource::new(&bytes, &[damaged]);
            let control = StopControl::default();
            let done = run_file(
                &GlancePlan,
                FileInput {
                    file: &file(name, &bytes),
                    source: &mut source,
                },
                &mut Vec::new(),
                &control,
            )
            .unwrap();
            let told = done.failures.iter().filter(|failure| {
                failure.kind == FailureKind::Damaged && failure.offset == Some(damaged * GROUP)
            });
            assert_eq!(told.count(), 1, "{name} {damaged}");
        }
    }
}
