//! A disk that fails at every step of a job.

use std::fs;
use std::sync::Arc;

use archive_durable::fault::{FaultPlan, InjectedFault, arm_fault, matched_calls};
use rustix::io::Errno;

use crate::prelude::*;

/// The most steps at which a whole job is stopped; of more, every nth.
const STEPS: u64 = 30;

fn parts_with(unreliable: &Arc<UnreliableArchive>) -> JobEnvironment {
    environment(
        Some(Arc::clone(unreliable) as Arc<dyn Ingest>),
        Clock::system_clock(),
    )
}

/// Fails if a disk that is full from any moment on makes a job store another set of files than one that was never
/// stopped, store a response twice or not at all, delete a file without a receipt, or not say what is wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_goes_on_after_disk_was_full() {
    let _disk = DISK.write().await;
    let base = tempfile::tempdir().unwrap();
    let seed = site().await;
    let order = "files.max_size = \"2 kB\"";
    let whole = create(&base.path().join("whole"), seed.clone(), order);
    let unreliable = Arc::new(UnreliableArchive::new(&whole));
    arm_fault(None);
    let report = run(&whole, &parts_with(&unreliable)).await;
    let total = matched_calls();
    assert_eq!(report.status, HarvestJobEnd::Done);
    let expected = unreliable.responses();
    assert_eq!(expected.len(), 6);
    let step = total / STEPS + 1;
    let mut failures = 0;
    for at in (0..total).step_by(usize::try_from(step).unwrap()) {
        let directory = create(&base.path().join(at.to_string()), seed.clone(), order);
        let unreliable = Arc::new(UnreliableArchive::new(&directory));
        let environment = parts_with(&unreliable);
        let fault = if (at / step).is_multiple_of(2) {
            InjectedFault::FailFromHere(Errno::NOSPC)
        } else {
            InjectedFault::TornFromHere(Errno::NOSPC)
        };
        arm_fault(Some(FaultPlan {
            at,
            operation: None,
            fault,
        }));
        let stopped = try_run(&directory, &environment, &|_| {}).await;
        arm_fault(None);
        match stopped {
            Ok(report) if report.status == HarvestJobEnd::Done => {}
            Ok(report) => {
                failures += 1;
                let errors = report.files.iter().filter_map(|file| file.error.as_ref());
                assert!(errors.count() > 0, "{at}: {report:?}");
            }
            Err(error) => {
                failures += 1;
                assert!(error.to_string().contains("No space left"), "{at}: {error}");
            }
        }
        // What is not here is stored, with its receipt.
        let receipts = names(&directory.path_of("receipts"));
        for name in unreliable.names() {
            let is_here = ["warcs", "metadata"]
                .iter()
                .any(|folder| fs::exists(directory.path_of(folder).join(&name)).unwrap());
            let has_receipt = receipts.contains(&format!("{name}.receipt.json"));
            assert!(is_here || has_receipt, "{at}: {name}");
        }
        let report = run(&reopened(&directory), &environment).await;
        assert_eq!(report.status, HarvestJobEnd::Done, "{at}: {report:?}");
        assert_eq!(unreliable.responses(), expected, "{at}");
        let named: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(named.len(), unreliable.names().len(), "{at}: {named:?}");
        assert!(
            report.files.iter().all(|file| file.stored && file.size > 0),
            "{at}"
        );
        for folder in ["warcs", "metadata"] {
            assert_eq!(names(&directory.path_of(folder)).len(), 0, "{at}");
        }
    }
    assert!(failures > 10, "{failures}");
}
