//! Progress bars on stderr, one for each replica, for a person who watches: nothing when stderr is no terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bars, each by the name of what it measures.
#[derive(Debug)]
pub struct Bars {
    all: MultiProgress,
    bars: BTreeMap<String, ProgressBar>,
}

/// The unit that a bar counts.
#[derive(Clone, Copy, Debug)]
pub enum ProgressUnit {
    /// Files, as a number.
    Files,
    /// Bytes, with their rate.
    Bytes,
}

impl ProgressUnit {
    const fn known(self) -> &'static str {
        match self {
            Self::Files => "{prefix}  {wide_bar} {human_pos}/{human_len} files  {eta}",
            Self::Bytes => "{prefix}  {wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta}",
        }
    }

    const fn unknown(self) -> &'static str {
        match self {
            Self::Files => "{prefix}  {spinner} {human_pos} files  {elapsed}",
            Self::Bytes => "{prefix}  {spinner} {bytes}  {bytes_per_sec}  {elapsed}",
        }
    }
}

impl Bars {
    /// Makes a set without bars. It draws nothing where `shown` is false.
    #[must_use]
    pub fn new(shown: bool) -> Self {
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            all: MultiProgress::with_draw_target(target),
            bars: BTreeMap::new(),
        }
    }

    /// Shows that `done` units of the work `name` are done, out of `total` where that is known.
    pub fn step_bar(&mut self, name: &str, unit: ProgressUnit, done: u64, total: Option<u64>) {
        let all = &self.all;
        let bar = self.bars.entry(name.to_owned()).or_insert_with(|| {
            let bar = all.add(ProgressBar::new_spinner().with_prefix(name.to_owned()));
            bar.set_style(style(unit.unknown()));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        if total.is_some() && bar.length() != total {
            bar.set_style(style(unit.known()));
            bar.set_length(total.unwrap_or(done));
        }
        bar.set_position(done);
    }

    /// Takes one bar away.
    pub fn end_bar(&mut self, name: &str) {
        if let Some(bar) = self.bars.remove(name) {
            bar.finish_and_clear();
        }
    }

    /// Runs work that writes on the terminal without tearing the bars.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.all.suspend(write)
    }

    /// Takes all bars away.
    pub fn finish_bars(&mut self) {
        while let Some((_, bar)) = self.bars.pop_first() {
            bar.finish_and_clear();
        }
    }
}

/// Returns the style of a template. One of ours that does not parse is seen at once; the plain bar does as well.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the template of a progress bar does not parse: the bar would then silently look like any other.
    #[test]
    fn every_template_is_one() {
        for unit in [ProgressUnit::Files, ProgressUnit::Bytes] {
            for template in [unit.known(), unit.unknown()] {
                assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
            }
        }
    }

    /// Fails if a bar that began without a total never gets one, or stays on the screen after its replica has ended.
    #[test]
    fn total_of_bar_follows_progress() {
        let mut bars = Bars::new(false);
        bars.step_bar("one", ProgressUnit::Bytes, 1, None);
        assert_eq!(bars.bars["one"].length(), None);
        bars.step_bar("one", ProgressUnit::Bytes, 2, Some(10));
        assert_eq!(
            (bars.bars["one"].length(), bars.bars["one"].position()),
            (Some(10), 2)
        );
        bars.step_bar("two", ProgressUnit::Files, 2, Some(10));
        bars.end_bar("one");
        assert_eq!(bars.bars.len(), 1);
        bars.finish_bars();
        assert!(bars.bars.is_empty());
    }
}
