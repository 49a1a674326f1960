//! `holdfast get --salvage`: what is left of a damaged file, zeros where nothing is, and a map of the holes.

#![expect(
    clippy::ref_option_ref,
    reason = "serde hands over the field of `Report` as it is"
)]

mod records;

use std::path::{Path, PathBuf};

use archive_client::{Access, FileRange, Hole, Losses, LostRecord, SalvagedPart, Span};
use archive_model::{FileName, Root};
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::losses::lines_of;
use tools_terminal::output::{size_text, tell_user};
use tools_terminal::progress::TransferProgress;
use tools_terminal::save::{Destination, Partial};
use tools_terminal::session::Session;

/// The number of zeros written at a time.
const ZEROS: usize = 64 * 1024;

/// The most holes whose records are looked for.
const MOST_HOLES: usize = 100_000;

/// The places that the bytes and the map are written to.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) path: PathBuf,
    /// The place of the map; `None`: beside the file, where there is a hole.
    pub(super) map: Option<PathBuf>,
    pub(super) force: bool,
    pub(super) is_stdout: bool,
}

/// The result of salvaging, for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a FileName,
    /// The size of the whole file.
    size: u64,
    root: Root,
    /// The first byte that was written.
    start: u64,
    /// The offset behind the last byte that was written.
    end: u64,
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    path: &'a Path,
    /// The number of bytes that are good in no replica; zeros stand in their place.
    lost: u64,
    /// The number of those bytes that may be good in a replica that could not be read.
    unknown: u64,
    holes: u64,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "tools_terminal::shown_path::optional"
    )]
    map: Option<&'a Path>,
    /// The records in the holes.
    #[serde(skip_serializing_if = "Option::is_none")]
    losses: Option<&'a Losses>,
}

/// A line of the map that is no hole.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Line<'a> {
    /// A record in a hole.
    Record(&'a LostRecord),
    /// A stretch with records that cannot be named.
    UnknownRecords(&'a Span),
}

/// The map: one hole a line, as JSON.
struct Map<'a> {
    places: &'a Places,
    path: Option<PathBuf>,
    file: Option<Partial>,
    lost: u64,
    unknown: u64,
    holes: u64,
    /// The first holes, to look for the records in them.
    kept: Vec<Hole>,
}

impl<'a> Map<'a> {
    fn new(places: &'a Places) -> Result<Self, Failure> {
        let mut map = Self {
            places,
            path: places.map.clone(),
            file: None,
            lost: 0,
            unknown: 0,
            holes: 0,
            kept: Vec::new(),
        };
        map.open()?;
        Ok(map)
    }

    fn open(&mut self) -> Result<(), Failure> {
        if let (Some(path), None) = (&self.path, &self.file) {
            self.file = Some(Partial::create(path, self.places.force)?);
        }
        Ok(())
    }

    fn add(&mut self, hole: &Hole) -> Result<(), Failure> {
        let Hole {
            start,
            end,
            unknown,
        } = *hole;
        self.holes += 1;
        if self.kept.len() < MOST_HOLES {
            self.kept.push(*hole);
        }
        self.lost += end - start;
        self.unknown += if unknown { end - start } else { 0 };
        if self.path.is_none() && !self.places.is_stdout {
            let mut path = self.places.path.clone().into_os_string();
            path.push(".holes.jsonl");
            self.path = Some(path.into());
            self.open()?;
        }
        let Some(file) = &mut self.file else {
            let why = if unknown {
                "no replica that could be read has them"
            } else {
                "no replica has them intact"
            };
            let last = end - 1;
            tell_user(&format!("bytes {start}-{last} are zeros: {why}"));
            return Ok(());
        };
        write(file, hole)
    }

    /// Adds the records in the holes.
    fn name(&mut self, losses: &Losses) -> Result<(), Failure> {
        let Some(file) = self.file.as_mut().filter(|_| !losses.not_an_archive_file) else {
            return Ok(());
        };
        for record in &losses.records {
            write(file, &Line::Record(record))?;
        }
        for span in &losses.unknown {
            write(file, &Line::UnknownRecords(span))?;
        }
        Ok(())
    }
}

fn write(file: &mut Partial, line: &impl Serialize) -> Result<(), Failure> {
    let line =
        serde_json::to_string(line).map_err(|error| Failure::because_failed(error.to_string()))?;
    file.write(format!("{line}\n").as_bytes())
}

pub(super) async fn run_salvage(
    places: Places,
    wanted: FileRange,
    context: &CommandContext,
) -> Result<Exit, Failure> {
    let session = Session::open(&context.global)?;
    let mut salvage = session.reader().salvage(&wanted).await?;
    let mut destination = Destination::open(&places.path, places.force, &context.output)?;
    let mut map = Map::new(&places)?;
    let range = salvage.range.clone();
    let progress = TransferProgress::of_bytes(range.end - range.start);
    let mut at = range.start;
    while let Some(part) = salvage.next().await? {
        let before = at;
        match part {
            SalvagedPart::Bytes(bytes) => {
                destination.write(&bytes)?;
                at += bytes.len() as u64;
            }
            SalvagedPart::Hole(hole) => {
                progress.suspend(|| map.add(&hole))?;
                zeros(&mut destination, hole.end - hole.start)?;
                at += hole.end - hole.start;
            }
        }
        progress.step_bytes(before, at);
    }
    progress.finish();
    destination.finish()?;
    let losses = if map.holes == 0 || places.is_stdout {
        None
    } else {
        let name = &salvage.admission.name;
        let losses = records::find_records(&places.path, name, range.clone(), &map).await?;
        map.name(&losses)?;
        Some(losses)
    };
    if let Some(file) = map.file.take() {
        file.keep()?;
    }
    let exit = if map.holes == 0 {
        Exit::Done
    } else {
        Exit::Failed
    };
    let admission = &salvage.admission;
    if places.is_stdout {
        return Ok(exit);
    }
    let Map {
        lost,
        unknown,
        holes,
        ..
    } = map;
    if context.output.is_json() {
        context.output.write_document(&Report {
            name: &admission.name,
            size: admission.size,
            root: admission.root,
            start: range.start,
            end: range.end,
            path: &places.path,
            lost,
            unknown,
            holes,
            map: map.path.as_deref(),
            losses: losses.as_ref(),
        })?;
        return Ok(exit);
    }
    let good = size_text(range.end - range.start - lost);
    let shown = places.path.display();
    let line = format!("{shown}  {good} verified  {}", admission.root);
    context.output.write_line(&line)?;
    if let Some(path) = map.path.filter(|_| holes > 0) {
        let maybe = if unknown == 0 {
            String::new()
        } else {
            format!(", {} of them only unknown", size_text(unknown))
        };
        let shown = path.display();
        context.output.write_line(&format!(
            "{shown}  {holes} holes, {} are zeros{maybe}",
            size_text(lost)
        ))?;
    }
    for line in losses.iter().flat_map(lines_of) {
        context.output.write_line(&line)?;
    }
    Ok(exit)
}

fn zeros(destination: &mut Destination, mut count: u64) -> Result<(), Failure> {
    let zeros = vec![0; ZEROS];
    while count > 0 {
        let next = usize::try_from(count).unwrap_or(ZEROS).min(ZEROS);
        destination.write(&zeros[..next])?;
        count -= next as u64;
    }
    Ok(())
}
