//! The archive files that other projects publish, where they are at hand.

use std::path::{Path, PathBuf};

use crate::support::chain::Chain;

/// A file of another project.
#[derive(Clone, Debug)]
pub struct Sample {
    pub path: PathBuf,
    /// The name of the file in the archive: names of different projects are the same.
    pub name: String,
    /// The collection that has this file only.
    pub collection: String,
}

/// Returns the samples, or a word that there are none: those in `$HOLDFAST_SAMPLES`, or in `shared/data` beside the
/// checkout.
pub fn samples() -> Option<Vec<Sample>> {
    let named = std::env::var_os("HOLDFAST_SAMPLES").map(PathBuf::from);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = || {
        let mut folders = here.ancestors().map(|folder| folder.join("shared/data"));
        folders.find(|folder| folder.is_dir())
    };
    let Some(folder) = named.or_else(beside) else {
        tools_testing::skipped("HOLDFAST_SAMPLES names no folder with sample files");
        return None;
    };
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv")).expect("MANIFEST.tsv");
    let files = manifest.lines().skip(1).map(|line| line.split('\t').next());
    let samples = files.flatten().enumerate().map(|(number, file)| Sample {
        path: folder.join(file),
        name: file.replace('/', "--"),
        collection: format!("c{number:03}"),
    });
    Some(samples.collect())
}

/// Stores all samples, and returns the chain with a collection for each, beside `all`.
pub fn stored(samples: &[Sample]) -> Chain {
    let mut chain = Chain::start(&[]);
    let mut collections = "[[collection]]\nname = \"all\"\n".to_owned();
    let mut paths = Vec::new();
    for sample in samples {
        let path = chain.archive.path(&sample.name);
        std::os::unix::fs::symlink(&sample.path, &path).expect("a link");
        paths.push(path);
        let pattern = sample.name.replace('.', "\\\\.").replace('+', "\\\\+");
        let own = format!(
            "[[collection]]\nname = \"{}\"\nfiles = \"{pattern}\"\n",
            sample.collection
        );
        collections.push_str(&own);
    }
    chain.set_viewer(&collections);
    chain.store(&paths);
    chain
}

/// Returns the samples as words for a judge: `collection=name=path`.
pub fn words(samples: &[Sample]) -> Vec<String> {
    let word = |sample: &Sample| {
        format!(
            "{}={}={}",
            sample.collection,
            sample.name,
            sample.path.display()
        )
    };
    samples.iter().map(word).collect()
}
